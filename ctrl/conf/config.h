// SPDX-License-Identifier: Apache-2.0
// shunt.yaml, read with libcyaml and validated: later code relies on the checks made here. The
// bootstrap (ctrl/xds/bootstrap/bootstrap.h) says where xDS configuration comes from.
// Thread: ctrl, before anything else starts; constant afterwards.
#pragma once

#include "lb/base/err.h"
#include "lb/base/gateways.h"
#include "lb/base/ip.h"
#include "lb/base/log.h"
#include "lb/pick/access.h"
#include "lb/route/tracing.h"

#include <stdbool.h>
#include <stdint.h>

#define CONFIG_MAX_PORTS LB_MAX_PORTS
#define CONFIG_MAX_ADDRESSES 16 // of one port
#define CONFIG_MAX_MEMBERS 8 // of one bond
#define CONFIG_MAX_DEVICES 32 // of all ports: devices, and bonds with their members
#define CONFIG_MAX_DNS_SERVERS 16
#define CONFIG_MAX_SNI 64 // names of one frontend
#define CONFIG_MAX_PROXIES 64 // of a frontend: prefixes
#define CONFIG_MAX_VIPS 64
#define CONFIG_MAX_COLLECTORS 16 // of listeners' access logs
#define CONFIG_MAX_GATEWAYS LB_MAX_GATEWAYS // of one port
#define CONFIG_LEAST_WATCH_MS 50
#define CONFIG_MAX_TUNNELS 16
#define CONFIG_MAX_TUNNEL_PREFIXES 16 // of one, in each list

enum config_idle { CONFIG_IDLE_BACKOFF, CONFIG_IDLE_POLL };

// Which worker gets a frame (dataplane/net/steer.h).
enum config_steering {
	CONFIG_STEERING_AUTO, // by the device's RSS, if we can follow its hash
	CONFIG_STEERING_SOFTWARE,
};

// The kernel behind a port: what is not Shunt's goes to it (docs/exception-path.md).
#define CONFIG_MAX_INTERFACE 15 // bytes of an interface's name
struct config_kernel {
	char *interface;
	uint32_t *rate; // NULL = absent
	uint32_t frames_per_s; // as given, or the default
};

// Which of a port's gateways of one family a flow takes, among those that answer.
enum config_gateway_choice {
	CONFIG_GATEWAY_HASH, // by its addresses and ports: all are in use
	CONFIG_GATEWAY_FIRST, // the first of the list: the others stand by
};

struct config_gateway_watch { // NULL = absent
	uint32_t *interval_ms, *missed, *answered;
};
struct config_watch { // as given, or the defaults
	uint32_t interval_ms; // 0 = gateways are not watched
	uint32_t missed; // questions without an answer: it is down
	uint32_t answered; // with one: it is up again
};

// Several devices that are one port (docs/bonds.md).
enum config_bond_mode {
	CONFIG_BOND_8023AD, // LACP
	CONFIG_BOND_ACTIVE_BACKUP,
};
struct config_bond {
	enum config_bond_mode mode;
	char **members; // DPDK device arguments, each as a port's
	unsigned n_members;
};

struct config_port {
	// DPDK device arguments: "net_af_packet0,iface=lb-c". Of a bond, which shunt.yaml gives in
	// its place, what the check calls it by the port's number: "net_bonding0".
	char *device;
	unsigned carrier; // the first port with this device: its own number, but for VLANs of one
	struct config_bond *bond; // NULL = absent
	char **addresses; // "10.81.0.10/24", "2001:db8::10/64"
	unsigned n_addresses;
	char *gateway, *gateway6; // NULL = none
	char **gateways; // of both families, in place of these
	unsigned n_gateways;
	enum config_gateway_choice gateway_choice;
	struct config_gateway_watch *gateway_watch; // NULL = absent
	uint16_t mtu; // of IP packets
	uint16_t vlan; // 0 = none
	enum config_steering steering;
	bool accept_ra; // a gateway for IPv6 is what routers advertise
	struct config_kernel *kernel; // NULL = absent: none
	// Parsed from the texts above.
	struct ip_addr *address_ips; // [n_addresses]
	uint8_t *address_lens; // [n_addresses] prefix lengths
	bool has_ip6; // one of them is an IPv6 address
	struct ip_addr gateway_ips[CONFIG_MAX_GATEWAYS];
	unsigned n_gateway_ips;
	struct config_watch watch;
};

// A prefix that this host answers for beside its ports' addresses.
struct config_vip {
	char *prefix; // "10.9.0.0/24", "2001:db8:9::/64"
	bool *arp; // NULL = absent
	struct ip_prefix range; // parsed from prefix
	bool answers; // ARP and neighbor discovery: as given, or true
};

// How an L4 tier in front of this host wraps clients' packets (docs/l4-tier.md).
enum config_tunnel_kind {
	CONFIG_TUNNEL_IPIP, // IP in IP
	CONFIG_TUNNEL_GUE, // IP in UDP
};

struct config_tunnel {
	enum config_tunnel_kind kind;
	char **from; // "10.0.5.0/24", "fd00:5::/64"
	unsigned n_from;
	uint32_t *port; // NULL = absent
	char **hops; // hosts that a packet may go on to
	unsigned n_hops;
	// Parsed from the texts above.
	struct ip_prefix sources[CONFIG_MAX_TUNNEL_PREFIXES];
	struct ip_prefix relays[CONFIG_MAX_TUNNEL_PREFIXES];
	uint16_t udp_port; // 0 = of no UDP
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

struct config_frontend_tls {
	char *certificate; // providers of the bootstrap
	char *ca; // NULL = clients show no certificate
	bool require_client_certificate;
	char **sni; // names that are served: "a.example", "*.example"
	unsigned n_sni; // 0 = all
};

// Clients begin with a PROXY header (docs/config.md).
struct config_proxy_protocol {
	char **allow; // "10.0.0.0/8", "fd00::/8"
	unsigned n_allow;
	bool *v1, *v2; // NULL = absent: taken
	struct ip_prefix *prefixes; // [n_allow]; parsed from allow
};

// Which socket Listeners are served.
enum config_listeners {
	CONFIG_LISTENERS_NAMED, // those that frontends name
	CONFIG_LISTENERS_WILDCARD, // besides, all with an address in vips
};

// What a frontend's place of a running daemon is to it (ctrl/conf/config_rows.h).
enum config_row {
	CONFIG_ROW_SERVES,
	CONFIG_ROW_LEAVES, // it is in the file no more, and clients are left
	CONFIG_ROW_SPARE, // nobody's: has the name of who was there last, or ""
};

struct config_frontend {
	char *name;
	char *address;
	uint16_t port;
	char *target; // becomes a listener resource name by the bootstrap's template; NULL = none
	char *listener; // the name of a socket Listener; without both the bootstrap names it
	char *authority; // NULL = chosen per request
	enum config_grpc_headers grpc_headers;
	enum config_wait_for_ready wait_for_ready;
	bool reply_details; // local replies say more than their cause (TH-95)
	struct config_frontend_tls *tls; // NULL = plain text
	struct config_proxy_protocol *proxy_protocol; // NULL = absent
	struct ip_addr address_ip;
	// The last one, made by the check: clients of the Listeners of `listeners: wildcard`, which
	// have their own addresses.
	bool by_listeners;
	enum config_row row;
	bool is_new; // by a reload, and without routes yet: it is not asked for readiness
	uint64_t since_ns; // when a reload brought it, by the control thread's clock; 0 = the start
	// What the file says of it since a reload, and that does not serve yet. Owned; NULL = this.
	struct config_frontend *next;
};

struct config_stats {
	char *socket; // default STATS_DEFAULT_SOCKET
	char *haproxy_socket; // for HAProxy's tools; NULL = there is none
	char *mode; // octal digits, default "0660"
	unsigned mode_bits;
	char *operators, *admins; // groups, by name or number; NULL = nobody
	int64_t operators_gid, admins_gid; // the same; -1 = nobody
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
	char *subset_seed; // NULL = by chance (A68-04)
};

// Certificates of the status port; providers of the bootstrap.
struct config_csds_tls {
	char *certificate;
	char *ca; // clients must have a certificate of these; NULL = they need none
};

struct config_csds {
	char *listen; // "127.0.0.1:50052", "[::1]:50052"
	bool allow_remote; // the address may be reachable from other hosts
	struct config_csds_tls *tls; // NULL = in the clear
};

struct config_metrics {
	char *listen; // "127.0.0.1:9464", "[::1]:9464"
	bool allow_remote; // the address may be reachable from other hosts
	bool virtual_hosts; // they are counted apart
};

// Which requests are told of (lb/pick/access.h).
struct config_access_filter {
	uint32_t *sample_per_million, *min_status, *min_duration_ms; // NULL = absent
	// Names and flags of lb/pick/cause.h; both NULL = all but "ok".
	char **causes, **response_flags;
	unsigned n_causes, n_response_flags;
};
// An access log service that listeners may have, by the name of a cluster.
struct config_xds_collector {
	char *cluster;
	char *address; // "127.0.0.1:9001"
};
struct config_access_log {
	char *path; // "stdout", or of a file; NULL = shunt.yaml has no log of its own
	char *text_format; // NULL = JSON
	char *collector; // "127.0.0.1:9001": an access log service there; NULL = none
	char *log_name; // for that; NULL = shunt
	struct config_access_filter *filter; // NULL = absent
	char *xds_directory; // where listeners may have log files; NULL = nowhere
	bool xds_stdout; // listeners may log to stdout and stderr
	struct config_xds_collector *xds_collectors; // services that listeners may log to
	unsigned n_xds_collectors;
};

struct config_tracing {
	char *collector; // "127.0.0.1:4317": who speaks OTLP by gRPC there
	char *service_name; // NULL = shunt
	uint32_t *sample_per_million; // NULL = absent
	bool upstream_spans; // attempts have spans, too
	bool xds; // listeners may say what is traced
};

struct config_capture {
	char *directory; // where operators may have packet captures
};

struct config_sessions {
	bool use_ejected; // sessions stay with ejected endpoints (A75-O22)
};

struct config_tls {
	char *crl_directory; // NULL = no CRLs
	uint32_t *crl_refresh_s; // NULL = absent
	uint32_t *threads; // NULL = absent
	char *ticket_secret; // a file; NULL = a secret of this process
};

// Per worker, allocated at its start (docs/architecture.md).
struct config_limits {
	uint32_t *connections, *requests, *streams; // NULL = absent
	uint32_t *buffers_mib, *client_buffer_kib; // likewise
	uint32_t *idle_timeout_s, *stream_idle_timeout_s; // likewise
	uint32_t *max_connection_age_s, *max_connection_age_grace_s; // likewise
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
	struct config_vip *vips;
	unsigned n_vips;
	struct config_tunnel *tunnels;
	unsigned n_tunnels;
	enum config_listeners listeners;
	struct config_frontend *frontends;
	unsigned n_frontends; // with spare ones, which only a running daemon has
	unsigned n_vip_places; // addresses that its Listeners may have; 0 = not by wildcard
	// Of snapshots, behind the frontends; 0 = each of these has a target.
	unsigned n_chain_places;
	struct config_stats *stats; // never NULL after load
	struct config_log *log; // NULL = absent
	struct config_dns *dns; // NULL = absent
	struct config_csds *csds; // NULL = absent: no status port
	struct config_metrics *metrics; // NULL = absent: no metrics' port
	struct config_access_log *access_log; // NULL = absent: none
	struct config_tracing *tracing; // NULL = absent: nothing is traced
	struct config_capture *capture; // NULL = absent: no captures
	struct config_sessions *sessions; // NULL = absent
	struct config_xds *xds; // NULL = absent
	struct config_tls *tls; // NULL = absent
	struct config_limits *limits; // NULL = absent
	struct config_peers *clients, *backends; // NULL = absent
	struct config_retries *retries; // NULL = absent
	char *takeover_socket; // where a newer process asks for our place; NULL = none can
	char *ready_file; // there while we are ready; NULL = none is
	char *state_dir; // where what serves is kept for the next start; NULL = nowhere
	// All servers, separated by commas; NULL = those of resolv.conf. Not read by libcyaml.
	char *dns_servers;
	// Names of frontends that are gone: records of their requests may be around. Owned.
	char **past_names;
	unsigned n_past_names;
	bool takes_headers; // some frontend had proxy_protocol when workers were started
	enum log_level log_level; // as given, or the default
	uint32_t *lame_duck; // NULL = absent
	uint32_t *farewell; // NULL = absent
	uint32_t *drain; // NULL = absent
	uint32_t *listener_drain; // NULL = absent
	// As given, or the default of ctrl/conf/config_numbers.h. Seconds between SIGTERM and the
	// drain, in which clients are taken:
	uint32_t lame_duck_s;
	// Seconds between SIGTERM and the drain in which clients are sent away, but taken, too;
	// 0 = none:
	uint32_t farewell_s;
	// Seconds for open streams:
	uint32_t drain_s; // after SIGTERM and lame_duck_s
	uint32_t listener_drain_s; // for a listener that has changed
	uint32_t idle_timeout_s; // until a client without an open stream is sent away; 0 = never
	uint32_t max_connection_age_s; // until a client is sent away; 0 = never
	uint32_t max_connection_age_grace_s; // for its streams then; 0 = as long as they take
	uint32_t stream_idle_timeout_s; // of plain HTTP requests without progress; 0 = none
	struct config_silence client_silence, backend_silence;
	uint32_t max_attempts; // of a request that no backend has processed, including the first
	struct lb_access_filter access_filter;
	struct lb_tracing traced; // where no listener says otherwise
	bool retry_idempotent; // GET, HEAD and OPTIONS whose connection was lost, once
	uint32_t crl_refresh_s; // how often CRLs are read again at least
	uint32_t tls_threads; // for handshakes, besides the workers
	// Of each worker:
	uint32_t max_connections; // TCP, of clients and backends together
	uint32_t max_requests;
	uint32_t max_streams; // of a client connection
	uint32_t max_buffers_mib; // queued bytes
	uint32_t client_buffer_kib; // of them, for one client connection
	// Per response of an xDS server:
	uint32_t max_xds_resources;
	uint32_t max_xds_response_mib;
};

// How many frontends snapshots have: those of shunt.yaml, and behind them places for filter chains.
static inline uint32_t config_n_places(const struct config *c)
{
	return c->n_frontends + c->n_chain_places;
}

// False = nobody is there whom clients or operators are to know of.
static inline bool config_serves(const struct config *c, uint32_t frontend)
{
	return c->frontends[frontend].row == CONFIG_ROW_SERVES;
}

// The frontend with by_listeners; n_frontends = there is none.
static inline uint32_t config_by_listeners(const struct config *c)
{
	bool has = c->n_frontends && c->frontends[c->n_frontends - 1].by_listeners;
	return has ? c->n_frontends - 1 : c->n_frontends;
}

// Returns NULL on error: reterr is "<path>[:line]: <field>: <reason>".
struct config *config_load(const char *path, struct lb_err *reterr);
void config_free(struct config *); // NULL is fine
// Index of the port with that address; n_ports = none.
uint32_t config_port_of(const struct config *, const struct ip_addr *);
uint32_t config_n_serving(const struct config *); // frontends
// Index of the frontend with that name, or of the only one for NULL; or -EINVAL.
int config_find_frontend(const struct config *, const char *name, struct lb_err *reterr);
