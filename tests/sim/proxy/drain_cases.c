// SPDX-License-Identifier: Apache-2.0
// Leaving, one situation a test: the whole proxy's, or of the clients of a changed listener.
#include "lb/pick/cause.h"
#include "lb/pick/link.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#define NONE LB_NO_TIMEOUT

// HX-22
static void a_drain_says_goaway_twice_and_lets_streams_finish(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *early = ask(w, KIND_DOWNLOAD, 1 << 20);
	world_run(w, 3 * MS);
	control_command(&w->control, &(struct lb_command){.kind = LB_COMMAND_DRAIN,
					     .deadline_ns = w->wire.now_ns + 60 * SECOND});
	struct ask *late = world_ask(w, "one", KIND_ECHO, 3000);
	client_ask(&w->clients[0], late); // on its way when the first GOAWAY is
	w->clients[0].slow = true;
	world_run(w, 500 * MS);
	assert_true(w->clients[0].goaway && !w->control.drained);
	world_run(w, 10 * SECOND);
	assert_false(w->control.drained);
	w->clients[0].slow = false;
	client_resume(&w->clients[0], late);
	client_resume(&w->clients[0], early);
	finish(w);
	assert_ok(w, early);
	assert_ok(w, late);
	world_run(w, 2 * SECOND);
	assert_true(w->control.drained);
	assert_int_equal(w->control.n_cut, 0);
	assert_true(w->clients[0].over);
	world_open_client(w, 0, 0); // nobody listens
	world_run(w, SECOND);
	assert_true(w->clients[0].over && !w->clients[0].up);
	world_free(w);
}

static void a_drain_without_clients_is_over_at_once(void **state)
{
	struct world *w = a_world();
	control_command(&w->control, &(struct lb_command){.kind = LB_COMMAND_DRAIN,
					     .deadline_ns = w->wire.now_ns + 60 * SECOND});
	world_run(w, 100 * MS);
	assert_true(w->control.drained);
	world_open_client(w, 0, 0);
	world_run(w, SECOND);
	assert_true(w->clients[0].over);
	world_free(w);
}

static void a_drain_does_not_wait_for_a_backend_that_reads_nothing(void **state)
{
	struct world_conf conf = world_conf_default(14);
	conf.backend_window = 8 << 20; // more than TCP's
	struct world *w = ready_world(&conf);
	for (uint32_t i = 0; i < conf.n_backends; i++)
		w->backends[i].deaf = true;
	struct ask *a = ask(w, KIND_ECHO, 4 << 20);
	world_run(w, 200 * MS);
	client_cancel(a);
	use_backends(w, 0);
	world_run(w, 100 * MS);
	control_command(&w->control, &(struct lb_command){.kind = LB_COMMAND_DRAIN,
					     .deadline_ns = w->wire.now_ns + 60 * SECOND});
	world_run(w, 3 * SECOND);
	assert_true(w->clients[0].over && w->control.drained);
	assert_int_equal(w->control.n_cut, 0);
	world_free(w);
}

// RFC 9113 6.8: what of its streams may have been done. Whoever has all its answers knows.
static void a_client_that_leaves_hears_goaway_if_a_stream_is_open(void **state)
{
	for (int open = 0; open < 2; open++) {
		struct world *w = ready_world(NULL);
		struct ask *first = ask(w, KIND_ECHO, 1000);
		finish(w);
		assert_ok(w, first);
		struct ask *a = open ? ask(w, KIND_HANG, 0) : NULL;
		world_run(w, 20 * MS);
		assert_false(w->clients[0].goaway);
		tcp_conn_shutdown(w->clients[0].tcp);
		world_run(w, 500 * MS);
		assert_true(w->clients[0].over);
		assert_int_equal(w->clients[0].goaway, open);
		assert_true(!a || a->closed);
		world_free(w);
	}
}

static void the_drains_deadline_cuts_what_is_left(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = ask(w, KIND_HANG, 0), *b = ask(w, KIND_HANG, 0);
	world_run(w, 20 * MS);
	control_command(&w->control, &(struct lb_command){.kind = LB_COMMAND_DRAIN,
					     .deadline_ns = w->wire.now_ns + 5 * SECOND});
	struct ask *done = ask(w, KIND_ECHO, 3000);
	world_run(w, 4 * SECOND);
	assert_false(a->closed || b->closed || w->control.drained);
	assert_ok(w, done);
	world_run(w, 2 * SECOND);
	assert_true(a->closed && b->closed && w->control.drained);
	assert_int_equal(world_ended(w, LB_CAUSE_DRAINED), 2);
	assert_int_equal(w->control.n_cut, 2);
	world_free(w);
}

static void begin_drain(struct world *w, uint64_t for_ns)
{
	control_command(&w->control, &(struct lb_command){.kind = LB_COMMAND_DRAIN,
					     .deadline_ns = w->wire.now_ns + for_ns});
}

// FL-176: as each can still be told, in plain text. Its connection ends as any other.
static void fl_176_what_a_drain_cuts_is_told(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *unanswered = ask(w, KIND_HANG, 0), *plain = ask(w, KIND_STALL_PLAIN, 150),
		   *answered = ask(w, KIND_STALL, 150);
	world_run(w, SECOND);
	begin_drain(w, 5 * SECOND);
	world_run(w, 4 * SECOND + 900 * MS);
	assert_false(unanswered->closed || answered->closed || plain->closed);
	world_run(w, 500 * MS); // and it does not wait for more than that
	assert_reply(unanswered, 14);
	assert_true(unanswered->got_end);
	assert_string_equal(unanswered->cause, "drained");
	assert_true(answered->closed && answered->got_end && answered->received == 150);
	assert_int_equal(answered->grpc_status, 14);
	assert_true(plain->closed && !plain->got_end && plain->code == H2_CANCEL);
	assert_int_equal(world_ended(w, LB_CAUSE_DRAINED), 3);
	assert_true(w->control.drained && w->control.n_cut == 3);
	assert_true(w->clients[0].over && !w->clients[0].was_reset);
	assert_int_equal(world_counter(w, "ends_unanswered"), 0);
	world_free(w);
}

// FL-175, FL-176: whether something of it ran or not.
static void fl_175_who_stays_at_a_drains_end_is_not_reset(void **state)
{
	for (int busy = 0; busy < 2; busy++) {
		struct world *w = ready_world(NULL);
		struct client *c = &w->clients[0];
		struct ask *a = busy ? ask(w, KIND_HANG, 0) : NULL;
		c->stays = true;
		world_run(w, 20 * MS);
		begin_drain(w, 3 * SECOND);
		world_run(w, busy ? 3 * SECOND + 900 * MS : 1900 * MS);
		assert_false(w->control.drained);
		world_run(w, 300 * MS);
		assert_true(w->control.drained);
		assert_true(!a || a->closed);
		assert_int_equal(world_counter(w, "ends_unanswered"), 1);
		assert_int_equal(world_counter(w, "ends_untaken"), 0);
		world_run(w, 20 * SECOND);
		assert_true(c->tcp && !c->was_reset);
		tcp_conn_shutdown(c->tcp); // ends, and is acknowledged
		c->host->due = true;
		world_run(w, SECOND);
		assert_true(!c->tcp && !c->was_reset);
		world_free(w);
	}
}

// FL-175: and its drain waits no longer than for others.
static void fl_175_who_takes_nothing_at_a_drains_end_is_reset(void **state)
{
	struct world_conf conf = world_conf_default(14);
	conf.client_window = 8 << 20; // more than TCP's
	struct world *w = ready_world(&conf);
	w->clients[0].deaf = true;
	struct ask *a = ask(w, KIND_DOWNLOAD, 2 << 20);
	world_run(w, 200 * MS);
	begin_drain(w, 3 * SECOND);
	world_run(w, 3 * SECOND + 900 * MS);
	assert_false(w->control.drained || w->clients[0].over);
	world_run(w, 300 * MS);
	assert_true(w->control.drained && w->clients[0].was_reset && a->closed);
	assert_int_equal(world_counter(w, "ends_untaken"), 1);
	assert_int_equal(world_counter(w, "ends_unanswered"), 0);
	world_free(w);
}

// FL-176: no time at all is as little for each.
static void fl_176_a_drain_without_time_tells_as_well(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = ask(w, KIND_HANG, 0);
	world_run(w, 20 * MS);
	begin_drain(w, 0);
	world_run(w, 300 * MS);
	assert_reply(a, 14);
	assert_true(w->control.drained && w->clients[0].goaway && !w->clients[0].was_reset);
	world_free(w);
}

static void set_generation(struct world *w, uint32_t frontend, uint64_t generation)
{
	control_set_filters(&w->control, frontend, NULL, 0, NONE, generation);
}

// Three clients: two of frontend 0, one of frontend 1, accepted under generation 1.
static struct world *three_clients(uint64_t drain_ns)
{
	struct world_conf conf = world_conf_default(13);
	conf.listener_drain_ns = drain_ns;
	conf.n_clients = 3;
	conf.n_backends = 2;
	struct world *w = world_new(&conf);
	set_generation(w, 0, 1);
	set_generation(w, 1, 1);
	use_backends(w, 0x3);
	for (uint32_t i = 0; i < 3; i++)
		world_open_client(w, i, i / 2);
	world_run(w, 100 * MS);
	return w;
}

static struct ask *ask_of(struct world *w, uint32_t client, enum kind kind, uint32_t size)
{
	struct ask *a = world_ask(w, "one", kind, size);
	client_ask(&w->clients[client], a);
	return a;
}

// FLT-11
static void flt_11_a_changed_listeners_clients_are_sent_away(void **state)
{
	struct world *w = three_clients(20 * SECOND);
	struct ask *busy = ask_of(w, 0, KIND_HANG, 0), *other = ask_of(w, 2, KIND_HANG, 0);
	world_run(w, 20 * MS);
	set_generation(w, 0, 2);
	struct ask *late = ask_of(w, 1, KIND_ECHO, 3000); // crosses the first GOAWAY
	world_run(w, 2 * SECOND + 20 * MS); // a tenth of the time
	assert_true(w->clients[0].goaway && w->clients[1].goaway && !w->clients[2].goaway);
	assert_ok(w, late);
	assert_false(w->clients[0].over);
	world_run(w, 2 * SECOND);
	assert_true(w->clients[1].over && !w->clients[0].over);
	assert_int_equal(world_counter(w, "clients_drained"), 2);
	// Whoever comes now stays.
	world_open_client(w, 1, 0);
	world_run(w, 5 * SECOND);
	assert_true(w->clients[1].up && !w->clients[1].goaway);
	world_run(w, 8 * SECOND);
	assert_false(busy->closed || other->closed);
	world_run(w, 4 * SECOND);
	assert_true(busy->closed && w->clients[0].over);
	assert_int_equal(world_ended(w, LB_CAUSE_DRAINED), 1);
	assert_false(other->closed || w->clients[1].over);
	world_free(w);
}

// FLT-11: a request that ends in time is whole, and its connection goes with it.
static void flt_11_streams_finish_within_the_time(void **state)
{
	struct world *w = three_clients(200 * SECOND);
	w->clients[0].slow = true;
	struct ask *a = ask_of(w, 0, KIND_DOWNLOAD, 350000);
	world_run(w, 20 * MS);
	set_generation(w, 0, 2);
	for (int i = 0; i < 5; i++) {
		world_run(w, 20 * SECOND);
		assert_false(w->clients[0].over);
		client_resume(&w->clients[0], a);
	}
	w->clients[0].slow = false;
	client_resume(&w->clients[0], a);
	finish(w);
	assert_ok(w, a);
	world_run(w, 3 * SECOND);
	assert_true(w->clients[0].over);
	world_free(w);
}

// FLT-11: neither other changes, nor the first listener, nor a second change of one who goes.
static void flt_11_nothing_else_sends_anyone_away(void **state)
{
	struct world *w = a_world();
	open_client(w);
	set_generation(w, 0, 1);
	use_backends(w, 0x3);
	world_run(w, 3 * SECOND);
	static const struct lb_route_policy policy = {.timeouts = {.has_max = true}};
	control_set_policy(&w->control, ROUTE_ONE, &policy); // as a new RouteConfiguration would
	world_run(w, 3 * SECOND);
	assert_false(w->clients[0].goaway);
	struct ask *a = ask(w, KIND_HANG, 0);
	world_run(w, 20 * MS);
	for (uint64_t i = 2; i < 5; i++) {
		set_generation(w, 0, i);
		world_run(w, 3 * SECOND);
	}
	world_run(w, 60 * SECOND);
	assert_true(w->clients[0].goaway && !a->closed);
	assert_int_equal(world_counter(w, "clients_drained"), 1);
	client_cancel(a);
	finish(w);
	world_free(w);
}

// FLT-11: they come back one after the other.
static void flt_11_clients_are_told_over_a_tenth_of_the_time(void **state)
{
	struct world_conf conf = world_conf_default(13);
	conf.n_clients = MAX_CLIENTS;
	struct world *w = world_new(&conf);
	set_generation(w, 0, 1);
	for (uint32_t i = 0; i < MAX_CLIENTS; i++)
		world_open_client(w, i, 0);
	world_run(w, 100 * MS);
	set_generation(w, 0, 2);
	uint32_t n_told = 0, most = 0;
	for (int second = 0; second < 61; second++) {
		uint32_t before = n_told;
		world_run(w, SECOND);
		n_told = 0;
		for (uint32_t i = 0; i < MAX_CLIENTS; i++)
			n_told += w->clients[i].goaway;
		most = n_told - before > most ? n_told - before : most;
	}
	assert_int_equal(n_told, MAX_CLIENTS);
	assert_in_range(most, 1, 3);
	assert_int_equal(world_counter(w, "clients_drained"), MAX_CLIENTS);
	world_free(w);
}

// The end of everything does not wait for those who were to leave later, nor they for it.
static void a_drain_meets_clients_that_were_to_leave(void **state)
{
	struct world *w = three_clients(600 * SECOND);
	struct ask *busy = ask_of(w, 0, KIND_HANG, 0);
	world_run(w, 20 * MS);
	set_generation(w, 0, 2);
	world_run(w, 20 * MS);
	control_command(&w->control, &(struct lb_command){.kind = LB_COMMAND_DRAIN,
					     .deadline_ns = w->wire.now_ns + 100 * SECOND});
	world_run(w, 5 * SECOND);
	assert_true(w->clients[1].over && w->clients[2].over && !w->clients[0].over);
	world_run(w, 70 * SECOND); // past its time to be told
	assert_false(busy->closed || w->control.drained);
	world_run(w, 30 * SECOND);
	assert_true(busy->closed && w->control.drained);
	world_free(w);
}

static void flt_11_no_time_at_all_cuts_at_once(void **state)
{
	struct world *w = three_clients(0);
	struct ask *busy = ask_of(w, 0, KIND_HANG, 0), *other = ask_of(w, 2, KIND_HANG, 0);
	world_run(w, 20 * MS);
	set_generation(w, 0, 2);
	world_run(w, 100 * MS);
	assert_true(busy->closed && w->clients[0].over && w->clients[1].over);
	assert_false(other->closed || w->clients[2].over);
	world_free(w);
}

static void leave(struct world *w, uint32_t frontend, uint64_t in_ns)
{
	control_command(&w->control, &(struct lb_command){.kind = LB_COMMAND_LEAVE,
					     .frontend = frontend,
					     .deadline_ns = w->wire.now_ns + in_ns});
}

static void return_to(struct world *w, uint32_t frontend)
{
	control_command(
		&w->control, &(struct lb_command){.kind = LB_COMMAND_RETURN, .frontend = frontend});
}

static uint64_t uses(const struct world *w, uint32_t frontend)
{
	return counter_read(&w->control.link->counters.frontend_uses[frontend]);
}

// OPS-73
static void ops_73_a_left_frontends_clients_go_and_others_stay(void **state)
{
	struct world *w = three_clients(600 * SECOND);
	assert_int_equal(uses(w, 0), 3);
	struct ask *busy = ask_of(w, 0, KIND_HANG, 0), *other = ask_of(w, 2, KIND_HANG, 0);
	world_run(w, 20 * MS);
	leave(w, 0, 20 * SECOND);
	struct ask *late = ask_of(w, 1, KIND_ECHO, 3000);
	world_run(w, 2 * SECOND + 20 * MS); // a tenth of the time
	assert_true(w->clients[0].goaway && w->clients[1].goaway && !w->clients[2].goaway);
	assert_ok(w, late);
	world_run(w, 2 * SECOND);
	assert_true(w->clients[1].over && !w->clients[0].over);
	assert_int_equal(uses(w, 0), 1);
	world_open_client(w, 1, 0); // nobody listens
	world_run(w, SECOND);
	assert_true(w->clients[1].over && !w->clients[1].up);
	world_run(w, 14 * SECOND);
	assert_false(busy->closed);
	world_run(w, 2 * SECOND);
	assert_true(busy->closed && w->clients[0].over);
	assert_int_equal(uses(w, 0), 0);
	assert_false(other->closed || w->clients[2].over || w->control.drained);
	assert_int_equal(uses(w, 1), 2);
	world_free(w);
}

// FL-41
static void fl_41_a_farewell_sends_all_away_while_newcomers_are_served(void **state)
{
	struct world *w = three_clients(600 * SECOND);
	struct ask *busy = ask_of(w, 0, KIND_HANG, 0);
	world_run(w, 20 * MS);
	control_command(&w->control, &(struct lb_command){.kind = LB_COMMAND_FAREWELL,
					     .deadline_ns = w->wire.now_ns + 20 * SECOND});
	world_run(w, 2 * SECOND + 20 * MS); // a tenth of the time
	for (uint32_t i = 0; i < 3; i++)
		assert_true(w->clients[i].goaway);
	world_run(w, 2 * SECOND);
	assert_true(w->clients[1].over && w->clients[2].over && !w->clients[0].over);
	world_open_client(w, 1, 0);
	world_run(w, 10 * MS);
	struct ask *late = ask_of(w, 1, KIND_ECHO, 3000);
	world_run(w, 2 * SECOND);
	assert_ok(w, late);
	assert_true(w->clients[1].goaway);
	world_run(w, 13 * SECOND + 100 * MS); // the last second: nobody hears anything now
	world_open_client(w, 2, 1);
	world_run(w, 500 * MS);
	assert_false(w->clients[2].up || w->clients[2].over || busy->closed);
	world_run(w, 2 * SECOND);
	control_command(&w->control, &(struct lb_command){.kind = LB_COMMAND_DRAIN,
					     .deadline_ns = w->wire.now_ns + 3 * SECOND});
	world_run(w, 4 * SECOND);
	assert_true(busy->closed && w->control.drained);
	assert_int_equal(w->control.n_cut, 1);
	assert_false(w->clients[2].up || w->clients[2].over); // it goes on asking
	world_free(w);
}

// FL-41: who is to hear of a longer drain in a minute hears now; another reason changes nothing.
static void fl_41_a_farewell_is_for_those_too_who_leave_already(void **state)
{
	for (int first = 0; first < 2; first++) {
		struct world *w = three_clients(600 * SECOND);
		const struct lb_command farewell = {
			.kind = LB_COMMAND_FAREWELL, .deadline_ns = w->wire.now_ns + 20 * SECOND};
		if (first)
			leave(w, 0, 600 * SECOND);
		world_run(w, MS);
		control_command(&w->control, &farewell);
		world_run(w, MS);
		if (!first)
			leave(w, 0, 600 * SECOND);
		world_run(w, 2 * SECOND + 20 * MS);
		for (uint32_t i = 0; i < 3; i++)
			assert_true(w->clients[i].goaway);
		world_free(w);
	}
}

// By SIGTERM, or because its frontend is left.
static void send_away(struct world *w, bool drain)
{
	if (drain)
		control_command(&w->control, &(struct lb_command){.kind = LB_COMMAND_DRAIN,
						     .deadline_ns = w->wire.now_ns + 30 * SECOND});
	else
		leave(w, 0, 30 * SECOND);
}

// One client has just connected, and says nothing; all are sent away.
static struct world *with_silent_newcomer(bool drain)
{
	struct world *w = three_clients(600 * SECOND);
	world_run(w, 2 * SECOND);
	client_abort(&w->clients[0]);
	w->clients[0].silent = true;
	world_open_client(w, 0, 0);
	world_run(w, 10 * MS);
	send_away(w, drain);
	return w;
}

// FL-98
static void fl_98_a_newcomer_that_has_said_nothing_yet_is_served(void **state)
{
	for (int drain = 0; drain < 2; drain++) {
		struct world *w = with_silent_newcomer(drain);
		world_run(w, 6 * SECOND);
		assert_true(w->clients[0].up && !w->clients[0].over);
		struct ask *late = ask_of(w, 0, KIND_ECHO, 3000);
		world_run(w, 500 * MS);
		assert_ok(w, late);
		assert_true(w->clients[0].goaway);
		world_run(w, 3 * SECOND);
		assert_true(w->clients[0].over);
		assert_int_equal(w->control.drained, drain);
		world_free(w);
	}
}

// FL-98: whenever it begins, what it has on its way by then is served, too.
static void fl_98_a_newcomer_that_begins_late_has_its_grace(void **state)
{
	for (uint32_t ms = 2900; ms <= 3000; ms += 5) {
		struct world *w = with_silent_newcomer(true);
		world_run(w, ms * MS);
		struct ask *asks[20];
		uint32_t n = 0;
		w->wire.delay_ns = 20 * MS;
		do { // until it has heard of it
			asks[n++] = ask_of(w, 0, KIND_ECHO, 10);
			world_run(w, 3 * MS);
		} while (n < 20 && client_has_room(&w->clients[0]));
		world_run(w, 3 * SECOND);
		for (uint32_t i = 0; i < n; i++)
			assert_ok(w, asks[i]);
		assert_true(w->clients[0].over);
		world_free(w);
	}
}

// FL-98: as long as any other newcomer, and no longer than the drain lasts.
static void fl_98_who_never_says_anything_goes(void **state)
{
	for (int drain = 0; drain < 2; drain++) {
		struct world *w = with_silent_newcomer(drain);
		world_run(w, 9 * SECOND);
		assert_false(w->clients[0].over);
		world_run(w, 2 * SECOND);
		assert_true(w->clients[0].over);
		world_free(w);
	}
}

// OPS-74
static void ops_74_a_frontend_that_is_taken_up_again_takes_clients(void **state)
{
	struct world *w = three_clients(600 * SECOND);
	struct ask *busy = ask_of(w, 0, KIND_HANG, 0);
	world_run(w, 20 * MS);
	leave(w, 0, 20 * SECOND);
	world_run(w, 2 * SECOND + 20 * MS);
	return_to(w, 0);
	world_open_client(w, 1, 0);
	world_run(w, SECOND);
	struct ask *a = ask_of(w, 1, KIND_ECHO, 3000);
	world_run(w, SECOND);
	assert_ok(w, a);
	world_run(w, 60 * SECOND); // no deadline counts any more
	assert_false(busy->closed || w->clients[0].over);
	assert_true(w->clients[1].up && !w->clients[1].goaway);
	assert_int_equal(uses(w, 0), 3);
	leave(w, 0, 10 * SECOND); // and again
	world_run(w, 11 * SECOND);
	assert_true(busy->closed && w->clients[0].over && w->clients[1].over);
	assert_int_equal(uses(w, 0), 0);
	world_free(w);
}

// OPS-74: who was not told yet hears nothing.
static void ops_74_nobody_is_told_after_it(void **state)
{
	struct world *w = three_clients(600 * SECOND);
	leave(w, 0, 360 * SECOND);
	world_run(w, 5 * MS);
	assert_false(w->clients[0].goaway || w->clients[1].goaway);
	return_to(w, 0);
	struct ask *a = ask_of(w, 0, KIND_HANG, 0), *b = ask_of(w, 1, KIND_HANG, 0);
	world_run(w, 400 * SECOND);
	assert_false(w->clients[0].goaway || w->clients[1].goaway || a->closed || b->closed);
	world_free(w);
}

// OPS-74: whoever has been told of it before, too.
static void ops_74_a_second_drain_is_taken_back_like_the_first(void **state)
{
	struct world *w = three_clients(600 * SECOND);
	struct ask *busy = ask_of(w, 0, KIND_HANG, 0);
	world_run(w, 20 * MS);
	for (int i = 0; i < 2; i++) {
		leave(w, 0, 20 * SECOND);
		world_run(w, 4 * SECOND);
		assert_true(w->clients[0].goaway);
		return_to(w, 0);
		world_run(w, 20 * MS);
	}
	world_run(w, 600 * SECOND);
	assert_false(busy->closed || w->clients[0].over);
	world_free(w);
}

// OPS-74
static void ops_74_a_drain_that_begins_anew_has_its_own_deadline(void **state)
{
	struct world *w = three_clients(600 * SECOND);
	struct ask *busy = ask_of(w, 0, KIND_HANG, 0);
	world_run(w, 20 * MS);
	leave(w, 0, 20 * SECOND);
	world_run(w, 4 * SECOND);
	return_to(w, 0);
	leave(w, 0, 60 * SECOND);
	world_run(w, 50 * SECOND);
	assert_false(busy->closed);
	world_run(w, 11 * SECOND);
	assert_true(busy->closed && w->clients[0].over);
	world_free(w);
}

// OPS-74, FLT-11: a listener that is replaced meanwhile is not forgotten.
static void ops_74_who_stays_leaves_a_replaced_listener(void **state)
{
	struct world *w = three_clients(20 * SECOND);
	struct ask *busy = ask_of(w, 0, KIND_HANG, 0);
	world_run(w, 20 * MS);
	leave(w, 0, 36000 * SECOND);
	world_run(w, 5 * MS);
	set_generation(w, 0, 2);
	world_run(w, 5 * MS);
	assert_false(w->clients[0].goaway || w->clients[1].goaway);
	return_to(w, 0);
	world_run(w, 30 * SECOND);
	assert_true(busy->closed && w->clients[0].over && w->clients[1].over);
	world_free(w);
}

// OPS-74, TH-80: who became idle meanwhile is still idle.
static void ops_74_who_stays_is_idle_if_it_was(void **state)
{
	struct world *w = three_clients(600 * SECOND);
	leave(w, 0, 36000 * SECOND);
	world_run(w, 5 * MS);
	struct ask *a = ask_of(w, 0, KIND_ECHO, 100);
	finish(w);
	assert_ok(w, a);
	assert_false(w->clients[0].goaway);
	return_to(w, 0);
	world_run(w, 310 * SECOND);
	assert_true(w->clients[0].over);
	assert_int_equal(world_counter(w, "clients_idled"), 3);
	world_free(w);
}

// OPS-75
static void ops_75_the_end_of_everything_ends_a_drain(void **state)
{
	struct world *w = three_clients(600 * SECOND);
	struct ask *busy = ask_of(w, 0, KIND_HANG, 0);
	world_run(w, 20 * MS);
	leave(w, 0, 600 * SECOND);
	world_run(w, SECOND);
	control_command(&w->control, &(struct lb_command){.kind = LB_COMMAND_DRAIN,
					     .deadline_ns = w->wire.now_ns + 5 * SECOND});
	return_to(w, 0); // comes too late
	world_run(w, 20 * MS);
	assert_int_equal(uses(w, 0), 2); // clients; and the worker, if it listened
	world_run(w, 4 * SECOND);
	assert_false(busy->closed || w->control.drained);
	world_open_client(w, 1, 0);
	world_run(w, 2 * SECOND);
	assert_true(busy->closed && w->control.drained);
	assert_true(w->clients[1].over && !w->clients[1].up);
	world_free(w);
}

#define CASE(f) cmocka_unit_test(f)
RUN_SUITE("sim/proxy_drain", CASE(a_drain_says_goaway_twice_and_lets_streams_finish),
	CASE(a_drain_without_clients_is_over_at_once), CASE(the_drains_deadline_cuts_what_is_left),
	CASE(a_drain_does_not_wait_for_a_backend_that_reads_nothing),
	CASE(fl_176_what_a_drain_cuts_is_told), CASE(fl_175_who_stays_at_a_drains_end_is_not_reset),
	CASE(fl_175_who_takes_nothing_at_a_drains_end_is_reset),
	CASE(fl_176_a_drain_without_time_tells_as_well),
	CASE(a_client_that_leaves_hears_goaway_if_a_stream_is_open),
	CASE(flt_11_a_changed_listeners_clients_are_sent_away),
	CASE(flt_11_streams_finish_within_the_time), CASE(flt_11_nothing_else_sends_anyone_away),
	CASE(flt_11_clients_are_told_over_a_tenth_of_the_time),
	CASE(a_drain_meets_clients_that_were_to_leave), CASE(flt_11_no_time_at_all_cuts_at_once),
	CASE(fl_41_a_farewell_sends_all_away_while_newcomers_are_served),
	CASE(fl_41_a_farewell_is_for_those_too_who_leave_already),
	CASE(fl_98_a_newcomer_that_has_said_nothing_yet_is_served),
	CASE(fl_98_a_newcomer_that_begins_late_has_its_grace),
	CASE(fl_98_who_never_says_anything_goes),
	CASE(ops_73_a_left_frontends_clients_go_and_others_stay),
	CASE(ops_74_a_frontend_that_is_taken_up_again_takes_clients),
	CASE(ops_74_nobody_is_told_after_it),
	CASE(ops_74_a_second_drain_is_taken_back_like_the_first),
	CASE(ops_74_a_drain_that_begins_anew_has_its_own_deadline),
	CASE(ops_74_who_stays_leaves_a_replaced_listener), CASE(ops_74_who_stays_is_idle_if_it_was),
	CASE(ops_75_the_end_of_everything_ends_a_drain))
