// SPDX-License-Identifier: Apache-2.0
// shunt.yaml: what is accepted, which defaults hold, and that every error names file, field and
// reason.
#include "ctrl/base/stats_proto.h"
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_vips.h"
#include "lb/pick/limits.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const whole =
	"eal: [--in-memory, --no-huge, -m, \"512\"]\n"
	"workers: [0]\n"
	"idle: poll\n"
	"ports:\n"
	"  - device: net_af_packet0,iface=lb-c\n"
	"    addresses: [10.81.0.10/24]\n"
	"  - device: net_af_packet1,iface=lb-b\n"
	"    addresses: [10.82.255.254/16]\n"
	"    gateway: 10.82.0.1\n"
	"    mtu: 1400\n"
	"frontends:\n"
	"  - {name: web, address: 10.81.0.10, port: 8080, target: web,"
	" authority: web.example, grpc_headers: all, wait_for_ready: header,"
	" reply_details: true}\n"
	"stats: {socket: /run/shunt/stats.sock, mode: \"0600\"}\n"
	"log: {level: debug}\n"
	"sessions: {use_ejected: true}\n"
	"limits: {connections: 32768, requests: 1000, buffers_mib: 512, xds_resources: 5000, "
	"xds_response_mib: 8, idle_timeout_s: 0, stream_idle_timeout_s: 7, "
	"client_buffer_kib: 2048, streams: 250}\n"
	"xds: {protocol: delta, deleted: drop, subset_seed: \"1\"}\n"
	"retries: {max_attempts: 3, idempotent: false}\n";

// Writes text to a temporary file, loads it, removes it.
static struct config *load(const char *text, struct lb_err *err)
{
	char path[] = "/tmp/shunt-config-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	struct config *c = config_load(path, err);
	unlink(path);
	return c;
}

// whole with one piece replaced.
static char *with(const char *piece, const char *instead)
{
	const char *at = strstr(whole, piece);
	assert_non_null(at);
	char *text = NULL;
	assert_true(asprintf(&text, "%.*s%s%s", (int)(at - whole), whole, instead,
			    at + strlen(piece)) > 0);
	return text;
}

static void every_field_of_the_documented_shape_is_read(void **state)
{
	struct lb_err err = {0};
	struct config *c = load(whole, &err);
	assert_string_equal(err.text, "");
	assert_non_null(c);
	assert_int_equal(c->n_eal, 4);
	assert_string_equal(c->eal[3], "512");
	assert_int_equal(c->idle, CONFIG_IDLE_POLL);
	assert_int_equal(c->n_ports, 2);
	assert_int_equal(c->ports[0].mtu, 1500);
	assert_int_equal(c->ports[1].mtu, 1400);
	assert_int_equal(c->ports[1].address_lens[0], 16);
	assert_int_equal(ip_to_v4(&c->ports[1].gateway_ips[0]), 0x0a520001);
	assert_string_equal(c->frontends[0].authority, "web.example");
	assert_int_equal(c->frontends[0].grpc_headers, CONFIG_GRPC_ALL);
	assert_int_equal(c->frontends[0].wait_for_ready, CONFIG_WAIT_HEADER);
	assert_true(c->frontends[0].reply_details);
	assert_true(c->sessions->use_ejected); // A75-O22
	assert_string_equal(c->xds->subset_seed, "1"); // A68-04
	assert_int_equal(c->max_connections, 32768);
	assert_int_equal(c->max_requests, 1000);
	assert_int_equal(c->max_buffers_mib, 512);
	assert_int_equal(c->idle_timeout_s, 0); // TH-80
	assert_int_equal(c->stream_idle_timeout_s, 7); // TH-98
	assert_int_equal(c->client_buffer_kib, 2048); // TH-86
	assert_int_equal(c->max_streams, 250); // TH-21
	assert_int_equal(c->max_attempts, 3);
	assert_false(c->retry_idempotent);
	assert_int_equal(c->xds->protocol, CONFIG_XDS_DELTA);
	assert_int_equal(c->xds->deleted, CONFIG_XDS_DROP); // DE-06
	assert_int_equal(c->stats->mode_bits, 0600);
	assert_int_equal(c->log_level, LOG_LEVEL_DEBUG);
	config_free(c);
}

static void what_is_left_out_gets_its_default(void **state)
{
	struct lb_err err = {0};
	struct config *c = load("ports: [{device: net_tap0, addresses: [10.0.0.1/8]}]\n"
				"frontends: [{name: a, address: 10.0.0.1, port: 80, target: t}]\n"
				"log: {}\n",
		&err);
	assert_string_equal(err.text, "");
	assert_non_null(c);
	assert_int_equal(c->n_eal, 0);
	assert_int_equal(c->n_workers, 1);
	assert_int_equal(c->idle, CONFIG_IDLE_BACKOFF);
	assert_null(c->frontends[0].authority);
	assert_int_equal(c->frontends[0].grpc_headers, CONFIG_GRPC_METADATA);
	assert_int_equal(c->frontends[0].wait_for_ready, CONFIG_WAIT_NEVER);
	assert_false(c->frontends[0].reply_details); // TH-95
	assert_string_equal(c->stats->socket, STATS_DEFAULT_SOCKET);
	assert_int_equal(c->stats->mode_bits, 0660);
	assert_int_equal(c->log_level, LOG_LEVEL_INFO);
	assert_int_equal(c->max_connections, 16384);
	assert_int_equal(c->max_requests, 65536);
	assert_int_equal(c->max_buffers_mib, 256);
	assert_int_equal(c->idle_timeout_s, 300); // TH-80
	assert_int_equal(c->stream_idle_timeout_s, 300); // TH-98
	assert_int_equal(c->client_buffer_kib, 1024); // TH-86
	assert_int_equal(c->max_streams, 100); // TH-21
	assert_int_equal(c->max_attempts, 8);
	assert_true(c->retry_idempotent);
	assert_int_equal(c->drain_s, 30);
	assert_int_equal(c->listener_drain_s, 600);
	assert_null(c->dns_servers);
	assert_null(c->sessions);
	assert_null(c->xds); // state of the world
	assert_null(c->csds);
	config_free(c);
}

static void the_status_port_is_on_loopback_unless_said_otherwise(void **state)
{
	static const struct {
		const char *line, *why; // NULL = accepted
	} rows[] = {{"csds: {listen: 127.0.0.1:50052}\n", NULL},
		{"csds: {listen: 127.255.0.1:1}\n", NULL},
		{"csds: {listen: \"[::1]:65535\", tls: {certificate: a, ca: b}}\n", NULL},
		{"csds: {listen: \"0.0.0.0:50052\", allow_remote: true}\n", NULL},
		{"csds: {listen: \"0.0.0.0:50052\"}\n", "not a loopback"},
		{"csds: {listen: \"0.0.0.0:50052\", allow_remote: false}\n", "not a loopback"},
		{"csds: {listen: \"[::]:50052\"}\n", "not a loopback"},
		{"csds: {listen: 10.0.0.1:5, tls: {certificate: a}}\n", "not a loopback"},
		{"csds: {listen: \"[::ffff:10.0.0.1]:50052\"}\n", "csds.listen"},
		{"csds: {listen: 127.0.0.1}\n", "not an address with a port"},
		{"csds: {listen: \"127.0.0.1:0\"}\n", "not an address with a port"},
		{"csds: {listen: \"127.0.0.1:65536\"}\n", "not an address with a port"},
		{"csds: {listen: \"127.0.0.1:50052x\"}\n", "not an address with a port"},
		{"csds: {listen: \"::1:50052\"}\n", "not an address with a port"},
		{"csds: {listen: \"localhost:50052\"}\n", "not an address with a port"},
		{"csds: {listen: \"unix:/tmp/x\"}\n", "not an address with a port"},
		{"csds: {}\n", "listen"}, {"csds: {port: 50052}\n", "csds"},
		{"csds: 127.0.0.1:50052\n", "csds"}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_err err = {0};
		char *text = NULL;
		assert_true(asprintf(&text, "%s%s", whole, rows[i].line) > 0);
		struct config *c = load(text, &err);
		if (!rows[i].why) {
			assert_string_equal(err.text, "");
			assert_non_null(c->csds);
		} else {
			assert_null(c);
			assert_non_null(strstr(err.text, "/tmp/shunt-config-"));
			assert_non_null(strstr(err.text, "csds"));
			if (!strstr(err.text, rows[i].why))
				fail_msg("%s: %s", rows[i].line, err.text);
		}
		config_free(c);
		free(text);
	}
}

static void name_servers_stand_in_place_of_those_of_resolv_conf(void **state)
{
	static const struct {
		const char *line, *servers; // NULL = refused
	} rows[] = {{"dns: {servers: [10.0.0.2]}\n", "10.0.0.2"},
		{"dns: {servers: [10.0.0.2:5353, \"fd00::2\", \"[fd00::2]:53\"]}\n",
			"10.0.0.2:5353,fd00::2,[fd00::2]:53"},
		{"dns: {servers: [ns.example]}\n", NULL}, {"dns: {servers: []}\n", NULL},
		{"dns: {}\n", NULL}, {"dns: {servers: [\"10.0.0.2:0\"]}\n", NULL},
		{"dns: {servers: [\"10.0.0.2:65536\"]}\n", NULL},
		{"dns: {servers: [\"10.0.0.2: 53\"]}\n", NULL},
		{"dns: {servers: [\"10.0.0.2:+53\"]}\n", NULL},
		{"dns: {servers: [\"10.0.0.2:53,10.0.0.3\"]}\n", NULL},
		{"dns: {servers: [\"[10.0.0.2]:53\"]}\n", NULL}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_err err = {0};
		char *text = NULL;
		assert_true(asprintf(&text, "%s%s", whole, rows[i].line) > 0);
		struct config *c = load(text, &err);
		if (rows[i].servers)
			assert_string_equal(c->dns_servers, rows[i].servers);
		else if (c || !strstr(err.text, "dns"))
			fail_msg("row %zu: got \"%s\"", i, err.text);
		config_free(c);
		free(text);
	}
}

static void drain_of_zero_seconds_is_no_default(void **state)
{
	static const struct {
		const char *line;
		uint32_t drain_s, listener_drain_s;
	} rows[] = {{"drain_s: 0\n", 0, 600}, {"drain_s: 7\n", 7, 600}, {"", 30, 600},
		{"listener_drain_s: 0\n", 30, 0}, {"listener_drain_s: 90\n", 30, 90}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_err err = {0};
		char *text = NULL;
		assert_true(asprintf(&text, "%s%s", whole, rows[i].line) > 0);
		struct config *c = load(text, &err);
		assert_string_equal(err.text, "");
		assert_int_equal(c->drain_s, rows[i].drain_s);
		assert_int_equal(c->listener_drain_s, rows[i].listener_drain_s);
		config_free(c);
		free(text);
	}
}

static void an_error_names_file_field_and_reason(void **state)
{
	static const struct {
		const char *piece, *instead, *expected;
	} rows[] = {
		{"mtu: 1400", "mtu: abc",
			":10: ports[1].mtu: 'abc' is not a whole number in 576..9000"},
		{"mtu: 1400", "mtu: 70000",
			":10: ports[1].mtu: '70000' is not a whole number in 576..9000"},
		{"log: ", "drain_s: -1\nlog: ",
			"drain_s: '-1' is not a whole number in 0..4294967295"},
		{"workers: [0]", "workers: [x]",
			"workers[0]: 'x' is not a whole number of its range"},
		{"mtu: 1400", "mtu: 9001", ": ports[1]: mtu: 9001 is outside 576..9000"},
		{"mtu: 1400", "mtu: 100", ": ports[1]: mtu: 100 is outside"},
		{"idle: poll", "idle:", ":3: idle: '' is not one of backoff, poll"},
		{"idle: poll", "idle: fast", ":3: idle: 'fast' is not one of backoff, poll"},
		{"level: debug", "level: loud",
			": log.level: 'loud' is not one of error, warn, info, debug"},
		{"name: web", "nam: web", ":12: frontends[0]: Unexpected key: nam"},
		{"headers: all", "headers: some",
			":12: frontends[0].grpc_headers: 'some' is not one of metadata, all"},
		{"ready: header", "ready: yes",
			":12: frontends[0].wait_for_ready: 'yes' is not one of never, always, "
			"header"},
		{"protocol: delta", "protocol: grpc",
			":17: xds.protocol: 'grpc' is not one of sotw, delta"},
		{"deleted: drop", "deleted: ask",
			":17: xds.deleted: 'ask' is not one of keep, drop"},
		{"connections: 32768", "connections: 15",
			": limits.connections: 15 is outside 16..1000000"},
		{"requests: 1000", "requests: 1000001",
			": limits.requests: 1000001 is outside 16..1000000"},
		{"buffers_mib: 512", "buffers_mib: 0",
			": limits.buffers_mib: 0 is outside 16..65536"},
		{"xds_resources: 5000", "xds_resources: 999",
			": limits.xds_resources: 999 is outside 1000..100000000"},
		{"xds_response_mib: 8", "xds_response_mib: 0",
			": limits.xds_response_mib: 0 is outside 1..1024"},
		{"streams: 250", "streams: 0", ": limits.streams: 0 is outside 1..65536"},
		{"client_buffer_kib: 2048", "client_buffer_kib: 100",
			": limits.client_buffer_kib: 100 is outside 512..65536"},
		{"idle_timeout_s: 0", "idle_timeout_s: never", "limits.idle_timeout_s: "},
		{"stream_idle_timeout_s: 7", "stream_idle_timeout_s: -1",
			"limits.stream_idle_timeout_s: "},
		{"max_attempts: 3", "max_attempts: 0",
			": retries.max_attempts: 0 is outside 1..100"},
		{"max_attempts: 3", "max_attempts: 101",
			": retries.max_attempts: 101 is outside 1..100"},
		{"max_attempts: 3", "attempts: 3", ":18: retries: Unexpected key: attempts"},
		{"protocol: delta", "protocols: delta", "xds: Unexpected key: protocols"},
		{"port: 8080", "port: 0", ": frontends[0]: port: 0 is outside 1..65535"},
		{"address: 10.81.0.10,", "address: 10.81.0.11,",
			"frontends[0]: address: 10.81.0.11 is not an address of any port"},
		{"10.81.0.10/24", "10.81.0.10",
			"ports[0]: addresses[0]: '10.81.0.10' is not an IP"},
		{"10.81.0.10/24", "10.81.0.10/33",
			"ports[0]: addresses[0]: '10.81.0.10/33' is not"},
		{"gateway: 10.82.0.1", "gateway: host", "ports[1]: gateway: 'host' is not an IPv4"},
		{"net_af_packet1,iface=lb-b", "net_af_packet0,iface=lb-c", "none, as in ports[0]"},
		{"net_af_packet1,iface=lb-b", "net_af_packet0,iface=lb-b", "is ports[0] already"},
		{"10.82.255.254/16", "10.82.255.254/16, 10.81.0.10/24",
			"an address of ports[0] already"},
		{"gateway: 10.82.0.1", "gateway: 10.99.0.1", "is in no subnet of this port"},
		{"10.81.0.10/24", "127.0.0.1/8", "is not a host's address"},
		{"10.81.0.10/24", "255.255.255.255/24", "is not a host's address"},
		{"10.81.0.10/24", "10.81.0.10/0", "is not an IP address with a prefix"},
		{"10.81.0.10/24", "'fd00::1/129'", "'fd00::1/129' is not an IP address"},
		{"10.81.0.10/24", "'::1/128'", "::1/128 is not a host's address"},
		{"10.81.0.10/24", "'ff02::1/64'", "ff02::1/64 is not a host's address"},
		{"10.81.0.10/24", "'fe80::1/64'", "fe80::1/64 is link-local: a port with"},
		{"gateway: 10.82.0.1", "gateway6: fe80::1", "ports[1]: gateway6: this port has no"},
		{"gateway: 10.82.0.1", "gateway6: 10.82.0.1",
			"gateway6: '10.82.0.1' is not an IPv6"},
		{"gateway: 10.82.0.1", "gateway: fe80::1", "gateway: 'fe80::1' is not an IPv4"},
		{"workers: [0]", "workers: [4000]", "workers[0]: this machine has no core 4000"},
		{"workers: [0]", "workers: [0, 0]", "workers[1]: core 0 has workers[0] already"},
		{"mode: \"0600\"", "mode: \"0999\"", "stats.mode: '0999' is not an octal mode"},
		{"mode: \"0600\"", "haproxy_socket: /run/shunt/stats.sock", "haproxy_socket: is "},
		{"mode: \"0600\"", "operators: no-such-group",
			"stats.operators: /etc/group has no 'no-such-group'"},
		{"mode: \"0600\"", "admins: 4294967295",
			"stats.admins: 4294967295 is not a valid group id"},
		{"eal: [--in-memory", "eal: [[x]", ":1: eal[0]: must be a single value"},
		{"workers: [0]", "workers: 0", ": workers: must be a list"},
		{"log: {level: debug}", "log: debug", ": log: must be a mapping"},
		{"idle: poll", "\tidle: poll", "(a tab? YAML is indented by spaces)"},
		{"ports:\n", "ports: [\n", "libyaml:"},
		{"frontends:\n", "ports2:\n", "Unexpected key: ports2"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_err err = {0};
		char *text = with(rows[i].piece, rows[i].instead);
		assert_null(load(text, &err));
		if (!strstr(err.text, rows[i].expected) || !strstr(err.text, "/tmp/shunt-config-"))
			fail_msg("row %zu: got \"%s\", wanted \"%s\"", i, err.text,
				rows[i].expected);
		free(text);
	}
}

// OPS-70
static void groups_are_named_or_numbered(void **state)
{
	char *text = with("mode: \"0600\"", "operators: root, admins: 4294967294");
	struct lb_err none = {0};
	struct config *c = load(text, &none);
	assert_string_equal(none.text, "");
	assert_int_equal(c->stats->operators_gid, 0);
	assert_int_equal(c->stats->admins_gid, 4294967294);
	config_free(c);
	free(text);
	c = load(whole, &none);
	assert_int_equal(c->stats->operators_gid, -1);
	assert_int_equal(c->stats->admins_gid, -1);
	config_free(c);
}

// OPS-105
static void captures_need_a_directory_from_the_root_on(void **state)
{
	static const char *const wrong[] = {"captures", "/captures/", "//"};
	struct lb_err err = {0};
	char *text = with("log: ", "capture: {directory: /var/captures}\nlog: ");
	struct config *c = load(text, &err);
	free(text);
	assert_non_null(c);
	assert_string_equal(c->capture->directory, "/var/captures");
	config_free(c);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char more[64];
		snprintf(more, sizeof(more), "capture: {directory: %s}\nlog: ", wrong[i]);
		text = with("log: ", more);
		assert_null(load(text, &err));
		assert_non_null(strstr(err.text, "capture.directory: '"));
		free(text);
	}
}

// OPS-43
static void listeners_may_log_where_shunt_yaml_says_and_nowhere_else(void **state)
{
	static const struct {
		const char *fields, *wrong; // NULL = it is good
	} rows[] = {
		{"path: stdout"},
		{"xds_directory: /var/log/shunt"},
		{"xds_stdout: true"},
		{"path: /var/log/own, xds_directory: /var/log/shunt, xds_stdout: true"},
		{"path: /var/log/shunt.log, xds_directory: /var/log/shunt"},
		{"xds_stdout: false", "access_log: none of path, collector, xds_directory"},
		{"xds_directory: /", "access_log.xds_directory"},
		{"xds_directory: //", "access_log.xds_directory: '//' is not a path"},
		{"xds_directory: logs", "access_log.xds_directory: 'logs' is not a path"},
		{"xds_directory: /logs/", "access_log.xds_directory: '/logs/' is not a path"},
		{"xds_directory: /logs, path: /logs/a/own",
			"access_log.path: '/logs/a/own' is below access_log.xds_directory"},
		{"xds_directory: /logs, text_format: x",
			"access_log.text_format: there is no access_log.path"},
		{"xds_directory: /logs, filter: {min_status: 400}",
			"access_log.filter: there is neither access_log.path nor"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_err err = {0};
		char log[256];
		snprintf(log, sizeof(log), "access_log: {%s}\nlog: ", rows[i].fields);
		char *text = with("log: ", log);
		struct config *c = load(text, &err);
		free(text);
		if (!c != !!rows[i].wrong || (!c && !strstr(err.text, rows[i].wrong)))
			fail_msg("%s: \"%s\"", rows[i].fields, err.text);
		if (c)
			assert_int_equal(!c->access_log->path, !strstr(rows[i].fields, "path:"));
		config_free(c);
	}
}

// PP-09
static void who_may_speak_for_clients_is_named_by_prefixes(void **state)
{
	char *text = with("port: 8080",
		"port: 8080, proxy_protocol: {allow: [10.0.0.0/8, 'fd00::/8'], v1: "
		"false}");
	struct lb_err none = {0};
	struct config *c = load(text, &none);
	assert_string_equal(none.text, "");
	const struct config_proxy_protocol *p = c->frontends[0].proxy_protocol;
	assert_true(p->v1 && !*p->v1 && !p->v2);
	assert_int_equal(p->n_allow, 2);
	assert_int_equal(p->prefixes[0].bits, IP_V4_BITS + 8);
	assert_int_equal(p->prefixes[1].bits, 8);
	config_free(c);
	free(text);
	static const struct {
		const char *piece, *instead, *expected;
	} rows[] = {
		{"port: 8080", "port: 8080, proxy_protocol: {v1: true}",
			"frontends[0].proxy_protocol: Missing required mapping field: allow"},
		{"port: 8080", "port: 8080, proxy_protocol: {allow: []}",
			"frontends[0].proxy_protocol.allow: 0 of them, and 1 are"},
		{"port: 8080",
			"port: 8080, proxy_protocol: {allow: [10.0.0.0/8], v1: false, v2: false}",
			": frontends[0]: proxy_protocol: v1, v2: one of them must be true"},
		{"port: 8080", "port: 8080, proxy_protocol: {allow: [10.0.0.0/8, 10.0.0.1]}",
			"allow[1]: '10.0.0.1' is not a prefix, like 10.0.0.0/8 or fd00::/8"},
		{"port: 8080", "port: 8080, proxy_protocol: {allow: [10.0.0.0/33]}",
			"proxy_protocol: allow[0]: '10.0.0.0/33' is not a prefix"},
		{"port: 8080", "port: 8080, proxy_protocol: {allow: ['fd00::/129']}",
			"proxy_protocol: allow[0]: 'fd00::/129' is not a prefix"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_err err = {0};
		text = with(rows[i].piece, rows[i].instead);
		assert_null(load(text, &err));
		if (!strstr(err.text, rows[i].expected))
			fail_msg("row %zu: got \"%s\"", i, err.text);
		free(text);
	}
}

// Wants "FILE" and then before, value and after as the error of `whole` with piece replaced.
static void assert_refused(const char *piece, const char *instead, const char *value,
	const char *before, const char *after)
{
	struct lb_err err = {0};
	char *text = NULL, *expected = NULL, *changed = NULL;
	assert_true(asprintf(&text, "%s%s", instead, value) > 0);
	assert_true(asprintf(&expected, "%s'%.*s'%s", before,
			    (int)(value[0] == '"' ? strlen(value) - 2 : strlen(value)),
			    value[0] == '"' ? value + 1 : value, after) > 0);
	changed = with(piece, text);
	assert_null(load(changed, &err));
	const char *at = strchr(err.text, ':');
	if (!at || strncmp(err.text, "/tmp/shunt-config-", 18) != 0 || strcmp(at, expected) != 0)
		fail_msg("got \"%s\", wanted \"%s\"", err.text, expected);
	free(text);
	free(expected);
	free(changed);
}

static void a_number_is_written_in_decimal_digits_alone(void **state)
{
	static const char *const values[] = {"1k", "1h", "80 80", "010", "00", "1.5", "1e3", "+5",
		"-5", "0x64", "0o17", "1_000", "\" 5\"", "\"5 \"", "\"\"", "", "~", "many", "\"-\"",
		"18446744073709551716", "4294967296"};
	static const struct {
		const char *piece, *instead, *before, *after;
	} rows[] = {
		{"streams: 250",
			"streams: ", ":16: limits.streams: ", " is not a whole number in 1..65536"},
		{"port: 8080",
			"port: ", ":12: frontends[0].port: ", " is not a whole number in 1..65535"},
		{"mtu: 1400",
			"mtu: ", ":10: ports[1].mtu: ", " is not a whole number in 576..9000"},
		{"idle: poll",
			"drain_s: ", ":3: drain_s: ", " is not a whole number in 0..4294967295"},
		{"workers: [0]", "workers:\n  - ",
			":3: workers[0]: ", " is not a whole number of its range"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++)
			assert_refused(rows[i].piece, rows[i].instead, values[k], rows[i].before,
				rows[i].after);
}

static void a_boolean_is_true_or_false_and_no_other_word(void **state)
{
	static const char *const values[] = {"flase", "", "\"\"", "~", "null", "0", "1", "yes",
		"no", "on", "off", "True", "FALSE", "true false", "\"true \""};
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		assert_refused("idle: poll",
			"metrics:\n  listen: 127.0.0.1:1\n  allow_remote: ", values[i],
			":5: metrics.allow_remote: ", " is neither true nor false");
		assert_refused("mtu: 1400", "accept_ra: ", values[i],
			":10: ports[1].accept_ra: ", " is neither true nor false");
		assert_refused("idempotent: false", "idempotent: ", values[i],
			":18: retries.idempotent: ", " is neither true nor false");
	}
}

static void a_value_of_another_shape_is_an_error_of_its_shape(void **state)
{
	static const struct {
		const char *piece, *instead, *expected;
	} rows[] = {
		{"streams: 250", "streams: [1k]", "limits.streams: must be a single value"},
		{"workers: [0]", "workers: [{a: 1k}]", "workers[0]: must be a single value"},
		{"idempotent: false", "idempotent: {a: b}", "retries.idempotent: must be a single"},
		{"retries: {", "? [a]\n: b\nretries: {", ":17: xds: "},
		{"name: web", "name: \"\"", "frontends[0].name: the text has less than 1 bytes"},
		{"ports:\n", "x: &x [*x]\nports:\n", "Unexpected key: x"},
		{"workers: [0]", "workers: &w [*w]", "workers[0]: "},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_err err = {0};
		char *text = with(rows[i].piece, rows[i].instead);
		assert_null(load(text, &err));
		if (!strstr(err.text, rows[i].expected))
			fail_msg("row %zu: got \"%s\"", i, err.text);
		free(text);
	}
}

// `whole` with n frontends, of which the last one is as told, if it is.
static char *with_frontends(unsigned n, const char *last)
{
	char *list = malloc(n * 80 + 100), *p = list;
	assert_non_null(list);
	p += sprintf(p, "frontends:\n");
	for (unsigned i = 0; i + (last != NULL) < n; i++)
		p += sprintf(p, "  - {name: f%u, address: 10.81.0.10, port: %u, target: t%u}\n", i,
			i + 1, i);
	if (last)
		sprintf(p, "  - %s\n", last);
	char *at = strstr(whole, "frontends:"), *end = strstr(at, "stats:"), *text = NULL;
	assert_true(asprintf(&text, "%.*s%s%s", (int)(at - whole), whole, list, end) > 0);
	free(list);
	return text;
}

static void frontends_are_as_many_as_the_limit_says_and_all_different(void **state)
{
	static const struct {
		unsigned n;
		const char *last, *expected;
	} rows[] = {
		{LB_MAX_FRONTENDS, NULL, NULL},
		{LB_MAX_FRONTENDS + 1, NULL, ": frontends: more than 4096 of them"},
		{LB_MAX_FRONTENDS, "{name: f7, address: 10.81.0.10, port: 5000, target: t}",
			": frontends[4095]: name: 'f7' is frontends[7] already"},
		{LB_MAX_FRONTENDS, "{name: x, address: 10.81.0.10, port: 9, target: t}",
			": frontends[4095]: port: 10.81.0.10:9 belongs to frontends[8] already"},
		{9, "{name: x, address: 10.82.255.254, port: 8, target: t}", NULL},
		{2, "{name: x, address: 10.81.0.10, port: 9, listener: l}", NULL},
		{2, "{name: x, address: 10.81.0.10, port: 9}", NULL}, // A36-36
		{2, "{name: x, address: 10.81.0.10, port: 9, listener: l, target: t}",
			": frontends[1]: listener: not with target"},
		{2, "{name: x, address: 10.81.0.10, port: 9, listener: l, authority: a}",
			": frontends[1]: authority: not without target"},
		{2, "{name: x, address: 10.81.0.10, port: 9, listener: l, tls: {certificate: c}}",
			": frontends[1]: tls: not without target"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_err err = {0};
		char *text = with_frontends(rows[i].n, rows[i].last);
		struct config *c = load(text, &err);
		if (rows[i].expected ? !strstr(err.text, rows[i].expected) : err.text[0])
			fail_msg("row %zu: got \"%s\"", i, err.text);
		assert_int_equal(c ? c->n_frontends : 0, rows[i].expected ? 0 : rows[i].n);
		if (c) // places for chains, where there may be some
			assert_int_equal(config_n_places(c) - rows[i].n, rows[i].n == 2 ? 1024 : 0);
		config_free(c);
		free(text);
	}
}

// A36-60
static void vips_are_prefixes_that_the_host_answers_for(void **state)
{
	struct lb_err err = {0};
	char *text = with("10.82.255.254/16]\n    gateway",
		"10.82.255.254/16, '2001:db8::1/64']\n    gateway");
	char *whole_text = NULL;
	assert_true(asprintf(&whole_text,
			    "%svips: [{prefix: 10.9.0.0/24}, {prefix: '2001:db8:9::/48', arp: "
			    "false}]\n",
			    text) > 0);
	struct config *c = load(whole_text, &err);
	assert_string_equal(err.text, "");
	assert_int_equal(c->n_vips, 2);
	assert_true(c->vips[0].answers);
	assert_int_equal(c->vips[0].range.bits, IP_V4_BITS + 24);
	assert_false(c->vips[1].answers);
	struct ip_addr in, out;
	assert_true(ip_parse("2001:db8:9:ffff::1", &in) && ip_parse("10.9.1.0", &out));
	assert_ptr_equal(config_vip_of(c, &in), &c->vips[1]);
	assert_null(config_vip_of(c, &out));
	config_free(c);
	free(whole_text);
	free(text);
}

// A36-60
static void a_vip_that_cannot_be_is_an_error_of_its_field(void **state)
{
	static const struct {
		const char *vips, *why;
	} rows[] = {
		{"[]", "vips: 0 of them, and 1 are the least"},
		{"[{arp: true}]", "Missing required mapping field: prefix"},
		{"[{prefix: 10.9.0.1}]", ": vips[0].prefix: '10.9.0.1' is not a prefix"},
		{"[{prefix: 10.9.0.0/33}]", "'10.9.0.0/33' is not a prefix"},
		{"[{prefix: 10.9.0.1/24}]", ": vips[0].prefix: 10.9.0.1/24 has bits behind"},
		{"[{prefix: 0.0.0.0/0}]", "0.0.0.0/0 is not a prefix of hosts"},
		{"[{prefix: 224.0.0.0/8}]", "224.0.0.0/8 is not a prefix of hosts"},
		{"[{prefix: 127.0.0.0/8}]", "127.0.0.0/8 is not a prefix of hosts"},
		{"[{prefix: 'fe80::/64'}]", "fe80::/64 is not a prefix of hosts"},
		{"[{prefix: 'fe00::/8'}]", "fe00::/8 is not a prefix of hosts"},
		{"[{prefix: 'ff02::/16'}]", "ff02::/16 is not a prefix of hosts"},
		{"[{prefix: 'fd00::/64'}]", "vips[0].prefix: fd00::/64: no port has an IPv6"},
		{"[{prefix: 10.9.0.0/24}, {prefix: 10.0.0.0/8}]",
			": vips[1].prefix: 10.0.0.0/8 overlaps vips[0]: 10.9.0.0/24"},
		{"[{prefix: 10.9.0.0/24}, {prefix: 10.9.0.128/25}]",
			"10.9.0.128/25 overlaps vips[0]: 10.9.0.0/24"},
		{"[{prefix: 10.82.0.0/24}]", "10.82.0.0/24 contains a gateway of ports[1]"},
		{"[{prefix: 10.9.0.0/24, arp: maybe}]", "is neither true nor false"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_err err = {0};
		char *text = NULL;
		assert_true(asprintf(&text, "%svips: %s\n", whole, rows[i].vips) > 0);
		assert_null(load(text, &err));
		if (!strstr(err.text, rows[i].why))
			fail_msg("row %zu: got \"%s\"", i, err.text);
		free(text);
	}
}

// A36-65
static void a_wildcard_of_listeners_is_a_frontend_of_its_own(void **state)
{
	static const char *const bare = "ports: [{device: net_tap0, addresses: [10.0.0.1/8]}]\n"
					"vips: [{prefix: 11.9.0.0/24}]\n"
					"listeners: wildcard\n";
	struct lb_err err = {0};
	struct config *c = load(bare, &err);
	assert_string_equal(err.text, "");
	assert_int_equal(c->n_frontends, 1);
	assert_int_equal(config_by_listeners(c), 0);
	assert_string_equal(c->frontends[0].name, "listeners");
	assert_int_equal(c->n_vip_places, 1024);
	assert_int_equal(c->n_chain_places, 1024);
	config_free(c);
	c = load(whole, &err);
	assert_int_equal(config_by_listeners(c), c->n_frontends);
	assert_int_equal(c->n_vip_places, 0);
	config_free(c);
	static const struct {
		const char *instead, *why;
	} rows[] = {
		{"listeners: wildcard\nsessions", ": listeners: wildcard needs vips"},
		{"listeners: all\nsessions", ": listeners: 'all' is not one of named, wildcard"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *text = with("sessions", rows[i].instead);
		assert_null(load(text, &err));
		if (!strstr(err.text, rows[i].why))
			fail_msg("row %zu: got \"%s\"", i, err.text);
		free(text);
	}
	assert_null(load("ports: [{device: net_tap0, addresses: [10.0.0.1/8]}]\n", &err));
	assert_non_null(strstr(err.text, "frontends: one is needed"));
	char *text = with_frontends(LB_MAX_FRONTENDS - 1, NULL), *more = NULL;
	assert_true(asprintf(&more, "%svips: [{prefix: 11.9.0.0/24}]\nlisteners: wildcard\n",
			    text) > 0);
	assert_null(load(more, &err));
	assert_non_null(strstr(err.text, "wildcard has no room beside 4095 frontends"));
	free(more);
	free(text);
	text = with("name: web", "name: listeners");
	assert_true(asprintf(&more, "%svips: [{prefix: 11.9.0.0/24}]\nlisteners: wildcard\n",
			    text) > 0);
	assert_null(load(more, &err));
	assert_non_null(strstr(err.text, "name: 'listeners' is frontends[0] already"));
	free(more);
	free(text);
}

// A36-60
static void a_frontend_may_have_an_address_of_vips(void **state)
{
	struct lb_err err = {0};
	char *text = with("address: 10.81.0.10,", "address: 10.9.0.7,"), *more = NULL;
	assert_true(asprintf(&more, "%svips: [{prefix: 10.9.0.0/24}]\n", text) > 0);
	struct config *c = load(more, &err);
	assert_string_equal(err.text, "");
	config_free(c);
	assert_null(load(text, &err));
	assert_non_null(strstr(err.text, "10.9.0.7 is not an address of any port, and in no"));
	free(more);
	free(text);
}

static const char *const in_tls = "reply_details: true}\n";

static void a_frontend_may_have_tls(void **state)
{
	struct lb_err err = {0};
	char *text = with(in_tls, "tls: {certificate: a, ca: b, require_client_certificate: true,"
				  " sni: [a.example, \"*.b.example\"]}}\n"
				  "tls: {threads: 3, ticket_secret: /run/secret}\n");
	struct config *c = load(text, &err);
	assert_string_equal(err.text, "");
	const struct config_frontend_tls *t = c->frontends[0].tls;
	assert_string_equal(t->certificate, "a");
	assert_string_equal(t->ca, "b");
	assert_true(t->require_client_certificate);
	assert_int_equal(t->n_sni, 2);
	assert_string_equal(t->sni[1], "*.b.example");
	assert_int_equal(c->tls_threads, 3);
	assert_string_equal(c->tls->ticket_secret, "/run/secret");
	config_free(c);
	free(text);
	c = load(whole, &err);
	assert_null(c->frontends[0].tls);
	assert_int_equal(c->tls_threads, 1);
	config_free(c);
}

// TLS-162
static void tls_that_cannot_be_is_an_error_of_its_field(void **state)
{
	static const struct {
		const char *tls, *why;
	} rows[] = {
		{"{ca: b}", "Missing required mapping field: certificate"},
		{"{certificate: a, require_client_certificate: true}",
			": frontends[0]: tls.require_client_certificate: needs a ca, to judge "
			"certificates by"},
		{"{certificate: a, sni: [\"a b\"]}",
			": frontends[0]: tls.sni[0]: 'a b' is not a host name, like a.example or "
			"*.example"},
		{"{certificate: a, sni: [a.example, 10.0.0.1]}",
			"tls.sni[1]: '10.0.0.1' is not a host name"},
		{"{certificate: a, sni: [\"*.\"]}", "tls.sni[0]: '*.' is not a host name"},
		{"{certificate: a, sni: [a..b]}", "tls.sni[0]: 'a..b' is not a host name"},
		{"{certificate: a, sni: [\"a.*.b\"]}", "tls.sni[0]: 'a.*.b' is not a host name"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_err err = {0};
		char *instead = NULL;
		assert_true(asprintf(&instead, "tls: %s}\n", rows[i].tls) > 0);
		char *text = with(in_tls, instead);
		assert_null(load(text, &err));
		if (!strstr(err.text, rows[i].why))
			fail_msg("row %zu: got \"%s\"", i, err.text);
		free(instead);
		free(text);
	}
}

static void missing_empty_and_incomplete_files_are_errors(void **state)
{
	struct lb_err err = {0};
	assert_null(config_load("/nonexistent/shunt.yaml", &err));
	assert_string_equal(err.text, "/nonexistent/shunt.yaml: No such file or directory");
	assert_null(config_load("/tmp", &err));
	assert_string_equal(err.text, "/tmp: Is a directory");
	assert_null(load("", &err));
	assert_non_null(strstr(err.text, "the file is empty"));
	assert_null(load("workers: [0]\n", &err));
	assert_non_null(strstr(err.text, "Missing required mapping field"));
}

RUN_SUITE("ctrl/config", cmocka_unit_test(every_field_of_the_documented_shape_is_read),
	cmocka_unit_test(what_is_left_out_gets_its_default),
	cmocka_unit_test(the_status_port_is_on_loopback_unless_said_otherwise),
	cmocka_unit_test(captures_need_a_directory_from_the_root_on),
	cmocka_unit_test(listeners_may_log_where_shunt_yaml_says_and_nowhere_else),
	cmocka_unit_test(name_servers_stand_in_place_of_those_of_resolv_conf),
	cmocka_unit_test(drain_of_zero_seconds_is_no_default),
	cmocka_unit_test(an_error_names_file_field_and_reason),
	cmocka_unit_test(a_number_is_written_in_decimal_digits_alone),
	cmocka_unit_test(a_boolean_is_true_or_false_and_no_other_word),
	cmocka_unit_test(a_value_of_another_shape_is_an_error_of_its_shape),
	cmocka_unit_test(groups_are_named_or_numbered),
	cmocka_unit_test(who_may_speak_for_clients_is_named_by_prefixes),
	cmocka_unit_test(frontends_are_as_many_as_the_limit_says_and_all_different),
	cmocka_unit_test(vips_are_prefixes_that_the_host_answers_for),
	cmocka_unit_test(a_vip_that_cannot_be_is_an_error_of_its_field),
	cmocka_unit_test(a_frontend_may_have_an_address_of_vips),
	cmocka_unit_test(a_wildcard_of_listeners_is_a_frontend_of_its_own),
	cmocka_unit_test(a_frontend_may_have_tls),
	cmocka_unit_test(tls_that_cannot_be_is_an_error_of_its_field),
	cmocka_unit_test(missing_empty_and_incomplete_files_are_errors))
