// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ctrl/page/page_world.h"

#include "ctrl/base/events.h"
#include "ctrl/stats/show.h"
#include "lb/base/grow.h"
#include "lb/base/twheel.h"
#include "lb/pick/link.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/routes_by_hand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct show *page_show;
struct events *page_events;

static const struct told_endpoint backends[] = {
	{{.port = 1, .ip = {{[10] = 255, [11] = 255, [12] = 10, [15] = 1}}}, LB_LEAF_HEALTHY, 1},
	{{.port = 2, .ip = {{[10] = 255, [11] = 255, [12] = 10, [15] = 1}}}, LB_LEAF_HEALTHY, 1},
};
static const struct told_locality locality = {"", "", "", 1, backends, 2};
static const struct told_priority priority = {&locality, 1};

// Resources borrow what they are made of, until the world ends.
static void **kept;
static uint32_t n_kept, room;

static void *keep(void *p)
{
	assert_non_null(p);
	assert_true(grow(&kept, n_kept, &room, sizeof(*kept)));
	return kept[n_kept++] = p;
}

static uint64_t wall_ns(void)
{
	return UINT64_C(1800000000) * NS_PER_SECOND;
}

int page_set_up(void **state)
{
	if (world_set_up_both(state))
		return -1;
	struct world *w = *state;
	page_events = events_new();
	page_show = show_new(&(struct show_conf){.config = &w->config,
		.workers = w->workers,
		.assembler = w->assembler,
		.events = page_events,
		.wall_ns = wall_ns,
		.started_s = 1799999000,
		.wheel = w->wheel});
	assert_non_null(page_show);
	return 0;
}

int page_tear_down(void **state)
{
	show_free(page_show);
	events_free(page_events);
	int rc = world_tear_down(state);
	while (n_kept)
		free(kept[--n_kept]);
	free(kept);
	kept = NULL;
	room = 0;
	return rc;
}

void page_give(struct world *w, const char *const *names, uint32_t n)
{
	struct res_weighted_cluster *weighted = keep(calloc(n, sizeof(*weighted)));
	struct res_route *to = keep(calloc(1, sizeof(*to)));
	struct res_vhost *vhost = keep(calloc(1, sizeof(*vhost)));
	struct res_endpoints **all = keep(calloc(n, sizeof(struct res_endpoints *)));
	struct res_endpoints *e = endpoints_of(&priority, 1);
	static const char *const any[] = {"*"};
	for (uint32_t i = 0; i < n; i++) {
		weighted[i] = (struct res_weighted_cluster){.name = names[i], .weight = 1};
		all[i] = e;
	}
	*to = (struct res_route){PREFIX(""), .clusters = weighted, .n_clusters = n};
	*vhost = (struct res_vhost){
		.name = "v", .domains = any, .n_domains = 1, .routes = to, .n_routes = 1};
	apply(w, vhost, names, all, n);
	turns(w, 10);
	xds_res_put(&e->base);
}

void page_give_many(struct world *w, uint32_t n, const char *end)
{
	char **names = keep(calloc(n, sizeof(char *)));
	for (uint32_t i = 0; i < n; i++) {
		if (asprintf(&names[i], "c%03u%s", i, end) < 0)
			fail_msg("out of memory");
		keep(names[i]);
	}
	page_give(w, (const char *const *)names, n);
}

void page_count(struct world *w, const char *cluster, uint64_t requests, uint64_t failed)
{
	struct assembler_cluster_info info;
	assert_true(assembler_find_cluster(w->assembler, cluster, &info));
	struct lb_cluster_counters *c = &w->link->clusters[info.id];
	counter_add(&c->started, requests);
	counter_add(&c->ended[LB_CAUSE_OK], requests - failed);
	counter_add(&c->ended[LB_CAUSE_NO_HEALTHY], failed);
}

void page_count_bad(struct world *w, const char *cluster, uint64_t n)
{
	struct assembler_cluster_info info;
	page_count(w, cluster, n, 0);
	assert_true(assembler_find_cluster(w->assembler, cluster, &info));
	counter_add(&w->link->times[info.id].bad, n);
}

void page_pass(struct world *w, unsigned ms)
{
	turns(w, (int)ms / 2);
}
