// SPDX-License-Identifier: Apache-2.0
// The balancing of one leaf cluster (gRFC A75; A75-T01, A75-T03, A74-T06, A74-C07 to A74-C09,
// A27-I02, A74-I12): its members over all updates, its priorities with their policies, and the
// layers above: session affinity, drops, the circuit breaker, outlier detection, health checks. It
// does not know the cluster resource; lb/leaf/aggregate.h chooses among leaves.
// Thread: ctrl. lb/pick/leaf_picker.h has what workers read of a leaf.
#pragma once

#include "lb/leaf/ejection.h"
#include "lb/leaf/health.h"
#include "lb/leaf/outlier.h"
#include "lb/pick/breaker.h"
#include "lb/pick/drop.h"
#include "lb/pick/orca.h"
#include "lb/pick/timers.h"
#include "lb/policy/graceful.h"

struct lb_breakers;
struct lb_dump;
struct lb_leaf;
struct lb_leaf_endpoints;
struct lb_loads;
struct lb_member_env;
struct lb_metrics;
struct lb_picker;
struct lb_security;

// The input of an update; borrowed for the call, except spec.
struct lb_leaf_config {
	// Outlives the nodes that get it (lb/policy/node.h); another pointer means another policy
	// config (A74-C09).
	const struct lb_policy_spec *spec;
	// Counted by the leaf; if it has no priorities: A74-C08.
	struct lb_leaf_endpoints *endpoints;
	// [endpoints->n_spans], indexes of lb_link.loads; 0 = no load reports for the locality.
	// NULL = for none.
	const uint32_t *locality_loads;
	const struct lb_drop_category *drops;
	uint32_t n_drops;
	struct lb_loads *loads; // counted by the pickers; NULL = no load reports for drops
	struct lb_metrics *metrics; // counted by the pickers; NULL = none is wanted
	// The endpoints come from EDS: re-resolution cannot find newer ones (A56-P14, A74-C06).
	bool ignores_reresolution;
	uint32_t max_requests;
	struct lb_retry_budget retry_budget;
	const char *eds_service_name;
	const struct lb_outlier_conf *outlier; // NULL = none
	struct lb_check *check; // of health, counted by the leaf; NULL = none. Not for pick_first
	uint32_t session_health; // 1 << each enum lb_leaf_health that sessions may use (A55-O02)
	uint64_t idle_timeout_ns; // for connections that only sessions need
	struct lb_timers timers; // of the endpoints' connections
	struct lb_security *security; // likewise; counted by the leaf; NULL = plain text, no header
	bool sni_is_hostname; // of endpoints that have one, in place of the security's name (A101)
	bool uses_proxies; // endpoints that have one are reached through it (gRFC A86)
	const char *note; // resolution note; "" = none
};

// What all leaves share; borrowed, outlives them.
struct lb_leaf_env {
	uint32_t *loads; // lb_shared.loads; NULL = no load reports by locality
	struct twheel *wheel;
	struct rand *rand;
	const struct lb_member_env *member_env; // each leaf makes its own from this one
	struct lb_breakers *breakers;
	struct lb_orca_table *orca; // as in lb_node_env
	lb_node_ops_find *ops_of; // usually lb_node_ops_of
	// Hand out dense member ids, unique in the process; UINT32_MAX = none is left. A returned
	// id should not be reused soon: picks from older snapshots still carry it.
	uint32_t (*member_take)(void *ctx, void *owner);
	void (*member_give)(void *ctx, uint32_t id);
	uint32_t (*slot_take)(void *ctx); // as in lb_node_env
	void (*slot_give)(void *ctx, uint32_t slot);
	// As in lb_ejection_env and lb_affinity_env.
	void (*harvest)(void *ctx, uint32_t member, uint64_t *ret_ok, uint64_t *ret_failed);
	uint64_t (*last_used)(void *ctx, uint32_t member);
	struct lb_probes *probes; // that do health checks; NULL = there are none
	bool (*is_used)(void *ctx, uint32_t member); // as in lb_health_env
	// As for a node: asks to resolve every LOGICAL_DNS cluster of the configuration again
	// (A74-C06). May be NULL.
	void (*reresolve)(void *ctx);
	// Requests may have sessions: leaves keep maps for them. When this becomes true later, call
	// lb_leaf_begin_sessions() on each leaf.
	bool has_sessions;
	// as gRPC does; false = use other endpoints, as Envoy does (A75-O22)
	bool sessions_use_ejected;
	// By which subsets of endpoints are chosen (lb/leaf/subset.h): processes with the same one
	// choose the same.
	uint64_t subset_seed;
	void *ctx;
};

// What leaves have counted of what they decide, not of requests.
struct lb_leaf_counts {
	struct lb_health_counts checks;
	struct lb_outlier_counts outliers[LB_OUTLIER_N];
	struct lb_wrr_counts wrr;
	struct lb_connect_counts connects;
};

// The parent that a leaf reports to.
struct lb_leaf_parent {
	// As for a node. The picker is one that lb_leaf_layer() knows.
	int (*publish)(void *ctx, enum lb_state, struct lb_picker *);
	void *ctx;
	void *owner; // owner of the leaf's members, for member_take
	// Added to. Outlives the leaf, since totals must not fall when it goes. NULL = nobody asks.
	struct lb_leaf_counts *counts;
};

// Publishes nothing until the first update. Copies the name; id distinguishes leaves in a request's
// draw for drops (lb/pick/drop.h). Returns NULL if out of memory.
struct lb_leaf *lb_leaf_new(
	const struct lb_leaf_env *, struct lb_leaf_parent, const char *name, uint32_t id);
void lb_leaf_free(struct lb_leaf *); // NULL is fine
// Returns 0, or -ENOMEM with nothing changed.
[[nodiscard]] int lb_leaf_update(struct lb_leaf *, const struct lb_leaf_config *);
// A request waits for this member (lb_pick.connect_request, LB_AFFINITY_CONNECT).
void lb_leaf_want(struct lb_leaf *, uint32_t member);
// Requests wait for any member to serve: starts some connection attempts ahead of their turn.
// Returns how many members it examined: none if nothing changed since the last call.
uint32_t lb_leaf_expedite(struct lb_leaf *);
// Call when the environment begins to allow sessions.
void lb_leaf_begin_sessions(struct lb_leaf *);
void lb_leaf_exit_idle(struct lb_leaf *);
void lb_leaf_dump(const struct lb_leaf *, struct lb_dump *);
// The leaf's member with these addresses, borrowed until the next update; NULL = none.
struct lb_member *lb_leaf_member(
	const struct lb_leaf *, const struct ip_port *addresses, uint32_t n);

// What the leaf has learned of a member, as another process can go on with it.
struct lb_bequest { // zero = nothing
	struct lb_ejection_bequest ejection;
	struct lb_orca_bequest orca;
	bool is_checked, serves; // the verdict of health checks
};
// Of a member of its. False = there is nothing.
bool lb_leaf_bequeath(const struct lb_leaf *, const struct lb_member *, struct lb_bequest *ret);
// True = something of it is taken. When all have got theirs, lb_leaf_weigh() must follow.
bool lb_leaf_inherit(struct lb_leaf *, struct lb_member *, const struct lb_bequest *);
// Lets policies weigh members anew, at once, if reports came so.
void lb_leaf_weigh(struct lb_leaf *);

// What the layers store about a member, for display.
struct lb_leaf_record {
	struct lb_ejection_record ejection;
	struct lb_health_record health;
	bool is_weighed; // the policy weighs it by backends' reports (gRFC A58)
	enum lb_orca_standing standing; // likewise
	double weight; // 0 = the mean weight is used
};
void lb_leaf_look(const struct lb_leaf *, const struct lb_member *, struct lb_leaf_record *ret);
// Its policy gives each endpoint as much as any other, whatever weights they have (OPS-295). False
// while it has none yet.
bool lb_leaf_ignores_weights(const struct lb_leaf *);
