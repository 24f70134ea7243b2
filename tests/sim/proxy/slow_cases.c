// SPDX-License-Identifier: Apache-2.0
// Clients and backends that read little or give no window, one situation a test: what they cost,
// whom they stop, and when they are let go. Not who says nothing at all: proxy_cases.c.
#include "lb/pick/cause.h"
#include "lb/pick/link.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <string.h>

// TH-15, HX-24
static void a_slow_reader_costs_one_window_and_stops_nobody(void **state)
{
	struct world *w = ready_world(NULL);
	w->clients[0].slow = true;
	struct ask *slow = ask(w, KIND_DOWNLOAD, 10 << 20);
	world_run(w, 5 * SECOND);
	assert_int_equal(slow->received, 65535); // the window that it gave
	// What was sent has opened half a window or all of it again: that lies here, in chunks of
	// 2 KiB.
	assert_in_range(world_chunks_used(w), 15, 36);
	w->clients[0].slow = false;
	for (int i = 0; i < 10; i++)
		ask(w, KIND_ECHO, 5000);
	world_run(w, SECOND);
	for (int i = 1; i <= 10; i++)
		assert_ok(w, &w->asks[i]);
	client_resume(&w->clients[0], slow);
	finish(w);
	assert_ok(w, slow);
	world_free(w);
}

// TH-30
static void a_backend_that_reads_nothing_costs_one_window(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = ask(w, KIND_HANG, 10 << 20);
	world_run(w, 5 * SECOND);
	assert_in_range(world_chunks_used(w), 15, 36);
	struct ask *other = ask(w, KIND_ECHO, 5000);
	world_run(w, SECOND);
	assert_ok(w, other);
	client_cancel(a);
	finish(w);
	world_run(w, SECOND);
	assert_int_equal(world_chunks_used(w), 0);
	assert_int_equal(w->link->endpoints[0].active + w->link->endpoints[1].active, 0);
	world_free(w);
}

// A queued upload holds its window and no more.
static void a_waiting_upload_holds_one_window(void **state)
{
	struct world *w = a_world();
	open_client(w);
	ask(w, KIND_ECHO, 1 << 20);
	world_run(w, SECOND);
	assert_in_range(world_chunks_used(w), 15, 36);
	use_backends(w, 1);
	finish(w);
	assert_ok(w, &w->asks[0]);
	world_free(w);
}

// Its copy in the proxy is of no use once the backend has answered.
static void an_answered_request_costs_no_copy(void **state)
{
	struct world_conf conf = world_conf_default(1);
	conf.client_buffer = 0;
	struct world *w = ready_world(&conf);
	w->clients[0].slow = true;
	for (int i = 0; i < 20; i++)
		ask(w, KIND_DOWNLOAD, 1 << 20);
	world_run(w, SECOND);
	assert_in_range(world_chunks_used(w), 20 * 29, 20 * 33 + 12); // a window each
	client_abort(&w->clients[0]);
	world_run(w, SECOND);
	assert_int_equal(world_chunks_used(w), 0);
	world_free(w);
}

// All of the answers lies here before the client reads any of it, and HTTP/2's windows have room
// for more: but for TCP's acknowledgements nothing would be heard of this connection again.
static void answers_larger_than_tcps_room_go_on_as_tcp_does(void **state)
{
	struct world_conf conf = world_conf_default(11);
	conf.n_clients = 1;
	conf.n_backends = 2;
	conf.stream_window = 1 << 20;
	conf.client_buffer = 0;
	struct world *w = ready_world(&conf);
	w->clients[0].deaf = true;
	struct ask *asks[8];
	for (int i = 0; i < 8; i++)
		asks[i] = ask(w, KIND_DOWNLOAD, 50000);
	world_run(w, 5 * SECOND);
	assert_true(world_chunks_used(w) > 300000 / 2048); // some lie in the client
	assert_int_equal(w->link->endpoints[0].active + w->link->endpoints[1].active, 0);
	client_listen(&w->clients[0]);
	finish(w);
	for (int i = 0; i < 8; i++)
		assert_ok(w, asks[i]);
	world_free(w);
}

// A client that asks and asks and reads no answer is not read any more.
static void a_client_that_does_not_read_is_not_read(void **state)
{
	struct world *w = ready_world(NULL);
	w->clients[0].deaf = true;
	for (int i = 0; i < 40; i++)
		ask(w, KIND_TRAILERS_ONLY, 12000);
	world_run(w, SECOND);
	assert_int_equal(w->n_served, 40);
	for (int i = 0; i < 40; i++)
		ask(w, KIND_TRAILERS_ONLY, 12000);
	world_run(w, SECOND);
	assert_int_equal(w->n_served, 40);
	client_listen(&w->clients[0]);
	finish(w);
	for (int i = 0; i < 80; i++)
		assert_reply(&w->asks[i], 5);
	world_free(w);
}

// TH-15, TH-40: A closed TCP window keeps TCP alive, but not the client.
static void a_client_that_never_reads_is_let_go(void **state)
{
	struct world *w = ready_world(NULL);
	ask(w, KIND_ECHO, 10);
	finish(w);
	world_run(w, 40 * SECOND); // nothing to read is no offence
	assert_false(w->clients[0].over);
	w->clients[0].deaf = true;
	for (int i = 0; i < 40; i++)
		ask(w, KIND_TRAILERS_ONLY, 12000);
	world_run(w, 25 * SECOND);
	client_listen(&w->clients[0]); // and now and then some is enough
	world_run(w, 5 * MS);
	w->clients[0].deaf = true;
	for (int i = 0; i < 30; i++)
		ask(w, KIND_TRAILERS_ONLY, 12000);
	world_run(w, 25 * SECOND);
	assert_false(w->clients[0].over);
	world_run(w, 50 * SECOND);
	assert_true(w->clients[0].over);
	assert_int_equal(world_counter(w, "clients_stalled"), 1);
	assert_int_equal(world_counter(w, "clients"), 0);
	world_free(w);
}

// Its answers lie in the same few chunks again and again, and one is always on its way.
static void a_busy_client_is_never_taken_for_stuck(void **state)
{
	struct world *w = ready_world(NULL);
	w->wire.delay_ns = 25 * MS;
	w->wire.jitter_ns = 3 * MS;
	uint64_t until = w->wire.now_ns + 150 * SECOND;
	while (w->wire.now_ns < until) {
		struct ask *a = ask(w, KIND_ECHO, 10);
		finish(w);
		assert_ok(w, a);
	}
	assert_int_equal(world_counter(w, "clients_stalled"), 0);
	assert_false(w->clients[0].over);
	world_free(w);
}

static struct world *two_clients_and_one_backend(void)
{
	struct world_conf conf = world_conf_default(11);
	conf.n_clients = 2;
	conf.n_backends = 1;
	conf.max_conns_per_endpoint = 1;
	conf.client_buffer = 0;
	struct world *w = world_new(&conf);
	use_backends(w, 1);
	open_client(w);
	world_open_client(w, 1, 0);
	world_run(w, 20 * MS);
	return w;
}

// TH-15, HX-24: what it leaves lying is more than the backend connection's window, and still its
// own trouble alone. It ends after a while (CVE-2019-9517).
static void a_client_that_gives_no_window_stops_nobody(void **state)
{
	struct world *w = two_clients_and_one_backend();
	w->clients[0].slow = true;
	struct ask *slow[40];
	for (int i = 0; i < 40; i++)
		slow[i] = ask(w, KIND_DOWNLOAD, 10 << 20);
	world_run(w, 2 * SECOND);
	assert_true(world_chunks_used(w) > (1 << 20) / 2048);
	for (int i = 0; i < 20; i++) {
		struct ask *other = world_ask(w, "one", KIND_DOWNLOAD, 200000);
		client_ask(&w->clients[1], other);
		world_run(w, SECOND);
		assert_ok(w, other);
	}
	assert_int_equal(world_counter(w, "streams_stalled"), 0);
	world_run(w, 15 * SECOND);
	for (int i = 0; i < 40; i++) {
		assert_true(slow[i]->closed && slow[i]->by_peer && !slow[i]->got_end);
		assert_int_equal(slow[i]->code, H2_CANCEL);
	}
	assert_int_equal(world_ended(w, LB_CAUSE_TIMEOUT), 40);
	assert_int_equal(world_counter(w, "streams_stalled"), 40);
	assert_int_equal(w->link->endpoints[0].active, 0);
	assert_int_equal(world_chunks_used(w), 0);
	assert_false(w->clients[0].over);
	world_free(w);
}

// What is progress is measured in bytes and time, not in how often.
static void a_client_that_gives_window_now_and_then_is_served(void **state)
{
	struct world *w = ready_world(NULL);
	w->clients[0].slow = true;
	struct ask *a = ask(w, KIND_DOWNLOAD, 350000);
	for (int i = 0; i < 5; i++) {
		world_run(w, 25 * SECOND);
		assert_false(a->closed);
		client_resume(&w->clients[0], a);
	}
	finish(w);
	assert_ok(w, a);
	assert_int_equal(world_counter(w, "streams_stalled"), 0);
	world_free(w);
}

// TH-15: 25 bytes a second of a stream's window. Another one is served at a thousand.
static void a_stream_whose_window_trickles_ends(void **state)
{
	struct world_conf conf = world_conf_default(11);
	conf.n_clients = 1;
	conf.n_backends = 2;
	conf.client_window = 1000; // given back by halves
	struct world *w = ready_world(&conf);
	w->clients[0].slow = true;
	struct ask *trickle = ask(w, KIND_DOWNLOAD, 10 << 20);
	struct ask *other = ask(w, KIND_DOWNLOAD, 200000);
	for (int i = 0; i < 120; i++) {
		world_run(w, SECOND / 2);
		client_resume(&w->clients[0], other);
		if (i % 40 == 0)
			client_resume(&w->clients[0], trickle);
	}
	assert_true(trickle->closed && trickle->by_peer);
	assert_int_equal(trickle->code, H2_CANCEL);
	assert_false(other->closed);
	for (int i = 0; i < 120; i++) {
		world_run(w, SECOND / 2);
		client_resume(&w->clients[0], other);
	}
	assert_ok(w, other);
	assert_int_equal(world_counter(w, "streams_stalled"), 1);
	assert_int_equal(world_chunks_used(w), 0);
	world_free(w);
}

// Reads so many bytes more from TCP.
static void read_some(struct world *w, size_t n)
{
	w->clients[0].ration = n;
	client_listen(&w->clients[0]);
	w->clients[0].deaf = true;
}

// TH-15, TH-40: a full segment in 20 seconds is 73 bytes a second.
static void a_client_that_reads_a_little_now_and_then_is_let_go(void **state)
{
	struct world *w = ready_world(NULL);
	w->clients[0].deaf = true;
	for (int i = 0; i < 40; i++)
		ask(w, KIND_TRAILERS_ONLY, 12000);
	for (int i = 0; i < 4; i++) {
		world_run(w, 20 * SECOND);
		if (!w->clients[0].over)
			read_some(w, 1460);
	}
	assert_true(w->clients[0].over);
	assert_int_equal(world_counter(w, "clients_stalled"), 1);
	assert_int_equal(world_chunks_used(w), 0);
	world_free(w);
}

// The same for who is let go already and leaves our last bytes to be taken.
static void a_client_that_takes_a_little_of_the_last_bytes_is_let_go(void **state)
{
	struct world *w = ready_world(NULL);
	w->clients[0].deaf = true;
	for (int i = 0; i < 40; i++)
		ask(w, KIND_TRAILERS_ONLY, 12000);
	world_run(w, SECOND);
	tcp_conn_shutdown(w->clients[0].tcp);
	for (int i = 0; i < 10; i++) {
		w->clients[0].host->due = true;
		world_run(w, 10 * SECOND);
		if (!w->clients[0].over)
			read_some(w, 700);
	}
	assert_true(w->clients[0].over);
	assert_int_equal(world_chunks_used(w), 0);
	world_free(w);
}

// A megabyte at ten kilobytes a second, with many streams in line and pauses of 25 seconds, for
// which the application or the whole host sleeps.
static void slow_readers_are_never_cut(void **state)
{
	for (unsigned variant = 0; variant < 6; variant++) {
		bool unplug = variant & 1, streams = variant & 2, window = variant & 4;
		struct world_conf conf = world_conf_default(variant);
		conf.n_clients = 1;
		conf.n_backends = 2;
		conf.stream_window = window ? 1 << 20 : 65535;
		struct world *w = ready_world(&conf);
		w->wire.delay_ns = (10 + 20 * variant) * MS;
		w->clients[0].deaf = true;
		for (int i = 0; i < (streams ? 10 : 1); i++)
			ask(w, KIND_DOWNLOAD, streams ? 100000 : 1000000);
		for (unsigned i = 0; !world_all_over(w) && i < 4000; i++) {
			read_some(w, 1000);
			world_run(w, 100 * MS);
			if (i % 97 == 10 * variant) {
				w->clients[0].host->unplugged = unplug;
				world_run(w, 25 * SECOND);
				w->clients[0].host->unplugged = false;
			}
		}
		for (uint32_t i = 0; i < w->n_asks; i++)
			assert_ok(w, &w->asks[i]);
		assert_int_equal(world_counter(w, "clients_stalled"), 0);
		assert_int_equal(world_counter(w, "streams_stalled"), 0);
		world_free(w);
	}
}

// For which nothing waits.
static void silent_streams_are_never_cut(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *hangs[20];
	for (int i = 0; i < 20; i++)
		hangs[i] = ask(w, i % 2 ? KIND_HANG : KIND_STALL, 150);
	world_run(w, 600 * SECOND);
	for (int i = 0; i < 20; i++) {
		assert_false(hangs[i]->closed);
		client_cancel(hangs[i]);
	}
	finish(w);
	assert_int_equal(world_counter(w, "clients_stalled"), 0);
	assert_int_equal(world_counter(w, "streams_stalled"), 0);
	world_free(w);
}

// HX-15, HX-25: they take nothing from an answer that is whole, but still on its way.
static void trailers_that_are_too_large_cut_no_whole_answer(void **state)
{
	static char huge[20000];
	memset(huge, 'h', sizeof(huge));
	const struct field f = {.name = STR("x-huge"), .value = {huge, sizeof(huge)}};
	const struct h2_message trailers = {.kind = H2_TRAILERS, .fields = &f, .n_fields = 1};
	for (int whole = 0; whole < 2; whole++) {
		struct world *w = ready_world(NULL);
		w->clients[0].slow = true;
		struct ask *a = world_ask(w, "one", whole ? KIND_PLAIN : KIND_STALL_PLAIN, 80000);
		a->open_ended = true;
		client_ask(&w->clients[0], a);
		world_run(w, SECOND);
		assert_false(a->got_end || a->closed);
		assert_true(h2_stream_send_message(a->stream, &trailers));
		w->clients[0].host->due = true;
		world_run(w, SECOND);
		w->clients[0].slow = false;
		if (a->stream)
			client_resume(&w->clients[0], a);
		finish(w);
		assert_int_equal(a->code, whole ? H2_NO_ERROR : H2_PROTOCOL_ERROR);
		assert_int_equal(a->got_end, whole);
		if (whole)
			assert_int_equal(a->received, 80000);
		world_free(w);
	}
}

#define CASE(f) cmocka_unit_test(f)
RUN_SUITE("sim/proxy_slow", CASE(a_slow_reader_costs_one_window_and_stops_nobody),
	CASE(a_backend_that_reads_nothing_costs_one_window),
	CASE(a_waiting_upload_holds_one_window), CASE(an_answered_request_costs_no_copy),
	CASE(answers_larger_than_tcps_room_go_on_as_tcp_does),
	CASE(a_client_that_does_not_read_is_not_read), CASE(a_client_that_never_reads_is_let_go),
	CASE(a_busy_client_is_never_taken_for_stuck),
	CASE(a_client_that_gives_no_window_stops_nobody),
	CASE(a_client_that_gives_window_now_and_then_is_served),
	CASE(a_stream_whose_window_trickles_ends),
	CASE(a_client_that_reads_a_little_now_and_then_is_let_go),
	CASE(a_client_that_takes_a_little_of_the_last_bytes_is_let_go),
	CASE(slow_readers_are_never_cut), CASE(silent_streams_are_never_cut),
	CASE(trailers_that_are_too_large_cut_no_whole_answer))
