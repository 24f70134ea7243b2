// SPDX-License-Identifier: Apache-2.0
// From complete configurations (ctrl/deps) and the workers' connection events to published
// snapshots: keeps one policy tree a cluster, compiles a route table only when its resource
// changed, and publishes at most once a turn of the loop. Clusters that left every configuration
// stay until no request holds them (A31-C01, A31-C02).
// Thread: ctrl.
#pragma once

#include "ctrl/assemble/members.h"
#include "ctrl/assemble/workers.h"
#include "lb/base/ip.h"
#include "lb/base/str.h"
#include "lb/leaf/leaf.h"
#include "lb/pick/endpoint.h"
#include "lb/pick/picker.h"

#include <stdbool.h>
#include <stdint.h>

struct actions;
struct assembler;
struct config;
struct lb_dump;
struct lb_event;
struct lb_filter_chain;
struct lb_req;
struct lb_route_table;
struct lb_slot;
struct load_report;
struct twheel;
struct xds_config;

struct assembler_conf {
	const struct config *config; // names the frontends
	struct lb_slot *slot; // holds an empty first snapshot
	struct workers *workers;
	struct twheel *wheel;
	uint64_t seed;
	uint32_t max_connections; // of one worker, all together; 0 = any number
	struct load_report *loads; // NULL = nobody takes load reports
	bool aggregate_policy; // leaves use that of their aggregate (A75-G08)
	// A connection failed: names may have other addresses now (A74-C06). NULL = nobody listens.
	void (*reresolve)(void *ctx);
	void *ctx;
};

// Everything is borrowed and outlives it, but for the slot, which goes first. NULL = out of memory.
struct assembler *assembler_new(const struct assembler_conf *);
void assembler_free(struct assembler *); // NULL is fine; workers have stopped

// A complete configuration of one frontend (kept as long as it is needed).
void assembler_update(struct assembler *, uint32_t frontend, struct xds_config *);
// The frontend has no usable configuration any more: its requests fail with this text.
void assembler_fail(struct assembler *, uint32_t frontend, const char *text);
// Its requests may still hold a cluster that its configuration does not name any more (A31-R11).
bool assembler_in_use(struct assembler *, uint32_t frontend, const char *cluster);
// What workers_poll() read.
void assembler_event(struct assembler *, uint32_t worker, const struct lb_event *);
// Every tick: publishes what changed, drops what nobody holds any more.
void assembler_tick(struct assembler *);

// Every frontend has routes.
bool assembler_ready(const struct assembler *);
uint64_t assembler_n_snapshots(const struct assembler *); // published so far
unsigned assembler_n_live_snapshots(const struct assembler *);
// Attempts to connect that wait for their turn, and those under way (lb/member/attempts.h).
uint32_t assembler_n_waiting_attempts(const struct assembler *);
uint32_t assembler_n_attempts(const struct assembler *);
// A link is up: endpoints that wait after a failure wait a second in all. How many wait less.
uint32_t assembler_link_up(struct assembler *);
// Endpoints that wait after a failure are connected to at once: that of the address, or all (NULL).
// How many did wait.
uint32_t assembler_reconnect(struct assembler *, const struct ip_port *address);

// For operators.
struct assembler_endpoint_info { // all texts are borrowed for the call
	const char *leaf; // the cluster that has it: itself, or a leaf of the aggregate
	const struct ip_port *addresses; // in the order of the resource
	uint32_t n_addresses; // >= 1
	const char *health; // as the resource says
	uint32_t priority, weight;
	struct str locality; // its name, as the resource's list has it
	uint32_t locality_weight;
	enum lb_state state; // of its connection
	bool is_failing; // for policies: an attempt failed since it was READY, or it is ejected
	bool is_ejected;
	struct lb_leaf_record record; // of outlier detection and of reported weights
	uint64_t connections; // of all workers, also of other clusters' requests
	struct member_totals totals;
	const char *last_error; // "" = none
};
struct assembler_cluster_info {
	const char *name;
	uint32_t id;
	enum lb_state state;
	const char *detail; // why it fails, or what is wrong although it serves; "" = fine
	bool leaving; // in no configuration, waits for its last request
	uint32_t n_endpoints, n_ready;
	struct cluster_totals totals; // since the cluster came
};
// fn gets the clusters by name; endpoints of one are told by assembler_each_endpoint() inside fn.
void assembler_each_cluster(const struct assembler *,
	void (*fn)(void *ctx, const struct assembler_cluster_info *), void *ctx);
bool assembler_find_cluster(
	const struct assembler *, const char *name, struct assembler_cluster_info *ret);
// What the cluster's picker says to a worker that is connected to every endpoint; borrowed. hash:
// of the request on its route.
struct lb_pick assembler_pick(const struct assembler *, const char *cluster, const struct lb_req *,
	const struct lb_pick_hash *hash);
// Which share of the cluster's requests each of its categories drops, in the order in which they
// are drawn. Of an aggregate: of the leaf in use. The text is borrowed for the call.
void assembler_each_drop(const struct assembler *, const char *cluster,
	void (*fn)(void *ctx, const char *category, double chance), void *ctx);
// The address that a session's addresses mean in the cluster, to the same worker. False = none.
bool assembler_session_endpoint(
	const struct assembler *, const char *cluster, struct str addresses, struct ip_port *ret);
// The cluster's policy tree, from the top down. False = there is no such cluster.
bool assembler_dump_tree(const struct assembler *, const char *cluster, struct lb_dump *);
void assembler_each_endpoint(const struct assembler *, const char *cluster,
	void (*fn)(void *ctx, const struct assembler_endpoint_info *), void *ctx);
// What serves a frontend's requests: of the snapshot that is published, or about to be.
struct assembler_routes {
	const struct xds_config *config;
	const struct lb_route_table *table; // in the order of the config's virtual hosts
	const struct lb_filter_chain *filters;
	const struct actions *actions;
};
// False = nothing does. Good until the assembler is called again.
bool assembler_frontend_routes(
	const struct assembler *, uint32_t frontend, struct assembler_routes *ret);
// "" = nothing; else what its next configuration waits for here, complete as it is.
const char *assembler_frontend_waiting(const struct assembler *, uint32_t frontend);
// "" = serves; else why the frontend has no routes.
const char *assembler_frontend_error(const struct assembler *, uint32_t frontend);
// "" = the newest configuration serves; else why it does not, and an earlier one does (if any).
const char *assembler_frontend_refusal(const struct assembler *, uint32_t frontend);
