// SPDX-License-Identifier: Apache-2.0
// Requests whose client has no connection of its own to a backend that wants PROXY headers, and
// gets none now (PP-13, PP-18).
#include "dataplane/proxy/state.h"
#include "lb/pick/cause.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

static const struct lb_header v2 = {.version = 2};

static struct ask *ask_of(struct world *w, uint32_t client, enum kind kind, uint32_t size)
{
	struct ask *a = world_ask(w, "one", kind, size);
	client_ask(&w->clients[client], a);
	return a;
}

// Its client's own connection retires, and no other one is to be had.
static struct ask *retiring(struct world *w)
{
	struct ask *held = ask_of(w, 0, KIND_HANG, 0);
	world_run(w, 50 * MS);
	backend_unlisten(&w->backends[0]);
	backend_goaway_of(&w->backends[0], &held->from);
	world_run(w, 50 * MS);
	assert_false(held->closed);
	assert_int_equal(w->backends[0].n_conns, 2);
	return held;
}

static void pp_18_a_connection_that_retires_is_not_waited_for(void **state)
{
	struct world *w = headed_world(&v2, 1);
	struct ask *held = retiring(w);
	uint64_t n = world_counter(w, "queued_for_stream");
	struct ask *a = ask(w, KIND_ECHO, 10);
	finish_of(w, a);
	assert_reply(a, 14);
	assert_false(held->closed);
	assert_in_range(world_counter(w, "queued_for_stream") - n, 0, 8);
	abandon(w);
}

// They become ready, and leave before they have answered anything.
static void pp_18_nor_one_that_leaves_at_once(void **state)
{
	struct world *w = headed_world(&v2, 1);
	w->backends[0].leaves_at_once = true;
	struct ask *a = ask(w, KIND_ECHO, 10);
	finish_of(w, a);
	assert_reply(a, 14);
	assert_in_range(world_counter(w, "queued_for_stream"), 1, 8); // max_attempts
	assert_in_range(world_counter(w, "connects"), 3, 10); // two of them the endpoints'
	abandon(w);
}

//
static void pp_18_who_waits_goes_elsewhere_when_the_endpoint_is_down(void **state)
{
	struct world_conf conf = headed(&v2, 1);
	struct world *w = ready_world(&conf);
	struct ask *a[6];
	uint32_t n_waiting = 0;
	world_run(w, 100 * MS);
	w->backends[0].is_shy = true;
	for (int i = 0; i < 6; i++)
		a[i] = ask(w, KIND_ECHO, 10);
	world_run(w, 200 * MS);
	for (int i = 0; i < 6; i++)
		n_waiting += !a[i]->closed;
	assert_int_equal(n_waiting, 3);
	backend_unlisten(&w->backends[0]);
	backend_abort_of(&w->backends[0], NULL);
	finish(w);
	for (int i = 0; i < 6; i++) {
		assert_ok(w, a[i]);
		assert_true(took_ns(a[i]) < SECOND);
	}
	world_free(w);
}

static void a31_r12_nobody_waits_so_for_a_deleted_cluster(void **state)
{
	struct world *w = headed_world(&v2, 1);
	w->frontends[0].wait_for_ready = LB_WAIT_ALWAYS;
	backend_unlisten(&w->backends[0]);
	struct ask *a = ask(w, KIND_ECHO, 10);
	world_run(w, 5 * SECOND);
	assert_false(a->closed);
	control_leave(&w->control, 0);
	world_run(w, 2 * SECOND);
	assert_true(a->closed);
	assert_reply(a, 14);
	world_free(w);
}

// Its pauses are not over before anybody may try again.
static void pp_18_the_same_endpoint_is_tried_again(void **state)
{
	struct world *w = headed_world(&v2, 1);
	backend_unlisten(&w->backends[0]);
	struct ask *a = ask(w, KIND_ECHO, 10);
	world_run(w, 500 * MS);
	assert_false(a->closed);
	assert_int_equal(tcp_listen(w->backends[0].host->tcp, &w->backends[0].address, 50051,
				 backend_accept, &w->backends[0]),
		0);
	w->backends[0].listening = true;
	finish_of(w, a);
	assert_ok(w, a);
	assert_in_range(took_ns(a), 800 * MS, 1300 * MS);
	assert_int_equal(world_counter(w, "unconnected_retries"), 2);
	assert_int_equal(world_counter(w, "connect_failures"), 1);
	world_free(w);
}

// Whoever connects to many that refuse it does not fill the places for as long as it stays.
static void pp_19_a_place_that_was_of_no_use_is_given_back(void **state)
{
	struct world *w = headed_world(&v2, 1);
	const struct pool *places = &w->proxy->client_backends.pool;
	backend_unlisten(&w->backends[0]);
	struct ask *a = ask(w, KIND_ECHO, 10);
	finish_of(w, a);
	assert_reply(a, 14);
	world_run(w, 20 * SECOND);
	assert_int_equal(places->n_used, 1);
	world_run(w, 15 * SECOND);
	assert_int_equal(places->n_used, 0);
	assert_int_equal(w->proxy->sources.n_connected, 1);
	// One in use is looked at in vain.
	a = ask(w, KIND_ECHO, 10);
	finish_of(w, a);
	backend_fini(&w->backends[0]);
	backend_open(&w->backends[0], &w->wire.hosts[HOST_BACKENDS], w->backends[0].address,
		&w->backend_conf);
	world_run(w, 10 * SECOND);
	struct ask *held = ask(w, KIND_HANG, 0);
	world_run(w, 60 * SECOND);
	assert_false(held->closed);
	assert_int_equal(places->n_used, 1);
	abandon(w);
}

static void assert_nothing_is_left(const struct world *w)
{
	assert_int_equal(w->proxy->client_backends.pool.n_used, 0);
	assert_int_equal(w->proxy->client_backends.n_conns, 0);
	assert_int_equal(world_counter(w, "upstreams"), 1); // the endpoint's own
}

// Nobody answers SYN, or nobody sends SETTINGS.
static void pp_13_a_client_may_go_before_its_connection_is_ready(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct world *w = headed_world(&v2, 1);
		w->wire.hosts[HOST_BACKENDS].unplugged = i == 0;
		w->backends[0].is_shy = i == 1;
		struct ask *a = ask(w, KIND_ECHO, 10);
		world_run(w, 100 * MS);
		assert_false(a->closed);
		assert_int_equal(w->proxy->client_backends.n_conns, 1);
		client_abort(&w->clients[0]);
		world_run(w, 50 * MS);
		assert_nothing_is_left(w);
		w->wire.hosts[HOST_BACKENDS].unplugged = false;
		world_run(w, 5 * SECOND);
		assert_nothing_is_left(w);
		world_free(w);
	}
}

// UPD-03: while its client's connection is being made, or rests.
static void pp_13_an_endpoint_may_go_before_a_connection_is_ready(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct world *w = headed_world(&v2, 1);
		w->frontends[0].wait_for_ready = LB_WAIT_ALWAYS;
		if (i == 0)
			w->backends[0].is_shy = true;
		else
			backend_unlisten(&w->backends[0]);
		struct ask *a = ask(w, KIND_ECHO, 10);
		world_run(w, 300 * MS);
		assert_false(a->closed);
		assert_int_equal(w->proxy->client_backends.pool.n_used, 1);
		use_backends(w, 0x2);
		finish_of(w, a);
		assert_ok(w, a);
		assert_true(took_ns(a) < 2 * SECOND);
		assert_int_equal(w->seen[a->id].attempts[0].backend, 2);
		world_run(w, SECOND);
		assert_null(w->proxy->backends[0].proxy); // released
		assert_int_equal(w->backends[0].n_conns, 0);
		assert_int_equal(w->proxy->client_backends.pool.n_used, 1);
		world_free(w);
	}
}

// what is new and waits for a time is bounded as what waits for a backend.
static void pp_18_new_requests_that_pause_are_bounded(void **state)
{
	struct world_conf conf = headed(&v2, 1);
	conf.max_queued = 4;
	struct world *w = ready_world(&conf);
	use_backends(w, 0x1);
	w->frontends[0].wait_for_ready = LB_WAIT_ALWAYS;
	world_run(w, 100 * MS);
	backend_unlisten(&w->backends[0]);
	struct ask *first = ask(w, KIND_ECHO, 10), *a;
	world_run(w, 50 * MS);
	for (int i = 0; i < 3; i++)
		a = ask(w, KIND_ECHO, 10);
	world_run(w, 10 * MS);
	assert_false(first->closed || a->closed);
	for (int i = 0; i < 3; i++) {
		a = ask(w, KIND_ECHO, 10);
		finish_of(w, a);
		assert_reply(a, 14);
		assert_string_equal(a->cause, "overflow");
	}
	assert_int_equal(world_counter(w, "queue_overflows"), 3);
	assert_false(first->closed);
	abandon(w);
}

// Backends end what is idle. By GOAWAY, by FIN, or both.
static void pp_14_an_endpoint_outlasts_its_own_idle_connection(void **state)
{
	for (int how = 0; how < 3; how++) {
		struct world *w = headed_world(&v2, 1);
		struct ask *held = ask(w, KIND_HANG, 0);
		world_run(w, 75 * SECOND);
		uint32_t n = w->control.n_events, n_local = w->backends[0].n_local;
		if (how != 1)
			backend_goaway_of(&w->backends[0], NULL);
		if (how != 0)
			backend_shut_of(&w->backends[0], NULL);
		for (int i = 0; i < 20; i++) {
			struct ask *a = ask(w, KIND_ECHO, 10);
			world_run(w, 5 * MS);
			finish_of(w, a);
			assert_ok(w, a);
			assert_true(took_ns(a) < 50 * MS);
		}
		assert_int_equal(w->backends[0].n_local, n_local + 1);
		assert_int_equal(w->control.n_events, n);
		assert_int_equal(w->proxy->backends[0].n_ready, 1);
		assert_false(held->closed);
		abandon(w);
	}
}

// … but not that its backend has gone.
static void pp_14_nor_does_it_stay_up_when_there_is_no_other(void **state)
{
	struct world *w = headed_world(&v2, 1);
	world_run(w, 75 * SECOND);
	backend_unlisten(&w->backends[0]);
	backend_goaway_of(&w->backends[0], NULL);
	world_run(w, 100 * MS);
	assert_false(w->proxy->backends[0].told_up);
	struct ask *a = ask(w, KIND_ECHO, 10);
	finish_of(w, a);
	assert_reply(a, 14);
	world_free(w);
}

RUN_SUITE("proxy/headless", cmocka_unit_test(pp_18_a_connection_that_retires_is_not_waited_for),
	cmocka_unit_test(pp_18_nor_one_that_leaves_at_once),
	cmocka_unit_test(pp_18_who_waits_goes_elsewhere_when_the_endpoint_is_down),
	cmocka_unit_test(a31_r12_nobody_waits_so_for_a_deleted_cluster),
	cmocka_unit_test(pp_19_a_place_that_was_of_no_use_is_given_back),
	cmocka_unit_test(pp_18_the_same_endpoint_is_tried_again),
	cmocka_unit_test(pp_13_a_client_may_go_before_its_connection_is_ready),
	cmocka_unit_test(pp_13_an_endpoint_may_go_before_a_connection_is_ready),
	cmocka_unit_test(pp_18_new_requests_that_pause_are_bounded),
	cmocka_unit_test(pp_14_an_endpoint_outlasts_its_own_idle_connection),
	cmocka_unit_test(pp_14_nor_does_it_stay_up_when_there_is_no_other))
