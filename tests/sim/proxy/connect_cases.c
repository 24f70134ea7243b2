// SPDX-License-Identifier: Apache-2.0
// When a backend's next connection is made after one has ended (BO-03, BO-04, MC-07).
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <string.h>

static void a_connection_that_was_of_use_is_made_again_at_once(void **state)
{
	struct world *w = ready_world(NULL);
	use_backends(w, 1);
	struct ask *a = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_ok(w, a);
	backend_abort_conns(&w->backends[0]);
	a = ask(w, KIND_ECHO, 10);
	world_run(w, 10 * MS);
	assert_ok(w, a);
	assert_int_equal(w->backends[0].n_accepted, 2);
	world_free(w);
}

// One backend, which has been of use, and 200 ms later says GOAWAY.
static struct world *leaving_world(bool in_use, struct ask **ret_held)
{
	struct world *w = ready_world(NULL);
	use_backends(w, 1);
	world_run(w, 200 * MS);
	w->clients[0].slow = true;
	*ret_held = in_use ? ask(w, KIND_DOWNLOAD, 200000) : NULL;
	world_run(w, 2 * SECOND);
	w->control.n_events = 0;
	return w;
}

// The worker does it alone, and only while somebody needs it; the control thread hears nothing.
static void the_next_connection_is_made_while_a_leaving_one_finishes(void **state)
{
	for (int in_use = 0; in_use <= 1; in_use++) {
		struct ask *held;
		struct world *w = leaving_world(in_use, &held);
		w->control.deaf = true;
		backend_goaway(&w->backends[0], true);
		world_run(w, 10 * MS);
		assert_int_equal(w->backends[0].n_accepted, 1 + in_use);
		w->clients[0].slow = false;
		if (held) {
			struct ask *other = ask(w, KIND_ECHO, 10);
			world_run(w, 10 * MS);
			assert_ok(w, other);
			assert_false(held->closed);
			client_resume(&w->clients[0], held);
		}
		w->control.deaf = false;
		finish(w);
		if (held)
			assert_int_equal(w->control.n_events, 0);
		world_free(w);
	}
}

// MC-07: the one attempt that fails is the first of the backoff.
static void a_leaving_backend_that_refuses_fails_at_once(void **state)
{
	struct ask *held;
	struct world *w = leaving_world(true, &held);
	backend_unlisten(&w->backends[0]);
	uint64_t n_connects = world_counter(w, "connects");
	backend_goaway(&w->backends[0], true);
	world_run(w, 10 * MS);
	struct ask *other = ask(w, KIND_ECHO, 10);
	world_run(w, 500 * MS);
	assert_reply(other, 14);
	assert_non_null(strstr(other->message, "refused"));
	assert_int_equal(world_counter(w, "connects"), n_connects + 1);
	client_resume(&w->clients[0], held);
	w->clients[0].slow = false;
	finish(w);
	assert_ok(w, held);
	world_free(w);
}

// The control thread hears of it after a tenth of a second, so that others may serve.
static void a_leaving_backend_that_is_slow_is_told_of(void **state)
{
	struct ask *held;
	struct world *w = leaving_world(true, &held);
	backend_goaway(&w->backends[0], true);
	world_run(w, MS / 2);
	w->wire.hosts[HOST_BACKENDS].unplugged = true;
	world_run(w, 50 * MS);
	assert_int_equal(w->control.n_events, 0);
	world_run(w, 100 * MS);
	assert_int_equal(w->control.n_events, 1);
	w->wire.hosts[HOST_BACKENDS].unplugged = false;
	world_run(w, 5 * SECOND);
	assert_int_equal(w->backends[0].n_accepted, 2);
	client_resume(&w->clients[0], held);
	w->clients[0].slow = false;
	finish(w);
	world_free(w);
}

// ST-03: the handshake alone does not make it READY.
static void a_backend_without_settings_is_not_ready(void **state)
{
	struct world_conf conf = world_conf_default(3);
	conf.n_clients = 1;
	struct world *w = world_new(&conf);
	use_backends(w, 1);
	while (w->wire.n_sent < 2) // SYN and SYN-ACK
		world_run(w, MS / 100);
	w->wire.hosts[HOST_BACKENDS].unplugged = true;
	open_client(w);
	struct ask *a = ask(w, KIND_ECHO, 10);
	world_run(w, SECOND);
	assert_int_equal(world_counter(w, "connects"), 1);
	assert_int_equal(w->control.n_events, 0);
	assert_int_equal(w->link->clusters[0].queued, 1);
	w->wire.hosts[HOST_BACKENDS].unplugged = false;
	finish(w);
	assert_ok(w, a);
	assert_int_equal(w->control.n_events, 1);
	assert_int_equal(w->backends[0].n_accepted, 1);
	world_free(w);
}

// TH-31: It accepts, says SETTINGS, hears a request, perhaps says GOAWAY, and hangs up: no endless
// turn of connections, whoever wants them: the control thread, or, where another worker is
// connected, this one by itself.
static void a_backend_that_hangs_up_is_tried_once_a_second(void **state)
{
	for (int row = 0; row < 4; row++) {
		bool takes_leave = row & 1;
		struct world_conf conf = world_conf_default(3);
		conf.n_clients = 1;
		conf.n_backends = 1;
		conf.n_workers = row / 2 + 1;
		struct world *w = world_new(&conf);
		w->backends[0].mute = true;
		use_backends(w, 1);
		open_client(w);
		for (int i = 0; i < 500; i++) {
			ask_with(w, KIND_ECHO, 10, "100m", NULL);
			world_run(w, 15 * MS);
			if (takes_leave)
				backend_goaway(&w->backends[0], true);
			world_run(w, 5 * MS);
			backend_abort_conns(&w->backends[0]);
		}
		assert_in_range(w->backends[0].n_accepted, 7, 14 + takes_leave);
		finish(w);
		world_free(w);
	}
}

// It has answered nothing when it says GOAWAY, but goes on with what it was asked for: such a
// connection was of use.
static void a_backend_that_leaves_before_its_first_answer_is_replaced_at_once(void **state)
{
	struct world *w = ready_world(NULL);
	use_backends(w, 1);
	struct ask *held = ask_with(w, KIND_HANG, 10, "300m", NULL);
	world_run(w, 5 * MS);
	w->control.n_events = 0;
	backend_goaway(&w->backends[0], true);
	world_run(w, 5 * MS);
	struct ask *other = ask(w, KIND_ECHO, 10);
	world_run(w, 10 * MS);
	assert_ok(w, other);
	assert_false(held->closed);
	assert_int_equal(w->backends[0].n_accepted, 2);
	assert_int_equal(w->control.n_events, 0);
	finish(w);
	world_free(w);
}

// Whoever floods the link with ARP does not flood the control thread.
static void no_more_than_a_hundred_hosts_a_second_are_told_of(void **state)
{
	struct world *w = ready_world(NULL);
	const struct ip_addr ip = wire_address(HOST_BACKENDS, 9);
	w->control.n_events = 0;
	for (int i = 0; i < 5000; i++) {
		proxy_neighbor(w->proxy, &ip);
		if (i % 10 == 0)
			world_run(w, 10 * MS);
	}
	world_run(w, 10 * MS);
	assert_in_range(w->control.n_events, 500, 600); // in five seconds
	finish(w);
	world_free(w);
}

#define CASE(f) cmocka_unit_test(f)
RUN_SUITE("sim/proxy_connect", CASE(a_connection_that_was_of_use_is_made_again_at_once),
	CASE(the_next_connection_is_made_while_a_leaving_one_finishes),
	CASE(a_leaving_backend_that_refuses_fails_at_once),
	CASE(a_leaving_backend_that_is_slow_is_told_of),
	CASE(a_backend_without_settings_is_not_ready),
	CASE(a_backend_that_hangs_up_is_tried_once_a_second),
	CASE(a_backend_that_leaves_before_its_first_answer_is_replaced_at_once),
	CASE(no_more_than_a_hundred_hosts_a_second_are_told_of))
