// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ctrl/assemble/load_world.h"

#include "ctrl/assemble/workers.h"
#include "lb/base/log.h"
#include "tests/support/check.h"

static void on_worker_event(void *ctx, uint32_t worker, const struct lb_event *event)
{
	load_report_event(((struct load_world *)ctx)->report, event);
}

void load_world_init(struct load_world *w)
{
	load_world_init_small(w, 0);
}

void load_world_init_small(struct load_world *w, uint32_t max_counters)
{
	log_set_level(LOG_LEVEL_ERROR); // warnings are meant
	lrs_init(&w->f);
	w->shared = lb_shared_new();
	assert_non_null(w->shared);
	for (uint32_t i = 0; i < N_WORKERS; i++) {
		w->links[i] = lb_link_new(i, (int)i, w->shared);
		assert_non_null(w->links[i]);
	}
	w->workers = workers_new(w->links, N_WORKERS, on_worker_event, w);
	assert_non_null(w->workers);
	struct load_report_conf conf = {
		.bootstrap = w->f.bootstrap,
		.transport = lrs_factory(&w->f),
		.workers = w->workers,
		.wheel = w->f.wheel,
		.rand = &w->f.rand,
		.max_counters = max_counters,
		.user_agent_version = "1.2.3",
	};
	w->report = load_report_new(&conf);
	assert_non_null(w->report);
}

void load_world_fini(struct load_world *w)
{
	load_report_free(w->report);
	workers_free(w->workers);
	for (uint32_t i = 0; i < N_WORKERS; i++)
		lb_link_free(w->links[i]);
	lb_shared_free(w->shared);
	lrs_fini(&w->f);
}

void load_world_begin(struct load_world *w)
{
	assert_string_equal(lrs_sent(&w->f), "hello");
	lrs_settle(&w->f);
	lrs_settings(&w->f, NULL, 10 * S);
}

void load_world_pass(struct load_world *w, unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++)
		lrs_pass_time(&w->f, S);
}

const char *load_world_report(struct load_world *w)
{
	load_world_pass(w, 10);
	const char *text = lrs_sent(&w->f);
	lrs_settle(&w->f);
	lrs_forget(&w->f);
	return text;
}

void load_world_count(struct load_world *w, uint32_t worker, uint32_t index, enum load_what what)
{
	struct lb_load_counters *c = &w->links[worker]->loads[index];
	counter_add(what == ISSUED ? &c->issued : what == OK ? &c->ok : &c->failed, 1);
}
