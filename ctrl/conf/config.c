// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config.h"

#include "ctrl/conf/config_check.h"
#include "ctrl/conf/config_numbers.h"
#include "ctrl/conf/config_schema.h"
#include "lb/pick/limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The shape of the file.

static const cyaml_schema_value_t string_value = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, 1024),
};
static const cyaml_schema_value_t core_value = {
	CYAML_VALUE_UINT(CYAML_FLAG_DEFAULT, uint16_t),
};
static const cyaml_strval_t idle_names[] = {
	{"backoff", CONFIG_IDLE_BACKOFF},
	{"poll", CONFIG_IDLE_POLL},
};
static const cyaml_strval_t grpc_headers_names[] = {
	{"metadata", CONFIG_GRPC_METADATA},
	{"all", CONFIG_GRPC_ALL},
};
static const cyaml_strval_t wait_names[] = {
	{"never", CONFIG_WAIT_NEVER},
	{"always", CONFIG_WAIT_ALWAYS},
	{"header", CONFIG_WAIT_HEADER},
};
static const cyaml_strval_t steering_names[] = {
	{"auto", CONFIG_STEERING_AUTO},
	{"software", CONFIG_STEERING_SOFTWARE},
};
static const cyaml_strval_t level_names[] = {
	{"error", LOG_LEVEL_ERROR},
	{"warn", LOG_LEVEL_WARN},
	{"info", LOG_LEVEL_INFO},
	{"debug", LOG_LEVEL_DEBUG},
};
static const cyaml_strval_t protocol_names[] = {
	{"sotw", CONFIG_XDS_SOTW},
	{"delta", CONFIG_XDS_DELTA},
};
static const cyaml_strval_t deletion_names[] = {
	{"keep", CONFIG_XDS_KEEP},
	{"drop", CONFIG_XDS_DROP},
};

// Which words a field takes, for its errors. The keys of these fields are unique in the file.
static const struct {
	const char *key;
	const cyaml_strval_t *names;
	size_t n;
} choices[] = {
	{"idle", idle_names, CYAML_ARRAY_LEN(idle_names)},
	{"grpc_headers", grpc_headers_names, CYAML_ARRAY_LEN(grpc_headers_names)},
	{"wait_for_ready", wait_names, CYAML_ARRAY_LEN(wait_names)},
	{"steering", steering_names, CYAML_ARRAY_LEN(steering_names)},
	{"level", level_names, CYAML_ARRAY_LEN(level_names)},
	{"protocol", protocol_names, CYAML_ARRAY_LEN(protocol_names)},
	{"deleted", deletion_names, CYAML_ARRAY_LEN(deletion_names)},
};

#define OPTIONAL_POINTER (CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL)

static const cyaml_schema_field_t port_fields[] = {
	CYAML_FIELD_STRING_PTR("device", CYAML_FLAG_POINTER, struct config_port, device, 1, 1024),
	CYAML_FIELD_SEQUENCE_COUNT("addresses", CYAML_FLAG_POINTER, struct config_port, addresses,
		n_addresses, &string_value, 1, CONFIG_MAX_ADDRESSES),
	CYAML_FIELD_STRING_PTR("gateway", OPTIONAL_POINTER, struct config_port, gateway, 1, 64),
	CYAML_FIELD_STRING_PTR("gateway6", OPTIONAL_POINTER, struct config_port, gateway6, 1, 64),
	CYAML_FIELD_BOOL("accept_ra", CYAML_FLAG_OPTIONAL, struct config_port, accept_ra),
	CYAML_FIELD_UINT("mtu", CYAML_FLAG_OPTIONAL, struct config_port, mtu),
	CYAML_FIELD_UINT("vlan", CYAML_FLAG_OPTIONAL, struct config_port, vlan),
	CYAML_FIELD_ENUM("steering", CYAML_FLAG_OPTIONAL, struct config_port, steering,
		steering_names, CYAML_ARRAY_LEN(steering_names)),
	CYAML_FIELD_END,
};
static const cyaml_schema_value_t port_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct config_port, port_fields),
};

static const cyaml_schema_field_t frontend_fields[] = {
	CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, struct config_frontend, name, 1, 128),
	CYAML_FIELD_STRING_PTR(
		"address", CYAML_FLAG_POINTER, struct config_frontend, address, 1, 64),
	CYAML_FIELD_UINT("port", CYAML_FLAG_DEFAULT, struct config_frontend, port),
	CYAML_FIELD_STRING_PTR(
		"target", CYAML_FLAG_POINTER, struct config_frontend, target, 1, 1024),
	CYAML_FIELD_STRING_PTR(
		"authority", OPTIONAL_POINTER, struct config_frontend, authority, 1, 1024),
	CYAML_FIELD_ENUM("grpc_headers", CYAML_FLAG_OPTIONAL, struct config_frontend, grpc_headers,
		grpc_headers_names, CYAML_ARRAY_LEN(grpc_headers_names)),
	CYAML_FIELD_ENUM("wait_for_ready", CYAML_FLAG_OPTIONAL, struct config_frontend,
		wait_for_ready, wait_names, CYAML_ARRAY_LEN(wait_names)),
	CYAML_FIELD_BOOL(
		"reply_details", CYAML_FLAG_OPTIONAL, struct config_frontend, reply_details),
	CYAML_FIELD_END,
};
static const cyaml_schema_value_t frontend_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct config_frontend, frontend_fields),
};

static const cyaml_schema_field_t stats_fields[] = {
	CYAML_FIELD_STRING_PTR("socket", OPTIONAL_POINTER, struct config_stats, socket, 1, 107),
	CYAML_FIELD_STRING_PTR("mode", OPTIONAL_POINTER, struct config_stats, mode, 3, 4),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t log_fields[] = {
	CYAML_FIELD_ENUM_PTR("level", OPTIONAL_POINTER, struct config_log, level, level_names,
		CYAML_ARRAY_LEN(level_names)),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t dns_fields[] = {
	CYAML_FIELD_SEQUENCE_COUNT("servers", CYAML_FLAG_POINTER, struct config_dns, servers,
		n_servers, &string_value, 1, CONFIG_MAX_DNS_SERVERS),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t xds_fields[] = {
	CYAML_FIELD_ENUM("protocol", CYAML_FLAG_OPTIONAL, struct config_xds, protocol,
		protocol_names, CYAML_ARRAY_LEN(protocol_names)),
	CYAML_FIELD_ENUM("deleted", CYAML_FLAG_OPTIONAL, struct config_xds, deleted, deletion_names,
		CYAML_ARRAY_LEN(deletion_names)),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t csds_fields[] = {
	CYAML_FIELD_STRING_PTR("listen", CYAML_FLAG_POINTER, struct config_csds, listen, 1, 64),
	CYAML_FIELD_BOOL("allow_remote", CYAML_FLAG_OPTIONAL, struct config_csds, allow_remote),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t sessions_fields[] = {
	CYAML_FIELD_BOOL("use_ejected", CYAML_FLAG_OPTIONAL, struct config_sessions, use_ejected),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t limits_fields[] = {
	CYAML_FIELD_UINT_PTR("connections", OPTIONAL_POINTER, struct config_limits, connections),
	CYAML_FIELD_UINT_PTR("requests", OPTIONAL_POINTER, struct config_limits, requests),
	CYAML_FIELD_UINT_PTR("buffers_mib", OPTIONAL_POINTER, struct config_limits, buffers_mib),
	CYAML_FIELD_UINT_PTR(
		"client_buffer_kib", OPTIONAL_POINTER, struct config_limits, client_buffer_kib),
	CYAML_FIELD_UINT_PTR(
		"xds_resources", OPTIONAL_POINTER, struct config_limits, xds_resources),
	CYAML_FIELD_UINT_PTR(
		"xds_response_mib", OPTIONAL_POINTER, struct config_limits, xds_response_mib),
	CYAML_FIELD_UINT_PTR(
		"idle_timeout_s", OPTIONAL_POINTER, struct config_limits, idle_timeout_s),
	CYAML_FIELD_UINT_PTR("stream_idle_timeout_s", OPTIONAL_POINTER, struct config_limits,
		stream_idle_timeout_s),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t peers_fields[] = {
	CYAML_FIELD_UINT_PTR(
		"tcp_user_timeout_s", OPTIONAL_POINTER, struct config_peers, tcp_user_timeout_s),
	CYAML_FIELD_UINT_PTR("tcp_keepalive_time_s", OPTIONAL_POINTER, struct config_peers,
		tcp_keepalive_time_s),
	CYAML_FIELD_UINT_PTR("keepalive_interval_s", OPTIONAL_POINTER, struct config_peers,
		keepalive_interval_s),
	CYAML_FIELD_UINT_PTR(
		"keepalive_timeout_s", OPTIONAL_POINTER, struct config_peers, keepalive_timeout_s),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t retries_fields[] = {
	CYAML_FIELD_UINT_PTR("max_attempts", OPTIONAL_POINTER, struct config_retries, max_attempts),
	CYAML_FIELD_BOOL_PTR("idempotent", OPTIONAL_POINTER, struct config_retries, idempotent),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t top_fields[] = {
	CYAML_FIELD_SEQUENCE_COUNT(
		"eal", OPTIONAL_POINTER, struct config, eal, n_eal, &string_value, 0, 64),
	CYAML_FIELD_SEQUENCE_COUNT("workers", OPTIONAL_POINTER, struct config, workers, n_workers,
		&core_value, 1, LB_MAX_WORKERS),
	CYAML_FIELD_ENUM("idle", CYAML_FLAG_OPTIONAL, struct config, idle, idle_names,
		CYAML_ARRAY_LEN(idle_names)),
	CYAML_FIELD_SEQUENCE_COUNT("ports", CYAML_FLAG_POINTER, struct config, ports, n_ports,
		&port_value, 1, CONFIG_MAX_PORTS),
	CYAML_FIELD_SEQUENCE_COUNT("frontends", CYAML_FLAG_POINTER, struct config, frontends,
		n_frontends, &frontend_value, 1, LB_MAX_FRONTENDS),
	CYAML_FIELD_MAPPING_PTR("stats", OPTIONAL_POINTER, struct config, stats, stats_fields),
	CYAML_FIELD_MAPPING_PTR("log", OPTIONAL_POINTER, struct config, log, log_fields),
	CYAML_FIELD_MAPPING_PTR("xds", OPTIONAL_POINTER, struct config, xds, xds_fields),
	CYAML_FIELD_MAPPING_PTR("dns", OPTIONAL_POINTER, struct config, dns, dns_fields),
	CYAML_FIELD_MAPPING_PTR("csds", OPTIONAL_POINTER, struct config, csds, csds_fields),
	CYAML_FIELD_MAPPING_PTR(
		"sessions", OPTIONAL_POINTER, struct config, sessions, sessions_fields),
	CYAML_FIELD_MAPPING_PTR("limits", OPTIONAL_POINTER, struct config, limits, limits_fields),
	CYAML_FIELD_MAPPING_PTR("clients", OPTIONAL_POINTER, struct config, clients, peers_fields),
	CYAML_FIELD_MAPPING_PTR(
		"backends", OPTIONAL_POINTER, struct config, backends, peers_fields),
	CYAML_FIELD_MAPPING_PTR(
		"retries", OPTIONAL_POINTER, struct config, retries, retries_fields),
	CYAML_FIELD_UINT_PTR("drain_s", OPTIONAL_POINTER, struct config, drain),
	CYAML_FIELD_UINT_PTR("listener_drain_s", OPTIONAL_POINTER, struct config, listener_drain),
	CYAML_FIELD_END,
};
const cyaml_schema_value_t config_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct config, top_fields),
};

// cyaml tells what is wrong only through its log: the first line is the reason, the backtrace that
// follows goes from the inner field to the outer one, each with its line.

struct complaint {
	char reason[160];
	char choice[64]; // what is none of the words that the field takes; "" = another reason
	char number[64]; // what is no number that the field takes, likewise
	char field[160]; // "ports[0].mtu", built from the inside out
	int line; // of the innermost field; 0 = unknown
};

static void complaint_put_field(struct complaint *c, const char *part, bool is_index)
{
	char old[sizeof(c->field)];
	memcpy(old, c->field, sizeof(old));
	const char *dot = old[0] && old[0] != '[' ? "." : "";
	snprintf(c->field, sizeof(c->field), is_index ? "[%s]%s%s" : "%s%s%s", part, dot, old);
}

static void complaint_take_trace(struct complaint *c, const char *text)
{
	int line = 0;
	unsigned index;
	char name[64];
	if (sscanf(text, " in mapping field '%63[^']' (line: %d", name, &line) >= 1) {
		// A missing field is noticed after the last one that is there, which is innocent.
		bool innocent = !c->line && strncmp(c->reason, "Missing", 7) == 0;
		if (!innocent)
			complaint_put_field(c, name, false);
	} else if (sscanf(text, " in sequence entry '%u' (line: %d", &index, &line) >= 1) {
		// A list that is too long is noticed at an entry, which is innocent.
		bool innocent = !c->line && strncmp(c->reason, "more than", 9) == 0;
		snprintf(name, sizeof(name), "%u", index ? index - 1 : 0); // cyaml counts from 1
		if (!innocent)
			complaint_put_field(c, name, true);
	} else if (sscanf(text, " in mapping (line: %d", &line) != 1) {
		return;
	}
	if (!c->line)
		c->line = line;
}

static void complaint_take_reason(struct complaint *c, const char *text)
{
	char kind[16];
	unsigned most;
	if (sscanf(text, "Excessive entries (%u max", &most) == 1)
		snprintf(c->reason, sizeof(c->reason), "more than %u of them", most);
	else if (sscanf(text, "Invalid uint64_t value: '%63[^']'", c->number) == 1 ||
		 sscanf(text, "Invalid UINT value: '%63[^']'", c->number) == 1)
		return;
	else if (sscanf(text, "Invalid INT value: '%63[^']'", c->choice) == 1) // an enum's
		return;
	else if (sscanf(text, "Expecting %15[A-Z], got event: ", kind) == 1)
		snprintf(c->reason, sizeof(c->reason), "must be a %s",
			strcmp(kind, "SEQUENCE") == 0  ? "list"
			: strcmp(kind, "MAPPING") == 0 ? "mapping"
						       : "single value");
	else if (strcmp(text, "libyaml: found character that cannot start any token") == 0)
		snprintf(c->reason, sizeof(c->reason), "%s (a tab? YAML is indented by spaces)",
			text);
	else
		snprintf(c->reason, sizeof(c->reason), "%s", text);
}

static void complaint_log(cyaml_log_t level, void *ctx, const char *fmt, va_list args)
{
	struct complaint *c = ctx;
	char text[256];
	vsnprintf(text, sizeof(text), fmt, args);
	text[strcspn(text, "\n")] = 0;
	if (text[0] == ' ')
		complaint_take_trace(c, text);
	else if (!c->reason[0] && !c->choice[0] && !c->number[0] && level >= CYAML_LOG_ERROR)
		complaint_take_reason(c, strncmp(text, "Load: ", 6) == 0 ? text + 6 : text);
}

static void complaint_list_choices(struct complaint *c)
{
	const char *dot = strrchr(c->field, '.'), *key = dot ? dot + 1 : c->field;
	int len = snprintf(c->reason, sizeof(c->reason), "'%s' is not one of", c->choice);
	for (size_t i = 0; i < CYAML_ARRAY_LEN(choices); i++)
		for (size_t k = 0; strcmp(choices[i].key, key) == 0 && k < choices[i].n; k++)
			len += snprintf(c->reason + len, sizeof(c->reason) - (size_t)len, "%s %s",
				k ? "," : "", choices[i].names[k].str);
}

// "ports[1].mtu" is an option of the path "ports[].mtu".
static bool complaint_is_of(const struct complaint *c, const char *path)
{
	const char *field = c->field;
	for (; *path && *field == *path; path++, field++)
		if (*path == '[')
			field += strspn(field + 1, "0123456789");
	return !*path && !*field;
}

static void complaint_give_range(struct complaint *c)
{
	for (size_t i = 0; i < CONFIG_N_NUMBERS; i++)
		if (complaint_is_of(c, config_numbers[i].path)) {
			snprintf(c->reason, sizeof(c->reason), "'%s' is not a number in %u..%u",
				c->number, config_numbers[i].least, config_numbers[i].most);
			return;
		}
	snprintf(c->reason, sizeof(c->reason), "'%s' is not a number of its range", c->number);
}

static const cyaml_config_t cyaml_base = {
	.log_level = CYAML_LOG_WARNING,
	.log_fn = complaint_log,
	.mem_fn = cyaml_mem,
	.flags = CYAML_CFG_NO_ALIAS,
};

struct config *config_load(const char *path, struct lb_err *reterr)
{
	if (access(path, R_OK) != 0) {
		lb_err_set(reterr, "%s: %s", path, strerror(errno));
		return NULL;
	}
	struct stat st;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		lb_err_set(reterr, "%s: %s", path, strerror(EISDIR));
		return NULL;
	}
	struct complaint complaint = {.line = 0};
	cyaml_config_t cyaml = cyaml_base;
	cyaml.log_ctx = &complaint;
	struct config *c = NULL;
	cyaml_err_t err = cyaml_load_file(path, &cyaml, &config_schema, (cyaml_data_t **)&c, NULL);
	if (err != CYAML_OK) {
		char at[32] = "";
		if (complaint.choice[0])
			complaint_list_choices(&complaint);
		if (complaint.number[0])
			complaint_give_range(&complaint);
		if (complaint.line)
			snprintf(at, sizeof(at), ":%d", complaint.line);
		lb_err_set(reterr, "%s%s: %s%s%s", path, at, complaint.field,
			complaint.field[0] ? ": " : "",
			complaint.reason[0] ? complaint.reason : cyaml_strerror(err));
		return NULL;
	}
	if (!c) {
		lb_err_set(reterr, "%s: the file is empty", path);
		return NULL;
	}
	if (config_check(c, reterr)) {
		lb_err_within(reterr, "%s", path);
		config_free(c);
		return NULL;
	}
	return c;
}

void config_free(struct config *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < c->n_ports; i++) {
		free(c->ports[i].address_ips);
		free(c->ports[i].address_lens);
	}
	free(c->dns_servers);
	struct complaint complaint = {.line = 0};
	cyaml_config_t cyaml = cyaml_base;
	cyaml.log_ctx = &complaint;
	cyaml_free(&cyaml, &config_schema, c, 0);
}

int config_find_frontend(const struct config *c, const char *name, struct lb_err *err)
{
	for (unsigned i = 0; name && i < c->n_frontends; i++)
		if (strcmp(c->frontends[i].name, name) == 0)
			return (int)i;
	if (name)
		return lb_err_set(err, "no frontend is called '%s'", name);
	if (c->n_frontends != 1)
		return lb_err_set(err, "there are %u frontends: choose one with --frontend",
			(unsigned)c->n_frontends);
	return 0;
}
