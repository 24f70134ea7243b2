// SPDX-License-Identifier: Apache-2.0
// Which failures are logged: each kind once in ten seconds, and few kinds at a time.
#include "ctrl/assemble/workers.h"
#include "ctrl/failure_log.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/pick/failures.h"
#include "lb/pick/link.h"
#include "tests/support/check.h"

#include <stdio.h>

#define S NS_PER_SECOND

struct world {
	struct lb_shared *shared;
	struct lb_link *links[2];
	struct workers *workers;
	struct failure_log *log;
};

static int set_up(void **state)
{
	static struct world w;
	log_set_level(LOG_LEVEL_ERROR);
	w.shared = lb_shared_new();
	for (uint32_t i = 0; i < 2; i++)
		w.links[i] = lb_link_new(i, (int)i, w.shared);
	w.workers = workers_new(w.links, 2, NULL, NULL);
	w.log = failure_log_new(w.workers);
	assert_non_null(w.log);
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	failure_log_free(w->log);
	workers_free(w->workers);
	lb_link_free(w->links[0]);
	lb_link_free(w->links[1]);
	lb_shared_free(w->shared);
	return 0;
}

static void add(struct world *w, uint32_t worker, enum lb_cause cause, const char *cluster)
{
	const struct lb_failure f = {.cause = (uint8_t)cause};
	const struct str texts[LB_FAILURE_N_TEXTS] = {
		[LB_FAILURE_cluster] = str_from(cluster), [LB_FAILURE_text] = STR("why")};
	lb_failures_add(w->links[worker]->failures, &f, texts);
}

// TH-97
static void a_cause_and_a_cluster_are_told_of_once_in_ten_seconds(void **state)
{
	struct world *w = *state;
	for (uint64_t second = 1; second <= 20; second++) {
		for (int i = 0; i < 1000; i++)
			add(w, (uint32_t)i % 2, LB_CAUSE_TIMEOUT, "blue");
		bool due = second == 1 || second == 11;
		assert_int_equal(failure_log_look(w->log, second * S), due);
	}
	add(w, 0, LB_CAUSE_TIMEOUT, "green");
	add(w, 0, LB_CAUSE_DROPPED, "blue");
	add(w, 1, LB_CAUSE_NO_ROUTE, "");
	assert_int_equal(failure_log_look(w->log, 20 * S), 3);
	assert_int_equal(failure_log_look(w->log, 40 * S), 0); // nothing is told twice
}

// TH-97
static void many_kinds_at_a_time_are_not_all_told(void **state)
{
	struct world *w = *state;
	for (int i = 0; i < 200; i++) {
		char name[16];
		snprintf(name, sizeof(name), "c%d", i);
		add(w, 0, LB_CAUSE_TIMEOUT, name);
	}
	assert_int_equal(failure_log_look(w->log, S), 64);
	add(w, 0, LB_CAUSE_TIMEOUT, "another");
	assert_int_equal(failure_log_look(w->log, 2 * S), 0);
	add(w, 0, LB_CAUSE_TIMEOUT, "another");
	assert_int_equal(failure_log_look(w->log, 11 * S), 1);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

RUN_SUITE("ctrl/failure_log", CASE(a_cause_and_a_cluster_are_told_of_once_in_ten_seconds),
	CASE(many_kinds_at_a_time_are_not_all_told))
