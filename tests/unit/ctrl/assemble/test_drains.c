// SPDX-License-Identifier: Apache-2.0
// Drains that operators ask for: what workers are told and when, and what SIGTERM makes of it.
#include "ctrl/assemble/drains.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/drain_world.h"

#include <errno.h>

static struct drain_info look(const struct world *w, uint32_t frontend)
{
	struct drain_info info;
	drains_look(w->drains, frontend, &info);
	return info;
}

// OPS-72, OPS-73
static void a_frontend_is_a_lame_duck_then_sends_clients_away_then_is_drained(void **state)
{
	struct world *w = *state;
	w->links[0]->counters.frontend_uses[1] += 2;
	assert_false(drains_any(w->drains));
	assert_int_equal(drains_begin(w->drains, 1, &w->err), 1);
	assert_int_equal(w->n_changes, 1);
	assert_true(drains_any(w->drains));
	assert_int_equal(look(w, 1).phase, DRAIN_LAME_DUCK);
	assert_int_equal(look(w, 1).n_clients, 2);
	assert_int_equal(look(w, 0).phase, DRAIN_NONE);
	pass(w, 9 * SECOND);
	assert_silence(w);
	assert_about(look(w, 1).left_ns, SECOND);
	pass(w, 2 * SECOND);
	struct lb_command c = heard(w);
	assert_int_equal(c.kind, LB_COMMAND_LEAVE);
	assert_int_equal(c.frontend, 1);
	assert_about(c.deadline_ns, w->now_ns + 29 * SECOND);
	assert_int_equal(look(w, 1).phase, DRAIN_LEAVING);
	w->links[0]->counters.frontend_uses[1] = 1; // of its clients one is left
	pass(w, SECOND);
	assert_int_equal(look(w, 1).phase, DRAIN_LEAVING);
	assert_int_equal(look(w, 1).n_clients, 1);
	w->links[0]->counters.frontend_uses[1] = 0;
	pass(w, SECOND);
	assert_int_equal(look(w, 1).phase, DRAIN_DONE);
	assert_int_equal(drains_begin(w->drains, 1, &w->err), 0); // it drains already
	assert_silence(w);
}

// OPS-74
static void a_drain_is_taken_back_in_each_phase(void **state)
{
	struct world *w = *state;
	assert_int_equal(drains_begin(w->drains, DRAINS_ALL, &w->err), N_FRONTENDS);
	pass(w, 5 * SECOND);
	assert_int_equal(drains_end(w->drains, 0, &w->err), 1);
	assert_int_equal(look(w, 0).phase, DRAIN_NONE);
	assert_silence(w); // workers never heard of it
	pass(w, 6 * SECOND);
	for (uint32_t i = 1; i < N_FRONTENDS; i++) {
		assert_int_equal(heard(w).frontend, i);
		w->links[0]->counters.frontend_uses[i] = i == 2; // one drained, one leaves
	}
	pass(w, SECOND);
	assert_int_equal(look(w, 1).phase, DRAIN_DONE);
	assert_int_equal(look(w, 2).phase, DRAIN_LEAVING);
	assert_int_equal(drains_end(w->drains, DRAINS_ALL, &w->err), 2);
	for (uint32_t i = 1; i < N_FRONTENDS; i++) {
		struct lb_command c = heard(w);
		assert_int_equal(c.kind, LB_COMMAND_RETURN);
		assert_int_equal(c.frontend, i);
	}
	assert_false(drains_any(w->drains));
	assert_int_equal(drains_end(w->drains, DRAINS_ALL, &w->err), 0);
	pass(w, 60 * SECOND);
	assert_silence(w);
	assert_int_equal(w->n_changes, 3);
}

// OPS-325
static void ops_325_one_that_is_gone_drains_no_more(void **state)
{
	struct world *w = *state;
	assert_int_equal(drains_begin(w->drains, 1, &w->err), 1);
	w->config.frontends[1].row = CONFIG_ROW_LEAVES;
	drains_forget(w->drains, 1);
	assert_int_equal(w->n_changes, 2);
	assert_false(drains_any(w->drains));
	drains_forget(w->drains, 0); // it did not
	drains_forget(NULL, 0);
	assert_int_equal(w->n_changes, 2);
	assert_int_equal(drains_begin(w->drains, DRAINS_ALL, &w->err), N_FRONTENDS - 1);
	assert_int_equal(look(w, 1).phase, DRAIN_NONE);
	uint64_t lame_ns, gone_ns;
	assert_true(drains_stop(w->drains, &lame_ns, &gone_ns)); // all that there are
}

static void no_lame_duck_at_all_sends_clients_away_at_once(void **state)
{
	struct world *w = *state;
	w->config.lame_duck_s = 0;
	assert_int_equal(drains_begin(w->drains, 2, &w->err), 1);
	assert_int_equal(heard(w).kind, LB_COMMAND_LEAVE);
}

// OPS-75: as a drain of everything did its part of the waiting.
static void sigterm_counts_the_time_that_is_gone(void **state)
{
	struct world *w = *state;
	(void)!drains_begin(w->drains, DRAINS_ALL, &w->err);
	pass(w, 7 * SECOND);
	shutdown_signal(&w->shutdown);
	assert_int_equal(w->n_begins, 1);
	assert_silence(w);
	pass(w, 4 * SECOND);
	struct lb_command c;
	for (int i = 0; i < N_FRONTENDS; i++)
		(void)heard(w); // they go as they would have
	c = heard(w);
	assert_int_equal(c.kind, LB_COMMAND_DRAIN);
	assert_about(c.deadline_ns, w->now_ns + 29 * SECOND);
	assert_int_equal(drains_end(w->drains, DRAINS_ALL, &w->err), -EINVAL);
	assert_string_equal(w->err.text, "the daemon is stopping");
}

// OPS-75
static void sigterm_has_the_deadline_of_a_drain_under_way(void **state)
{
	struct world *w = *state;
	(void)!drains_begin(w->drains, DRAINS_ALL, &w->err);
	pass(w, 20 * SECOND);
	for (int i = 0; i < N_FRONTENDS; i++)
		(void)heard(w);
	shutdown_signal(&w->shutdown);
	struct lb_command c = heard(w);
	assert_int_equal(c.kind, LB_COMMAND_DRAIN);
	assert_about(c.deadline_ns, w->now_ns + 20 * SECOND);
}

// OPS-75: workers are waited for, also when the deadline was long ago.
static void sigterm_long_after_a_drain_waits_for_workers(void **state)
{
	struct world *w = *state;
	(void)!drains_begin(w->drains, DRAINS_ALL, &w->err);
	pass(w, 100 * SECOND);
	for (int i = 0; i < N_FRONTENDS; i++)
		(void)heard(w);
	shutdown_signal(&w->shutdown);
	assert_int_equal(heard(w).kind, LB_COMMAND_DRAIN);
	pass(w, SECOND / 2);
	assert_true(twheel_armed(&w->shutdown.drain_timer));
}

// OPS-75: clients of another frontend have not been warned.
static void sigterm_takes_its_time_where_a_frontend_serves(void **state)
{
	struct world *w = *state;
	(void)!drains_begin(w->drains, 0, &w->err);
	pass(w, 20 * SECOND);
	(void)heard(w);
	shutdown_signal(&w->shutdown);
	pass(w, 9 * SECOND);
	assert_silence(w);
	pass(w, 2 * SECOND);
	struct lb_command c = heard(w);
	assert_int_equal(c.kind, LB_COMMAND_DRAIN);
	assert_about(c.deadline_ns, w->now_ns + 29 * SECOND);
}

// OPS-325: though all that are in the file drain, and their deadline is over.
static void ops_325_sigterm_leaves_clients_of_one_that_is_gone_their_time(void **state)
{
	struct world *w = *state;
	w->config.frontends[2].row = CONFIG_ROW_SPARE; // nobody's, whatever is counted there
	w->links[0]->counters.frontend_uses[1] = 2;
	(void)!drains_begin(w->drains, 0, &w->err);
	(void)!drains_begin(w->drains, 1, &w->err);
	pass(w, 100 * SECOND);
	for (int i = 0; i < 2; i++)
		(void)heard(w);
	w->config.frontends[1].row = CONFIG_ROW_LEAVES;
	drains_forget(w->drains, 1);
	shutdown_signal(&w->shutdown);
	struct lb_command c = heard(w);
	assert_int_equal(c.kind, LB_COMMAND_DRAIN);
	assert_about(c.deadline_ns, w->now_ns + 30 * SECOND);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, drain_world_set_up, drain_world_tear_down)
RUN_SUITE("ctrl/drains", CASE(a_frontend_is_a_lame_duck_then_sends_clients_away_then_is_drained),
	CASE(a_drain_is_taken_back_in_each_phase), CASE(ops_325_one_that_is_gone_drains_no_more),
	CASE(no_lame_duck_at_all_sends_clients_away_at_once),
	CASE(sigterm_counts_the_time_that_is_gone),
	CASE(sigterm_has_the_deadline_of_a_drain_under_way),
	CASE(sigterm_long_after_a_drain_waits_for_workers),
	CASE(sigterm_takes_its_time_where_a_frontend_serves),
	CASE(ops_325_sigterm_leaves_clients_of_one_that_is_gone_their_time))
