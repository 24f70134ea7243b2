// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet-sim/subsets.h"

#include "lb/base/rand.h"
#include "lb/leaf/subset.h"
#include "lb/pick/leaf_endpoints.h"
#include "lb/policy/policy_spec.h"
#include "tools/fleet-sim/backends.h"

#include <stdlib.h>
#include <time.h>

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); // others may run here, too
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static bool is_in(const uint8_t *is_out, uint32_t i)
{
	return !is_out || !is_out[i];
}

// What a host's choice loses by the rollout, and what it gets in its place.
static uint64_t count_moved(
	const uint8_t *before, const uint8_t *after, uint32_t n, uint32_t n_replaced)
{
	uint64_t n_moved = 0;
	for (uint32_t i = 0; i < n; i++)
		n_moved += is_in(before, i) && (i < n_replaced || !is_in(after, i));
	return n_moved;
}

static bool run_host(const struct lb_leaf_endpoints *const list[2], uint64_t seed, uint32_t size,
	uint32_t n_replaced, struct subsets *ret)
{
	const struct lb_policy_spec spec = {.kind = LB_POLICY_ROUND_ROBIN, .subset_size = size};
	uint8_t *is_out[2] = {NULL, NULL};
	double start = now_ns();
	bool ok = lb_subset_choose(list[0], &spec, seed, &is_out[0]) == 0;
	ret->choose_ns += now_ns() - start;
	ok = ok && lb_subset_choose(list[1], &spec, seed, &is_out[1]) == 0;
	for (uint32_t i = 0; ok && i < list[0]->n; i++)
		ret->counts[i] += is_in(is_out[0], i);
	if (ok)
		ret->n_moved += count_moved(is_out[0], is_out[1], list[0]->n, n_replaced);
	free(is_out[0]);
	free(is_out[1]);
	return ok;
}

bool subsets_run(const struct subsets_conf *c, uint32_t n_replaced, struct subsets *ret)
{
	struct rand seeds;
	rand_init(&seeds, c->seed);
	*ret = (struct subsets){.counts = calloc(c->n_backends, sizeof(*ret->counts))};
	struct lb_leaf_endpoints *before = backends_new(c->n_backends, 0, 1),
				 *after = backends_new(c->n_backends, n_replaced, 1);
	const struct lb_leaf_endpoints *const lists[2] = {before, after};
	bool ok = ret->counts && before && after;
	for (uint32_t i = 0; ok && i < c->n_hosts; i++)
		ok = run_host(lists, rand_u64(&seeds), c->size, n_replaced, ret);
	lb_leaf_endpoints_put(before);
	lb_leaf_endpoints_put(after);
	if (!ok)
		subsets_free(ret);
	return ok;
}

void subsets_free(struct subsets *s)
{
	free(s->counts);
	s->counts = NULL;
}
