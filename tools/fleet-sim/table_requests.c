// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet-sim/mesh.h"
#include "tools/fleet-sim/options.h"
#include "tools/fleet-sim/requests.h"
#include "tools/fleet-sim/spread.h"
#include "tools/fleet-sim/tables.h"

#include <stdio.h>
#include <stdlib.h>

static bool run(struct mesh *m, const struct requests_conf *c, uint32_t *counts)
{
	uint32_t n_none = 0;
	if (!requests_run(m, c, counts))
		return false;
	for (uint32_t i = 0; i < m->n; i++)
		n_none += !counts[i];
	struct spread s = spread_of(counts, m->n);
	printf("%-28s %7s %6u %8u %9.3f %9.3f %9.3f\n", requests_policy_name(c->policy),
		c->is_uneven ? "uneven" : "alike", c->subset_size, n_none, s.p1 / s.mean,
		s.p99 / s.mean, s.most / s.mean);
	fflush(stdout);
	return true;
}

static bool run_sizes(const struct options *o, struct mesh *m, enum requests_policy policy,
	bool is_uneven, uint32_t *counts)
{
	static const uint32_t sizes[] = {0, 1000, 100, 20};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const struct requests_conf c = {.seed = o->seed,
			.n_hosts = o->hosts,
			.n_workers = o->workers,
			.n_requests = o->requests,
			.n_under_way = o->under_way,
			.subset_size = sizes[i],
			.policy = policy,
			.is_uneven = is_uneven};
		// Without a subset it is nowhere; and what no weights do with one is seen above.
		if ((policy == REQUESTS_IN_LOCALITY && !sizes[i]) ||
			(policy == REQUESTS_ROUND_ROBIN && is_uneven && sizes[i]))
			continue;
		if (!run(m, &c, counts))
			return false;
	}
	return true;
}

bool tables_requests(const struct options *o)
{
	struct mesh *m = mesh_new(o->seed, o->backends, REQUESTS_LOCALITIES);
	uint32_t *counts = calloc(o->backends, sizeof(*counts));
	bool ok = m && counts;
	printf("Requests of a backend, %u of %u hosts with %u workers over %u backends in %u "
	       "localities, by policy and\nthe size of subsets, 0 = all; uneven: over what each "
	       "can do, of which the half can do half as much:\n\n%-28s %7s %6s %8s %9s %9s %9s\n",
		o->requests, o->hosts, o->workers, o->backends, REQUESTS_LOCALITIES, "", "", "size",
		"none", "p1/mean", "p99/mean", "most/mean");
	for (int k = 0; ok && k < REQUESTS_N; k++)
		ok = run_sizes(o, m, (enum requests_policy)k, k == REQUESTS_WEIGHTED, counts);
	ok = ok && run_sizes(o, m, REQUESTS_ROUND_ROBIN, true, counts);
	printf("\n");
	mesh_free(m);
	free(counts);
	return ok;
}
