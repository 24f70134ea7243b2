// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet-sim/fleet.h"
#include "tools/fleet-sim/options.h"
#include "tools/fleet-sim/tables.h"

#include <stdio.h>
#include <stdlib.h>

// Hosts are in a list as routers have it, by address: those who change are spread over it.
struct change {
	const char *name;
	uint32_t percent; // of all hosts; 0 = one
	bool is_out;
};

static bool run(const struct options *o, enum tier_kind kind, const struct change *c)
{
	const struct fleet_conf conf = {o->seed, o->hosts, o->connections, kind};
	uint32_t n = c->percent ? o->hosts * c->percent / 100 : 1, step = o->hosts / n;
	bool *is_up = calloc(o->hosts, sizeof(*is_up));
	struct fleet_cut cut;
	for (uint32_t i = 0; is_up && i < o->hosts; i++)
		is_up[i] = c->is_out || i % step != step / 2 || i / step >= n;
	struct fleet *f = is_up ? fleet_new(&conf, is_up) : NULL;
	for (uint32_t i = 0; f && i < n; i++)
		f->is_up[i * step + step / 2] = !c->is_out;
	bool ok = f && fleet_change(f, &cut);
	if (ok)
		printf("  %13.3f %%", 100.0 * cut.n_cut / o->connections);
	fleet_free(f);
	free(is_up);
	return ok;
}

bool tables_scale(const struct options *o)
{
	static const struct change changes[] = {
		{"one of the hosts leaves", 0, true},
		{"one comes", 0, false},
		{"a tenth leaves", 10, true},
		{"a tenth comes", 10, false},
	};
	printf("Connections of hosts that stay, cut by a change, of %u over %u hosts:\n\n%-24s",
		o->connections, o->hosts, "");
	for (int k = 0; k < TIER_N; k++)
		printf("  %15s", tier_name((enum tier_kind)k) + (k < TIER_MAGLEV ? 6 : 0));
	printf("\n");
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		printf("%-24s", changes[i].name);
		for (int k = 0; k < TIER_N; k++)
			if (!run(o, (enum tier_kind)k, &changes[i]))
				return false;
		printf("\n");
		fflush(stdout);
	}
	printf("\n");
	return true;
}
