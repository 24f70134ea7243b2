// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config_schema.h"

#include "ctrl/conf/config.h"
#include "lb/pick/limits.h"

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
static const cyaml_strval_t listeners_names[] = {
	{"named", CONFIG_LISTENERS_NAMED},
	{"wildcard", CONFIG_LISTENERS_WILDCARD},
};
static const cyaml_strval_t steering_names[] = {
	{"auto", CONFIG_STEERING_AUTO},
	{"software", CONFIG_STEERING_SOFTWARE},
};
static const cyaml_strval_t bond_names[] = {
	{"802.3ad", CONFIG_BOND_8023AD},
	{"active-backup", CONFIG_BOND_ACTIVE_BACKUP},
};
static const cyaml_strval_t gateway_names[] = {
	{"hash", CONFIG_GATEWAY_HASH},
	{"first", CONFIG_GATEWAY_FIRST},
};
static const cyaml_strval_t tunnel_names[] = {
	{"ipip", CONFIG_TUNNEL_IPIP},
	{"gue", CONFIG_TUNNEL_GUE},
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

const struct config_choice config_choices[] = {
	{"idle", idle_names, CYAML_ARRAY_LEN(idle_names)},
	{"grpc_headers", grpc_headers_names, CYAML_ARRAY_LEN(grpc_headers_names)},
	{"wait_for_ready", wait_names, CYAML_ARRAY_LEN(wait_names)},
	{"listeners", listeners_names, CYAML_ARRAY_LEN(listeners_names)},
	{"steering", steering_names, CYAML_ARRAY_LEN(steering_names)},
	{"mode", bond_names, CYAML_ARRAY_LEN(bond_names)},
	{"gateway_choice", gateway_names, CYAML_ARRAY_LEN(gateway_names)},
	{"kind", tunnel_names, CYAML_ARRAY_LEN(tunnel_names)},
	{"level", level_names, CYAML_ARRAY_LEN(level_names)},
	{"protocol", protocol_names, CYAML_ARRAY_LEN(protocol_names)},
	{"deleted", deletion_names, CYAML_ARRAY_LEN(deletion_names)},
};
const size_t config_n_choices = CYAML_ARRAY_LEN(config_choices);

#define OPTIONAL_POINTER (CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL)

static const cyaml_schema_field_t kernel_fields[] = {
	CYAML_FIELD_STRING_PTR("interface", CYAML_FLAG_POINTER, struct config_kernel, interface, 1,
		CONFIG_MAX_INTERFACE),
	CYAML_FIELD_UINT_PTR("rate", OPTIONAL_POINTER, struct config_kernel, rate),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t watch_fields[] = {
	CYAML_FIELD_UINT_PTR(
		"interval_ms", OPTIONAL_POINTER, struct config_gateway_watch, interval_ms),
	CYAML_FIELD_UINT_PTR("missed", OPTIONAL_POINTER, struct config_gateway_watch, missed),
	CYAML_FIELD_UINT_PTR("answered", OPTIONAL_POINTER, struct config_gateway_watch, answered),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t bond_fields[] = {
	CYAML_FIELD_ENUM("mode", CYAML_FLAG_DEFAULT, struct config_bond, mode, bond_names,
		CYAML_ARRAY_LEN(bond_names)),
	CYAML_FIELD_SEQUENCE_COUNT("members", CYAML_FLAG_POINTER, struct config_bond, members,
		n_members, &string_value, 1, CONFIG_MAX_MEMBERS),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t port_fields[] = {
	CYAML_FIELD_STRING_PTR("device", OPTIONAL_POINTER, struct config_port, device, 1, 1024),
	CYAML_FIELD_MAPPING_PTR("bond", OPTIONAL_POINTER, struct config_port, bond, bond_fields),
	CYAML_FIELD_SEQUENCE_COUNT("addresses", CYAML_FLAG_POINTER, struct config_port, addresses,
		n_addresses, &string_value, 1, CONFIG_MAX_ADDRESSES),
	CYAML_FIELD_STRING_PTR("gateway", OPTIONAL_POINTER, struct config_port, gateway, 1, 64),
	CYAML_FIELD_STRING_PTR("gateway6", OPTIONAL_POINTER, struct config_port, gateway6, 1, 64),
	CYAML_FIELD_SEQUENCE_COUNT("gateways", OPTIONAL_POINTER, struct config_port, gateways,
		n_gateways, &string_value, 1, CONFIG_MAX_GATEWAYS),
	CYAML_FIELD_ENUM("gateway_choice", CYAML_FLAG_OPTIONAL, struct config_port, gateway_choice,
		gateway_names, CYAML_ARRAY_LEN(gateway_names)),
	CYAML_FIELD_MAPPING_PTR(
		"gateway_watch", OPTIONAL_POINTER, struct config_port, gateway_watch, watch_fields),
	CYAML_FIELD_BOOL("accept_ra", CYAML_FLAG_OPTIONAL, struct config_port, accept_ra),
	CYAML_FIELD_UINT("mtu", CYAML_FLAG_OPTIONAL, struct config_port, mtu),
	CYAML_FIELD_UINT("vlan", CYAML_FLAG_OPTIONAL, struct config_port, vlan),
	CYAML_FIELD_ENUM("steering", CYAML_FLAG_OPTIONAL, struct config_port, steering,
		steering_names, CYAML_ARRAY_LEN(steering_names)),
	CYAML_FIELD_MAPPING_PTR(
		"kernel", OPTIONAL_POINTER, struct config_port, kernel, kernel_fields),
	CYAML_FIELD_END,
};
static const cyaml_schema_value_t port_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct config_port, port_fields),
};

static const cyaml_schema_field_t vip_fields[] = {
	CYAML_FIELD_STRING_PTR("prefix", CYAML_FLAG_POINTER, struct config_vip, prefix, 1, 64),
	CYAML_FIELD_BOOL_PTR("arp", OPTIONAL_POINTER, struct config_vip, arp),
	CYAML_FIELD_END,
};
static const cyaml_schema_value_t vip_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct config_vip, vip_fields),
};

static const cyaml_schema_field_t tunnel_fields[] = {
	CYAML_FIELD_ENUM("kind", CYAML_FLAG_DEFAULT, struct config_tunnel, kind, tunnel_names,
		CYAML_ARRAY_LEN(tunnel_names)),
	CYAML_FIELD_SEQUENCE_COUNT("from", CYAML_FLAG_POINTER, struct config_tunnel, from, n_from,
		&string_value, 1, CONFIG_MAX_TUNNEL_PREFIXES),
	CYAML_FIELD_UINT_PTR("port", OPTIONAL_POINTER, struct config_tunnel, port),
	CYAML_FIELD_SEQUENCE_COUNT("hops", OPTIONAL_POINTER, struct config_tunnel, hops, n_hops,
		&string_value, 1, CONFIG_MAX_TUNNEL_PREFIXES),
	CYAML_FIELD_END,
};
static const cyaml_schema_value_t tunnel_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct config_tunnel, tunnel_fields),
};

static const cyaml_schema_value_t sni_value = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, 255),
};
static const cyaml_schema_field_t frontend_tls_fields[] = {
	CYAML_FIELD_STRING_PTR("certificate", CYAML_FLAG_POINTER, struct config_frontend_tls,
		certificate, 1, 1024),
	CYAML_FIELD_STRING_PTR("ca", OPTIONAL_POINTER, struct config_frontend_tls, ca, 1, 1024),
	CYAML_FIELD_BOOL("require_client_certificate", CYAML_FLAG_OPTIONAL,
		struct config_frontend_tls, require_client_certificate),
	CYAML_FIELD_SEQUENCE_COUNT("sni", OPTIONAL_POINTER, struct config_frontend_tls, sni, n_sni,
		&sni_value, 1, CONFIG_MAX_SNI),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t proxy_protocol_fields[] = {
	CYAML_FIELD_SEQUENCE_COUNT("allow", CYAML_FLAG_POINTER, struct config_proxy_protocol, allow,
		n_allow, &string_value, 1, CONFIG_MAX_PROXIES),
	CYAML_FIELD_BOOL_PTR("v1", OPTIONAL_POINTER, struct config_proxy_protocol, v1),
	CYAML_FIELD_BOOL_PTR("v2", OPTIONAL_POINTER, struct config_proxy_protocol, v2),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t frontend_fields[] = {
	CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, struct config_frontend, name, 1, 128),
	CYAML_FIELD_STRING_PTR(
		"address", CYAML_FLAG_POINTER, struct config_frontend, address, 1, 64),
	CYAML_FIELD_UINT("port", CYAML_FLAG_DEFAULT, struct config_frontend, port),
	CYAML_FIELD_STRING_PTR("target", OPTIONAL_POINTER, struct config_frontend, target, 1, 1024),
	CYAML_FIELD_STRING_PTR(
		"listener", OPTIONAL_POINTER, struct config_frontend, listener, 1, 1024),
	CYAML_FIELD_STRING_PTR(
		"authority", OPTIONAL_POINTER, struct config_frontend, authority, 1, 1024),
	CYAML_FIELD_ENUM("grpc_headers", CYAML_FLAG_OPTIONAL, struct config_frontend, grpc_headers,
		grpc_headers_names, CYAML_ARRAY_LEN(grpc_headers_names)),
	CYAML_FIELD_ENUM("wait_for_ready", CYAML_FLAG_OPTIONAL, struct config_frontend,
		wait_for_ready, wait_names, CYAML_ARRAY_LEN(wait_names)),
	CYAML_FIELD_BOOL(
		"reply_details", CYAML_FLAG_OPTIONAL, struct config_frontend, reply_details),
	CYAML_FIELD_MAPPING_PTR(
		"tls", OPTIONAL_POINTER, struct config_frontend, tls, frontend_tls_fields),
	CYAML_FIELD_MAPPING_PTR("proxy_protocol", OPTIONAL_POINTER, struct config_frontend,
		proxy_protocol, proxy_protocol_fields),
	CYAML_FIELD_END,
};
static const cyaml_schema_value_t frontend_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct config_frontend, frontend_fields),
};

static const cyaml_schema_field_t stats_fields[] = {
	CYAML_FIELD_STRING_PTR("socket", OPTIONAL_POINTER, struct config_stats, socket, 1, 107),
	CYAML_FIELD_STRING_PTR(
		"haproxy_socket", OPTIONAL_POINTER, struct config_stats, haproxy_socket, 1, 107),
	CYAML_FIELD_STRING_PTR("mode", OPTIONAL_POINTER, struct config_stats, mode, 3, 4),
	CYAML_FIELD_STRING_PTR(
		"operators", OPTIONAL_POINTER, struct config_stats, operators, 1, 64),
	CYAML_FIELD_STRING_PTR("admins", OPTIONAL_POINTER, struct config_stats, admins, 1, 64),
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
	CYAML_FIELD_STRING_PTR(
		"subset_seed", OPTIONAL_POINTER, struct config_xds, subset_seed, 1, 256),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t csds_tls_fields[] = {
	CYAML_FIELD_STRING_PTR(
		"certificate", CYAML_FLAG_POINTER, struct config_csds_tls, certificate, 1, 1024),
	CYAML_FIELD_STRING_PTR("ca", OPTIONAL_POINTER, struct config_csds_tls, ca, 1, 1024),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t csds_fields[] = {
	CYAML_FIELD_STRING_PTR("listen", CYAML_FLAG_POINTER, struct config_csds, listen, 1, 64),
	CYAML_FIELD_BOOL("allow_remote", CYAML_FLAG_OPTIONAL, struct config_csds, allow_remote),
	CYAML_FIELD_MAPPING_PTR("tls", OPTIONAL_POINTER, struct config_csds, tls, csds_tls_fields),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t metrics_fields[] = {
	CYAML_FIELD_STRING_PTR("listen", CYAML_FLAG_POINTER, struct config_metrics, listen, 1, 64),
	CYAML_FIELD_BOOL("allow_remote", CYAML_FLAG_OPTIONAL, struct config_metrics, allow_remote),
	CYAML_FIELD_BOOL(
		"virtual_hosts", CYAML_FLAG_OPTIONAL, struct config_metrics, virtual_hosts),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t access_filter_fields[] = {
	CYAML_FIELD_UINT_PTR("sample_per_million", OPTIONAL_POINTER, struct config_access_filter,
		sample_per_million),
	CYAML_FIELD_UINT_PTR(
		"min_status", OPTIONAL_POINTER, struct config_access_filter, min_status),
	CYAML_FIELD_UINT_PTR(
		"min_duration_ms", OPTIONAL_POINTER, struct config_access_filter, min_duration_ms),
	CYAML_FIELD_SEQUENCE_COUNT("causes", OPTIONAL_POINTER, struct config_access_filter, causes,
		n_causes, &string_value, 0, LB_N_CAUSES),
	CYAML_FIELD_SEQUENCE_COUNT("response_flags", OPTIONAL_POINTER, struct config_access_filter,
		response_flags, n_response_flags, &string_value, 0, LB_N_CAUSES),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t xds_collector_fields[] = {
	CYAML_FIELD_STRING_PTR(
		"cluster", CYAML_FLAG_POINTER, struct config_xds_collector, cluster, 1, 255),
	CYAML_FIELD_STRING_PTR(
		"address", CYAML_FLAG_POINTER, struct config_xds_collector, address, 1, 255),
	CYAML_FIELD_END,
};
static const cyaml_schema_value_t xds_collector_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct config_xds_collector, xds_collector_fields),
};
static const cyaml_schema_field_t access_log_fields[] = {
	CYAML_FIELD_STRING_PTR("path", OPTIONAL_POINTER, struct config_access_log, path, 1, 1024),
	CYAML_FIELD_STRING_PTR(
		"text_format", OPTIONAL_POINTER, struct config_access_log, text_format, 1, 4096),
	CYAML_FIELD_STRING_PTR(
		"collector", OPTIONAL_POINTER, struct config_access_log, collector, 1, 255),
	CYAML_FIELD_STRING_PTR(
		"log_name", OPTIONAL_POINTER, struct config_access_log, log_name, 1, 255),
	CYAML_FIELD_MAPPING_PTR(
		"filter", OPTIONAL_POINTER, struct config_access_log, filter, access_filter_fields),
	CYAML_FIELD_STRING_PTR(
		"xds_directory", OPTIONAL_POINTER, struct config_access_log, xds_directory, 2, 512),
	CYAML_FIELD_BOOL("xds_stdout", CYAML_FLAG_OPTIONAL, struct config_access_log, xds_stdout),
	CYAML_FIELD_SEQUENCE_COUNT("xds_collectors", OPTIONAL_POINTER, struct config_access_log,
		xds_collectors, n_xds_collectors, &xds_collector_value, 1, CONFIG_MAX_COLLECTORS),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t tracing_fields[] = {
	CYAML_FIELD_STRING_PTR(
		"collector", CYAML_FLAG_POINTER, struct config_tracing, collector, 1, 255),
	CYAML_FIELD_STRING_PTR(
		"service_name", OPTIONAL_POINTER, struct config_tracing, service_name, 1, 255),
	CYAML_FIELD_UINT_PTR(
		"sample_per_million", OPTIONAL_POINTER, struct config_tracing, sample_per_million),
	CYAML_FIELD_BOOL(
		"upstream_spans", CYAML_FLAG_OPTIONAL, struct config_tracing, upstream_spans),
	CYAML_FIELD_BOOL("xds", CYAML_FLAG_OPTIONAL, struct config_tracing, xds),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t capture_fields[] = {
	CYAML_FIELD_STRING_PTR(
		"directory", CYAML_FLAG_POINTER, struct config_capture, directory, 2, 512),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t sessions_fields[] = {
	CYAML_FIELD_BOOL("use_ejected", CYAML_FLAG_OPTIONAL, struct config_sessions, use_ejected),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t tls_fields[] = {
	CYAML_FIELD_STRING_PTR(
		"crl_directory", OPTIONAL_POINTER, struct config_tls, crl_directory, 1, 1024),
	CYAML_FIELD_UINT_PTR("crl_refresh_s", OPTIONAL_POINTER, struct config_tls, crl_refresh_s),
	CYAML_FIELD_UINT_PTR("threads", OPTIONAL_POINTER, struct config_tls, threads),
	CYAML_FIELD_STRING_PTR(
		"ticket_secret", OPTIONAL_POINTER, struct config_tls, ticket_secret, 1, 1024),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t limits_fields[] = {
	CYAML_FIELD_UINT_PTR("connections", OPTIONAL_POINTER, struct config_limits, connections),
	CYAML_FIELD_UINT_PTR("requests", OPTIONAL_POINTER, struct config_limits, requests),
	CYAML_FIELD_UINT_PTR("streams", OPTIONAL_POINTER, struct config_limits, streams),
	CYAML_FIELD_UINT_PTR("buffers_mib", OPTIONAL_POINTER, struct config_limits, buffers_mib),
	CYAML_FIELD_UINT_PTR(
		"client_buffer_kib", OPTIONAL_POINTER, struct config_limits, client_buffer_kib),
	CYAML_FIELD_UINT_PTR(
		"xds_resources", OPTIONAL_POINTER, struct config_limits, xds_resources),
	CYAML_FIELD_UINT_PTR(
		"xds_response_mib", OPTIONAL_POINTER, struct config_limits, xds_response_mib),
	CYAML_FIELD_UINT_PTR(
		"idle_timeout_s", OPTIONAL_POINTER, struct config_limits, idle_timeout_s),
	CYAML_FIELD_UINT_PTR("max_connection_age_s", OPTIONAL_POINTER, struct config_limits,
		max_connection_age_s),
	CYAML_FIELD_UINT_PTR("max_connection_age_grace_s", OPTIONAL_POINTER, struct config_limits,
		max_connection_age_grace_s),
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
	CYAML_FIELD_SEQUENCE_COUNT("vips", OPTIONAL_POINTER, struct config, vips, n_vips,
		&vip_value, 1, CONFIG_MAX_VIPS),
	CYAML_FIELD_SEQUENCE_COUNT("tunnels", OPTIONAL_POINTER, struct config, tunnels, n_tunnels,
		&tunnel_value, 1, CONFIG_MAX_TUNNELS),
	CYAML_FIELD_ENUM("listeners", CYAML_FLAG_OPTIONAL, struct config, listeners,
		listeners_names, CYAML_ARRAY_LEN(listeners_names)),
	CYAML_FIELD_SEQUENCE_COUNT("frontends", OPTIONAL_POINTER, struct config, frontends,
		n_frontends, &frontend_value, 1, LB_MAX_FRONTENDS),
	CYAML_FIELD_MAPPING_PTR("stats", OPTIONAL_POINTER, struct config, stats, stats_fields),
	CYAML_FIELD_MAPPING_PTR("log", OPTIONAL_POINTER, struct config, log, log_fields),
	CYAML_FIELD_MAPPING_PTR("xds", OPTIONAL_POINTER, struct config, xds, xds_fields),
	CYAML_FIELD_MAPPING_PTR("dns", OPTIONAL_POINTER, struct config, dns, dns_fields),
	CYAML_FIELD_MAPPING_PTR("csds", OPTIONAL_POINTER, struct config, csds, csds_fields),
	CYAML_FIELD_MAPPING_PTR(
		"metrics", OPTIONAL_POINTER, struct config, metrics, metrics_fields),
	CYAML_FIELD_MAPPING_PTR(
		"access_log", OPTIONAL_POINTER, struct config, access_log, access_log_fields),
	CYAML_FIELD_MAPPING_PTR(
		"tracing", OPTIONAL_POINTER, struct config, tracing, tracing_fields),
	CYAML_FIELD_MAPPING_PTR(
		"capture", OPTIONAL_POINTER, struct config, capture, capture_fields),
	CYAML_FIELD_MAPPING_PTR(
		"sessions", OPTIONAL_POINTER, struct config, sessions, sessions_fields),
	CYAML_FIELD_MAPPING_PTR("tls", OPTIONAL_POINTER, struct config, tls, tls_fields),
	CYAML_FIELD_MAPPING_PTR("limits", OPTIONAL_POINTER, struct config, limits, limits_fields),
	CYAML_FIELD_MAPPING_PTR("clients", OPTIONAL_POINTER, struct config, clients, peers_fields),
	CYAML_FIELD_MAPPING_PTR(
		"backends", OPTIONAL_POINTER, struct config, backends, peers_fields),
	CYAML_FIELD_MAPPING_PTR(
		"retries", OPTIONAL_POINTER, struct config, retries, retries_fields),
	CYAML_FIELD_STRING_PTR(
		"takeover_socket", OPTIONAL_POINTER, struct config, takeover_socket, 1, 96),
	CYAML_FIELD_STRING_PTR("ready_file", OPTIONAL_POINTER, struct config, ready_file, 1, 1024),
	CYAML_FIELD_STRING_PTR("state_dir", OPTIONAL_POINTER, struct config, state_dir, 1, 1024),
	CYAML_FIELD_UINT_PTR("lame_duck_s", OPTIONAL_POINTER, struct config, lame_duck),
	CYAML_FIELD_UINT_PTR("farewell_s", OPTIONAL_POINTER, struct config, farewell),
	CYAML_FIELD_UINT_PTR("drain_s", OPTIONAL_POINTER, struct config, drain),
	CYAML_FIELD_UINT_PTR("listener_drain_s", OPTIONAL_POINTER, struct config, listener_drain),
	CYAML_FIELD_END,
};
const cyaml_schema_value_t config_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct config, top_fields),
};
