// SPDX-License-Identifier: Apache-2.0
// OPS-320: what a snapshot changes of the terms that connections and requests are held to
// (lb/pick/terms.h), while there are some.
#include "lb/pick/cause.h"
#include "lb/pick/link.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

static struct world *with_two_clients(const struct world_conf *given)
{
	struct world_conf conf = given ? *given : world_conf_default(11);
	conf.n_clients = 2;
	conf.n_backends = 2;
	return ready_world(&conf);
}

static void open_second(struct world *w)
{
	world_open_client(w, 1, 0);
	while (!w->clients[1].up)
		world_run(w, MS);
	world_run(w, 20 * MS);
}

static void set(struct world *w, const struct lb_terms *terms)
{
	control_set_terms(&w->control, terms);
	world_run(w, 10 * MS);
}

static void ops_320_a_shorter_idle_time_counts_for_who_is_idle(void **state)
{
	struct world *w = with_two_clients(NULL);
	struct lb_terms terms = world_terms(w);
	world_run(w, 100 * SECOND);
	open_second(w);
	terms.idle_timeout_ns = 50 * SECOND;
	set(w, &terms);
	assert_true(w->clients[0].goaway); // it has been for longer
	assert_false(w->clients[1].goaway);
	world_run(w, 49 * SECOND);
	assert_false(w->clients[1].goaway);
	world_run(w, 2 * SECOND);
	assert_true(w->clients[1].goaway);
	assert_int_equal(world_counter(w, "clients_idled"), 2);
	world_free(w);
}

static void ops_320_without_an_idle_time_nobody_is_sent_away_and_with_one_again(void **state)
{
	struct world *w = with_two_clients(NULL);
	struct lb_terms terms = world_terms(w);
	terms.idle_timeout_ns = 0;
	set(w, &terms);
	world_run(w, 1000 * SECOND);
	assert_false(w->clients[0].goaway);
	terms.idle_timeout_ns = 1500 * SECOND;
	set(w, &terms);
	world_run(w, 490 * SECOND);
	assert_false(w->clients[0].goaway);
	world_run(w, 20 * SECOND);
	assert_true(w->clients[0].goaway);
	world_free(w);
}

static void ops_320_connections_that_begin_have_the_new_number_of_streams(void **state)
{
	struct world *w = with_two_clients(NULL);
	struct lb_terms terms = world_terms(w);
	terms.max_streams = 3;
	set(w, &terms);
	open_second(w);
	assert_int_equal(h2_conn_stream_room(w->clients[0].h2), CLIENT_STREAMS);
	assert_int_equal(h2_conn_stream_room(w->clients[1].h2), 3);
	struct ask *asks[10];
	for (int i = 0; i < 10; i++) // an older one keeps what it was told
		asks[i] = ask(w, KIND_ECHO, 10);
	for (int i = 0; i < 10; i++) {
		finish_of(w, asks[i]);
		assert_ok(w, asks[i]);
	}
	struct ask *other = world_ask(w, "one", KIND_ECHO, 10);
	client_ask(&w->clients[1], other);
	finish_of(w, other);
	assert_ok(w, other);
	world_free(w);
}

// One whose preface is yet to come is told, and held to, what counts when it comes.
static void ops_320_who_has_said_nothing_yet_hears_the_new_number(void **state)
{
	struct world *w = with_two_clients(NULL);
	struct lb_terms terms = world_terms(w);
	w->clients[1].silent = true;
	world_open_client(w, 1, 0);
	world_run(w, 50 * MS);
	terms.max_streams = 3;
	terms.client_buffer = 4 << 20;
	set(w, &terms);
	struct ask *a = world_ask(w, "one", KIND_ECHO, 300000);
	client_ask(&w->clients[1], a);
	finish_of(w, a);
	assert_ok(w, a);
	assert_int_equal(h2_conn_stream_room(w->clients[1].h2), 3);
	world_free(w);
}

static void ops_320_connections_that_begin_have_the_new_age(void **state)
{
	struct world *w = with_two_clients(NULL);
	struct lb_terms terms = world_terms(w);
	terms.idle_timeout_ns = 0;
	terms.max_age_ns = 100 * SECOND;
	set(w, &terms);
	open_second(w);
	world_run(w, 111 * SECOND);
	assert_false(w->clients[0].goaway);
	assert_true(w->clients[1].goaway);
	assert_int_equal(world_counter(w, "clients_aged"), 1);
	world_free(w);
}

// Without an interval it would ask without end.
static void ops_320_who_is_asked_by_ping_is_asked_on_as_before(void **state)
{
	struct world_conf conf = world_conf_default(12);
	conf.ping_interval_ns = 10 * SECOND;
	conf.ping_timeout_ns = 5 * SECOND;
	struct world *w = with_two_clients(&conf);
	struct lb_terms terms = world_terms(w);
	terms.client_silence.ping_interval_ns = 0;
	terms.client_silence.ping_timeout_ns = 0;
	set(w, &terms);
	struct ask *a = ask(w, KIND_HANG, 0);
	world_run(w, 60 * SECOND);
	assert_false(a->closed);
	assert_int_equal(world_counter(w, "pings_unanswered"), 0);
	w->clients[0].deaf = true;
	world_run(w, 17 * SECOND);
	assert_int_equal(world_counter(w, "pings_unanswered"), 1);
	assert_int_equal(world_ended(w, LB_CAUSE_CLIENT_LOST), 1);
	world_free(w);
}

static void ops_320_the_next_attempt_counts_by_the_new_number(void **state)
{
	struct world *w = with_two_clients(NULL);
	struct lb_terms terms = world_terms(w);
	terms.max_attempts = 2;
	set(w, &terms);
	struct ask *a = ask_with(w, KIND_PLAIN, 100, NULL, "50 reset 7");
	finish(w);
	assert_true(a->closed);
	assert_int_equal(w->seen[a->id].n, 2);
	world_free(w);
}

// TH-98, where the listener says nothing.
static void ops_320_a_request_that_begins_has_the_new_time_without_progress(void **state)
{
	struct world *w = with_two_clients(NULL);
	struct lb_terms terms = world_terms(w);
	w->control.idle_ns[0] = 0;
	control_set_filters(&w->control, 0, NULL, 0, LB_NO_TIMEOUT, 1);
	for (uint32_t i = 0; i < w->conf.n_backends; i++)
		w->backends[i].mute = true;
	struct ask *before = ask(w, KIND_PLAIN, 10);
	world_run(w, SECOND);
	terms.stream_idle_ns = 5 * SECOND;
	set(w, &terms);
	struct ask *after = ask(w, KIND_PLAIN, 10);
	world_run(w, 6 * SECOND);
	assert_int_equal(after->http_status, 504);
	assert_false(before->closed);
	client_cancel(before);
	finish(w);
	world_free(w);
}

// All else goes on: nothing of it is looked at, or cut.
static void ops_320_the_same_terms_again_change_nothing(void **state)
{
	struct world *w = with_two_clients(NULL);
	struct lb_terms terms = world_terms(w);
	struct ask *a = ask(w, KIND_HANG, 0);
	for (int i = 0; i < 100; i++) {
		set(w, &terms);
		struct ask *b = ask(w, KIND_ECHO, 100);
		finish_of(w, b);
		assert_ok(w, b);
	}
	assert_false(a->closed || w->clients[0].goaway);
	client_cancel(a);
	finish(w);
	world_free(w);
}

#define CASE(test) cmocka_unit_test(test)

RUN_SUITE("sim/proxy_terms", CASE(ops_320_a_shorter_idle_time_counts_for_who_is_idle),
	CASE(ops_320_without_an_idle_time_nobody_is_sent_away_and_with_one_again),
	CASE(ops_320_connections_that_begin_have_the_new_number_of_streams),
	CASE(ops_320_who_has_said_nothing_yet_hears_the_new_number),
	CASE(ops_320_connections_that_begin_have_the_new_age),
	CASE(ops_320_who_is_asked_by_ping_is_asked_on_as_before),
	CASE(ops_320_the_next_attempt_counts_by_the_new_number),
	CASE(ops_320_a_request_that_begins_has_the_new_time_without_progress),
	CASE(ops_320_the_same_terms_again_change_nothing))
