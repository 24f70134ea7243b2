// SPDX-License-Identifier: Apache-2.0
// Clients that have been connected for long (OPS-150), one situation a test.
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#define AGE (1000 * SECOND)
#define N_CLIENTS 8

static struct world *aging_world(uint64_t grace_ns)
{
	struct world_conf conf = world_conf_default(17);
	conf.n_clients = N_CLIENTS;
	conf.n_backends = 2;
	conf.idle_timeout_ns = 0;
	conf.max_age_ns = AGE;
	conf.max_age_grace_ns = grace_ns;
	struct world *w = world_new(&conf);
	control_set_filters(&w->control, 0, NULL, 0, LB_NO_TIMEOUT, 1);
	use_backends(w, 0x3);
	for (uint32_t i = 0; i < N_CLIENTS; i++)
		world_open_client(w, i, 0);
	world_run(w, 100 * MS);
	return w;
}

static struct ask *ask_of(struct world *w, uint32_t client, enum kind kind)
{
	struct ask *a = world_ask(w, "one", kind, 10);
	client_ask(&w->clients[client], a);
	return a;
}

static uint32_t n_told(const struct world *w)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < N_CLIENTS; i++)
		n += w->clients[i].goaway;
	return n;
}

static uint32_t n_over(const struct world *w)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < N_CLIENTS; i++)
		n += w->clients[i].over;
	return n;
}

static void set_drained(struct world *w, bool is_drained)
{
	control_command(&w->control,
		&(struct lb_command){.kind = is_drained ? LB_COMMAND_LEAVE : LB_COMMAND_RETURN,
			.frontend = 0,
			.deadline_ns = w->wire.now_ns + 36000 * SECOND});
}

// OPS-150
static void ops_150_clients_of_one_moment_go_one_by_one_at_their_age(void **state)
{
	struct world *w = aging_world(0);
	world_run(w, AGE * 9 / 10 - SECOND);
	assert_int_equal(n_told(w), 0);
	uint32_t n_steps = 0;
	for (int i = 0; i < 21; i++) {
		uint32_t before = n_told(w);
		world_run(w, AGE / 100);
		n_steps += n_told(w) > before;
	}
	assert_int_equal(n_told(w), N_CLIENTS);
	assert_true(n_steps > N_CLIENTS / 2);
	world_run(w, 3 * SECOND);
	assert_int_equal(n_over(w), N_CLIENTS);
	assert_int_equal(world_counter(w, "clients_aged"), N_CLIENTS);
	assert_int_equal(world_counter(w, "clients_drained"), 0);
	world_free(w);
}

// OPS-150
static void ops_150_streams_take_as_long_as_they_do(void **state)
{
	struct world *w = aging_world(0);
	struct ask *busy = ask_of(w, 0, KIND_HANG);
	world_run(w, 3 * AGE);
	assert_int_equal(n_over(w), N_CLIENTS - 1);
	assert_true(w->clients[0].goaway);
	assert_false(busy->closed || w->clients[0].over);
	client_cancel(busy);
	world_run(w, SECOND);
	assert_true(w->clients[0].over);
	world_free(w);
}

// OPS-150
static void ops_150_or_as_long_as_the_grace(void **state)
{
	struct world *w = aging_world(500 * SECOND);
	struct ask *busy = ask_of(w, 0, KIND_HANG);
	world_run(w, AGE * 9 / 10 + 499 * SECOND);
	assert_false(busy->closed);
	world_run(w, AGE / 5 + 2 * SECOND);
	assert_true(busy->closed && w->clients[0].over);
	world_free(w);
}

// OPS-150
static void ops_150_a_request_meanwhile_is_answered(void **state)
{
	struct world *w = aging_world(0);
	for (int i = 0; i < 230 && !w->clients[0].goaway; i++) {
		struct ask *a = ask_of(w, 0, KIND_ECHO);
		finish_of(w, a);
		assert_ok(w, a);
		world_run(w, AGE / 200);
	}
	assert_true(w->clients[0].goaway);
	world_free(w);
}

// OPS-150, OPS-74
static void ops_150_who_stayed_after_a_drain_still_has_an_age(void **state)
{
	struct world *w = aging_world(0);
	set_drained(w, true);
	world_run(w, 5 * MS);
	set_drained(w, false);
	world_run(w, AGE * 8 / 10);
	assert_int_equal(n_told(w), 0);
	world_run(w, AGE * 4 / 10);
	assert_int_equal(n_over(w), N_CLIENTS);
	assert_int_equal(world_counter(w, "clients_aged"), N_CLIENTS);
	world_free(w);
}

// OPS-150, FLT-11: the earlier deadline counts, whichever reason came first.
static void ops_150_a_changed_listener_does_not_wait_for_the_grace(void **state)
{
	struct world *w = aging_world(86400 * SECOND);
	struct ask *busy = ask_of(w, 0, KIND_HANG);
	world_run(w, 2 * AGE);
	assert_true(w->clients[0].goaway);
	assert_false(busy->closed);
	control_set_filters(&w->control, 0, NULL, 0, LB_NO_TIMEOUT, 2);
	world_run(w, 602 * SECOND); // listener_drain_ns
	assert_true(busy->closed && w->clients[0].over);
	world_free(w);
}

#define CASE(f) cmocka_unit_test(f)
RUN_SUITE("sim/proxy_age", CASE(ops_150_clients_of_one_moment_go_one_by_one_at_their_age),
	CASE(ops_150_streams_take_as_long_as_they_do), CASE(ops_150_or_as_long_as_the_grace),
	CASE(ops_150_a_request_meanwhile_is_answered),
	CASE(ops_150_who_stayed_after_a_drain_still_has_an_age),
	CASE(ops_150_a_changed_listener_does_not_wait_for_the_grace))
