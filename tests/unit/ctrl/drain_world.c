// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ctrl/drain_world.h"

#include "ctrl/assemble/workers.h"
#include "ctrl/loop.h"
#include "lb/base/log.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"

#include <stdlib.h>

static void on_change(void *ctx)
{
	((struct world *)ctx)->n_changes++;
}

static void on_begin(void *ctx)
{
	((struct world *)ctx)->n_begins++;
}

static int set_up(void **state, uint32_t n_workers)
{
	static char *names[] = {"a", "b", "c"};
	struct world *w = calloc(1, sizeof(*w));
	log_set_level(LOG_LEVEL_ERROR);
	for (int i = 0; i < N_FRONTENDS; i++)
		w->frontends[i].name = names[i];
	w->config = (struct config){.frontends = w->frontends,
		.n_frontends = N_FRONTENDS,
		.lame_duck_s = 10,
		.drain_s = 30};
	w->loop = loop_new();
	w->now_ns = twheel_now(loop_wheel(w->loop));
	w->shared = lb_shared_new();
	for (; w->n_workers < n_workers; w->n_workers++)
		w->links[w->n_workers] = lb_link_new(0, 0, w->shared);
	w->workers = workers_new(w->links, n_workers, NULL, NULL);
	w->drains = drains_new(&(struct drains_conf){.config = &w->config,
		.workers = w->workers,
		.wheel = loop_wheel(w->loop),
		.changed = on_change,
		.ctx = w});
	w->shutdown = (struct shutdown){.config = &w->config,
		.loop = w->loop,
		.workers = w->workers,
		.drains = w->drains,
		.on_begin = on_begin,
		.ctx = w};
	for (int i = 0; i < N_FRONTENDS; i++)
		w->links[0]->counters.frontend_uses[i] = 1; // the worker listens
	*state = w;
	return 0;
}

int drain_world_set_up(void **state)
{
	return set_up(state, 1);
}

int drain_world_set_up_two(void **state)
{
	return set_up(state, 2);
}

int drain_world_tear_down(void **state)
{
	struct world *w = *state;
	drains_free(w->drains);
	workers_free(w->workers);
	while (w->n_workers > 0)
		lb_link_free(w->links[--w->n_workers]);
	lb_shared_free(w->shared);
	loop_free(w->loop);
	free(w);
	return 0;
}

void pass(struct world *w, uint64_t ns)
{
	for (uint64_t end = w->now_ns + ns; w->now_ns < end; w->now_ns += SECOND / 10)
		twheel_advance(loop_wheel(w->loop), w->now_ns);
	twheel_advance(loop_wheel(w->loop), w->now_ns);
}

struct lb_command heard(struct world *w)
{
	struct lb_command first = {0}, c;
	for (uint32_t i = 0; i < w->n_workers; i++) {
		assert_true(spsc_read(&w->links[i]->commands, &c));
		first = i ? first : c;
		assert_int_equal(c.kind, first.kind);
		assert_int_equal(c.deadline_ns, first.deadline_ns);
	}
	return first;
}

void assert_silence(struct world *w)
{
	struct lb_command c;
	assert_false(spsc_read(&w->links[0]->commands, &c));
}

void assert_about(uint64_t ns, uint64_t expected_ns)
{
	assert_in_range(ns, expected_ns - SECOND / 2, expected_ns + SECOND / 2);
}
