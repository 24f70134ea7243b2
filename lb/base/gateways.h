// SPDX-License-Identifier: Apache-2.0
// Which gateways of the ports answer: what the worker that watches them (dataplane/net/gateway.h)
// tells all others, and operators.
// Thread: w: the watching worker, r: any.
#pragma once

#include <stdint.h>

#define LB_MAX_PORTS 8
#define LB_MAX_GATEWAYS 8 // of one port, of both families

enum lb_gateway_state {
	LB_GATEWAY_UNKNOWN, // not watched, or not known yet
	LB_GATEWAY_UP,
	LB_GATEWAY_DOWN, // as many questions as are allowed went without an answer
};

static inline const char *lb_gateway_state_name(uint32_t state)
{
	return state == LB_GATEWAY_UP ? "up" : state == LB_GATEWAY_DOWN ? "down" : "unknown";
}

struct lb_gateway { // each relaxed
	uint32_t state; // enum lb_gateway_state
	uint32_t n_downs; // how often it went down
	uint64_t since_ns; // of the worker's clock; 0 = since the beginning
};

struct lb_gateways {
	// Grows with each change of a state. w: release, after it; r: acquire, before states.
	_Alignas(64) uint32_t n_changes;
	struct lb_gateway list[LB_MAX_PORTS][LB_MAX_GATEWAYS]; // in the order of shunt.yaml
};

static inline struct lb_gateway lb_gateway_read(const struct lb_gateway *g)
{
	return (struct lb_gateway){.state = __atomic_load_n(&g->state, __ATOMIC_RELAXED),
		.n_downs = __atomic_load_n(&g->n_downs, __ATOMIC_RELAXED),
		.since_ns = __atomic_load_n(&g->since_ns, __ATOMIC_RELAXED)};
}

static inline void lb_gateway_set(
	struct lb_gateways *all, struct lb_gateway *g, enum lb_gateway_state state, uint64_t now_ns)
{
	if (state == LB_GATEWAY_DOWN)
		__atomic_store_n(&g->n_downs, g->n_downs + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&g->since_ns, now_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&g->state, state, __ATOMIC_RELAXED);
	__atomic_store_n(&all->n_changes, all->n_changes + 1, __ATOMIC_RELEASE);
}

static inline uint32_t lb_gateways_changes(const struct lb_gateways *all)
{
	return __atomic_load_n(&all->n_changes, __ATOMIC_ACQUIRE);
}
