// SPDX-License-Identifier: Apache-2.0
// A load-balancing policy: a single-threaded state machine (config and endpoint states in, state
// and picker out), as gRPC's LoadBalancingPolicy. One algorithm a file (policy_*.c).
// Thread: ctrl.
#pragma once

#include "lb/endpoint.h"

#include <stdint.h>

struct lb_picker;
struct lb_policy;
struct lb_subchannel;
struct twheel;

// What a policy may ask of its parent.
struct lb_policy_helper {
	const char *name; // of the cluster, for error texts; outlives the policy (ERR-01)
	// The subchannel of an endpoint; counted; put it back when the endpoint leaves the list.
	struct lb_subchannel *(*subchannel_get)(void *ctx, const struct ip_port *);
	void (*subchannel_put)(void *ctx, struct lb_subchannel *);
	// New state and picker; the reference to the picker moves to the parent, also on failure.
	// May be called inside update(), any subchannel event, and a timer. 0, or -ENOMEM: the
	// parent still has the old one; try again.
	int (*publish)(void *ctx, enum lb_state, struct lb_picker *);
	void *ctx;
	struct twheel *wheel; // ctrl's
};

struct lb_policy_endpoint {
	struct ip_port addr;
	uint32_t weight; // >= 1
};
struct lb_policy_config {
	const struct lb_policy_endpoint
		*endpoints; // borrowed; usable ones only (health is filtered before)
	uint32_t n_endpoints;
	const char *resolution_note; // for failures with no endpoints; "" = none
};

struct lb_policy_ops {
	const char *name;
	struct lb_policy *(*new)(const struct lb_policy_helper *); // NULL = no memory
	int (*update)(struct lb_policy *,
		const struct lb_policy_config *); // 0 or -ENOMEM (old list stays)
	void (*free)(struct lb_policy *); // NULL is fine
};
struct lb_policy {
	const struct lb_policy_ops *ops;
};

extern const struct lb_policy_ops lb_policy_round_robin; // lb-tree.md RR-01..RR-04
