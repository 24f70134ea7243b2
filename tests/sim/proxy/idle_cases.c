// SPDX-License-Identifier: Apache-2.0
// Clients without an open stream, one situation a test: when they are sent away (TH-80), and who
// makes room for a newcomer (TH-81, dataplane/proxy/idle.h).
#include "lb/pick/link.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#define PLACES 8
#define ALMOST_ALL 7 // from there on somebody must go

static void come(struct world *w, uint32_t client, uint8_t source)
{
	w->clients[client].source = source;
	world_open_client(w, client, 0);
	world_run(w, 20 * MS);
}

static struct ask *ask_of(struct world *w, uint32_t client, enum kind kind)
{
	struct ask *a = world_ask(w, "one", kind, 10);
	client_ask(&w->clients[client], a);
	return a;
}

static void use(struct world *w, uint32_t client)
{
	struct ask *a = ask_of(w, client, KIND_ECHO);
	finish_of(w, a);
	assert_ok(w, a);
	world_run(w, 20 * MS);
}

// No client yet.
static struct world *with_places(uint64_t seed)
{
	struct world_conf conf = world_conf_default(seed);
	conf.n_clients = PLACES;
	conf.max_clients = PLACES;
	conf.n_backends = 2;
	struct world *w = world_new(&conf);
	use_backends(w, 0x3);
	world_run(w, 20 * MS);
	return w;
}

// Clients 0 to ALMOST_ALL - 1, each of a source of its own, have asked once, one after the other.
static struct world *with_idle(uint64_t seed)
{
	struct world *w = with_places(seed);
	for (uint32_t i = 0; i < ALMOST_ALL; i++) {
		come(w, i, (uint8_t)(10 + i));
		use(w, i);
	}
	return w;
}

static uint32_t n_over(const struct world *w)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < PLACES; i++)
		n += w->clients[i].over;
	return n;
}

// TH-80
static void th_80_an_idle_client_is_sent_away_in_two_steps(void **state)
{
	struct world *w = ready_world(NULL);
	use(w, 0);
	world_run(w, 299 * SECOND);
	assert_false(w->clients[0].goaway);
	world_run(w, SECOND + 100 * MS);
	assert_true(w->clients[0].goaway);
	assert_false(w->clients[0].over); // what is on its way still counts
	world_run(w, 2 * SECOND);
	assert_true(w->clients[0].over);
	assert_int_equal(world_counter(w, "clients_idled"), 1);
	assert_int_equal(world_counter(w, "clients_drained"), 0);
	world_free(w);
}

// TH-80
static void th_80_one_that_never_asked_is_idle_since_it_came(void **state)
{
	struct world *w = ready_world(NULL);
	world_run(w, 303 * SECOND);
	assert_true(w->clients[0].goaway && w->clients[0].over);
	assert_int_equal(world_counter(w, "clients_idled"), 1);
	world_free(w);
}

// TH-80
static void th_80_a_stream_that_is_open_keeps_its_client(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = ask(w, KIND_HANG, 10);
	world_run(w, 700 * SECOND);
	assert_false(w->clients[0].goaway || w->clients[0].over || a->closed);
	client_cancel(a);
	world_run(w, 299 * SECOND);
	assert_false(w->clients[0].goaway);
	world_run(w, 3 * SECOND);
	assert_true(w->clients[0].over);
	world_free(w);
}

// TH-80
static void th_80_each_request_begins_the_time_anew(void **state)
{
	struct world *w = ready_world(NULL);
	for (int i = 0; i < 4; i++) {
		world_run(w, 250 * SECOND);
		use(w, 0);
	}
	assert_false(w->clients[0].goaway);
	assert_int_equal(world_counter(w, "clients_idled"), 0);
	world_free(w);
}

// TH-80
static void th_80_zero_is_for_ever(void **state)
{
	struct world_conf conf = world_conf_default(3);
	conf.idle_timeout_ns = 0;
	struct world *w = ready_world(&conf);
	world_run(w, 2000 * SECOND);
	assert_false(w->clients[0].goaway || w->clients[0].over);
	world_free(w);
}

// TH-81
static void th_81_the_longest_idle_makes_room(void **state)
{
	struct world *w = with_idle(4);
	use(w, 0);
	come(w, 7, 20);
	assert_true(w->clients[7].up && !w->clients[7].over);
	assert_true(w->clients[1].goaway && w->clients[1].over);
	assert_int_equal(n_over(w), 1);
	use(w, 7);
	assert_int_equal(world_counter(w, "clients_evicted"), 1);
	assert_int_equal(world_counter(w, "clients_refused"), 0);
	world_free(w);
}

// TH-81
static void th_81_who_is_late_with_a_first_request_goes_first(void **state)
{
	struct world *w = with_places(5);
	come(w, 0, 10);
	use(w, 0);
	for (uint32_t i = 1; i < ALMOST_ALL; i++)
		come(w, i, (uint8_t)(10 + i));
	world_run(w, 11 * SECOND);
	come(w, 7, 20);
	assert_true(w->clients[1].over);
	assert_int_equal(n_over(w), 1);
	world_free(w);
}

// TH-81: those who came just now have yet to ask.
static void th_81_who_is_not_late_goes_in_order_of_age(void **state)
{
	struct world *w = with_places(6);
	come(w, 0, 10);
	use(w, 0);
	for (uint32_t i = 1; i < ALMOST_ALL; i++)
		come(w, i, (uint8_t)(10 + i));
	come(w, 7, 20);
	assert_true(w->clients[0].over);
	assert_int_equal(n_over(w), 1);
	world_free(w);
}

// TH-81
static void th_81_of_the_oldest_one_of_the_largest_source_goes(void **state)
{
	struct world *w = with_places(7);
	for (uint32_t i = 0; i < ALMOST_ALL; i++) {
		come(w, i, (uint8_t)(i == 3 || i == 4 ? 9 : 10 + i));
		use(w, i);
	}
	come(w, 7, 20);
	assert_true(w->clients[3].over);
	assert_int_equal(n_over(w), 1);
	world_free(w);
}

// TH-81
static void th_81_a_source_that_has_its_share_gets_no_more(void **state)
{
	struct world *w = with_places(8);
	come(w, 0, 10);
	for (uint32_t i = 1; i < ALMOST_ALL; i++)
		come(w, i, 9);
	come(w, 7, 9);
	assert_true(w->clients[7].over);
	assert_int_equal(n_over(w), 1);
	assert_int_equal(world_counter(w, "clients_over_share"), 1);
	assert_int_equal(world_counter(w, "clients_evicted"), 0);
	come(w, 7, 20);
	assert_false(w->clients[7].over);
	assert_true(w->clients[1].over);
	world_free(w);
}

// TH-81
static void th_81_nobody_with_an_open_stream_makes_room(void **state)
{
	struct world *w = with_idle(9);
	for (uint32_t i = 0; i < ALMOST_ALL; i++)
		ask_of(w, i, KIND_HANG);
	world_run(w, 20 * MS);
	come(w, 7, 20);
	ask_of(w, 7, KIND_HANG);
	world_run(w, 20 * MS);
	assert_int_equal(n_over(w), 0);
	assert_int_equal(world_counter(w, "clients_evicted"), 0);
	world_free(w);
}

#define CASE(name) cmocka_unit_test(name)

RUN_SUITE("proxy/idle", CASE(th_80_an_idle_client_is_sent_away_in_two_steps),
	CASE(th_80_one_that_never_asked_is_idle_since_it_came),
	CASE(th_80_a_stream_that_is_open_keeps_its_client),
	CASE(th_80_each_request_begins_the_time_anew), CASE(th_80_zero_is_for_ever),
	CASE(th_81_the_longest_idle_makes_room),
	CASE(th_81_who_is_late_with_a_first_request_goes_first),
	CASE(th_81_who_is_not_late_goes_in_order_of_age),
	CASE(th_81_of_the_oldest_one_of_the_largest_source_goes),
	CASE(th_81_a_source_that_has_its_share_gets_no_more),
	CASE(th_81_nobody_with_an_open_stream_makes_room))
