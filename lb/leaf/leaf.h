// SPDX-License-Identifier: Apache-2.0
// One leaf cluster's balancing (gRFC A75; A75-T01, A75-T03, A74-T06, A74-C07 to A74-C09,
// A27-I02, A74-I12): its members over all updates, and above the policies of its priorities the
// choice among these, session affinity, drops, the limit of requests, and outlier detection. Not
// the cluster resource itself, and not what chooses among leaves (lb/leaf/aggregate.h).
// Thread: ctrl. What a worker reads of a leaf is in lb/pick/leaf_picker.h.
#pragma once

#include "lb/leaf/ejection.h"
#include "lb/leaf/outlier.h"
#include "lb/pick/drop.h"
#include "lb/pick/orca.h"
#include "lb/policy/graceful.h"

struct lb_breakers;
struct lb_dump;
struct lb_leaf;
struct lb_leaf_endpoints;
struct lb_loads;
struct lb_member_env;
struct lb_metrics;
struct lb_picker;

// What an update brings; borrowed for the call, but for spec.
struct lb_leaf_config {
	const struct lb_policy_spec
		*spec; // outlives the nodes that get it (lb/policy/node.h); another
	// pointer is another policy config (A74-C09)
	struct lb_leaf_endpoints *endpoints; // the leaf counts it; without priorities: A74-C08
	// [endpoints->n_spans], indexes of lb_link.loads; 0 = nobody wants to know of the locality.
	// NULL = of none.
	const uint32_t *locality_loads;
	const struct lb_drop_category *drops;
	uint32_t n_drops;
	struct lb_loads *loads; // counted by the pickers; NULL = nobody wants to know of drops
	struct lb_metrics *metrics; // counted by the pickers; NULL = none is wanted
	// Its endpoints come of EDS: nobody could find newer ones by asking for them (A56-P14,
	// A74-C06).
	bool ignores_reresolution;
	uint32_t max_requests;
	const char *eds_service_name;
	const struct lb_outlier_conf *outlier; // NULL = none
	uint32_t session_health; // 1 << each enum lb_leaf_health that sessions may use (A55-O02)
	uint64_t idle_timeout_ns; // of what sessions keep
	const char *note; // resolution note; "" = none
};

// What all leaves have in common; borrowed, outlives them.
struct lb_leaf_env {
	uint32_t *loads; // lb_shared.loads; NULL = nobody counts by locality
	struct twheel *wheel;
	struct rand *rand;
	const struct lb_member_env *member_env; // each leaf has one of its own, made of this
	struct lb_breakers *breakers;
	struct lb_orca_table *orca; // as a node's
	lb_node_ops_find *ops_of; // usually lb_node_ops_of
	// Numbers of members, dense over the process; UINT32_MAX = none is left. One given back is
	// best left to rest as long as possible: picks of older snapshots still carry it.
	uint32_t (*member_take)(void *ctx, void *owner);
	void (*member_give)(void *ctx, uint32_t id);
	uint32_t (*slot_take)(void *ctx); // as a node's
	void (*slot_give)(void *ctx, uint32_t slot);
	// As lb_ejection_env's and lb_affinity_env's.
	void (*harvest)(void *ctx, uint32_t member, uint64_t *ret_ok, uint64_t *ret_failed);
	uint64_t (*last_used)(void *ctx, uint32_t member);
	// As a node's: every LOGICAL_DNS cluster of the configuration is to be resolved again
	// (A74-C06). NULL = nobody listens.
	void (*reresolve)(void *ctx);
	// Requests may have sessions: leaves know what they look for. Where that begins later, each
	// leaf is told (lb_leaf_begin_sessions).
	bool has_sessions;
	bool sessions_use_ejected; // as gRPC does; else they go elsewhere, as Envoy's do (A75-O22)
	void *ctx;
};

// Whom a leaf tells.
struct lb_leaf_parent {
	// As a node's. The picker is one that lb_leaf_layer() knows.
	int (*publish)(void *ctx, enum lb_state, struct lb_picker *);
	void *ctx;
	void *owner; // of the leaf's members, for member_take
};

// Until the first update nothing is published. The name is copied; id tells leaves apart to
// requests that are drawn for drops (lb/pick/drop.h). NULL = out of memory.
struct lb_leaf *lb_leaf_new(
	const struct lb_leaf_env *, struct lb_leaf_parent, const char *name, uint32_t id);
void lb_leaf_free(struct lb_leaf *); // NULL is fine
// 0, or -ENOMEM: as before.
[[nodiscard]] int lb_leaf_update(struct lb_leaf *, const struct lb_leaf_config *);
// A request waits for this member (lb_pick.connect_request, LB_AFFINITY_CONNECT).
void lb_leaf_want(struct lb_leaf *, uint32_t member);
// Requests wait until any member serves: some attempts to connect need not wait for their turn.
// Returns how many members it took to look at: none while nothing has changed since the last time.
uint32_t lb_leaf_expedite(struct lb_leaf *);
// The environment says now that requests may have sessions.
void lb_leaf_begin_sessions(struct lb_leaf *);
void lb_leaf_exit_idle(struct lb_leaf *);
void lb_leaf_dump(const struct lb_leaf *, struct lb_dump *);
// Its member of this set of addresses, borrowed until the next update; NULL = there is none.
struct lb_member *lb_leaf_member(
	const struct lb_leaf *, const struct ip_port *addresses, uint32_t n);

// What the layers keep of its member, for operators.
struct lb_leaf_record {
	struct lb_ejection_record ejection;
	bool is_weighed; // by what backends report (gRFC A58)
	enum lb_orca_standing standing; // likewise
	double weight; // 0 = that of the mean counts
};
void lb_leaf_look(const struct lb_leaf *, const struct lb_member *, struct lb_leaf_record *ret);
