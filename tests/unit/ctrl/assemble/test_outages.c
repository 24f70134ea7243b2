// SPDX-License-Identifier: Apache-2.0
// Which changes of clusters are outages, and how often they are told.
#include "ctrl/assemble/outages.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/cluster.h"
#include "lb/pick/picker.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

struct world {
	struct outages *outages;
	uint64_t now;
};

static char told[65536]; // what was logged, one line after the other

static void on_line(
	void *ctx, uint64_t wall_ns, enum log_level level, const char *msg, const char *rest)
{
	size_t n = strlen(told);
	snprintf(told + n, sizeof(told) - n, "%s %s %s\n", log_level_name(level), msg, rest);
}

static uint32_t n_lines(void)
{
	uint32_t n = 0;
	for (const char *at = told; (at = strchr(at, '\n')); at++)
		n++;
	return n;
}

static int set_up(void **state)
{
	static struct world w;
	w = (struct world){outages_new(), NS_PER_SECOND};
	assert_non_null(w.outages);
	told[0] = 0;
	log_set_level(LOG_LEVEL_ERROR); // the sink hears all the same
	log_set_sink(on_line, NULL);
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	outages_free(w->outages);
	log_set_sink(NULL, NULL);
	return 0;
}

static const char *why(const void *ctx, const struct lb_cluster *c)
{
	return lb_picker_error(c->picker);
}

static void note(struct world *w, uint32_t id, enum lb_state state, bool is_leaving)
{
	char name[16];
	snprintf(name, sizeof(name), "c%u", id);
	struct lb_picker *p =
		state == LB_TRANSIENT_FAILURE ? lb_picker_new_fail("refused") : lb_picker_queue();
	struct lb_cluster *c = lb_cluster_new(id, name, state, p);
	assert_non_null(c);
	c->is_leaving = is_leaving;
	outages_note(w->outages, c);
	lb_cluster_put(c);
	lb_picker_put(p);
}

// And a turn of the loop.
static void becomes(struct world *w, uint32_t id, enum lb_state state)
{
	note(w, id, state, false);
	outages_tell(w->outages, w->now, why, NULL);
}

static void pass(struct world *w, uint64_t seconds)
{
	w->now += seconds * NS_PER_SECOND;
	outages_tell(w->outages, w->now, why, NULL);
}

static void ops_274_an_outage_and_its_end_are_told(void **state)
{
	struct world *w = *state;
	becomes(w, 7, LB_READY);
	becomes(w, 7, LB_CONNECTING);
	assert_string_equal(told, "");
	becomes(w, 7, LB_TRANSIENT_FAILURE);
	assert_string_equal(told, "warn cluster fails cluster=\"c7\" cause=\"refused\"\n");
	told[0] = 0;
	becomes(w, 7, LB_TRANSIENT_FAILURE);
	becomes(w, 7, LB_CONNECTING);
	assert_string_equal(told, "");
	becomes(w, 7, LB_READY);
	assert_string_equal(told, "info cluster serves again cluster=\"c7\"\n");
	becomes(w, 7, LB_READY);
	assert_int_equal(n_lines(), 1);
}

static void ops_274_a_cluster_that_never_served_has_no_outage(void **state)
{
	struct world *w = *state;
	becomes(w, 0, LB_CONNECTING);
	becomes(w, 0, LB_TRANSIENT_FAILURE);
	becomes(w, 0, LB_READY);
	becomes(w, 1, LB_IDLE);
	becomes(w, 1, LB_READY);
	assert_string_equal(told, "");
}

static void ops_274_what_is_over_within_a_turn_is_no_outage(void **state)
{
	struct world *w = *state;
	becomes(w, 0, LB_READY);
	note(w, 0, LB_TRANSIENT_FAILURE, false);
	becomes(w, 0, LB_READY);
	assert_string_equal(told, "");
}

static void ops_274_a_cluster_that_leaves_has_no_outage(void **state)
{
	struct world *w = *state;
	becomes(w, 0, LB_READY);
	note(w, 0, LB_TRANSIENT_FAILURE, false);
	note(w, 0, LB_TRANSIENT_FAILURE, true);
	pass(w, 1);
	becomes(w, 1, LB_READY);
	note(w, 1, LB_TRANSIENT_FAILURE, false);
	outages_forget(w->outages, 1);
	pass(w, 1);
	becomes(w, 1, LB_TRANSIENT_FAILURE); // another one's start
	assert_string_equal(told, "");
}

// Four lines at once, then one each ten seconds, and the last one is what is so.
static void ops_274_one_that_flaps_is_told_now_and_then(void **state)
{
	struct world *w = *state;
	becomes(w, 0, LB_READY);
	for (int i = 0; i < 1000; i++) { // one hundred seconds
		becomes(w, 0, i % 2 ? LB_READY : LB_TRANSIENT_FAILURE);
		w->now += NS_PER_SECOND / 10;
	}
	assert_in_range(n_lines(), 4, 14);
	becomes(w, 0, LB_TRANSIENT_FAILURE);
	pass(w, 20);
	assert_non_null(strstr(strrchr(told, '=') - 24, "cause=\"refused\"\n"));
	uint32_t n = n_lines();
	pass(w, 1000);
	assert_int_equal(n_lines(), n);
	becomes(w, 1, LB_READY); // another one is told of at once
	becomes(w, 1, LB_TRANSIENT_FAILURE);
	assert_int_equal(n_lines(), n + 1);
}

// A hundred at once and ten a second: none is forgotten.
static void ops_274_many_outages_are_told_one_after_the_other(void **state)
{
	struct world *w = *state;
	for (uint32_t i = 0; i < 300; i++)
		becomes(w, i, LB_READY);
	for (uint32_t i = 0; i < 300; i++)
		note(w, i, LB_TRANSIENT_FAILURE, false);
	outages_tell(w->outages, w->now, why, NULL);
	assert_int_equal(n_lines(), 100);
	pass(w, 1);
	assert_int_equal(n_lines(), 110);
	for (int i = 0; i < 30; i++)
		pass(w, 1);
	assert_int_equal(n_lines(), 300);
	for (uint32_t i = 0; i < 300; i++) {
		char line[64];
		snprintf(line, sizeof(line), "cluster=\"c%u\" ", i);
		assert_non_null(strstr(told, line));
	}
}

static void lack_of_memory_is_null(void **state)
{
	struct outages *o = NULL;
	ALLOC_FAIL_EACH(o = outages_new(), !o, outages_free(o));
	outages_free(NULL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_SUITE("ctrl/outages", CASE(ops_274_an_outage_and_its_end_are_told),
	CASE(ops_274_a_cluster_that_never_served_has_no_outage),
	CASE(ops_274_what_is_over_within_a_turn_is_no_outage),
	CASE(ops_274_a_cluster_that_leaves_has_no_outage),
	CASE(ops_274_one_that_flaps_is_told_now_and_then),
	CASE(ops_274_many_outages_are_told_one_after_the_other), CASE(lack_of_memory_is_null))
