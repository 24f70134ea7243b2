// SPDX-License-Identifier: Apache-2.0
// Frontends that a reload of shunt.yaml brings, changes and takes away, and addresses beside them.
#include "ctrl/assemble/assemble_inside.h"
#include "ctrl/assemble/frontend_next.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/conf/config.h"
#include "lb/base/counter.h"
#include "lb/own_ranges.h"
#include "lb/pick/link.h"
#include "lb/vips.h"

void assembler_set_live(
	struct assembler *a, uint32_t frontend, struct lb_live_frontend *live, bool sends_away)
{
	assembled_frontend_set_live(&a->frontends[frontend], live, sends_away);
}

bool assembler_begin_next(struct assembler *a, uint32_t frontend)
{
	return frontend_next_begin(&a->frontends[frontend]);
}

void assembler_update_next(struct assembler *a, uint32_t frontend, struct xds_config *config)
{
	assembled_frontend_update(a->frontends[frontend].next, config);
	a->unsettled = true;
}

void assembler_fail_next(struct assembler *a, uint32_t frontend, const char *text)
{
	assembled_frontend_fail(a->frontends[frontend].next, text);
}

bool assembler_next_is_made(const struct assembler *a, uint32_t frontend)
{
	return frontend_next_is_made(&a->frontends[frontend]);
}

void assembler_take_next(struct assembler *a, uint32_t frontend)
{
	frontend_next_take(&a->frontends[frontend]);
}

void assembler_drop_next(struct assembler *a, uint32_t frontend)
{
	frontend_next_drop(&a->frontends[frontend]);
}

// Those that a reload has brought are waited for only where no other serves. What else is drafted,
// as of an endpoint that has just connected, takes nothing back.
bool assembler_ready(const struct assembler *a)
{
	const struct config *c = a->conf.config;
	bool some_serve = false, some_wait = false;
	for (uint32_t i = 0; i < c->n_frontends; i++) {
		if (!config_serves(c, i))
			continue;
		bool waits = *assembled_frontend_error(&a->frontends[i]);
		if (waits && !c->frontends[i].is_new)
			return false;
		some_serve |= !waits;
		some_wait |= waits;
	}
	return (some_serve || !some_wait) && !a->draft.has_frontends;
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
