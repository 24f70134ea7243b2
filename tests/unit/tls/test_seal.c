// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tls/impl.h"
#include "tests/unit/tls/rig.h"

#include <stdlib.h>
#include <string.h>

// A connection that seals, and one that opens what it sealed.
struct pair {
	struct rig from, to;
	struct buf plain;
	uint8_t *text; // all that was given to seal
	size_t n_text;
};

static void pair_init(struct pair *p, unsigned suite, uint64_t seed, struct tls_conf conf)
{
	*p = (struct pair){0};
	rig_init_conf(&p->from, &rig_suites[suite], TLS_SERVER, seed, conf);
	rig_init_conf(&p->to, &rig_suites[suite], TLS_CLIENT, seed + 1, conf);
	p->to.conn->read = p->from.conn->write;
	p->to.conn->write = p->from.conn->read;
	p->text = malloc(RIG_BYTES);
	assert_non_null(p->text);
}

static void pair_fini(struct pair *p)
{
	buf_clear(&p->plain, &p->from.chunks);
	rig_fini(&p->from);
	rig_fini(&p->to);
	free(p->text);
}

static void write_some(struct pair *p, size_t len)
{
	uint8_t *text = p->text + p->n_text;
	rig_randomize(&p->from.rand, text, len);
	assert_true(buf_append(&p->plain, &p->from.chunks, text, len));
	p->n_text += len;
}

// Hands the output over, and keeps the lengths of its records. Returns their number.
static unsigned pass(struct pair *p, size_t *ret_lens, unsigned most)
{
	static uint8_t wire[RIG_BYTES];
	size_t len = p->from.out.len;
	unsigned n = 0;
	buf_copy_out(&p->from.out, 0, wire, len);
	for (size_t at = 0; at < len; n++) {
		size_t body = (size_t)wire[at + 3] << 8 | wire[at + 4];
		if (n < most)
			ret_lens[n] = body;
		at += TLS_HEADER + body;
	}
	assert_int_equal(tls_conn_feed(p->to.conn, wire, len), len);
	buf_clear(&p->from.out, &p->from.chunks);
	return n;
}

static void expect_text(const struct pair *p)
{
	assert_int_equal(p->to.n_plain, p->n_text - p->plain.len);
	assert_memory_equal(p->to.plain, p->text, p->to.n_plain);
}

static void whatever_is_written_arrives(void **state)
{
	for (unsigned s = 0; s < rig_n_suites; s++) {
		for (uint64_t seed = 0; seed < 6; seed++) {
			struct pair p;
			struct rand r;
			pair_init(&p, s, seed, (struct tls_conf){0});
			rand_init(&r, seed);
			while (p.n_text < RIG_BYTES - 60000) {
				for (unsigned i = rand_below(&r, 4); i; i--)
					write_some(
						&p, rand_below(&r, rand_below(&r, 2) ? 60 : 9000));
				size_t room = rand_below(&r, 2) ? rand_below(&r, 3000) : 40000;
				size_t before = p.plain.len;
				bool more = tls_conn_seal(p.from.conn, &p.plain, &p.from.out, room);
				assert_int_equal(more, p.plain.len > 0);
				assert_true(p.from.out.len <= room);
				assert_true(before == p.plain.len || p.from.out.len > 0);
				if (p.plain.len > 200000)
					tls_conn_seal(p.from.conn, &p.plain, &p.from.out, 1000000);
				pass(&p, NULL, 0);
				assert_int_equal(p.to.n_plain, p.n_text - p.plain.len);
				p.from.now_ns += rand_below(&r, 2) ? NS_PER_SECOND / 2 : 0;
			}
			rig_expect_sound(&p.to);
			expect_text(&p);
			pair_fini(&p);
		}
	}
}

// TLS-09
static void records_are_small_at_first_and_after_a_pause(void **state)
{
	for (unsigned s = 0; s < rig_n_suites; s++) {
		struct pair p;
		size_t lens[300];
		pair_init(&p, s, 1, (struct tls_conf){0});
		size_t over = tls_overhead(p.from.conn) - TLS_HEADER;
		for (unsigned pause = 0; pause < 2; pause++) {
			write_some(&p, 400000);
			assert_false(tls_conn_seal(p.from.conn, &p.plain, &p.from.out, 500000));
			unsigned n = pass(&p, lens, 300);
			unsigned n_small = 0;
			while (n_small < n && lens[n_small] <= 1369 + over)
				n_small++;
			assert_true(n_small >= (128 << 10) / 1369 && n_small <= 100);
			for (unsigned i = n_small; i + 1 < n; i++)
				assert_true(lens[i] > 12288 && lens[i] <= TLS_MAX_PLAIN + over);
			p.from.now_ns += NS_PER_SECOND;
		}
		expect_text(&p);
		pair_fini(&p);
	}
}

// TLS-250: small ones, those of a long run, and what fits into some room.
static void no_record_holds_more_than_was_agreed(void **state)
{
	for (unsigned s = 0; s < rig_n_suites; s++) {
		for (size_t most = 512; most <= 4096; most *= 2) {
			struct pair p;
			size_t lens[1000];
			pair_init(&p, s, most, (struct tls_conf){0});
			p.from.conn->max_plain = p.to.conn->max_plain = (uint16_t)most;
			size_t over = tls_overhead(p.from.conn) - TLS_HEADER;
			for (unsigned run = 0; run < 4; run++) {
				size_t fits = tls_conn_plain_room(p.from.conn, 100000);
				assert_true(fits > 90000);
				write_some(&p, fits);
				assert_false(
					tls_conn_seal(p.from.conn, &p.plain, &p.from.out, 100000));
				assert_true(p.from.out.len <= 100000);
				unsigned n = pass(&p, lens, 1000);
				assert_in_range(n, fits / most, 1000);
				for (unsigned i = 0; i < n; i++)
					assert_true(lens[i] <= most + over);
			}
			rig_expect_sound(&p.to);
			expect_text(&p);
			pair_fini(&p);
		}
	}
}

static void room_is_kept_and_plain_room_fits_it(void **state)
{
	for (unsigned s = 0; s < rig_n_suites; s++) {
		for (size_t room = 0; room < 40000; room += 1 + room / 7) {
			struct pair p;
			pair_init(&p, s, room, (struct tls_conf){0});
			for (unsigned run = 0; run < 2; run++) {
				size_t fits = tls_conn_plain_room(p.from.conn, room);
				assert_true(fits <= room);
				if (fits)
					write_some(&p, fits);
				assert_false(
					tls_conn_seal(p.from.conn, &p.plain, &p.from.out, room));
				assert_true(p.from.out.len <= room);
				pass(&p, NULL, 0);
				p.from.conn->run = 1u << 20;
			}
			expect_text(&p);
			pair_fini(&p);
		}
	}
}

// TLS-09: what fits is told for the small records that a pause is followed by.
static void plain_room_knows_of_a_pause(void **state)
{
	for (unsigned s = 0; s < rig_n_suites; s++) {
		for (uint64_t idle_ns = 0; idle_ns <= 2 * NS_PER_SECOND; idle_ns += NS_PER_SECOND) {
			enum { ROOM = 65536 };
			struct pair p;
			pair_init(&p, s, 1, (struct tls_conf){0});
			write_some(&p, 200000);
			assert_false(tls_conn_seal(p.from.conn, &p.plain, &p.from.out, 300000));
			size_t in_long = tls_conn_plain_room(p.from.conn, ROOM);
			pass(&p, NULL, 0);
			p.from.now_ns += idle_ns;
			size_t fits = tls_conn_plain_room(p.from.conn, ROOM);
			assert_true(idle_ns ? fits < in_long : fits == in_long);
			write_some(&p, fits);
			assert_false(tls_conn_seal(p.from.conn, &p.plain, &p.from.out, ROOM));
			assert_true(p.from.out.len <= ROOM);
			pass(&p, NULL, 0);
			expect_text(&p);
			pair_fini(&p);
		}
	}
}

static void without_chunks_plaintext_waits_and_nothing_is_lost(void **state)
{
	struct pair p;
	struct buf all = {0};
	pair_init(&p, 0, 1, (struct tls_conf){0});
	write_some(&p, 5000);
	while (buf_reserve(&all, &p.from.chunks, 256))
		;
	assert_true(tls_conn_seal(p.from.conn, &p.plain, &p.from.out, 100000));
	assert_int_equal(p.from.out.len, 0);
	tls_conn_update_keys(p.from.conn, false);
	assert_true(tls_conn_seal(p.from.conn, &p.plain, &p.from.out, 100000));
	assert_int_equal(p.from.out.len, 0);
	buf_clear(&all, &p.from.chunks);
	assert_false(tls_conn_seal(p.from.conn, &p.plain, &p.from.out, 100000));
	pass(&p, NULL, 0);
	expect_text(&p);
	pair_fini(&p);
}

// What is sealed takes little more memory than it has bytes.
static void long_records_hand_chunks_on(void **state)
{
	struct pair p;
	pair_init(&p, 0, 1, (struct tls_conf){0});
	p.from.conn->run = 1u << 20;
	p.from.conn->sealed_ns = p.from.now_ns;
	write_some(&p, 400 * BUF_CHUNK_ROOM);
	uint8_t *first = p.plain.head->data;
	assert_false(tls_conn_seal(p.from.conn, &p.plain, &p.from.out, SIZE_MAX / 2));
	assert_ptr_equal(p.from.out.head->next->data, first); // behind the record's header
	assert_true(p.from.chunks.n_used <= 400 * 9 / 8 + 2);
	pass(&p, NULL, 0);
	expect_text(&p);
	pair_fini(&p);
}

// TLS-14
static void keys_change_before_they_are_worn(void **state)
{
	for (unsigned s = 0; s < rig_n_suites; s++) {
		struct pair p;
		bool is_gcm = rig_suites[s].aead != TLS_CHACHA20_POLY1305;
		bool is_13 = rig_suites[s].version == TLS_1_3;
		pair_init(&p, s, 1, (struct tls_conf){.max_records = 10});
		for (unsigned i = 0; i < 35; i++) {
			write_some(&p, 100);
			assert_false(tls_conn_seal(p.from.conn, &p.plain, &p.from.out, 1000));
			pass(&p, NULL, 0);
			assert_true(!is_gcm || !is_13 || p.from.conn->write.seq <= 10);
			assert_int_equal(tls_conn_is_worn(p.from.conn),
				is_gcm && !is_13 && p.from.conn->write.seq >= 10);
			p.to.now_ns += NS_PER_SECOND;
		}
		rig_expect_sound(&p.to);
		expect_text(&p);
		uint64_t n = is_gcm && is_13 ? 3 : 0;
		assert_int_equal(rig_counter(&p.from, TLS_C_key_updates_out), n);
		assert_int_equal(rig_counter(&p.to, TLS_C_key_updates_in), n);
		pair_fini(&p);
	}
}

// TLS-20
static void close_notify_follows_all_plaintext(void **state)
{
	for (unsigned s = 0; s < rig_n_suites; s++) {
		struct pair p;
		pair_init(&p, s, 1, (struct tls_conf){0});
		write_some(&p, 3000);
		tls_conn_shutdown(p.from.conn);
		assert_true(tls_conn_wants_seal(p.from.conn));
		assert_true(tls_conn_seal(p.from.conn, &p.plain, &p.from.out, 1600));
		pass(&p, NULL, 0);
		assert_false(tls_conn_is_shut(p.from.conn));
		assert_int_equal(p.to.n_eofs, 0);
		assert_false(tls_conn_seal(p.from.conn, &p.plain, &p.from.out, 4000));
		pass(&p, NULL, 0);
		assert_true(tls_conn_is_shut(p.from.conn));
		assert_false(tls_conn_wants_seal(p.from.conn));
		assert_int_equal(p.to.n_eofs, 1);
		expect_text(&p);
		assert_true(tls_conn_ended(p.to.conn));
		write_some(&p, 10); // too late
		assert_false(tls_conn_seal(p.from.conn, &p.plain, &p.from.out, 4000));
		assert_int_equal(p.from.out.len, 0);
		pair_fini(&p);
	}
}

// TLS-10
static void the_last_sequence_number_is_left_for_an_alert(void **state)
{
	struct pair p;
	pair_init(&p, 2, 1, (struct tls_conf){0});
	p.from.conn->write.seq = p.to.conn->read.seq = UINT64_MAX - 2;
	write_some(&p, 3000);
	assert_false(tls_conn_seal(p.from.conn, &p.plain, &p.from.out, 10000));
	assert_int_equal(pass(&p, NULL, 0), 2);
	assert_true(tls_conn_failed(p.from.conn, NULL, NULL));
	assert_true(tls_conn_is_shut(p.from.conn));
	bool by_peer;
	assert_true(tls_conn_failed(p.to.conn, NULL, &by_peer));
	assert_true(by_peer);
	expect_text(&p);
	pair_fini(&p);
}

// Many connections share a few places for expanded keys.
static void keys_that_push_each_other_out_stay_right(void **state)
{
	enum { N = 4 };
	struct rig g;
	struct tls_conf conf = {.n_keys = 2};
	for (unsigned s = 0; s < rig_n_suites; s++) {
		rig_init_conf(&g, &rig_suites[s], TLS_SERVER, s, conf);
		struct tls_conn *more[N - 1];
		static const struct tls_events none;
		for (unsigned i = 0; i < N - 1; i++) {
			struct tls_secrets x = rig_secrets(&rig_suites[s], &g.rand);
			more[i] = tls_conn_new(g.ctx, TLS_SERVER, &x, &none, NULL);
			assert_non_null(more[i]);
		}
		for (unsigned round = 0; round < 3; round++) {
			for (unsigned i = 0; i < N - 1; i++) {
				struct buf plain = {0}, out = {0};
				assert_true(buf_append(&plain, &g.chunks, "abc", 3));
				assert_false(tls_conn_seal(more[i], &plain, &out, 1000));
				buf_clear(&out, &g.chunks);
			}
			rig_send(&g, TLS_DATA, "abc", 3);
			rig_expect_sound(&g);
		}
		assert_int_equal(g.n_plain, 9);
		for (unsigned i = 0; i < N - 1; i++)
			tls_conn_free(more[i]);
		rig_fini(&g);
	}
}

RUN_SUITE("tls/seal", cmocka_unit_test(whatever_is_written_arrives),
	cmocka_unit_test(records_are_small_at_first_and_after_a_pause),
	cmocka_unit_test(no_record_holds_more_than_was_agreed),
	cmocka_unit_test(room_is_kept_and_plain_room_fits_it),
	cmocka_unit_test(plain_room_knows_of_a_pause),
	cmocka_unit_test(without_chunks_plaintext_waits_and_nothing_is_lost),
	cmocka_unit_test(long_records_hand_chunks_on),
	cmocka_unit_test(keys_change_before_they_are_worn),
	cmocka_unit_test(close_notify_follows_all_plaintext),
	cmocka_unit_test(the_last_sequence_number_is_left_for_an_alert),
	cmocka_unit_test(keys_that_push_each_other_out_stay_right))
