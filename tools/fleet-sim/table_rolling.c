// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet-sim/clients.h"
#include "tools/fleet-sim/options.h"
#include "tools/fleet-sim/rollout.h"
#include "tools/fleet-sim/tables.h"

#include <stdio.h>

static double percent(uint64_t n, const struct options *o)
{
	return 100.0 * (double)n / o->connections;
}

static bool run(
	const struct options *o, const struct rollout_conf *conf, enum tier_kind kind, bool has_age)
{
	const struct fleet_conf fleet = {o->seed, o->hosts, o->connections, kind};
	struct rollout r;
	struct fleet *f = fleet_new(&fleet, NULL);
	struct clients *c = f ? clients_new(f, has_age ? o->age_s : 0) : NULL;
	bool ok = c && rollout_run(f, c, conf, &r);
	if (ok)
		printf("%-16s %4s %8.1f %% %8.1f %% %9.4f %% %7.3f %% %9.3f %9.3f\n",
			tier_name(kind), has_age ? "yes" : "no", percent(r.n_moved, o),
			percent(r.n_cut, o), percent(r.n_unheard, o), 100.0 * rollout_part_cut(&r),
			r.most_share, r.last_share);
	fflush(stdout);
	clients_free(c);
	fleet_free(f);
	return ok;
}

bool tables_rolling(const struct options *o)
{
	const struct rollout_conf conf = {
		.farewell = {o->seed, o->farewell_s, o->drain_s, o->stream_s},
		.n_waves = o->waves,
		.wave_s = o->wave_s,
		.lame_duck_s = o->lame_duck_s,
		.start_s = o->start_s,
	};
	printf("An upgrade of %u hosts in %u waves, one every %u s: each says farewell for %u s "
	       "and is away for %u s.\n%u connections, with and without an age of %u s; streams "
	       "of %u s:\n\n%-16s %4s %10s %10s %11s %9s %9s %9s\n",
		o->hosts, o->waves, o->wave_s, o->farewell_s, o->lame_duck_s + o->start_s,
		o->connections, o->age_s, o->stream_s, "", "age", "moved", "cut", "unheard",
		"streams", "most/mean", "last/mean");
	for (int k = 0; k < TIER_N; k++)
		if (!run(o, &conf, (enum tier_kind)k, false) ||
			!run(o, &conf, (enum tier_kind)k, true))
			return false;
	printf("\nMoved: by GOAWAY, and of these the part whose streams the drain cut. Unheard: "
	       "connected to a host\nthat answered nobody any more.\n\n");
	return true;
}
