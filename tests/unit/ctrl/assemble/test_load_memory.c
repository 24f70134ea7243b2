// SPDX-License-Identifier: Apache-2.0
// Each allocation in a life of load reports is failed once: the owner asks again, nothing crashes,
// and in the end what was counted is what was told.
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/pick/drop.h"
#include "lb/pick/loads.h"
#include "lb/pick/metrics.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/assemble/load_world.h"

#include <stdio.h>
#include <string.h>

struct told {
	unsigned x, y, drops, metric;
};

static unsigned number_after(const char *text, const char *word)
{
	const char *at = strstr(text, word);
	unsigned n = 0;
	if (at)
		sscanf(at + strlen(word), "%u", &n);
	return n;
}

// Ten seconds, in which the message under way leaves, and the server wants all.
static void go_on(struct load_world *w, struct told *t)
{
	for (unsigned i = 0; i < 10; i++) {
		char last[512] = "";
		lrs_pass_time(&w->f, S);
		for (const char *text; *(text = lrs_sent(&w->f));)
			snprintf(last, sizeof(last), "%s", text); // only the last is under way
		if (w->f.stream && w->f.sending) {
			t->x += number_after(last, " x/z/s ");
			t->y += number_after(last, " y/z/s ");
			t->drops += number_after(last, " drops ");
			t->metric += number_after(last, " named_metrics.k=");
		}
		lrs_settle(&w->f);
		if (w->f.stream && w->f.reading)
			lrs_settings(&w->f, NULL, 3 * S);
	}
}

struct numbers {
	uint32_t x, y, drop;
};

// False = something is not counted: out of memory.
static bool update(struct load_leaf *leaf, bool has_x, struct numbers *ret)
{
	static const struct lb_drop_category one[] = {{"lb", 1}};
	load_leaf_begin(leaf);
	uint32_t x = has_x ? load_leaf_locality(leaf, "x", "z", "s") : 0;
	uint32_t y = load_leaf_locality(leaf, "y", "z", "s");
	const struct lb_loads *drops = load_leaf_drops(leaf, one, 1);
	if (!y || (has_x && !x) || !drops || !drops->drops[0] || !drops->breaker)
		return false;
	load_leaf_end(leaf);
	*ret = (struct numbers){x, y, drops->drops[0]};
	return true;
}

static void count(struct load_world *w, uint32_t number, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		load_world_count(w, i % N_WORKERS, number, ISSUED);
		load_world_count(w, i % N_WORKERS, number, OK);
	}
}

// False = there are not so many allocations.
static bool live_with_failure(size_t nth)
{
	static const char *const metrics[] = {"named_metrics.k"};
	struct load_world w;
	struct told t = {0};
	struct numbers n;
	struct load_report_info info;
	struct lb_event event = {
		.kind = LB_EVENT_METRIC, .metric = {.value = 1, .index = LB_METRIC_NAMED}};
	load_world_init_small(&w, 8);
	alloc_fail_arm(nth);
	struct load_leaf *leaf = load_leaf_new(w.report, w.f.bootstrap->servers, "a", "");
	if (!leaf)
		leaf = load_leaf_new(w.report, w.f.bootstrap->servers, "a", "");
	assert_non_null(leaf);
	if (load_leaf_set_metrics(leaf, metrics, 1))
		assert_int_equal(load_leaf_set_metrics(leaf, metrics, 1), 0);
	assert_true(update(leaf, true, &n) || update(leaf, true, &n));
	go_on(&w, &t);
	count(&w, n.x, 1);
	count(&w, n.y, 10);
	event.load = n.x;
	event.metric.list = load_leaf_metrics(leaf)->list;
	load_report_event(w.report, &event);
	go_on(&w, &t);
	count(&w, n.x, 20);
	load_world_count(&w, 0, n.drop, ISSUED);
	assert_true(update(leaf, false, &n) || update(leaf, false, &n)); // x leaves
	go_on(&w, &t);
	count(&w, n.y, 300);
	load_leaf_free(leaf);
	go_on(&w, &t);
	bool hit = alloc_fail_disarm();
	for (unsigned i = 0; i < 3; i++)
		go_on(&w, &t);
	load_report_info(w.report, &info);
	assert_int_equal(t.x, 21);
	assert_int_equal(t.y, 310);
	assert_int_equal(t.drops, 1);
	assert_int_equal(t.metric + info.n_stray_metrics, 1);
	assert_int_equal(info.n_counters, 0);
	assert_null(w.f.stream);
	load_world_fini(&w);
	return hit;
}

static void each_allocation_may_fail(void **state)
{
	if (!alloc_fail_works())
		skip();
	size_t nth = 0;
	while (live_with_failure(nth))
		nth++;
	assert_in_range(nth, 30, 10000);
}

static void nothing_is_left_of_a_birth_that_fails(void **state)
{
	struct load_world w;
	struct load_report *r;
	load_world_init(&w);
	struct load_report_conf conf = {.bootstrap = w.f.bootstrap,
		.transport = lrs_factory(&w.f),
		.workers = w.workers,
		.wheel = w.f.wheel,
		.rand = &w.f.rand,
		.user_agent_version = "1"};
	ALLOC_FAIL_EACH(r = load_report_new(&conf), !r, load_report_free(r));
	load_world_fini(&w);
}

RUN_SUITE("ctrl/load_memory", cmocka_unit_test(each_allocation_may_fail),
	cmocka_unit_test(nothing_is_left_of_a_birth_that_fails))
