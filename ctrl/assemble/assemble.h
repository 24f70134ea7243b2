// SPDX-License-Identifier: Apache-2.0
// Turns complete configurations (ctrl/deps) and the workers' connection events into published
// snapshots: keeps one policy tree per cluster, compiles a route table only when its resource
// changed, and publishes at most once per turn of the loop. A cluster that left every configuration
// stays until no request holds it (A31-C01, A31-C02).
// Thread: ctrl.
#pragma once

#include "ctrl/assemble/members.h"
#include "ctrl/assemble/overrides.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/base/slice.h"
#include "lb/base/ip.h"
#include "lb/base/str.h"
#include "lb/leaf/leaf.h"
#include "lb/pick/endpoint.h"
#include "lb/pick/picker.h"

#include <stdbool.h>
#include <stdint.h>

struct access_log;
struct actions;
struct assembler;
struct config;
struct config_frontend_tls;
struct credentials;
struct lb_credential;
struct lb_dump;
struct lb_chain_set;
struct lb_event;
struct lb_filter_chain;
struct lb_live_frontend;
struct lb_own_ranges;
struct lb_req;
struct lb_route_table;
struct lb_slot;
struct lb_terms;
struct lb_vips;
struct load_report;
struct res_tls;
struct twheel;
struct vhost_numbers;
struct xds_config;

struct assembler_conf {
	const struct config *config; // names the frontends
	struct lb_slot *slot; // contains an empty first snapshot
	struct workers *workers;
	struct twheel *wheel;
	uint64_t seed;
	uint64_t subset_seed; // as in lb_leaf_env
	uint32_t max_connections; // per worker, of all endpoints; 0 = no limit
	struct load_report *loads; // NULL = no load reports
	struct credentials *credentials; // NULL = connections by TLS are refused
	struct access_log *access_log; // NULL = listeners have no access logs
	struct slice slice; // how much of a large route table is made in a turn
	bool aggregate_policy; // leaves use their aggregate's policy (A75-G08)
	// Called when a connection failed: DNS names may have other addresses now (A74-C06). May be
	// NULL.
	void (*reresolve)(void *ctx);
	void *ctx;
};

// Everything is borrowed and outlives the assembler, except the slot, which is freed first. Returns
// NULL if out of memory.
struct assembler *assembler_new(const struct assembler_conf *);
void assembler_free(struct assembler *); // NULL is fine; after the workers stopped

// Takes a complete configuration of one frontend and counts a reference.
void assembler_update(struct assembler *, uint32_t frontend, struct xds_config *);
// The frontend has no usable configuration any more: its requests fail with this text.
void assembler_fail(struct assembler *, uint32_t frontend, const char *text);
// The filter chains of a frontend with a socket Listener, whose places are behind shunt.yaml's
// frontends (config_n_places()) and are given configurations as frontends are. error: why it does
// not serve; "" = it does. Takes a reference.
void assembler_set_chains(
	struct assembler *, uint32_t frontend, struct lb_chain_set *, const char *error);
// Where Listeners have addresses of their own, and the chains of each. Takes a reference.
void assembler_set_vips(struct assembler *, struct lb_vips *);
// What this host answers for from the next snapshot on. Takes a reference.
void assembler_set_ranges(struct assembler *, struct lb_own_ranges *);
// What workers know of a frontend from the next snapshot on. sends_away: its clients leave then
// (FLT-11). Takes a reference.
void assembler_set_live(
	struct assembler *, uint32_t frontend, struct lb_live_frontend *, bool sends_away);
// What it is to be by another target is made out of configurations of its own, while it serves as
// it did (ctrl/assemble/frontend_next.h). Begins anew; the configuration's row has a next one until
// it is taken or dropped. False = out of memory, and there is none.
[[nodiscard]] bool assembler_begin_next(struct assembler *, uint32_t frontend);
// These want one that was begun. As assembler_update().
void assembler_update_next(struct assembler *, uint32_t frontend, struct xds_config *);
// It has no usable configuration any more, which is told as a refusal.
void assembler_fail_next(struct assembler *, uint32_t frontend, const char *text);
// All of it is there; false without one.
bool assembler_next_is_made(const struct assembler *, uint32_t frontend);
// It serves from the next snapshot on; it has to be made.
void assembler_take_next(struct assembler *, uint32_t frontend);
void assembler_drop_next(struct assembler *, uint32_t frontend); // none is fine
// Clients that are connected, and workers that accept more.
uint64_t assembler_frontend_uses(const struct assembler *, uint32_t frontend);
// What workers hold connections and requests to from the next snapshot on; the number is ours.
void assembler_set_terms(struct assembler *, const struct lb_terms *);
// A place belongs to this frontend from now on, as to its name and settings. Its clients, unlike
// those of a frontend, are sent away later even if they came before there was a configuration.
void assembler_set_owner(struct assembler *, uint32_t chain, uint32_t frontend);
// What new TLS of a frontend is made of, NULL = plain text: taken, to be given to a frontend or
// back. LB_NO_CREDENTIAL = out of memory or of ids.
uint32_t assembler_take_tls(struct assembler *, const struct config_frontend_tls *);
void assembler_give_tls(struct assembler *, uint32_t id);
void assembler_await_tls(struct assembler *); // as credentials_await()
bool assembler_tls_is_new(const struct assembler *, uint32_t id); // as credentials_is_new()
// Why there is no context; "" = there is one, or none is needed.
const char *assembler_tls_error(const struct assembler *, uint32_t id);
// The frontend has it from the next snapshot on. Takes it over.
void assembler_set_tls(struct assembler *, uint32_t frontend, uint32_t id);
// What connections that begin at a place want of TLS; NULL = plain text. False = out of memory or
// of ids: they are refused until it is called again (TLS-280).
[[nodiscard]] bool assembler_secure(struct assembler *, uint32_t chain, const struct res_tls *);
// The place is nobody's: whoever might still get it is refused, in plain text, too.
void assembler_unsecure(struct assembler *, uint32_t chain);
// True until the first attempt to make its TLS context has ended.
bool assembler_is_securing(const struct assembler *, uint32_t chain);
// Sends the clients of a place away (FLT-11); what it has serves them until then.
void assembler_send_away(struct assembler *, uint32_t chain);
// True if its requests may still hold a cluster that its configuration no longer names (A31-R11).
bool assembler_in_use(struct assembler *, uint32_t frontend, const char *cluster);
// What stands at this id from now on; NULL = nothing (struct credentials_conf).
void assembler_credential(struct assembler *, uint32_t id, struct lb_credential *);
// Handles an event that workers_poll() read.
void assembler_event(struct assembler *, uint32_t worker, const struct lb_event *);
// Call at every tick: publishes what changed, frees what is no longer held.
void assembler_tick(struct assembler *);

// True if every frontend has routes. Those that a reload has brought since (is_new) may lack them
// while another has some.
bool assembler_ready(const struct assembler *);
uint64_t assembler_n_snapshots(const struct assembler *); // published so far
// The number of the newest, as workers tell it that have it: the empty one of before is number 1.
uint64_t assembler_snapshot_version(const struct assembler *);
uint64_t assembler_published_ns(const struct assembler *); // when the last one was; 0 = never
unsigned assembler_n_live_snapshots(const struct assembler *);
// Connection attempts that wait for their turn, and those under way (lb/member/attempts.h).
uint32_t assembler_n_waiting_attempts(const struct assembler *);
uint32_t assembler_n_attempts(const struct assembler *);
// A link came up: shortens backoffs of endpoints to a second since the attempt. Returns how many.
uint32_t assembler_link_up(struct assembler *);
// Ends the backoff of the endpoint with this address, or of all (NULL). Returns how many waited.
uint32_t assembler_reconnect(struct assembler *, const struct ip_port *address);

// As overrides_set(), and applies it to the clusters that there are. On error nothing has changed.
[[nodiscard]] int assembler_override(struct assembler *, const char *cluster,
	const struct ip_port *address, struct override, struct lb_err *reterr);
// Virtual hosts that are counted apart; borrowed; NULL = none.
const struct vhost_numbers *assembler_vhost_numbers(const struct assembler *);
// All of them; borrowed.
const struct overrides *assembler_overrides(const struct assembler *);

// What is known of an endpoint by experience, as another process can go on with it.
struct assembler_bequest { // borrowed for the call
	const char *cluster, *leaf; // the same, but for an aggregate
	const struct ip_port *addresses;
	uint32_t n_addresses;
	struct lb_bequest of;
};
// Calls fn for each endpoint of which anything is.
void assembler_bequeath(const struct assembler *,
	void (*fn)(void *ctx, const struct assembler_bequest *), void *ctx);
// False = there is no such endpoint, or no use for it. When all have theirs,
// assembler_settle_bequests() must follow, once.
bool assembler_inherit(struct assembler *, const struct assembler_bequest *);
// Likewise, of an operator's; false = too many, or out of memory.
bool assembler_inherit_override(
	struct assembler *, const char *cluster, const struct ip_port *, struct override);
void assembler_settle_bequests(struct assembler *);

// For display.
struct assembler_endpoint_info { // texts are borrowed for the call
	const char *leaf; // the cluster that has it: itself, or a leaf of the aggregate
	const struct ip_port *addresses; // in the order of the resource
	uint32_t n_addresses; // >= 1
	const struct ip_port *proxy; // through which it is reached (gRFC A86); NULL = none
	// As in the resource, or as operators say.
	const char *health; // "UNHEALTHY" if its active health checks fail, too
	uint32_t priority, weight;
	bool ignores_weight; // the policy does; false while nobody can tell
	struct override override; // what they say
	struct str locality; // its name, as in the resource's list
	uint32_t locality_weight;
	enum lb_state state; // of its connection
	bool is_up; // READY as policies see it, and by that health new requests may reach it
	// as policies see it: an attempt failed since it was READY, or it is ejected or unhealthy
	bool is_failing;
	bool is_ejected;
	struct lb_leaf_record record; // of outlier detection, health checks and weights
	uint64_t connections; // of all workers, for all clusters
	struct member_totals totals;
	const char *last_error; // "" = none
};
struct assembler_cluster_info {
	const char *name;
	uint32_t id;
	enum lb_state state;
	const char
		*tls; // "" = plain text, "tls", "mtls" (we show a certificate); of an aggregate ""
	const char *detail; // why it fails, or a problem although it serves; "" = none
	bool leaving; // in no configuration, waits for its last request
	// failing: ejected and unhealthy ones, too
	uint32_t n_endpoints, n_ready, n_failing, n_ejected, n_unhealthy;
	struct lb_leaf_counts counts; // since the cluster was added
	uint64_t connections; // to its endpoints, those of other clusters included
	uint32_t in_flight,
		max_requests; // of its circuit breaker; an aggregate's: of its leaf in use
	struct cluster_totals totals; // since the cluster was added
};
// Calls fn for each cluster in order of name; inside fn, assembler_each_endpoint() lists its
// endpoints.
void assembler_each_cluster(const struct assembler *,
	void (*fn)(void *ctx, const struct assembler_cluster_info *), void *ctx);
// The first cluster whose name comes after this one ("" = the first of all), for walks with pauses.
// False = there is none.
bool assembler_next_cluster(
	const struct assembler *, const char *after, struct assembler_cluster_info *ret);
// The name of that cluster alone, which costs nothing of its endpoints; borrowed until clusters
// come or go. NULL = there is none.
const char *assembler_cluster_after(const struct assembler *, const char *after);
// Its answers and times since it was added, of all workers. False = there is no such cluster.
bool assembler_cluster_times(
	const struct assembler *, const char *cluster, struct lb_cluster_times *ret);
bool assembler_find_cluster(
	const struct assembler *, const char *name, struct assembler_cluster_info *ret);
// Likewise at a bounded cost: what is summed over its endpoints is 0.
bool assembler_find_without_endpoints(
	const struct assembler *, const char *name, struct assembler_cluster_info *ret);
// What the cluster's picker returns on a worker with connections to all endpoints; borrowed. hash:
// the request's, from its route.
struct lb_pick assembler_pick(const struct assembler *, const char *cluster, const struct lb_req *,
	const struct lb_pick_hash *hash);
// The share of the cluster's requests that each drop category drops, in the order in which they are
// drawn. For an aggregate: of the leaf in use. The text is borrowed for the call.
void assembler_each_drop(const struct assembler *, const char *cluster,
	void (*fn)(void *ctx, const char *category, double chance), void *ctx);
// The endpoint that a session with these addresses gets in the cluster, on such a worker. False =
// none.
bool assembler_session_endpoint(
	const struct assembler *, const char *cluster, struct str addresses, struct ip_port *ret);
// Walks the cluster's policy tree from the top down. False = there is no such cluster.
bool assembler_dump_tree(const struct assembler *, const char *cluster, struct lb_dump *);
void assembler_each_endpoint(const struct assembler *, const char *cluster,
	void (*fn)(void *ctx, const struct assembler_endpoint_info *), void *ctx);
// The same for n of them from this place on, for walks with pauses. Returns how many there were.
uint32_t assembler_some_endpoints(const struct assembler *, const char *cluster, uint32_t from,
	uint32_t n, void (*fn)(void *ctx, const struct assembler_endpoint_info *), void *ctx);
// Calls fn for each endpoint (lb/pick/endpoint.h) at an address of the cluster, NULL = of each
// cluster in order of name; one that several have comes for each.
void assembler_each_endpoint_id(const struct assembler *, const char *cluster,
	void (*fn)(void *ctx, const char *cluster, uint32_t id), void *ctx);
// What serves a frontend's requests in the published snapshot, or the one about to be published.
struct assembler_routes {
	const struct xds_config *config;
	const struct lb_route_table *table; // in the order of the resource's virtual hosts
	const struct lb_filter_chain *filters;
	const struct actions *actions;
};
// Returns false if nothing serves. Valid until the next call of the assembler.
bool assembler_frontend_routes(
	const struct assembler *, uint32_t frontend, struct assembler_routes *ret);
// What its next configuration, complete, still waits for here; "" = nothing. Of a frontend that is
// to have another target, that one's.
const char *assembler_frontend_waiting(const struct assembler *, uint32_t frontend);
// Why clients cannot connect by TLS, or do by an older certificate; "" = all is well.
const char *assembler_frontend_tls_error(const struct assembler *, uint32_t frontend);
// Why the frontend has no routes; "" = it serves.
const char *assembler_frontend_error(const struct assembler *, uint32_t frontend);
// Why the newest configuration, likewise, does not serve (an earlier one may); "" = it does, or
// waits.
const char *assembler_frontend_refusal(const struct assembler *, uint32_t frontend);
