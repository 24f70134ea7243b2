// SPDX-License-Identifier: Apache-2.0
// The end of the process: in which order readiness goes, clients are sent away and workers drain,
// and when nothing is waited for any more.
#include "ctrl/loop.h"
#include "ctrl/shutdown.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/drain_world.h"

#include <event2/event.h>

#include <errno.h>

static bool has_ended(const struct world *w)
{
	return event_base_got_break(loop_base(w->loop));
}

static void all_drained(struct world *w)
{
	for (uint32_t i = 0; i < w->n_workers; i++) {
		assert_false(shutdown_is_drained(&w->shutdown));
		shutdown_worker_drained(&w->shutdown, i, i + 1);
	}
	assert_true(shutdown_is_drained(&w->shutdown));
}

static void expect_drain(struct world *w, uint64_t for_ns)
{
	struct lb_command c = heard(w);
	assert_int_equal(c.kind, LB_COMMAND_DRAIN);
	assert_about(c.deadline_ns, w->now_ns + for_ns);
	assert_true(w->shutdown.draining);
	assert_silence(w);
}

static void expect_farewell(struct world *w, uint32_t for_s)
{
	w->config.farewell_s = for_s;
	shutdown_signal(&w->shutdown);
	struct lb_command c = heard(w);
	assert_int_equal(c.kind, LB_COMMAND_FAREWELL);
	assert_about(c.deadline_ns, w->now_ns + for_s * SECOND);
	assert_int_equal(w->n_begins, 0); // clients are wanted still
}

static void readiness_goes_then_workers_drain_and_then_it_ends(void **state)
{
	struct world *w = *state;
	shutdown_signal(&w->shutdown);
	assert_int_equal(w->n_begins, 1);
	pass(w, 9 * SECOND);
	assert_silence(w);
	pass(w, SECOND + SECOND / 10);
	expect_drain(w, 30 * SECOND);
	shutdown_worker_drained(&w->shutdown, 1, 2);
	pass(w, 20 * SECOND);
	assert_false(has_ended(w));
	shutdown_worker_drained(&w->shutdown, 0, 5);
	assert_true(has_ended(w));
	assert_int_equal(w->shutdown.n_cut, 7);
	assert_int_equal(w->n_begins, 1);
}

static void without_a_lame_duck_workers_drain_at_once(void **state)
{
	struct world *w = *state;
	w->config.lame_duck_s = 0;
	shutdown_signal(&w->shutdown);
	expect_drain(w, 30 * SECOND);
	assert_int_equal(w->n_begins, 1);
	all_drained(w);
	assert_true(has_ended(w));
}

// FL-41: nobody would come any more who could hear of it.
static void a_farewell_without_a_lame_duck_ends_with_the_drain(void **state)
{
	struct world *w = *state;
	w->config.lame_duck_s = 0;
	expect_farewell(w, 20);
	pass(w, 19 * SECOND);
	assert_silence(w);
	pass(w, SECOND + SECOND / 10);
	expect_drain(w, 3 * SECOND); // newcomers of now hear nothing
	all_drained(w);
	assert_true(has_ended(w));
	assert_int_equal(w->n_begins, 0);
}

static void fl_41_after_a_farewell_readiness_goes_last(void **state)
{
	struct world *w = *state;
	w->config.drain_s = 2;
	expect_farewell(w, 20);
	pass(w, 20 * SECOND + SECOND / 10);
	expect_drain(w, 2 * SECOND); // no longer than any drain
	assert_int_equal(w->n_begins, 0);
	all_drained(w);
	assert_int_equal(w->n_begins, 1);
	pass(w, 9 * SECOND);
	assert_false(has_ended(w));
	pass(w, SECOND + SECOND / 10);
	assert_true(has_ended(w));
	assert_silence(w);
}

// OPS-75: nobody is left to say farewell to.
static void what_operators_have_drained_hears_no_farewell(void **state)
{
	struct world *w = *state;
	w->config.farewell_s = 20;
	w->config.lame_duck_s = 0;
	assert_int_equal(drains_begin(w->drains, DRAINS_ALL, &w->err), N_FRONTENDS);
	for (int i = 0; i < N_FRONTENDS; i++)
		assert_int_equal(heard(w).kind, LB_COMMAND_LEAVE);
	pass(w, 10 * SECOND);
	shutdown_signal(&w->shutdown);
	expect_drain(w, 20 * SECOND);
	assert_int_equal(w->n_begins, 1);
	all_drained(w);
	assert_true(has_ended(w));
}

static void workers_that_do_not_report_are_not_waited_for(void **state)
{
	struct world *w = *state;
	w->config.lame_duck_s = 0;
	shutdown_signal(&w->shutdown);
	expect_drain(w, 30 * SECOND);
	shutdown_worker_drained(&w->shutdown, 0, 0);
	pass(w, 31 * SECOND + SECOND / 2); // they have a second to cut, and one to say so
	assert_false(has_ended(w));
	pass(w, SECOND);
	assert_true(has_ended(w));
}

// FL-41: probes hear of the end for as long as ever, no matter when workers report.
static void reports_that_come_late_change_no_lame_duck(void **state)
{
	struct world *w = *state;
	expect_farewell(w, 20);
	pass(w, 20 * SECOND + SECOND / 10);
	expect_drain(w, 3 * SECOND);
	pass(w, 5 * SECOND + SECOND / 10);
	assert_int_equal(w->n_begins, 1);
	pass(w, 5 * SECOND);
	all_drained(w);
	assert_int_equal(w->shutdown.n_cut, 3);
	assert_false(has_ended(w));
	pass(w, 4 * SECOND);
	assert_false(has_ended(w));
	pass(w, SECOND + SECOND / 10);
	assert_true(has_ended(w));
	assert_int_equal(w->n_begins, 1);
}

static void a_second_signal_ends_it_wherever_it_is(void **state)
{
	struct world *w = *state;
	shutdown_signal(&w->shutdown);
	shutdown_signal(&w->shutdown);
	assert_true(has_ended(w));
	assert_silence(w);
}

static void a_second_signal_ends_a_farewell_and_a_drain(void **state)
{
	struct world *w = *state;
	expect_farewell(w, 20);
	if (w->n_workers == 1) { // in the drain
		pass(w, 20 * SECOND + SECOND / 10);
		expect_drain(w, 3 * SECOND);
	}
	assert_false(has_ended(w));
	shutdown_signal(&w->shutdown);
	assert_true(has_ended(w));
}

// FL-07, FL-13
static void one_that_was_followed_drains_and_takes_the_services_signal_for_another(void **state)
{
	struct world *w = *state;
	shutdown_leave(&w->shutdown);
	assert_int_equal(w->n_begins, 1);
	pass(w, SECOND);
	assert_silence(w); // what is half open
	pass(w, SECOND + SECOND / 10);
	expect_drain(w, 30 * SECOND);
	shutdown_signal(&w->shutdown);
	shutdown_leave(&w->shutdown); // no more than once
	pass(w, SECOND);
	assert_false(has_ended(w));
	assert_silence(w);
	if (w->n_workers == 1)
		shutdown_signal(&w->shutdown);
	else
		all_drained(w);
	assert_true(has_ended(w));
	assert_int_equal(w->n_begins, 1);
}

// FL-07: its frontends are another's.
static void one_that_was_followed_drains_nothing_else(void **state)
{
	struct world *w = *state;
	shutdown_leave(&w->shutdown);
	assert_int_equal(drains_begin(w->drains, 0, &w->err), -EINVAL);
	assert_string_equal(w->err.text, "the daemon is stopping");
}

// FL-12, FL-41: readiness is the newer one's, and nobody looks here any more.
static void one_that_is_followed_in_its_farewell_is_a_lame_duck_no_more(void **state)
{
	struct world *w = *state;
	expect_farewell(w, 20);
	pass(w, 5 * SECOND);
	shutdown_leave(&w->shutdown);
	assert_int_equal(w->n_begins, 1);
	pass(w, 14 * SECOND);
	assert_silence(w);
	pass(w, SECOND + SECOND / 10);
	expect_drain(w, 3 * SECOND);
	all_drained(w);
	assert_true(has_ended(w));
	assert_int_equal(w->n_begins, 1);
}

static bool may_end(void *ctx)
{
	return ((const struct world *)ctx)->n_changes > 0;
}

// FL-11
static void it_waits_for_others_who_need_it(void **state)
{
	struct world *w = *state;
	w->config.lame_duck_s = 0;
	w->shutdown.may_end = may_end;
	shutdown_leave(&w->shutdown);
	pass(w, 3 * SECOND);
	shutdown_look(&w->shutdown);
	all_drained(w);
	pass(w, 60 * SECOND);
	assert_false(has_ended(w));
	w->n_changes = 1;
	shutdown_look(&w->shutdown);
	assert_true(has_ended(w));
}

static void nothing_ends_before_all_is_done(void **state)
{
	struct world *w = *state;
	shutdown_look(&w->shutdown);
	shutdown_signal(&w->shutdown);
	shutdown_look(&w->shutdown);
	pass(w, 11 * SECOND);
	shutdown_look(&w->shutdown);
	assert_false(has_ended(w));
}

#define CASE(test)                                                                                 \
	cmocka_unit_test_setup_teardown(test, drain_world_set_up_two, drain_world_tear_down)
#define ONE_WORKER(test)                                                                           \
	cmocka_unit_test_setup_teardown(test, drain_world_set_up, drain_world_tear_down)
RUN_SUITE("ctrl/shutdown", CASE(readiness_goes_then_workers_drain_and_then_it_ends),
	CASE(without_a_lame_duck_workers_drain_at_once),
	CASE(a_farewell_without_a_lame_duck_ends_with_the_drain),
	CASE(fl_41_after_a_farewell_readiness_goes_last),
	CASE(what_operators_have_drained_hears_no_farewell),
	CASE(workers_that_do_not_report_are_not_waited_for),
	CASE(reports_that_come_late_change_no_lame_duck),
	CASE(a_second_signal_ends_it_wherever_it_is),
	CASE(a_second_signal_ends_a_farewell_and_a_drain),
	ONE_WORKER(a_second_signal_ends_a_farewell_and_a_drain),
	CASE(one_that_was_followed_drains_and_takes_the_services_signal_for_another),
	ONE_WORKER(one_that_was_followed_drains_and_takes_the_services_signal_for_another),
	CASE(one_that_was_followed_drains_nothing_else),
	CASE(one_that_is_followed_in_its_farewell_is_a_lame_duck_no_more),
	CASE(it_waits_for_others_who_need_it), CASE(nothing_ends_before_all_is_done))
