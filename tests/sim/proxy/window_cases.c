// SPDX-License-Identifier: Apache-2.0
// Windows that follow what a round trip brings: how fast large bodies go between a client and
// backends that are 40 ms away each, and what is kept for a client that stops taking them.
#include "dataplane/proxy/client.h"
#include "lb/pick/cause.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#define BODY (8u << 20)
#define MIB_OF_CHUNKS 512
#define ROUND_TRIP (40 * MS) // to a client, and to a backend

static struct world_conf far(uint32_t pool_mib)
{
	struct world_conf conf = world_conf_default(3);
	conf.client_window = conf.backend_window = 8 << 20;
	conf.n_clients = 1;
	conf.n_chunks = pool_mib * MIB_OF_CHUNKS;
	return conf;
}

static struct world *far_world_of(const struct world_conf *conf, uint32_t backends)
{
	struct world *w = world_new(conf);
	w->wire.delay_ns = ROUND_TRIP / 2;
	w->wire.jitter_ns = 0;
	use_backends(w, backends);
	open_client(w);
	for (uint32_t i = 1; i < conf->n_clients; i++)
		world_open_client(w, i, 0);
	world_run(w, SECOND);
	return w;
}

static struct world *far_world(uint32_t pool_mib)
{
	struct world_conf conf = far(pool_mib);
	return far_world_of(&conf, 0x3);
}

// HX-35: with the first windows, 64 KiB a round trip, it would be 5 s.
static void hx_35_large_answers_go_beyond_first_windows(void **state)
{
	struct world *w = far_world(128);
	struct ask *a = ask(w, KIND_DOWNLOAD, BODY);
	finish_of(w, a);
	assert_ok(w, a);
	assert_in_range(took_ns(a), 100 * MS, 1000 * MS);
	assert_true(world_counter(w, "windows_grown") >= 5);
	world_free(w);
}

// HX-35
static void hx_35_large_requests_go_beyond_first_windows(void **state)
{
	struct world *w = far_world(128);
	struct ask *a = ask(w, KIND_ECHO, BODY);
	finish_of(w, a);
	assert_ok(w, a);
	assert_in_range(took_ns(a), 100 * MS, 2000 * MS);
	world_free(w);
}

// HX-35: where chunks are few, nothing fails, and what grows leaves half of them to others.
static void hx_35_windows_share_what_chunks_there_are(void **state)
{
	struct world *w = far_world(4);
	struct ask *asks[6];
	for (int i = 0; i < 6; i++)
		asks[i] = ask(w, i % 2 ? KIND_DOWNLOAD : KIND_ECHO, BODY / 4);
	for (int i = 0; i < 6; i++) {
		finish_of(w, asks[i]);
		assert_ok(w, asks[i]);
	}
	assert_in_range(w->max_chunks, 1, 4 * MIB_OF_CHUNKS * 3 / 4);
	world_free(w);
}

#define N_OLD 8
#define N_ALL (N_OLD + 1)

// A body without an end, for all that a test sees of it.
static struct ask *ask_for_ever(struct world *w, uint32_t client, bool up)
{
	struct ask *a = world_ask(w, "one", up ? KIND_ECHO : KIND_DOWNLOAD, 1u << 31);
	a->fail = up ? "1 late 9" : NULL; // so that the backend only reads
	client_ask(&w->clients[client], a);
	return a;
}

// Eight clients move as much as windows allow for `old` round trips when one more begins. `young`
// round trips later each of the nine moves its part, within a factor of two, and the nine have not
// filled the half of the chunks that windows share.
static void check_newcomer(bool up, uint32_t pool_mib, uint32_t old, uint32_t young)
{
	struct world_conf conf = far(pool_mib);
	struct ask *asks[N_ALL];
	uint32_t bytes[N_ALL];
	uint64_t part = 0, ten_pools = 10 * ((uint64_t)pool_mib << 20);
	conf.n_clients = N_ALL;
	conf.n_backends = 8;
	conf.backend_streams = 1; // a connection for each body
	struct world *w = far_world_of(&conf, 0xff);
	for (uint32_t i = 0; i < N_OLD; i++)
		asks[i] = ask_for_ever(w, i, up);
	world_run(w, old * ROUND_TRIP);
	asks[N_OLD] = ask_for_ever(w, N_OLD, up);
	world_run(w, young * ROUND_TRIP);
	for (uint32_t i = 0; i < N_ALL; i++)
		bytes[i] = up ? asks[i]->sent : asks[i]->received;
	world_run(w, 10 * ROUND_TRIP);
	for (uint32_t i = 0; i < N_ALL; i++) {
		bytes[i] = (up ? asks[i]->sent : asks[i]->received) - bytes[i];
		part += bytes[i] / N_ALL;
	}
	for (uint32_t i = 0; i < N_ALL; i++)
		assert_in_range(bytes[i], part / 2, 2 * part);
	assert_in_range(part, ten_pools / 64, ten_pools / 2 / N_ALL);
	assert_in_range(w->max_chunks, 1, conf.n_chunks / 2);
	assert_int_equal(world_counter(w, "streams_cut_for_memory"), 0);
	abandon(w);
}

// HX-35, TCP-147: each of the old ones has some 1.8 MiB a round trip.
static void hx_35_a_newcomers_answer_gets_its_part_beside_greedy_ones(void **state)
{
	check_newcomer(false, 64, 25, 15);
}

// HX-35, TCP-146: the first 6 MiB of a client's bodies pass through first windows.
static void hx_35_a_newcomers_body_gets_its_part_beside_greedy_ones(void **state)
{
	check_newcomer(true, 32, 40, 40);
}

static uint32_t window_of_first_request(const struct world *w)
{
	return h2_stream_window(h2_conn_newest(proxy_client_first(w->proxy)->conn.h2));
}

// HX-35: down to the first one, where others leave nothing of what windows share.
static void hx_35_a_window_that_grew_shrinks_as_chunks_become_scarce(void **state)
{
	struct world *w = far_world(16);
	struct pool *chunks = &w->wire.hosts[HOST_PROXY].chunks;
	void *taken[8 * MIB_OF_CHUNKS];
	uint32_t n = 0;
	struct ask *a = ask(w, KIND_ECHO, 8 * BODY);
	while (a->sent < 2 * BODY)
		world_run(w, 10 * MS);
	assert_in_range(window_of_first_request(w), 4 * w->conf.stream_window, 4 << 20);
	for (int i = 0; i < 200; i++) {
		while (chunks->n_used < chunks->n_total / 2)
			taken[n++] = pool_take(chunks);
		world_run(w, 10 * MS);
	}
	assert_false(a->closed);
	assert_int_equal(window_of_first_request(w), w->conf.stream_window);
	while (n)
		pool_put(chunks, taken[--n]);
	finish_of(w, a);
	assert_ok(w, a);
	world_free(w);
}

// TH-86: what a fast client has earned may lie there when it pauses, and no more; TH-15 ends it.
static void th_86_a_fast_client_that_pauses_is_not_cut_and_bounded(void **state)
{
	struct world *w = far_world(128);
	struct ask *a = ask(w, KIND_DOWNLOAD, 8 * BODY);
	while (a->received < BODY)
		world_run(w, 10 * MS);
	w->clients[0].slow = true;
	world_run(w, 10 * SECOND);
	assert_false(a->closed);
	assert_in_range(world_chunks_used(w), MIB_OF_CHUNKS, (4 + 1) * MIB_OF_CHUNKS * 5 / 4);
	world_run(w, 60 * SECOND);
	assert_true(a->closed);
	assert_int_equal(world_counter(w, "streams_stalled"), 1);
	assert_int_equal(world_counter(w, "streams_cut_for_buffer"), 0);
	assert_in_range(world_chunks_used(w), 0, 16);
	world_free(w);
}

// TH-86: one that takes only what was granted at first earns nothing.
static void th_86_a_client_that_never_takes_anything_earns_no_window(void **state)
{
	struct world *w = far_world(128);
	w->clients[0].slow = true;
	w->clients[0].deaf = true;
	for (int i = 0; i < 20; i++)
		ask(w, KIND_DOWNLOAD, BODY);
	world_run(w, 900 * MS);
	assert_int_equal(world_counter(w, "windows_grown"), 0);
	assert_in_range(world_chunks_used(w), 1, MIB_OF_CHUNKS);
	world_free(w);
}

#define CASE(name) cmocka_unit_test(name)

RUN_SUITE("proxy/window", CASE(hx_35_large_answers_go_beyond_first_windows),
	CASE(hx_35_large_requests_go_beyond_first_windows),
	CASE(hx_35_windows_share_what_chunks_there_are),
	CASE(hx_35_a_newcomers_answer_gets_its_part_beside_greedy_ones),
	CASE(hx_35_a_newcomers_body_gets_its_part_beside_greedy_ones),
	CASE(hx_35_a_window_that_grew_shrinks_as_chunks_become_scarce),
	CASE(th_86_a_fast_client_that_pauses_is_not_cut_and_bounded),
	CASE(th_86_a_client_that_never_takes_anything_earns_no_window))
