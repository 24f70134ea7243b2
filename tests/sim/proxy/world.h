// SPDX-License-Identifier: Apache-2.0
// Clients, the proxy, backends and a control thread on one wire, and what must hold at every
// instant.
// Thread: one.
#pragma once

#include "dataplane/proxy/proxy.h"
#include "tests/sim/proxy/control.h"
#include "tests/sim/proxy/desk.h"
#include "tests/sim/proxy/peers.h"
#include "tests/sim/proxy/wire.h"

#define MAX_CLIENTS 48
#define MAX_BACKENDS 8
#define MAX_ASKS 8192
#define CLIENT_STREAMS 100 // of a client, at first
#define VIPS_FRONTEND 2

enum { HOST_CLIENTS, HOST_PROXY, HOST_BACKENDS };

struct world_conf {
	uint64_t seed;
	double loss;
	uint32_t n_clients, n_backends;
	uint32_t n_workers; // 2: the other one is imagined
	uint32_t max_clients;
	uint32_t max_queued, max_requests;
	uint32_t max_conns_per_endpoint;
	uint32_t n_chunks; // of the proxy
	uint32_t backend_streams; // MAX_CONCURRENT_STREAMS
	uint32_t stream_window, client_window, backend_window; // the latter two 0: as the former
	uint64_t listener_drain_ns, idle_timeout_ns;
	uint64_t max_age_ns, max_age_grace_ns; // 0 = none
	uint64_t ping_interval_ns, ping_timeout_ns; // to clients and backends; 0 = never
	uint32_t client_buffer;
	uint32_t max_attempts;
	struct lb_header_conf header; // of frontend 0
	bool has_vips; // VIPS_FRONTEND has those of the control's table alone
	bool no_idempotent_retry;
	// Clusters' connections begin with it, and backends want one; NULL = without.
	const struct lb_header *to_backends;
	const struct lb_access_filter *log; // of an access log; NULL = there is none
	bool listeners_log; // listeners may have logs, too
	bool traces; // there is a ring for them; which are traced is the control's `tracing`
	uint32_t n_events; // room in the ring to the control thread
	uint32_t n_handshake_slots; // of each ring; 0 = there is no thread, so no TLS
	void (*in_control)(bool); // around what the control thread makes; NULL = nobody asks
};

struct world {
	struct world_conf conf;
	struct lb_security *headed; // of conf.to_backends
	struct wire wire;
	struct control control;
	struct desk desk;
	struct lb_shared *shared;
	struct lb_link *link;
	struct proxy *proxy;
	struct lb_frontend_conf frontends[LAST_FRONTEND + 1];
	struct h2_context *client_ctx;
	struct h2_conf backend_conf;
	struct client clients[MAX_CLIENTS];
	struct backend backends[MAX_BACKENDS];
	struct ask asks[MAX_ASKS];
	uint32_t n_asks;
	uint32_t n_done[MAX_ASKS];
	uint8_t n_refused[MAX_ASKS];
	struct seen seen[MAX_ASKS];
	uint32_t served[MAX_ASKS], n_served;
	uint32_t max_chunks; // most of the proxy's in use at one time
};

struct world_conf world_conf_default(uint64_t seed);
struct lb_terms world_terms(const struct world *); // those that the proxy begins with
struct world *world_new(const struct world_conf *);
// Everything hung up; checks that the proxy has forgotten all of it.
void world_free(struct world *);

struct rand *world_rand(struct world *);
bool world_chance(struct world *, uint32_t percent);
uint64_t world_counter(const struct world *, const char *name);
// Handshakes that ended so.
uint64_t world_shaken(const struct world *, enum proxy_handshake_side, enum tlshs_outcome);
uint32_t world_chunks_used(const struct world *);

void world_open_client(struct world *, uint32_t i, uint32_t frontend);
void world_open_client_at(struct world *, uint32_t i, const struct ip_port *vip);
// A Listener's own address, whose last byte is this.
struct ip_port world_vip(uint32_t last);
// A new ask, not yet begun.
struct ask *world_ask(struct world *, const char *route, enum kind, uint32_t size);
void world_show(const struct world *, const struct ask *);
uint64_t world_ended(const struct world *, enum lb_cause);
bool world_all_over(const struct world *);
void world_run(struct world *, uint64_t for_ns);
// Until every ask is over; CHECKs that this takes no longer.
void world_finish(struct world *, uint64_t within_ns);
