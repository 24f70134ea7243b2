// SPDX-License-Identifier: Apache-2.0
// Frontends that a reload of shunt.yaml brings, changes and takes away, and addresses beside them.
#include "ctrl/assemble/assemble_inside.h"
#include "ctrl/assemble/workers.h"
#include "lb/base/counter.h"
#include "lb/own_ranges.h"
#include "lb/pick/link.h"
#include "lb/vips.h"

void assembler_set_live(struct assembler *a, uint32_t frontend, struct lb_live_frontend *live,
	bool with_next, bool sends_away)
{
	assembled_frontend_set_live(&a->frontends[frontend], live, with_next, sends_away);
}

uint64_t assembler_frontend_uses(const struct assembler *a, uint32_t frontend)
{
	uint64_t n = 0;
	for (uint32_t w = 0; w < workers_count(a->conf.workers); w++)
		n += counter_read(
			&workers_link(a->conf.workers, w)->counters.frontend_uses[frontend]);
	return n;
}

void assembler_set_vips(struct assembler *a, struct lb_vips *vips)
{
	struct lb_vips *old = a->vips;
	a->vips = lb_vips_get(vips);
	lb_vips_put(old);
	draft_set_vips(&a->draft, vips);
}

void assembler_set_ranges(struct assembler *a, struct lb_own_ranges *ranges)
{
	struct lb_own_ranges *old = a->ranges;
	a->ranges = lb_own_ranges_get(ranges);
	lb_own_ranges_put(old);
	draft_set_ranges(&a->draft, ranges);
}
