// SPDX-License-Identifier: Apache-2.0
// HTTP/2's PINGs to both sides: whom they find, and whom they leave alone.
#include "lb/pick/cause.h"
#include "lb/pick/link.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

static struct world *asking_world(uint64_t interval_ns, uint64_t timeout_ns)
{
	struct world_conf conf = world_conf_default(5);
	conf.n_clients = 1;
	conf.n_backends = 2;
	conf.ping_interval_ns = interval_ns;
	conf.ping_timeout_ns = timeout_ns;
	return ready_world(&conf);
}

// HX-31: TCP acknowledges all, and nobody is at home.
static void a_backend_that_hangs_is_found(void **state)
{
	struct world *w = asking_world(10 * SECOND, 5 * SECOND);
	struct ask *a = ask(w, KIND_HANG, 0);
	world_run(w, 20 * MS);
	w->backends[0].deaf = w->backends[1].deaf = true;
	world_run(w, 14 * SECOND);
	assert_false(a->closed);
	world_run(w, 3 * SECOND); // 10 s, a seventh more at most, and 5 s
	assert_reply(a, 14);
	assert_int_equal(world_ended(w, LB_CAUSE_UPSTREAM_LOST), 1);
	assert_int_equal(world_counter(w, "pings_unanswered"), 2);
	world_free(w);
}

// TCP-210: it has its time after the pause.
static void a_pause_of_our_own_answers_for_nobody(void **state)
{
	struct world *w = asking_world(10 * SECOND, 5 * SECOND);
	struct ask *a = ask(w, KIND_HANG, 0);
	world_run(w, 20 * MS);
	w->backends[0].deaf = w->backends[1].deaf = true;
	world_run(w, 11500 * MS); // both have been asked
	w->wire.now_ns += 30 * SECOND;
	world_run(w, 4900 * MS);
	assert_int_equal(world_counter(w, "pings_unanswered"), 0);
	assert_false(a->closed);
	world_run(w, 200 * MS);
	assert_int_equal(world_counter(w, "pings_unanswered"), 2);
	assert_reply(a, 14);
	world_free(w);
}

// HX-31
static void a_client_that_hangs_is_found(void **state)
{
	struct world *w = asking_world(10 * SECOND, 5 * SECOND);
	ask(w, KIND_HANG, 0);
	world_run(w, 20 * MS);
	w->clients[0].deaf = true;
	world_run(w, 17 * SECOND);
	assert_int_equal(world_ended(w, LB_CAUSE_CLIENT_LOST), 1);
	assert_int_equal(world_counter(w, "pings_unanswered"), 1);
	assert_int_equal(world_counter(w, "clients"), 0);
	world_free(w);
}

// HX-31: whoever answers is left alone, however long nothing else is said.
static void whoever_answers_is_never_cut(void **state)
{
	static const uint64_t timeouts[] = {1, 5, 30};
	for (unsigned i = 0; i < 3; i++) {
		struct world *w = asking_world(10 * SECOND, timeouts[i] * SECOND);
		struct ask *a = ask(w, KIND_HANG, 0);
		world_run(w, 300 * SECOND);
		assert_false(a->closed);
		assert_int_equal(world_counter(w, "pings_unanswered"), 0);
		client_cancel(a);
		finish(w);
		world_free(w);
	}
}

// HX-32: an answer may stand in a line behind much else.
static void whoever_sends_anything_has_more_time(void **state)
{
	for (int talks = 0; talks < 2; talks++) {
		struct world *w = asking_world(10 * SECOND, 2 * SECOND);
		w->wire.delay_ns = 1500 * MS; // an answer takes three seconds
		if (talks)
			ask(w, KIND_HANG, 0);
		for (int i = 0; i < 30; i++) {
			if (talks)
				ask(w, KIND_ECHO, 10);
			world_run(w, SECOND);
		}
		assert_int_equal(world_counter(w, "pings_unanswered") > 0, !talks);
		assert_int_equal(w->clients[0].over, !talks);
		world_free(w);
	}
}

// HX-31
static void without_an_interval_nobody_is_asked(void **state)
{
	struct world *w = asking_world(0, 5 * SECOND);
	struct ask *a = ask(w, KIND_HANG, 0);
	world_run(w, 20 * MS);
	w->backends[0].deaf = w->backends[1].deaf = true;
	world_run(w, 200 * SECOND);
	assert_false(a->closed);
	client_cancel(a);
	finish(w);
	world_free(w);
}

// What clusters ask of both backends, before they are connected.
static struct world *timed_world(struct lb_timers timers)
{
	struct world *w = a_world();
	for (uint32_t id = 0; id < 2; id++)
		lb_timers_write(&w->link->shared->timers[id], timers);
	use_backends(w, 0x3);
	open_client(w);
	return w;
}

// CL-09
static void a_backend_is_asked_as_often_as_its_clusters_want(void **state)
{
	struct world *w =
		timed_world((struct lb_timers){.ping_interval_ms = 2000, .ping_timeout_ms = 500});
	world_run(w, 20 * MS);
	struct ask *a = ask(w, KIND_HANG, 0);
	world_run(w, 20 * MS);
	w->backends[0].deaf = w->backends[1].deaf = true;
	world_run(w, 2400 * MS);
	assert_false(a->closed);
	world_run(w, 450 * MS); // 2 s, a seventh more at most, and 0.5 s
	assert_reply(a, 14);
	assert_int_equal(world_counter(w, "pings_unanswered"), 2);
	world_free(w);
}

// CL-09
static void a_backend_gets_the_time_to_connect_that_its_clusters_want(void **state)
{
	struct world *w = a_world();
	w->backends[0].deaf = w->backends[1].deaf = true; // no SETTINGS come
	for (uint32_t id = 0; id < 2; id++)
		lb_timers_write(
			&w->link->shared->timers[id], (struct lb_timers){.connect_ms = 300});
	use_backends(w, 0x1);
	open_client(w);
	struct ask *a = ask(w, KIND_ECHO, 10);
	world_run(w, 250 * MS);
	assert_false(a->closed);
	world_run(w, 150 * MS);
	assert_reply(a, 14);
	world_free(w);
}

#define CASE(f) cmocka_unit_test(f)
RUN_SUITE("sim/proxy_keepalive", CASE(a_backend_that_hangs_is_found),
	CASE(a_pause_of_our_own_answers_for_nobody), CASE(a_client_that_hangs_is_found),
	CASE(whoever_answers_is_never_cut), CASE(whoever_sends_anything_has_more_time),
	CASE(without_an_interval_nobody_is_asked),
	CASE(a_backend_is_asked_as_often_as_its_clusters_want),
	CASE(a_backend_gets_the_time_to_connect_that_its_clusters_want))
