// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ctrl/frontends_world.h"

#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/base/show_listener.h"
#include "ctrl/conf/config.h"
#include "ctrl/frontends.h"
#include "lb/pick/link.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

static void on_event(void *ctx, uint32_t worker, const struct lb_event *event)
{
}

void world_start(struct world *w, uint64_t steps)
{
	uint32_t n = config_n_places(w->config);
	w->slot = lb_slot_new(lb_snapshot_new(n, "nothing yet"));
	w->link = lb_link_new(0, 0, w->shared = lb_shared_new());
	w->workers = workers_new(&w->link, 1, on_event, w);
	struct assembler_conf conf = {
		w->config, w->slot, w->workers, w->deps.wheel, 7, .slice.most = steps};
	w->assembler = assembler_new(&conf);
	const struct frontends_conf frontends = {.config = w->config,
		.bootstrap = w->deps.bootstrap,
		.listener_names = w->names,
		.node_id = "me",
		.xds = w->deps.client,
		.dns = w->deps.resolver,
		.wheel = w->deps.wheel,
		.assembler = w->assembler};
	w->frontends = frontends_new(&frontends);
	assert_non_null(w->frontends);
}

void world_end(struct world *w)
{
	frontends_free(w->frontends);
	lb_slot_free(w->slot);
	assembler_free(w->assembler);
	workers_free(w->workers);
	lb_link_free(w->link);
	lb_shared_free(w->shared);
}

void pass(struct world *w, uint64_t ns)
{
	for (uint64_t t = 0; t < ns; t += TURN_NS) {
		deps_pass_time(&w->deps, TURN_NS);
		workers_poll(w->workers);
		assembler_tick(w->assembler);
	}
}

struct search {
	const char *name;
	char text[512];
};

static void find_text(void *ctx, const struct show_listener *l)
{
	struct search *s = ctx;
	if (strcmp(l->name, s->name) == 0)
		snprintf(s->text, sizeof(s->text), "%s%s", l->error, l->refused);
}

void assert_says(struct world *w, const char *name, const char *text)
{
	struct search s = {.name = name};
	frontends_each_listener(w->frontends, find_text, &s);
	if (!strstr(s.text, text))
		fail_msg("%s says \"%s\"", name, s.text);
}
