// SPDX-License-Identifier: Apache-2.0
#include "lb/base/time.h"
#include "tools/fleet-sim/clients.h"
#include "tools/fleet-sim/options.h"
#include "tools/fleet-sim/spread.h"
#include "tools/fleet-sim/tables.h"

#include <stdio.h>
#include <stdlib.h>

#define STEPS 6 // of a fifth of the age each

static void print(const struct options *o, const struct fleet *f, uint32_t n_before,
	uint32_t *counts, uint32_t at_s, uint64_t n_moved)
{
	uint64_t of_new = 0;
	fleet_count(f, counts);
	for (uint32_t i = n_before; i < o->hosts; i++)
		of_new += counts[i];
	struct spread s = spread_of(counts, o->hosts);
	printf("%6u s %12.3f %11.3f %14.0f\n", at_s,
		(double)of_new / (o->hosts - n_before) / s.mean, s.p99 / s.mean,
		(double)n_moved / (o->age_s / 5.0));
	fflush(stdout);
}

// Behind a tier that tracks connections, where nothing else moves any.
bool tables_age(const struct options *o)
{
	const struct fleet_conf conf = {o->seed, o->hosts, o->connections, TIER_TRACKED};
	uint32_t n_before = o->hosts - o->hosts / 10, *counts = calloc(o->hosts, sizeof(*counts));
	bool *is_up = calloc(o->hosts, sizeof(*is_up));
	for (uint32_t i = 0; is_up && i < n_before; i++)
		is_up[i] = true;
	struct fleet *f = is_up ? fleet_new(&conf, is_up) : NULL;
	struct clients *c = f ? clients_new(f, o->age_s) : NULL;
	struct fleet_cut cut;
	bool ok = counts && c;
	for (uint32_t i = n_before; ok && i < o->hosts; i++)
		f->is_up[i] = true;
	ok = ok && fleet_change(f, &cut);
	printf("A tenth of %u hosts is new; connections last %u s, a tenth more or less:\n\n%8s "
	       "%12s %11s %14s\n",
		o->hosts, o->age_s, "", "new/mean", "p99/mean", "handshakes/s");
	for (uint32_t step = 0; ok && step <= STEPS; step++) {
		uint32_t at_s = o->age_s * step / 5;
		uint64_t n = step ? clients_pass(c, NULL, at_s * NS_PER_SECOND) : 0;
		print(o, f, n_before, counts, at_s, n);
	}
	clients_free(c);
	fleet_free(f);
	free(is_up);
	free(counts);
	printf("\n");
	return ok;
}
