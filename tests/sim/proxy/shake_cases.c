// SPDX-License-Identifier: Apache-2.0
// Clients whose handshake waits for its thread: what they hear meanwhile, and what becomes of what
// they say.
#include "dataplane/tcp/counters.h"
#include "tests/sim/proxy/secure_rig.h"
#include "tests/support/check.h"

// The thread reads nothing.
static void rig_begin_asleep(struct rig *r)
{
	rig_init(r, &(struct rig_conf){.front = true});
	r->w->desk.asleep = true;
	r->w->clients[0].silent = true;
	open_client(r->w);
}

static uint64_t n_acks(const struct world *w)
{
	struct counter_set set = tcp_stack_counters(w->wire.hosts[HOST_PROXY].tcp);
	return counter_read(&set.values[TCP_acks_out]);
}

static void tls_260_the_ack_of_a_whole_hello_waits_for_its_answer_others_do_not(void **state)
{
	static const struct {
		struct str bytes;
		uint64_t waits_ms;
	} rows[] = {
		{STR("\x16\3\1\0\4\1\0\0\0"), 40}, // a record of four bytes
		{STR("\x16\3\1\0\4\1\0\0"), 1},
		{STR("\x16\3\1\0"), 1},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rig r;
		rig_begin_asleep(&r);
		struct world *w = r.w;
		uint64_t delay_ms =
			w->wire.delay_ns / MS + 2; // to the proxy, and a tick's rounding
		client_say(&w->clients[0], rows[i].bytes.p, rows[i].bytes.len);
		world_run(w, (rows[i].waits_ms - 1) * MS);
		assert_int_equal(n_acks(w), 0);
		world_run(w, (1 + delay_ms) * MS);
		assert_int_equal(n_acks(w), 1);
		w->desk.asleep = false;
		rig_fini(&r);
	}
}

// TH-70: its client's first bytes of HTTP/2 come with its Finished.
static void th_70_what_a_handshake_gives_back_leaves_the_last_chunks_to_others(void **state)
{
	enum { CHUNKS = 2 * BUF_LAST_CHUNKS }; // with so few nobody is cut before
	for (uint32_t n_left = BUF_LAST_CHUNKS; n_left < CHUNKS; n_left += BUF_LAST_CHUNKS / 2) {
		struct rig r;
		struct buf taken = {0};
		rig_init(&r, &(struct rig_conf){.front = true, .n_chunks = CHUNKS});
		r.w->wire.delay_ns = 5 * MS;
		use_backends(r.w, 0x3);
		world_run(r.w, 50 * MS);
		struct client *c = &r.w->clients[0];
		struct pool *chunks = &r.w->wire.hosts[HOST_PROXY].chunks;
		world_open_client(r.w, 0, 0);
		while (!c->secure.ended)
			world_run(r.w, MS);
		r.w->desk.asleep = true;
		world_run(r.w, 20 * MS);
		while (pool_left(chunks) > n_left)
			assert_true(buf_append(&taken, chunks, r.w, BUF_CHUNK_ROOM));
		r.w->desk.asleep = false;
		world_run(r.w, 20 * MS);
		assert_int_equal(c->over, n_left == BUF_LAST_CHUNKS);
		buf_clear(&taken, chunks);
		rig_fini(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			tls_260_the_ack_of_a_whole_hello_waits_for_its_answer_others_do_not),
		cmocka_unit_test(
			th_70_what_a_handshake_gives_back_leaves_the_last_chunks_to_others),
	};
	return cmocka_run_group_tests_name("proxy/shake_cases", tests, rig_setup, rig_teardown);
}
