// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet-sim/requests.h"

#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/pick/orca.h"
#include "tools/fleet-sim/balancer.h"
#include "tools/fleet-sim/mesh.h"

#include <string.h>

const char *requests_policy_name(enum requests_policy policy)
{
	static const char *const names[REQUESTS_N] = {
		"round_robin",
		"least_request",
		"ring_hash",
		"wrr_locality, subset above",
		"wrr_locality, subset below",
		"weighted_round_robin",
	};
	return names[policy];
}

// *child: of wrr_locality; outlives it.
static struct lb_policy_spec spec_of(const struct requests_conf *c, struct lb_policy_spec *child)
{
	uint32_t size = c->subset_size, part = size / REQUESTS_LOCALITIES;
	*child = (struct lb_policy_spec){.kind = LB_POLICY_ROUND_ROBIN};
	switch (c->policy) {
	case REQUESTS_LEAST:
		return (struct lb_policy_spec){.kind = LB_POLICY_LEAST_REQUEST,
			.subset_size = size,
			.least_request = {.choice_count = 2}};
	case REQUESTS_RING: // RH-03
		return (struct lb_policy_spec){.kind = LB_POLICY_RING_HASH,
			.subset_size = size,
			.ring_hash = {.min_size = 1024, .max_size = 4096}};
	case REQUESTS_WRR_LOCALITY:
		return (struct lb_policy_spec){
			.kind = LB_POLICY_WRR_LOCALITY, .subset_size = size, .child = child};
	case REQUESTS_IN_LOCALITY:
		child->subset_size = part ? part : size;
		return (struct lb_policy_spec){.kind = LB_POLICY_WRR_LOCALITY, .child = child};
	case REQUESTS_WEIGHTED:
		return (struct lb_policy_spec){.kind = LB_POLICY_WEIGHTED_ROUND_ROBIN,
			.subset_size = size,
			.wrr = {.expiration_ns = 180 * NS_PER_SECOND, .update_ns = NS_PER_SECOND}};
	default:
		return (struct lb_policy_spec){.kind = LB_POLICY_ROUND_ROBIN, .subset_size = size};
	}
}

// In parts of what the others can do: one of so many. Not every other one: the places of
// lb/pick/stride.h make those keep step, and few turns would tell too much of it.
static uint32_t slowness(const struct requests_conf *c, uint32_t backend)
{
	bool is_slow = backend * 0x9e3779b9U >> 31; // the golden ratio's: a half, as if by chance
	return c->is_uneven && is_slow ? 2 : 1;
}

// One host after the other, so that no more than one is in memory.
static bool send_all(struct mesh *m, const struct requests_conf *c, uint32_t *counts)
{
	struct lb_policy_spec child;
	const struct lb_policy_spec spec = spec_of(c, &child);
	struct rand seeds;
	rand_init(&seeds, c->seed);
	memset(counts, 0, m->n * sizeof(*counts));
	for (uint32_t i = 0; i < c->n_hosts; i++) {
		const struct balancer_conf conf = {rand_u64(&seeds), c->n_workers, c->n_under_way};
		struct balancer *b = balancer_new(m, &spec, &conf);
		if (!b)
			return false;
		uint32_t n = c->n_requests / c->n_hosts + (i < c->n_requests % c->n_hosts);
		for (uint32_t k = 0; k < n; k++)
			counts[balancer_pick(b)]++;
		balancer_free(b);
	}
	for (uint32_t i = 0; i < m->n; i++)
		counts[i] *= slowness(c, i);
	return true;
}

// Of backends that got so much: their utilization is in proportion to it.
static void report(struct mesh *m, const struct requests_conf *c, const uint32_t *counts)
{
	for (uint32_t i = 0; i < m->n; i++) {
		const struct lb_orca_report r = {
			.qps = counts[i] / slowness(c, i),
			.cpu_utilization = counts[i] * 1e-6, // anything: weights are relative
		};
		lb_orca_report(m->orca, i, &r, twheel_now(m->wheel));
	}
}

bool requests_run(struct mesh *m, const struct requests_conf *c, uint32_t *counts)
{
	for (uint32_t i = 0; i < m->n; i++)
		lb_orca_forget(m->orca, i); // reports of an earlier run
	if (!send_all(m, c, counts))
		return false;
	if (c->policy != REQUESTS_WEIGHTED)
		return true;
	report(m, c, counts);
	return send_all(m, c, counts);
}
