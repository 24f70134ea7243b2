// SPDX-License-Identifier: Apache-2.0
// What one client may have of a worker's memory, one situation a test: an honest client beside each
// that hoards, and everything given back in the end (world_free() sees to it).
#include "lb/pick/cause.h"
#include "lb/pick/link.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <string.h>

#define CHUNK 2048
#define N_HOSTILE 6
#define VICTIM N_HOSTILE

static void open_more(struct world *w, uint32_t client)
{
	w->clients[client].source = (uint8_t)(client + 1);
	world_open_client(w, client, 0);
	while (!w->clients[client].up)
		world_run(w, MS);
}

static struct ask *ask_of(struct world *w, uint32_t client, enum kind kind, uint32_t size)
{
	struct ask *a = world_ask(w, "one", kind, size);
	client_ask(&w->clients[client], a);
	return a;
}

static void ask_often(struct world *w, uint32_t client, enum kind kind, uint32_t size, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		ask_of(w, client, kind, size);
}

// Hostile clients first, then the victim. bound: bytes for each, 0 = none.
static struct world *bounded_world_of(uint32_t n_hostile, uint32_t pool_kib, uint32_t bound)
{
	struct world_conf conf = world_conf_default(n_hostile);
	conf.n_clients = n_hostile + 1;
	conf.n_chunks = pool_kib * 1024 / CHUNK;
	conf.client_buffer = bound;
	struct world *w = ready_world(&conf);
	control_set_endpoints(&w->control, 0, HOST_BACKENDS, 0xf);
	for (uint32_t i = 1; i <= n_hostile; i++)
		open_more(w, i);
	world_run(w, 50 * MS);
	return w;
}

static struct world *world_of(uint32_t n_hostile, uint32_t pool_kib)
{
	return bounded_world_of(n_hostile, pool_kib, 0);
}

static void check_pages(struct world *w, uint32_t victim, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct ask *a = ask_of(w, victim, KIND_DOWNLOAD, 100000);
		finish_of(w, a);
		assert_ok(w, a);
	}
}

// TH-85
static void th_85_readers_of_nothing_leave_memory_to_others(void **state)
{
	struct world *w = world_of(N_HOSTILE, 12 << 10);
	for (uint32_t i = 0; i < N_HOSTILE; i++) {
		w->clients[i].slow = true;
		ask_often(w, i, KIND_DOWNLOAD, 10 << 20, 100);
	}
	check_pages(w, VICTIM, 50);
	world_run(w, SECOND);
	check_pages(w, VICTIM, 10);
	assert_true(world_counter(w, "streams_cut_for_memory") > 0);
	assert_int_equal(world_ended(w, LB_CAUSE_OVERLOAD), 0);
	assert_int_equal(
		world_ended(w, LB_CAUSE_OVER_SHARE), world_counter(w, "streams_cut_for_memory"));
	assert_in_range(w->max_chunks, w->conf.n_chunks / 2, w->conf.n_chunks * 7 / 8);
	assert_in_range(world_chunks_used(w), 1, w->conf.n_chunks / 2);
	world_free(w);
}

// TH-85: what lies in TCP can't be taken back from there.
static void th_85_connections_full_of_unread_bytes_are_cut_as_a_whole(void **state)
{
	struct world *w = world_of(N_HOSTILE, 1 << 10);
	for (uint32_t i = 0; i < N_HOSTILE; i++) {
		w->clients[i].deaf = true;
		ask_often(w, i, KIND_TRAILERS_ONLY, 12000, 20);
		world_run(w, 50 * MS);
	}
	world_run(w, SECOND);
	check_pages(w, VICTIM, 10);
	assert_in_range(world_counter(w, "clients_cut_for_memory"), 1, N_HOSTILE - 1);
	assert_in_range(world_chunks_used(w), 1, w->conf.n_chunks / 2);
	world_free(w);
}

// TH-85: none of them has much.
static void th_85_many_who_hold_little_are_cut_as_well(void **state)
{
	enum { N = 40 };
	struct world *w = world_of(N, 2 << 10);
	for (uint32_t i = 0; i < N; i++) {
		w->clients[i].deaf = true;
		ask_often(w, i, KIND_DOWNLOAD, 60000, 2); // one is in its own TCP
		world_run(w, 50 * MS);
	}
	world_run(w, SECOND);
	assert_in_range(world_counter(w, "clients_cut_for_memory"), 1, N - 1);
	assert_in_range(world_chunks_used(w), 1, w->conf.n_chunks / 2);
	world_free(w);
}

// An honest client, the first, beside n that say these bytes and no more.
static void say_half_of_something(uint32_t pool_kib, const void *p, size_t len)
{
	enum { N = 40 };
	struct world_conf conf = world_conf_default(N);
	conf.n_clients = N + 1;
	conf.n_chunks = pool_kib * 1024 / CHUNK;
	struct world *w = ready_world(&conf);
	for (uint32_t i = 1; i <= N; i++) {
		w->clients[i].silent = true;
		open_more(w, i);
		client_say(&w->clients[i], p, len);
		world_run(w, 50 * MS);
	}
	check_pages(w, 0, 10);
	world_run(w, SECOND);
	assert_in_range(world_counter(w, "clients_cut_for_memory"), 1, N - 1);
	assert_in_range(world_chunks_used(w), 1, w->conf.n_chunks / 2);
	assert_int_equal(world_counter(w, "clients_in_header"), 0); // it is not yet their time
	world_free(w);
}

#define FRAGMENT 15000

static size_t put_frame(uint8_t *out, uint8_t type, uint32_t id, const void *payload, size_t len)
{
	const uint8_t head[9] = {
		0, (uint8_t)(len >> 8), (uint8_t)len, type, 0, 0, 0, 0, (uint8_t)id};
	memcpy(out, head, sizeof(head));
	if (len)
		memcpy(out + sizeof(head), payload, len);
	return sizeof(head) + len;
}

// TH-141
static void th_141_header_blocks_that_are_never_whole_count_to_who_sent_them(void **state)
{
	enum { HEADERS = 1, SETTINGS = 4, CONTINUATION = 9 };
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	static uint8_t bytes[100 + 4 * FRAGMENT], fragment[FRAGMENT];
	size_t n = sizeof(preface) - 1;
	memcpy(bytes, preface, n);
	n += put_frame(bytes + n, SETTINGS, 0, NULL, 0);
	for (int i = 0; i < 4; i++)
		n += put_frame(bytes + n, i ? CONTINUATION : HEADERS, 1, fragment, FRAGMENT);
	say_half_of_something(2 << 10, bytes, n);
}

// TH-141
static void th_141_so_do_heads_of_http_1_1(void **state)
{
	static char bytes[15000] = "GET / HTTP/1.1\r\nx: ";
	size_t n = strlen(bytes);
	memset(bytes + n, 'a', sizeof(bytes) - n);
	say_half_of_something(1 << 10, bytes, sizeof(bytes));
}

// TH-85: a backend that reads no request is not the fault of others.
static void th_85_uploads_that_nobody_reads_count_to_who_sent_them(void **state)
{
	struct world *w = world_of(N_HOSTILE, 6 << 10);
	for (uint32_t i = 0; i < N_HOSTILE; i++)
		ask_often(w, i, KIND_HANG, 10 << 20, 40);
	world_run(w, SECOND);
	check_pages(w, VICTIM, 10);
	assert_true(world_counter(w, "streams_cut_for_memory") > 0);
	// Half, and what came since the last look.
	assert_in_range(world_chunks_used(w), 1, w->conf.n_chunks * 9 / 16);
	world_free(w);
}

// TH-85: it may have more than who takes nothing.
static void th_85_who_takes_what_it_asked_for_is_not_cut(void **state)
{
	struct world *w = world_of(2, 8 << 10);
	w->clients[0].slow = true;
	ask_often(w, 0, KIND_DOWNLOAD, 10 << 20, 38); // no half of the memory yet
	world_run(w, SECOND);
	assert_int_equal(world_counter(w, "streams_cut_for_memory"), 0);
	uint32_t first = w->n_asks;
	ask_often(w, 1, KIND_DOWNLOAD, 2 << 20, 40);
	for (uint32_t i = first; i < first + 40; i++) {
		finish_of(w, &w->asks[i]);
		assert_ok(w, &w->asks[i]);
	}
	assert_true(world_counter(w, "streams_cut_for_memory") > 0);
	world_free(w);
}

// TH-85
static void th_85_nobody_is_cut_while_there_is_memory(void **state)
{
	struct world *w = world_of(1, 32 << 10);
	w->clients[0].slow = true;
	ask_often(w, 0, KIND_DOWNLOAD, 10 << 20, 100);
	check_pages(w, 1, 10);
	world_run(w, 5 * SECOND);
	assert_int_equal(world_ended(w, LB_CAUSE_OVER_SHARE), 0);
	world_free(w);
}

#define BOUND (256u << 10)
#define WAITS (BOUND / 8 * 3) // of requests without bodies
#define CHUNKS_OF(bytes) ((bytes) / CHUNK)

// TH-86: all streams together, with no window of the client's and without room in TCP.
static void th_86_what_is_not_read_is_bounded_for_each_client(void **state)
{
	for (int deaf = 0; deaf < 2; deaf++) {
		struct world *w = bounded_world_of(N_HOSTILE, 32 << 10, BOUND);
		for (uint32_t i = 0; i < N_HOSTILE; i++) {
			w->clients[i].slow = true;
			w->clients[i].deaf = deaf;
			ask_often(w, i, KIND_DOWNLOAD, 10 << 20, 100);
		}
		check_pages(w, VICTIM, 50);
		world_run(w, 2 * SECOND);
		// First windows of 100 streams, and what a client has said that it takes.
		assert_in_range(w->max_chunks, 1, N_HOSTILE * CHUNKS_OF(BOUND + 500000));
		assert_in_range(world_chunks_used(w), 1, N_HOSTILE * CHUNKS_OF(BOUND) * 7 / 4);
		check_pages(w, VICTIM, 10);
		assert_int_equal(world_ended(w, LB_CAUSE_OVER_SHARE),
			world_counter(w, "streams_cut_for_buffer") +
				world_counter(w, "answers_over_buffer"));
		assert_true(world_counter(w, "streams_cut_for_buffer") >= N_HOSTILE);
		assert_int_equal(world_counter(w, "clients_cut_for_buffer"), 0);
		world_free(w);
	}
}

// TH-86: fields know no window.
static void th_86_fields_that_are_not_read_are_bounded(void **state)
{
	struct world *w = bounded_world_of(1, 32 << 10, 512 << 10);
	w->clients[0].deaf = true;
	ask_often(w, 0, KIND_TRAILERS_ONLY, 12000, 100);
	check_pages(w, 1, 10);
	world_run(w, 2 * SECOND);
	assert_in_range(world_counter(w, "answers_over_buffer"), 5, 100);
	assert_in_range(w->max_chunks, CHUNKS_OF(512 << 10) / 2, CHUNKS_OF(512 << 10));
	check_pages(w, 1, 10);
	world_free(w);
}

static void read_by_rations(struct world *w, uint32_t bytes, int n)
{
	for (int i = 0; i < n; i++) {
		w->clients[0].ration += bytes;
		w->clients[0].host->due = true;
		tcp_conn_resume(w->clients[0].tcp);
		world_run(w, 100 * MS);
	}
}

// TH-86: of as many streams as a browser opens, at forty kilobytes a second.
static void th_86_a_slow_reader_of_many_pages_is_not_cut(void **state)
{
	struct world *w = bounded_world_of(1, 32 << 10, 1 << 20);
	w->clients[0].deaf = true;
	ask_often(w, 0, KIND_DOWNLOAD, 20000, 95);
	read_by_rations(w, 4000, 600);
	for (uint32_t i = 0; i < 95; i++)
		assert_ok(w, &w->asks[i]);
	assert_int_equal(world_counter(w, "streams_cut_for_buffer"), 0);
	world_free(w);
}

// TH-86: what it has more than the bound to take goes on as fast as it takes it.
static void th_86_a_reader_at_full_speed_is_not_cut(void **state)
{
	struct world *w = bounded_world_of(1, 32 << 10, BOUND);
	w->wire.delay_ns = 5 * MS;
	ask_often(w, 0, KIND_DOWNLOAD, 200000, 95);
	for (uint32_t i = 0; i < 95; i++) {
		finish_of(w, &w->asks[i]);
		assert_ok(w, &w->asks[i]);
	}
	assert_int_equal(world_counter(w, "streams_cut_for_buffer"), 0);
	world_free(w);
}

// TH-139: of a client that takes nothing, to a backend that takes nothing.
static void th_139_answers_and_bodies_that_nobody_takes_are_bounded_in_sum(void **state)
{
	struct world *w = bounded_world_of(1, 32 << 10, 1 << 20);
	uint32_t before = world_chunks_used(w);
	ask_often(w, 0, KIND_HANG, 10 << 20, 20);
	world_run(w, 50 * MS);
	w->clients[0].deaf = true;
	ask_often(w, 0, KIND_DOWNLOAD, 10 << 20, 75);
	world_run(w, 500 * MS);
	assert_int_equal(world_counter(w, "streams_cut_for_buffer"), 0); // it has a second
	world_run(w, 2 * SECOND);
	// With 95 requests of 1360 bytes.
	assert_in_range(world_chunks_used(w) - before, CHUNKS_OF(1 << 20) / 2,
		CHUNKS_OF((1 << 20) - 95 * 1360));
	assert_in_range(world_counter(w, "streams_cut_for_buffer"), 1, 75); // the newest
	check_pages(w, 1, 10);
	world_free(w);
}

// TH-139: copies go before any stream does.
static void th_139_copies_of_requests_are_given_up_first(void **state)
{
	struct world *w = bounded_world_of(1, 32 << 10, 1 << 20);
	ask_often(w, 0, KIND_HANG, 8000, 60); // to be sent again
	world_run(w, 50 * MS);
	uint32_t copied = world_chunks_used(w);
	w->clients[0].deaf = true;
	ask_often(w, 0, KIND_DOWNLOAD, 10 << 20, 40);
	world_run(w, 3 * SECOND);
	assert_in_range(copied, CHUNKS_OF(60 * 8000), CHUNKS_OF(1 << 20));
	assert_int_equal(world_counter(w, "streams_cut_for_buffer"), 0);
	world_free(w);
}

// TH-139: at 600 kilobytes a second, with all bodies that it may have.
static void th_139_who_reads_its_answers_is_not_cut_for_bodies_that_a_backend_leaves(void **state)
{
	struct world *w = bounded_world_of(1, 32 << 10, 1 << 20);
	ask_often(w, 0, KIND_HANG, 10 << 20, 20);
	world_run(w, 50 * MS);
	w->clients[0].deaf = true;
	ask_often(w, 0, KIND_DOWNLOAD, 100000, 75);
	read_by_rations(w, 60000, 200);
	for (uint32_t i = 20; i < 95; i++)
		assert_ok(w, &w->asks[i]);
	assert_int_equal(world_counter(w, "streams_cut_for_buffer"), 0);
	world_free(w);
}

// TH-139: of as many streams as a browser opens, at forty kilobytes a second, with a body that its
// backend leaves.
static void th_139_a_slow_reader_that_sends_is_not_cut(void **state)
{
	struct world *w = bounded_world_of(1, 32 << 10, 1 << 20);
	ask_often(w, 0, KIND_HANG, 10 << 20, 1);
	world_run(w, 50 * MS);
	w->clients[0].deaf = true;
	ask_often(w, 0, KIND_DOWNLOAD, 20000, 94);
	read_by_rations(w, 4000, 600);
	for (uint32_t i = 1; i < 95; i++)
		assert_ok(w, &w->asks[i]);
	assert_int_equal(world_counter(w, "streams_cut_for_buffer"), 0);
	world_free(w);
}

// TH-88
static void th_88_uploads_that_no_backend_reads_are_bounded_for_each_client(void **state)
{
	struct world *w = bounded_world_of(1, 32 << 10, BOUND);
	uint32_t before = world_chunks_used(w);
	ask_often(w, 0, KIND_HANG, 10 << 20, 40);
	world_run(w, 5 * SECOND);
	// Of each stream one in its queue and one for its head.
	assert_in_range(world_chunks_used(w) - before, CHUNKS_OF(BOUND) / 4,
		CHUNKS_OF(BOUND) * 3 / 8 + 2 * 40);
	check_pages(w, 1, 10);
	world_free(w);
}

// TH-89: most of these are of a cluster without backends.
static void th_89_requests_that_wait_are_bounded_for_each_client(void **state)
{
	static char large[8000];
	memset(large, 'x', sizeof(large));
	struct world *w = bounded_world_of(1, 32 << 10, BOUND);
	for (uint32_t i = 0; i < 60; i++) {
		struct ask *a = world_ask(w, "two", KIND_ECHO, 10);
		a->extra[0] =
			(struct field){.name = STR("x-large"), .value = {large, sizeof(large)}};
		client_ask(&w->clients[0], a);
	}
	world_run(w, 5 * SECOND);
	uint64_t n = world_counter(w, "requests_over_buffer");
	assert_in_range(world_counter(w, "requests_waiting"), WAITS / 8200, WAITS / 8000 + 1);
	assert_in_range(n, 5, 60 - WAITS / 8200); // the others went to the other cluster
	assert_int_equal(world_ended(w, LB_CAUSE_OVER_SHARE), n);
	check_pages(w, 1, 10);
	for (uint32_t i = 0; i < 60; i++)
		client_cancel(&w->asks[i]);
	world_run(w, SECOND);
	struct ask *again = ask_of(w, 0, KIND_ECHO, 1000);
	finish_of(w, again);
	assert_ok(w, again);
	world_free(w);
}

// TH-89: requests on their way are not kept for another attempt beyond half of the bound.
static void th_89_copies_of_requests_are_bounded_for_each_client(void **state)
{
	static char large[8000];
	memset(large, 'x', sizeof(large));
	struct world *w = bounded_world_of(1, 32 << 10, BOUND);
	uint32_t before = world_chunks_used(w);
	for (uint32_t i = 0; i < 60; i++) {
		struct ask *a = world_ask(w, "one", KIND_HANG, 0);
		a->extra[0] =
			(struct field){.name = STR("x-large"), .value = {large, sizeof(large)}};
		client_ask(&w->clients[0], a);
	}
	world_run(w, SECOND);
	assert_in_range(world_chunks_used(w) - before, CHUNKS_OF(BOUND) / 2,
		CHUNKS_OF(BOUND) * 3 / 4); // of all it would be 300
	world_free(w);
}

// TH-89: small requests are stored in themselves, not in a chunk each.
static void th_89_small_requests_that_are_kept_take_no_chunks(void **state)
{
	struct world *w = bounded_world_of(1, 32 << 10, 0);
	uint32_t before = world_chunks_used(w);
	ask_often(w, 0, KIND_HANG, 30, 100);
	world_run(w, SECOND);
	assert_in_range(world_chunks_used(w), before, before + 10);
	check_pages(w, 1, 10);
	world_free(w);
}

#define CASE(name) cmocka_unit_test(name)

RUN_SUITE("proxy/memory", CASE(th_85_readers_of_nothing_leave_memory_to_others),
	CASE(th_85_connections_full_of_unread_bytes_are_cut_as_a_whole),
	CASE(th_85_many_who_hold_little_are_cut_as_well),
	CASE(th_141_header_blocks_that_are_never_whole_count_to_who_sent_them),
	CASE(th_141_so_do_heads_of_http_1_1),
	CASE(th_85_uploads_that_nobody_reads_count_to_who_sent_them),
	CASE(th_85_who_takes_what_it_asked_for_is_not_cut),
	CASE(th_85_nobody_is_cut_while_there_is_memory),
	CASE(th_86_what_is_not_read_is_bounded_for_each_client),
	CASE(th_86_fields_that_are_not_read_are_bounded),
	CASE(th_86_a_slow_reader_of_many_pages_is_not_cut),
	CASE(th_86_a_reader_at_full_speed_is_not_cut),
	CASE(th_139_answers_and_bodies_that_nobody_takes_are_bounded_in_sum),
	CASE(th_139_copies_of_requests_are_given_up_first),
	CASE(th_139_who_reads_its_answers_is_not_cut_for_bodies_that_a_backend_leaves),
	CASE(th_139_a_slow_reader_that_sends_is_not_cut),
	CASE(th_88_uploads_that_no_backend_reads_are_bounded_for_each_client),
	CASE(th_89_requests_that_wait_are_bounded_for_each_client),
	CASE(th_89_copies_of_requests_are_bounded_for_each_client),
	CASE(th_89_small_requests_that_are_kept_take_no_chunks))
