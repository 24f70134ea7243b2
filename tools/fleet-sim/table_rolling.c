// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet-sim/aging.h"
#include "tools/fleet-sim/options.h"
#include "tools/fleet-sim/rollout.h"
#include "tools/fleet-sim/tables.h"

#include <math.h>
#include <stdio.h>

static bool run(const struct options *o, enum tier_kind kind, bool has_age)
{
	const struct fleet_conf conf = {o->seed, o->hosts, o->connections, kind};
	struct rollout r;
	struct fleet *f = fleet_new(&conf, NULL);
	struct aging *a = f && has_age ? aging_new(f, o->age_s) : NULL;
	bool ok = f && (a || !has_age) && rollout_run(f, o->waves, a, o->wave_s, &r);
	if (ok)
		printf("%-18s %5s %9.1f %% %9.1f %% %11.3f %11.3f\n", tier_name(kind),
			has_age ? "yes" : "no", 100.0 * (double)r.n_moved / o->connections,
			100.0 * (double)r.n_cut / o->connections, r.most_share, r.last_share);
	fflush(stdout);
	aging_free(a);
	fleet_free(f);
	return ok;
}

bool tables_rolling(const struct options *o)
{
	double left = exp(-(double)o->drain_s / o->stream_s);
	printf("An upgrade of %u hosts in %u waves, one every %u s; %u connections, with and "
	       "without an age of %u s:\n\n%-18s %5s %11s %11s %11s %11s\n",
		o->hosts, o->waves, o->wave_s, o->connections, o->age_s, "", "age", "moved", "cut",
		"most/mean", "last/mean");
	for (int k = 0; k < TIER_N; k++)
		if (!run(o, (enum tier_kind)k, false) || !run(o, (enum tier_kind)k, true))
			return false;
	printf("\nReckoned: %.2f %% of streams that are open when a host begins to drain outlive "
	       "%u s, if they\nlast %u s on the average (exponentially), and are cut.\n\n",
		100 * left, o->drain_s, o->stream_s);
	return true;
}
