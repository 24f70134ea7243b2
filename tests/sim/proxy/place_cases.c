// SPDX-License-Identifier: Apache-2.0
// Places of a breaker that requests hold while they wait for their own clients, one situation a
// test: who gives way to whom, who never does, and who is too slow (TH-129 to TH-132, TH-137,
// dataplane/proxy/place.h, reclaim.h).
#include "lb/pick/cause.h"
#include "lb/pick/link.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <string.h>

#define PLACES 256
#define EACH 100 // requests of a source that wants all
#define LAST 47 // of the clients: the honest ones count down from here
#define PATIENCE (2 * SECOND) // before a slow request gives way

static void open_one(struct world *w, uint32_t client, uint8_t source)
{
	w->clients[client].source = source;
	world_open_client(w, client, 0);
	while (!w->clients[client].up)
		world_run(w, MS);
}

static void set_mute(struct world *w, bool mute)
{
	for (uint32_t i = 0; i < w->conf.n_backends; i++)
		w->backends[i].mute = mute;
}

// n sources with a connection each, and three honest ones.
static struct world *world_with(uint32_t n, uint32_t client_window)
{
	struct world_conf conf = world_conf_default(12);
	conf.n_clients = LAST + 1;
	conf.client_window = client_window;
	struct world *w = world_new(&conf);
	w->control.leaves[0].max_requests = PLACES;
	control_set_endpoints(&w->control, 0, HOST_BACKENDS, 0xf);
	for (uint32_t i = 0; i < n; i++)
		open_one(w, i, (uint8_t)(i + 1));
	for (uint32_t i = LAST - 2; i <= LAST; i++)
		open_one(w, i, (uint8_t)(i + 1));
	world_run(w, 50 * MS);
	return w;
}

static struct world *world_of(uint32_t n)
{
	return world_with(n, 0);
}

static struct ask *begin(struct world *w, uint32_t client, enum kind kind, bool owes)
{
	struct ask *a = world_ask(w, "one", kind, kind == KIND_HANG ? 0 : 10);
	a->open_ended = owes;
	a->method = owes ? "POST" : NULL;
	client_ask(&w->clients[client], a);
	return a;
}

// Of which no answer comes.
static struct ask *hold(struct world *w, uint32_t client, enum kind kind, bool owes)
{
	set_mute(w, true);
	struct ask *a = begin(w, client, kind, owes);
	world_run(w, 5 * MS);
	set_mute(w, false);
	return a;
}

static void ask_for(struct world *w, uint32_t client, uint32_t n, enum kind kind, bool owes)
{
	set_mute(w, true);
	for (uint32_t i = 0; i < n && client_has_room(&w->clients[client]); i++)
		begin(w, client, kind, owes);
	world_run(w, 5 * MS);
	set_mute(w, false);
}

static void grab(struct world *w, uint32_t client, uint32_t n)
{
	ask_for(w, client, n, KIND_PLAIN, true);
}

static uint32_t in_flight(const struct world *w)
{
	return (uint32_t)w->link->clusters[0].active;
}

static void check_victim(struct world *w, uint32_t client)
{
	struct ask *a = begin(w, client, KIND_ECHO, false);
	finish_of(w, a);
	assert_ok(w, a);
}

static void send_bytes(struct world *w, struct ask *a, size_t n)
{
	static const uint8_t zeros[20000];
	if (a->stream)
		assert_true(h2_stream_send_data(a->stream, zeros, n, false));
	w->wire.hosts[HOST_CLIENTS].due = true;
}

static struct lb_member_counters counted(const struct world *w)
{
	struct lb_member_counters sum = {0};
	for (uint32_t i = 0; i < w->control.n_members; i++) {
		sum.failed += w->link->members[i].failed;
		sum.unjudged += w->link->members[i].unjudged;
	}
	return sum;
}

static void fill(struct world *w, uint32_t n_sources)
{
	for (uint32_t i = 0; i < n_sources; i++)
		grab(w, i, EACH);
	assert_int_equal(in_flight(w), PLACES);
}

// TH-129: what was seen of it long ago, when nobody was counted any more, does not count.
static void th_129_a_body_that_pauses_for_long_is_judged_anew(void **state)
{
	struct world *w = world_of(2);
	w->control.leaves[0].max_requests = 4;
	control_set_endpoints(&w->control, 0, HOST_BACKENDS, 0xf);
	world_run(w, 50 * MS);
	struct ask *first = hold(w, 0, KIND_PLAIN, true), *second = hold(w, 0, KIND_PLAIN, true);
	struct ask *counted = hold(w, 1, KIND_PLAIN, true);
	client_cancel(counted);
	world_run(w, 15 * MS);
	client_cancel(second);
	world_run(w, 120 * SECOND);
	send_bytes(w, first, 10000);
	world_run(w, 20 * MS);
	hold(w, 1, KIND_PLAIN, true);
	hold(w, 1, KIND_PLAIN, true);
	world_run(w, SECOND);
	assert_false(first->closed);
	assert_int_equal(world_counter(w, "bodies_too_slow"), 0);
	world_free(w);
}

// TH-130: from the first moment on, and for as long as it lasts.
static void th_130_bodies_of_forty_sources_that_never_end_shut_nobody_out(void **state)
{
	struct world *w = world_of(40);
	fill(w, 40);
	for (int i = 0; i < 300; i++) {
		check_victim(w, LAST - i % 3);
		world_run(w, 100 * MS);
	}
	world_run(w, 5 * SECOND);
	assert_true(in_flight(w) < PLACES / 2); // TH-129
	assert_int_equal(counted(w).failed, 0);
	abandon(w);
}

// TH-130: a byte of each now and then.
static void th_130_nor_do_bodies_that_trickle(void **state)
{
	struct world *w = world_of(40);
	uint32_t n_victims = 0;
	fill(w, 40);
	uint32_t n = w->n_asks;
	for (int second = 0; second < 28; second++) {
		for (uint32_t i = 0; i < n; i++)
			send_bytes(w, &w->asks[i], 1);
		for (int i = 0; i < 3; i++, n_victims++) {
			world_run(w, 300 * MS);
			check_victim(w, LAST - i);
		}
	}
	assert_true(world_counter(w, "bodies_gave_way") >= 1);
	assert_int_equal(world_ended(w, LB_CAUSE_OK), n_victims);
	assert_int_equal(world_ended(w, LB_CAUSE_OVERFLOW) + world_ended(w, LB_CAUSE_OVER_SHARE) +
				 world_ended(w, LB_CAUSE_CLIENT_SLOW) + in_flight(w),
		n);
	abandon(w);
}

// TH-130: as many as there are, one for each that asks; those of the source with most.
static void th_130_whoever_holds_most_gives_way(void **state)
{
	struct world *w = world_of(40);
	fill(w, 40);
	world_run(w, PATIENCE);
	uint32_t n = w->n_asks;
	uint64_t before = world_counter(w, "bodies_gave_way"), asked_ns = w->wire.now_ns;
	for (uint32_t i = 0; i < 3; i++) {
		hold(w, LAST - i, KIND_HANG, false);
		assert_int_equal(world_counter(w, "bodies_gave_way"), before + i + 1);
		assert_int_equal(in_flight(w), PLACES);
	}
	uint32_t n_ended = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct ask *a = &w->asks[i];
		if (a->http_status != 408 || a->closed_ns < asked_ns)
			continue;
		assert_string_equal(a->cause, "client_slow");
		assert_string_equal(
			a->message, "it waits for its client, and another one needs its place");
		assert_ptr_equal(a->client, &w->clients[0]);
		n_ended++;
	}
	assert_int_equal(n_ended, 3);
	assert_int_equal(world_ended(w, LB_CAUSE_CLIENT_SLOW), before + 3);
	assert_int_equal(counted(w).failed, 0);
	abandon(w);
}

// TH-130: a limit that has been lowered is above everything else.
static void th_130_nobody_comes_in_beyond_the_limit(void **state)
{
	struct world *w = world_of(40);
	fill(w, 40);
	world_run(w, PATIENCE);
	uint64_t before = world_counter(w, "bodies_gave_way");
	w->control.leaves[0].max_requests = PLACES - 1;
	control_update(&w->control, 0);
	world_run(w, 20 * MS);
	struct ask *a = hold(w, LAST, KIND_HANG, false);
	assert_reply(a, 14);
	assert_int_equal(world_counter(w, "bodies_gave_way"), before);
	abandon(w);
}

// TH-131: what one got back by asking again another one would have lost.
static void th_131_sources_of_one_size_take_nothing_from_each_other(void **state)
{
	struct world *w = world_of(40);
	fill(w, 40);
	for (int second = 0; second < 25; second++) {
		world_run(w, SECOND);
		for (uint32_t i = 0; i < 40; i++)
			grab(w, i, 2);
	}
	uint64_t before = world_counter(w, "bodies_gave_way");
	for (int round = 0; round < 10; round++) {
		for (uint32_t i = 0; i < 40; i++)
			grab(w, i, 2);
		check_victim(w, LAST);
		world_run(w, 20 * MS);
	}
	assert_in_range(world_counter(w, "bodies_gave_way"), before, before + 20);
	abandon(w);
}

// TH-132: places that were just taken lie side by side, and refusals bring them to the front.
static void th_132_who_has_nothing_is_looked_for_beyond_places_just_taken(void **state)
{
	for (uint32_t n_refused = 1; n_refused <= 10; n_refused++) {
		struct world *w = world_of(30);
		fill(w, 22);
		world_run(w, SECOND);
		for (uint32_t i = 22; i < 30; i++)
			grab(w, i, EACH);
		grab(w, 0, n_refused); // nobody has more than it
		check_victim(w, LAST);
		abandon(w);
	}
}

// Half of the places are held by requests that may never give way, the others by those that might.
static struct world *full_world(struct ask *honest[4])
{
	struct world *w = world_of(3);
	grab(w, 0, PLACES / 2);
	honest[0] = hold(w, LAST - 1, KIND_PLAIN, false); // waits for its backend
	honest[1] = hold(w, LAST - 1, KIND_HANG, false); // gRPC, silent
	honest[2] = hold(w, LAST - 1, KIND_HANG, true); // likewise, half of it said
	honest[3] = hold(w, LAST - 1, KIND_PLAIN, true); // uploads
	grab(w, 1, PLACES);
	grab(w, 2, PLACES);
	return w;
}

// TH-130, TH-129
static void th_130_honest_requests_at_a_full_breaker_live(void **state)
{
	struct ask *honest[4];
	struct world *w = full_world(honest);
	for (int i = 0; i < 900; i++) { // 10 kB a second
		send_bytes(w, honest[3], 1000);
		if (i % 10 == 0)
			hold(w, LAST, i % 20 ? KIND_PLAIN : KIND_HANG, false);
		world_run(w, 95 * MS);
		if (i % 10 == 5)
			check_victim(w, LAST - 2);
		for (int k = 0; k < 4; k++)
			assert_false(honest[k]->closed);
	}
	assert_true(world_counter(w, "bodies_gave_way") > 0);
	assert_true(world_counter(w, "bodies_too_slow") > 0);
	abandon(w);
}

// TH-130: what fills the breaker has been sent whole, or is gRPC.
static void th_130_nothing_gives_way_that_waits_for_its_backend(void **state)
{
	struct world *w = world_of(4);
	for (uint32_t i = 0; i < 4; i++)
		ask_for(w, i, EACH, i & 1 ? KIND_PLAIN : KIND_HANG, false);
	world_run(w, 40 * SECOND);
	ask_for(w, LAST, EACH, KIND_HANG, false);
	assert_true(world_ended(w, LB_CAUSE_OVER_SHARE) > 0);
	assert_int_equal(world_ended(w, LB_CAUSE_CLIENT_SLOW), 0);
	abandon(w);
}

// TH-130: its client has sent all that it may, and the backend reads none of it.
static void th_130_nor_a_body_that_its_backend_does_not_take(void **state)
{
	struct world *w = world_of(2);
	ask_for(w, 1, EACH, KIND_HANG, false);
	ask_for(w, LAST - 1, 50, KIND_HANG, false);
	uint32_t first = w->n_asks;
	grab(w, 0, 8); // their window for all of them is larger
	uint32_t end = w->n_asks;
	for (uint32_t i = first; i < end; i++)
		send_bytes(w, &w->asks[i], 2000);
	for (uint32_t i = 2; i < LAST - 2 && in_flight(w) < PLACES; i++) {
		open_one(w, i, (uint8_t)(i + 1));
		ask_for(w, i, EACH, KIND_HANG, false);
	}
	for (uint32_t i = 0; i < w->conf.n_backends; i++)
		w->backends[i].deaf = true;
	for (uint32_t i = first; i < end; i++)
		for (int k = 0; k < 10; k++)
			send_bytes(w, &w->asks[i], 20000);
	world_run(w, 2 * PATIENCE);
	uint64_t refused = world_ended(w, LB_CAUSE_OVERFLOW);
	ask_for(w, LAST, EACH, KIND_HANG, false);
	assert_int_equal(world_ended(w, LB_CAUSE_OVERFLOW), refused + EACH);
	assert_int_equal(world_ended(w, LB_CAUSE_CLIENT_SLOW), 0);
	abandon(w);
}

// TH-130: a source's only one has two seconds, others need not have sent anything for that.
static void th_130_the_only_request_of_a_source_has_its_time(void **state)
{
	struct world *w = world_of(3);
	for (uint32_t i = 0; i < 3; i++)
		ask_for(w, i, EACH, KIND_HANG, false);
	ask_for(w, LAST - 1, 1, KIND_PLAIN, true);
	for (uint32_t i = 4; i < LAST - 2 && in_flight(w) < PLACES; i++) {
		open_one(w, i, (uint8_t)(i + 1));
		ask_for(w, i, 2, KIND_HANG, false);
	}
	assert_int_equal(in_flight(w), PLACES);
	struct ask *early = hold(w, LAST, KIND_HANG, false);
	assert_true(early->closed);
	world_run(w, PATIENCE + SECOND);
	struct ask *late = hold(w, LAST, KIND_HANG, false);
	assert_false(late->closed);
	assert_int_equal(world_counter(w, "bodies_gave_way"), 1);
	abandon(w);
}

// TH-130: who sends a body only when a 100 has come has no byte of it there before.
static void th_130_who_is_far_away_has_two_round_trips_before_its_body_is_missed(void **state)
{
	struct world *w = world_of(40);
	const uint32_t far = 40;
	w->wire.delay_ns = 100 * MS;
	open_one(w, far, far + 1);
	set_mute(w, true);
	for (uint32_t n = 0; n < 4; n++)
		begin(w, far, KIND_PLAIN, true);
	for (uint32_t i = 0; i < 40 * EACH; i++)
		begin(w, i / EACH, KIND_HANG, false);
	world_run(w, 105 * MS);
	assert_int_equal(in_flight(w), PLACES);
	struct ask *early = begin(w, LAST, KIND_HANG, false);
	world_run(w, 350 * MS);
	assert_true(early->closed);
	assert_int_equal(world_counter(w, "bodies_gave_way"), 0);
	world_run(w, 100 * MS);
	struct ask *late = begin(w, LAST, KIND_HANG, false);
	world_run(w, 350 * MS);
	assert_false(late->closed);
	assert_int_equal(world_counter(w, "bodies_gave_way"), 1);
	set_mute(w, false);
	abandon(w);
}

// TH-129: below half of the places nobody is hurried.
static void th_129_a_slow_body_ends_while_half_of_the_places_are_taken(void **state)
{
	struct world *w = world_of(2);
	struct ask *slow = hold(w, 0, KIND_PLAIN, true), *fast = hold(w, 0, KIND_PLAIN, true);
	for (int second = 0; second < 100; second++) {
		send_bytes(w, slow, 90);
		send_bytes(w, fast, 200);
		world_run(w, SECOND);
		if (second == 50) {
			assert_false(slow->closed);
			ask_for(w, LAST, PLACES / 3, KIND_HANG, false);
			ask_for(w, LAST - 1, PLACES / 3, KIND_HANG, false);
		}
	}
	assert_int_equal(slow->http_status, 408);
	assert_string_equal(slow->cause, "client_slow");
	assert_in_range(took_ns(slow), 80 * SECOND, 85 * SECOND);
	assert_false(fast->closed);
	assert_int_equal(world_counter(w, "bodies_too_slow"), 1);
	assert_int_equal(world_counter(w, "bodies_gave_way"), 0);
	assert_int_equal(counted(w).failed, 0);
	assert_int_equal(counted(w).unjudged, 1);
	abandon(w);
}

// TH-129: while the backend doesn't read, nothing is its client's fault.
static void th_129_time_in_which_the_backend_reads_nothing_does_not_count(void **state)
{
	struct world *w = world_of(1);
	struct ask *a = hold(w, 0, KIND_PLAIN, true);
	ask_for(w, LAST, PLACES / 3, KIND_HANG, false);
	ask_for(w, LAST - 1, PLACES / 3, KIND_HANG, false);
	for (int round = 0; round < 2; round++) {
		world_run(w, 20 * SECOND);
		for (uint32_t i = 0; i < w->conf.n_backends; i++)
			w->backends[i].deaf = true;
		for (int k = 0; k < 10; k++)
			send_bytes(w, a, 20000);
		world_run(w, 40 * SECOND);
		assert_false(a->closed);
		for (uint32_t i = 0; i < w->conf.n_backends; i++)
			backend_listen(&w->backends[i]);
	}
	world_run(w, 35 * SECOND);
	assert_int_equal(a->http_status, 408);
	abandon(w);
}

// Large ones, of which none is taken.
static void leave_answers(struct world *w, uint32_t client, uint32_t n)
{
	w->clients[client].slow = true;
	for (uint32_t i = 0; i < n && client_has_room(&w->clients[client]); i++)
		client_ask(&w->clients[client], world_ask(w, "one", KIND_PLAIN, 200000));
	world_run(w, 20 * MS);
}

static void check_victims(struct world *w)
{
	for (int i = 0; i < 200; i++) {
		check_victim(w, LAST - i % 3);
		world_run(w, 50 * MS);
	}
	assert_true(world_counter(w, "answers_gave_way") > 0);
	assert_int_equal(world_counter(w, "bodies_gave_way"), 0);
	assert_int_equal(counted(w).failed, 0);
}

// TH-137
static void th_137_answers_that_forty_sources_leave_shut_nobody_out_for_long(void **state)
{
	struct world *w = world_of(40);
	for (uint32_t i = 0; i < 40; i++)
		leave_answers(w, i, EACH);
	world_run(w, 2 * SECOND);
	check_victims(w);
	abandon(w);
}

// TH-137: from the first moment on.
static void th_137_answers_of_which_a_byte_is_taken_shut_nobody_out(void **state)
{
	struct world *w = world_with(40, 1);
	for (uint32_t i = 0; i < 40; i++)
		leave_answers(w, i, EACH);
	assert_int_equal(in_flight(w), PLACES);
	check_victims(w);
	abandon(w);
}

// But to places that others give up.
static void let_nobody_in(struct world *w)
{
	w->control.leaves[0].max_requests = in_flight(w);
	control_set_endpoints(&w->control, 0, HOST_BACKENDS, 0xf);
	world_run(w, 10 * MS);
}

// Three answers of which a source takes no more than a window each; all other places are taken.
static struct world *world_with_leaver(uint32_t client_window, uint64_t delay_ns)
{
	struct world *w = world_with(41, client_window);
	for (uint32_t i = 0; i < 41; i++)
		ask_for(w, i, i < 20 ? 10 : 2, KIND_HANG, false);
	w->wire.delay_ns = delay_ns;
	open_one(w, 41, 42);
	leave_answers(w, 41, 3);
	world_run(w, 3 * delay_ns);
	let_nobody_in(w);
	return w;
}

// TH-137
static void th_137_who_takes_a_first_window_is_not_hurried(void **state)
{
	struct world *w = world_with_leaver(20000, MS);
	world_run(w, 300 * MS);
	assert_true(hold(w, LAST, KIND_HANG, false)->closed);
	assert_int_equal(world_counter(w, "answers_gave_way"), 0);
	world_run(w, PATIENCE);
	assert_false(hold(w, LAST, KIND_HANG, false)->closed);
	assert_int_equal(world_counter(w, "answers_gave_way"), 1);
	abandon(w);
}

// It hears so in that time, or gets the first place that an answer gives up.
static void check_one_asker(struct world *w, bool is_refused, uint64_t ns)
{
	struct ask *a = begin(w, LAST, KIND_HANG, false);
	world_run(w, ns);
	assert_int_equal(a->closed, is_refused);
	assert_int_equal(world_counter(w, "answers_gave_way"), !is_refused);
}

// TH-137: whose windows take so long.
static void th_137_who_is_far_away_has_two_round_trips_before_an_answer_is_missed(void **state)
{
	struct world *w = world_with_leaver(1, 100 * MS);
	check_one_asker(w, true, 350 * MS);
	world_run(w, 700 * MS); // more of the answers came meanwhile
	check_one_asker(w, false, 350 * MS);
	abandon(w);
}

// TH-137: on a slow line answers wait for each other.
static void th_137_a_slow_reader_of_many_answers_keeps_them(void **state)
{
	struct world *w = world_with(40, 1000);
	for (uint32_t i = 1; i < 40; i++)
		ask_for(w, i, 4, KIND_HANG, false);
	uint32_t first = w->n_asks, n = 50;
	leave_answers(w, LAST - 1, n);
	let_nobody_in(w);
	uint64_t began_ns = w->wire.now_ns;
	for (uint32_t i = 0; w->wire.now_ns - began_ns < 20 * SECOND; i++) { // 10 kB a second
		client_resume(&w->clients[LAST - 1], &w->asks[first + i % n]);
		world_run(w, 95 * MS);
		if (i % 10 == 5)
			assert_true(hold(w, LAST, KIND_HANG, false)->closed);
	}
	for (uint32_t i = first; i < first + n; i++)
		assert_false(w->asks[i].closed);
	assert_int_equal(world_counter(w, "answers_gave_way"), 0);
	abandon(w);
}

// TH-137: the network may be slow all of a sudden.
static void th_137_what_is_on_its_way_is_not_let_lie(void **state)
{
	struct world *w = world_with(41, 1000);
	for (uint32_t i = 0; i < 41; i++)
		ask_for(w, i, 4, KIND_HANG, false);
	w->wire.delay_ns = 300 * MS;
	leave_answers(w, LAST - 1, 3);
	world_run(w, 950 * MS); // they have left for the client
	let_nobody_in(w);
	check_one_asker(w, true, 620 * MS);
	check_one_asker(w, false, 620 * MS);
	abandon(w);
}

// TH-137: while there were places for all.
static void th_137_answers_that_lay_before_give_way_at_once(void **state)
{
	struct world *w = world_with(2, 1);
	leave_answers(w, 0, 80);
	world_run(w, 5 * SECOND);
	let_nobody_in(w);
	assert_false(hold(w, LAST, KIND_HANG, false)->closed);
	assert_int_equal(world_counter(w, "answers_gave_way"), 1);
	abandon(w);
}

// TH-137
static void th_137_the_only_answer_of_a_source_has_its_time(void **state)
{
	struct world *w = world_with(41, 1);
	for (uint32_t i = 0; i < 41; i++)
		ask_for(w, i, 4, KIND_HANG, false);
	leave_answers(w, LAST - 1, 1);
	let_nobody_in(w);
	world_run(w, 500 * MS);
	assert_true(hold(w, LAST, KIND_HANG, false)->closed);
	world_run(w, PATIENCE);
	assert_false(hold(w, LAST, KIND_HANG, false)->closed);
	assert_int_equal(world_counter(w, "answers_gave_way"), 1);
	abandon(w);
}

#define CASE(name) cmocka_unit_test(name)

RUN_SUITE("proxy/place", CASE(th_129_a_body_that_pauses_for_long_is_judged_anew),
	CASE(th_130_bodies_of_forty_sources_that_never_end_shut_nobody_out),
	CASE(th_130_nor_do_bodies_that_trickle), CASE(th_130_whoever_holds_most_gives_way),
	CASE(th_130_nobody_comes_in_beyond_the_limit),
	CASE(th_131_sources_of_one_size_take_nothing_from_each_other),
	CASE(th_132_who_has_nothing_is_looked_for_beyond_places_just_taken),
	CASE(th_130_honest_requests_at_a_full_breaker_live),
	CASE(th_130_nothing_gives_way_that_waits_for_its_backend),
	CASE(th_130_nor_a_body_that_its_backend_does_not_take),
	CASE(th_130_the_only_request_of_a_source_has_its_time),
	CASE(th_130_who_is_far_away_has_two_round_trips_before_its_body_is_missed),
	CASE(th_129_a_slow_body_ends_while_half_of_the_places_are_taken),
	CASE(th_129_time_in_which_the_backend_reads_nothing_does_not_count),
	CASE(th_137_answers_that_forty_sources_leave_shut_nobody_out_for_long),
	CASE(th_137_answers_of_which_a_byte_is_taken_shut_nobody_out),
	CASE(th_137_who_takes_a_first_window_is_not_hurried),
	CASE(th_137_who_is_far_away_has_two_round_trips_before_an_answer_is_missed),
	CASE(th_137_a_slow_reader_of_many_answers_keeps_them),
	CASE(th_137_what_is_on_its_way_is_not_let_lie),
	CASE(th_137_answers_that_lay_before_give_way_at_once),
	CASE(th_137_the_only_answer_of_a_source_has_its_time))
