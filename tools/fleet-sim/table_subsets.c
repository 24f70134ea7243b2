// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet-sim/options.h"
#include "tools/fleet-sim/spread.h"
#include "tools/fleet-sim/subsets.h"
#include "tools/fleet-sim/tables.h"

#include <stdio.h>

// A hundredth of all is replaced.
bool tables_subsets(const struct options *o)
{
	static const uint32_t sizes[] = {0, 1000, 500, 200, 100, 50, 20};
	uint32_t n_replaced = o->backends / 100;
	printf("Hosts that are connected to a backend, of %u hosts and %u backends, by the size of "
	       "subsets; what a\nhost connects anew as %u backends are replaced; what a choice "
	       "takes:"
	       "\n\n%8s %12s %9s %6s %6s %9s %9s %8s %9s\n",
		o->hosts, o->backends, n_replaced, "size", "connections", "mean", "none", "most",
		"p1/mean", "p99/mean", "anew", "ms");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const struct subsets_conf conf = {o->seed, o->hosts, o->backends, sizes[i]};
		struct subsets s;
		uint32_t n_none = 0;
		if (!subsets_run(&conf, n_replaced, &s))
			return false;
		for (uint32_t k = 0; k < o->backends; k++)
			n_none += !s.counts[k];
		struct spread spread = spread_of(s.counts, o->backends);
		printf("%8u %12.0f %9.2f %6u %6u %9.2f %9.2f %8.1f %9.2f\n", sizes[i],
			spread.mean * o->backends, spread.mean, n_none, spread.most,
			spread.p1 / spread.mean, spread.p99 / spread.mean,
			(double)s.n_moved / o->hosts, s.choose_ns / o->hosts / 1e6);
		fflush(stdout);
		subsets_free(&s);
	}
	printf("\nSize 0 is all of them. Times are of this machine; all else is of the seed.\n\n");
	return true;
}
