// SPDX-License-Identifier: Apache-2.0
// shunt.yaml: what is accepted, which defaults hold, and that every error names file, field and
// reason.
#include "ctrl/base/stats_proto.h"
#include "ctrl/conf/config.h"
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
	"client_buffer_kib: 2048}\n"
	"xds: {protocol: delta, deleted: drop}\n"
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
	assert_int_equal(ip_to_v4(&c->ports[1].gateway_ip), 0x0a520001);
	assert_string_equal(c->frontends[0].authority, "web.example");
	assert_int_equal(c->frontends[0].grpc_headers, CONFIG_GRPC_ALL);
	assert_int_equal(c->frontends[0].wait_for_ready, CONFIG_WAIT_HEADER);
	assert_true(c->frontends[0].reply_details);
	assert_true(c->sessions->use_ejected); // A75-O22
	assert_int_equal(c->max_connections, 32768);
	assert_int_equal(c->max_requests, 1000);
	assert_int_equal(c->max_buffers_mib, 512);
	assert_int_equal(c->idle_timeout_s, 0); // TH-80
	assert_int_equal(c->stream_idle_timeout_s, 7); // TH-98
	assert_int_equal(c->client_buffer_kib, 2048); // TH-86
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
		{"csds: {listen: \"[::1]:65535\"}\n", NULL},
		{"csds: {listen: \"0.0.0.0:50052\", allow_remote: true}\n", NULL},
		{"csds: {listen: \"0.0.0.0:50052\"}\n", "not a loopback"},
		{"csds: {listen: \"0.0.0.0:50052\", allow_remote: false}\n", "not a loopback"},
		{"csds: {listen: \"[::]:50052\"}\n", "not a loopback"},
		{"csds: {listen: 10.0.0.1:50052}\n", "not a loopback"},
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
		{"mtu: 1400", "mtu: abc", ":10: ports[1].mtu: 'abc' is not a number in 576..9000"},
		{"mtu: 1400", "mtu: 70000",
			":10: ports[1].mtu: '70000' is not a number in 576..9000"},
		{"log: ", "drain_s: -1\nlog: ", "drain_s: '-1' is not a number in 0..4294967295"},
		{"workers: [0]", "workers: [x]", "workers[0]: 'x' is not a number of its range"},
		{"mtu: 1400", "mtu: 9001", ": ports[1]: mtu: 9001 is outside 576..9000"},
		{"mtu: 1400", "mtu: 100", ": ports[1]: mtu: 100 is outside"},
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
		{"net_af_packet1,iface=lb-b", "net_af_packet0,iface=lb-c", "is ports[0] already"},
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
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_err err = {0};
		char *text = with_frontends(rows[i].n, rows[i].last);
		struct config *c = load(text, &err);
		if (rows[i].expected ? !strstr(err.text, rows[i].expected) : err.text[0])
			fail_msg("row %zu: got \"%s\"", i, err.text);
		assert_int_equal(c ? c->n_frontends : 0, rows[i].expected ? 0 : rows[i].n);
		config_free(c);
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
	cmocka_unit_test(name_servers_stand_in_place_of_those_of_resolv_conf),
	cmocka_unit_test(drain_of_zero_seconds_is_no_default),
	cmocka_unit_test(an_error_names_file_field_and_reason),
	cmocka_unit_test(frontends_are_as_many_as_the_limit_says_and_all_different),
	cmocka_unit_test(missing_empty_and_incomplete_files_are_errors))
