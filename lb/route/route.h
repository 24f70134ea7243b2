// SPDX-License-Identifier: Apache-2.0
// A compiled route configuration: virtual hosts (exact > suffix > prefix > any domain,
// VH-01..VH-11), each with ordered routes; the first route whose criteria are all true is used
// (A28-R01, A28-R02). Immutable after build; snapshots share tables and virtual hosts through
// counts that only the control thread touches.
// Thread: build/get/put on ctrl; find on workers, and on ctrl for display. Pure but for the
// scratch.
#pragma once

#include "lb/base/err.h"
#include "lb/base/rand.h"
#include "lb/base/str.h"
#include "lb/route/filter.h"
#include "lb/route/hash_policy.h"
#include "lb/route/header_match.h"
#include "lb/route/retry.h"
#include "lb/route/timeouts.h"

#include <stdint.h>

struct lb_req;
struct lb_route_table;
struct lb_vhost;

// What a route specifies besides the choice of a cluster.
struct lb_route_policy {
	struct lb_timeouts timeouts;
	struct lb_retry retry; // the virtual host's if the route has none (RT-02)
	const struct lb_hash_policy *hash;
	uint32_t n_hash;
	bool auto_host_rewrite; // A81; only where the server is trusted (AR-01)
	struct lb_filter_overrides overrides; // of the route
};

// The builder's input: borrowed for the call, and copied except for counted objects.
enum lb_path_kind { LB_PATH_PREFIX, LB_PATH_EXACT, LB_PATH_REGEX };
struct lb_weighted_cluster {
	uint32_t cluster_id; // dense id (lb/cluster.h)
	uint32_t weight;
	struct lb_filter_overrides overrides; // of this entry (A28-W07)
};
enum lb_action_kind {
	LB_ACTION_CLUSTERS, // draw one by weight (A31)
	LB_ACTION_UNSUPPORTED, // matches, and the request fails 14/503 (A28-V04)
};
#define LB_PPM_ALWAYS 1000000
struct lb_route_conf {
	struct str name; // empty = none
	uint32_t index; // in the resource, where routes may stand that are ignored
	enum lb_path_kind path_kind;
	struct str path; // the pattern of REGEX
	bool case_sensitive; // no effect on REGEX
	struct lb_regex_ref regex; // REGEX
	const struct lb_header_match_conf *headers;
	uint32_t n_headers;
	// Of the requests that meet all other criteria, this many in a million match
	// (A28-O02..A28-O04).
	uint32_t ppm; // LB_PPM_ALWAYS = all
	bool grpc_only; // only gRPC requests match (A28-O07)
	enum lb_action_kind action;
	const struct lb_weighted_cluster *clusters; // sum of weights in 1..2^32-1
	uint32_t n_clusters;
	struct lb_route_policy policy;
};
struct lb_vhost_conf {
	struct str name;
	const struct str *domains;
	uint32_t n_domains;
	const struct lb_route_conf *routes;
	uint32_t n_routes;
	struct lb_filter_overrides overrides; // of the virtual host
	uint16_t number; // its counters' (lb_link.vhosts); 0 = it has none
};

// The routes of one virtual host; the table has its domains. Count 1. Returns NULL if out of
// memory, or for a bad conf with the reason in reterr (zero weights, a regex without its set: a
// last check, callers validate first).
struct lb_vhost *lb_vhost_new(const struct lb_vhost_conf *, struct lb_err *reterr);
struct lb_vhost *lb_vhost_get(struct lb_vhost *);
void lb_vhost_put(struct lb_vhost *); // NULL is fine
size_t lb_vhost_size(const struct lb_vhost *); // bytes, regex sets not included

struct lb_route_table_conf {
	uint32_t n_vhosts;
	uint32_t n_exact; // about how many domains have no `*`
	bool ignore_port; // in the authority (VH-06)
	// D2's switch: matchers see the same headers of gRPC requests as of others
	bool grpc_sees_all;
	uint32_t n_workers; // threads that may look up, without ctrl
};
// Begins to make a table. Count 1. Returns NULL if out of memory.
struct lb_route_table *lb_route_table_new(const struct lb_route_table_conf *);
// Adds one of conf.n_vhosts virtual hosts, of which only name and domains are read, and of which
// `compiled` is the rest: the table takes its own reference. Domains with a `*` are borrowed until
// seal(). 0, -ENOMEM, or -EINVAL for a bad domain (empty, `*` in the middle).
[[nodiscard]] int lb_route_table_add(struct lb_route_table *, const struct lb_vhost_conf *,
	struct lb_vhost *compiled, struct lb_err *reterr);
// After the last add(); from then on it is immutable. 0 or -ENOMEM.
[[nodiscard]] int lb_route_table_seal(struct lb_route_table *, struct lb_err *reterr);
struct lb_route_table *lb_route_table_get(struct lb_route_table *);
bool lb_route_table_is_shared(const struct lb_route_table *); // there is more than one reference
void lb_route_table_put(struct lb_route_table *); // sealed or not; NULL is fine
struct lb_vhost *lb_route_table_vhost(const struct lb_route_table *, uint32_t index); // borrowed

enum lb_route_kind {
	LB_ROUTE_CLUSTER, // cluster_id is set
	LB_ROUTE_UNSUPPORTED,
	LB_ROUTE_NO_VHOST,
	// The virtual host has no matching route (VH-09: `*` is not tried); never matches CONNECT.
	LB_ROUTE_NONE,
};
struct lb_route_result {
	enum lb_route_kind kind : 16;
	uint16_t vhost_number; // of its counters; 0 = none
	uint32_t cluster_id;
	uint32_t vhost_index, route_index; // in the conf's order; NONE: the virtual host's alone
	uint64_t vhost_serial; // of the virtual host found; 0 = none
	// CLUSTER: borrowed from the table, valid for this turn.
	const struct lb_route_policy *policy; // never NULL
	const struct lb_filter_overrides *cluster_overrides, *vhost_overrides; // never NULL
};

// The result for one examined route. A route whose path does not match is not examined.
enum lb_route_verdict {
	LB_VERDICT_MATCH,
	LB_VERDICT_HEADER, // header matcher `header` is false
	LB_VERDICT_FRACTION, // the draw failed
	LB_VERDICT_NOT_GRPC,
};
struct lb_route_step {
	uint32_t route_index;
	enum lb_route_verdict verdict;
	uint32_t header; // index in the conf's headers
};
struct lb_route_ctx {
	struct rand *rand;
	struct lb_route_scratch *scratch; // of this thread
	// Called for each examined route, in order; NULL on workers.
	void (*trace)(void *trace_ctx, const struct lb_route_step *);
	void *trace_ctx;
};
struct lb_route_result lb_route_find(
	const struct lb_route_table *, const struct lb_req *, struct lb_route_ctx *);
// True if its header matchers and hash policies see only custom metadata and content-type of this
// request; lb_header_find() returns what they compare (lb/route/header_value.h).
bool lb_route_hides_transport(const struct lb_route_table *, const struct lb_req *);
// Replaces the drawn entry of the matched route by that of this cluster (SA-10). Returns false if
// the route does not have it, or with weight 0.
bool lb_route_use_cluster(
	const struct lb_route_table *, struct lb_route_result *, uint32_t cluster_id);
// What a route specifies, for any route; borrowed from the table.
const struct lb_route_policy *lb_route_policy_of(
	const struct lb_route_table *, uint32_t vhost_index, uint32_t route_index);
// What a lookup found.
struct lb_route_place {
	uint64_t vhost_serial; // 0 = no virtual host was found
	uint32_t vhost_index, route_index; // LB_NO_ROUTE = no route of it matched
};
#define LB_NO_ROUTE UINT32_MAX
struct lb_route_names {
	struct str vhost, route; // borrowed from the table; empty = none
	uint32_t index; // of the conf; LB_NO_ROUTE = no route
};
// False = that virtual host does not serve at its place any more, or there was none.
bool lb_route_names(
	const struct lb_route_table *, const struct lb_route_place *, struct lb_route_names *ret);
// Iterates over the clusters of the matched route: entry i, from 0 on. False = no more entries.
bool lb_route_cluster(const struct lb_route_table *, const struct lb_route_result *, uint32_t i,
	uint32_t *ret_cluster_id);

// Memory that one thread writes to in lookups. thread: 0 to n_workers - 1, or n_workers = ctrl.
// max_text: bytes of the longest header list.
struct lb_route_scratch *lb_route_scratch_new(
	uint32_t thread, size_t max_text); // NULL = out of memory
void lb_route_scratch_free(struct lb_route_scratch *); // NULL is fine

// Chooses the virtual host for an authority on plain data, before anything is compiled
// (VH-02..VH-08): the dependency manager watches only the clusters of that one (A74). Returns its
// index, -1 = none.
int lb_vhost_choose(const struct lb_vhost_conf *, uint32_t n_vhosts, struct str authority);
