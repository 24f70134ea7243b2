// SPDX-License-Identifier: Apache-2.0
// shunt.yaml, read with libcyaml and validated: later code relies on the checks made here. The
// bootstrap (ctrl/xds/bootstrap/bootstrap.h) says where xDS configuration comes from.
// Thread: ctrl, before anything else starts; constant afterwards.
#pragma once

#include "lb/base/err.h"
#include "lb/base/ip.h"
#include "lb/base/log.h"

#include <stdbool.h>
#include <stdint.h>

#define CONFIG_MAX_PORTS 8
#define CONFIG_MAX_ADDRESSES 16 // of one port
#define CONFIG_MAX_DNS_SERVERS 16

enum config_idle { CONFIG_IDLE_BACKOFF, CONFIG_IDLE_POLL };

// Which worker gets a frame (dataplane/net/steer.h).
enum config_steering {
	CONFIG_STEERING_AUTO, // by the device's RSS, if we can follow its hash
	CONFIG_STEERING_SOFTWARE,
};

struct config_port {
	char *device; // DPDK device arguments: "net_af_packet0,iface=lb-c"
	char **addresses; // "10.81.0.10/24", "2001:db8::10/64"
	unsigned n_addresses;
	char *gateway, *gateway6; // NULL = none
	uint16_t mtu; // of IP packets
	uint16_t vlan; // 0 = none
	enum config_steering steering;
	bool accept_ra; // a gateway for IPv6 is what routers advertise
	// Parsed from the texts above.
	struct ip_addr *address_ips; // [n_addresses]
	uint8_t *address_lens; // [n_addresses] prefix lengths
	bool has_ip6; // one of them is an IPv6 address
	struct ip_addr gateway_ip, gateway6_ip; // all zero = none
};

// What header matchers see of a gRPC request (D2).
enum config_grpc_headers {
	CONFIG_GRPC_METADATA, // custom metadata and content-type, as in a gRPC client
	CONFIG_GRPC_ALL, // the same headers as of other requests, as in Envoy
};

// Which requests wait while their cluster fails, instead of failing with it.
enum config_wait_for_ready {
	CONFIG_WAIT_NEVER,
	CONFIG_WAIT_ALWAYS,
	CONFIG_WAIT_HEADER, // those with x-shunt-wait-for-ready: true
};

struct config_frontend {
	char *name;
	char *address;
	uint16_t port;
	char *target; // becomes a listener resource name by the bootstrap's template
	char *authority; // NULL = chosen per request
	enum config_grpc_headers grpc_headers;
	enum config_wait_for_ready wait_for_ready;
	bool reply_details; // local replies say more than their cause (TH-95)
	struct ip_addr address_ip;
};

struct config_stats {
	char *socket; // default STATS_DEFAULT_SOCKET
	char *mode; // octal digits, default "0660"
	unsigned mode_bits;
};

struct config_log {
	enum log_level *level; // NULL = absent
};

struct config_dns {
	char **servers; // "10.0.0.2", "10.0.0.2:5353", "[fd00::2]:53"
	unsigned n_servers;
};

// The xDS variants in use (docs/xds.md).
enum config_xds_protocol { CONFIG_XDS_SOTW, CONFIG_XDS_DELTA };
enum config_xds_deleted { CONFIG_XDS_KEEP, CONFIG_XDS_DROP };

struct config_xds {
	enum config_xds_protocol protocol;
	enum config_xds_deleted deleted; // how to treat deleted resources (gRFC A88, A53)
};

struct config_csds {
	char *listen; // "127.0.0.1:50052", "[::1]:50052"
	bool allow_remote; // the address may be reachable from other hosts
};

struct config_sessions {
	bool use_ejected; // sessions stay with ejected endpoints (A75-O22)
};

// Per worker, allocated at its start (docs/architecture.md).
struct config_limits {
	uint32_t *connections, *requests, *buffers_mib, *client_buffer_kib; // NULL = absent
	uint32_t *idle_timeout_s, *stream_idle_timeout_s; // likewise
	uint32_t *xds_resources, *xds_response_mib; // per response instead; likewise
};

// Peers of one side: when they are asked whether they are there, and given up.
struct config_peers {
	uint32_t *tcp_user_timeout_s, *tcp_keepalive_time_s; // NULL = absent
	uint32_t *keepalive_interval_s, *keepalive_timeout_s; // likewise: of HTTP/2's PING
};
struct config_silence { // the same, or the defaults
	uint32_t tcp_user_timeout_s, tcp_keepalive_time_s;
	uint32_t keepalive_interval_s, keepalive_timeout_s;
};

// Requests that are sent again without a route's policy (docs/routing.md).
struct config_retries {
	uint32_t *max_attempts; // NULL = absent
	bool *idempotent; // NULL = absent
};

struct config {
	char **eal; // DPDK's own arguments
	unsigned n_eal;
	uint16_t *workers; // cores
	unsigned n_workers;
	enum config_idle idle;
	struct config_port *ports;
	unsigned n_ports;
	struct config_frontend *frontends;
	unsigned n_frontends;
	struct config_stats *stats; // never NULL after load
	struct config_log *log; // NULL = absent
	struct config_dns *dns; // NULL = absent
	struct config_csds *csds; // NULL = absent: no status port
	struct config_sessions *sessions; // NULL = absent
	struct config_xds *xds; // NULL = absent
	struct config_limits *limits; // NULL = absent
	struct config_peers *clients, *backends; // NULL = absent
	struct config_retries *retries; // NULL = absent
	// All servers, separated by commas; NULL = those of resolv.conf. Not read by libcyaml.
	char *dns_servers;
	enum log_level log_level; // as given, or the default
	uint32_t *drain; // NULL = absent
	uint32_t *listener_drain; // NULL = absent
	// As given, or the default of ctrl/conf/config_numbers.h. Seconds for open streams:
	uint32_t drain_s; // after SIGTERM
	uint32_t listener_drain_s; // for a listener that has changed
	uint32_t idle_timeout_s; // until a client without an open stream is sent away; 0 = never
	uint32_t stream_idle_timeout_s; // of plain HTTP requests without progress; 0 = none
	struct config_silence client_silence, backend_silence;
	uint32_t max_attempts; // of a request that no backend has processed, including the first
	bool retry_idempotent; // GET, HEAD and OPTIONS whose connection was lost, once
	// Of each worker:
	uint32_t max_connections; // TCP, of clients and backends together
	uint32_t max_requests;
	uint32_t max_buffers_mib; // queued bytes
	uint32_t client_buffer_kib; // of them, for one client connection
	// Per response of an xDS server:
	uint32_t max_xds_resources;
	uint32_t max_xds_response_mib;
};

// Returns NULL on error: reterr is "<path>[:line]: <field>: <reason>".
struct config *config_load(const char *path, struct lb_err *reterr);
void config_free(struct config *); // NULL is fine
// Index of the port with that address; n_ports = none.
uint32_t config_port_of(const struct config *, const struct ip_addr *);
// Index of the frontend with that name, or of the only one for NULL; or -EINVAL.
int config_find_frontend(const struct config *, const char *name, struct lb_err *reterr);
