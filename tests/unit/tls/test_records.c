// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tls/impl.h"
#include "tests/unit/tls/rig.h"

#include <stdlib.h>
#include <string.h>

static uint8_t pattern(size_t i)
{
	return (uint8_t)(i * 13 + i / 253);
}

static void fill(uint8_t *p, size_t from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		p[i] = pattern(from + i);
}

static void expect_plain(const struct rig *g, size_t len)
{
	assert_int_equal(g->n_plain, len);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(g->plain[i], pattern(i));
}

// Four records of the lengths given, as one stream.
static size_t stream_of(struct rig *g, const size_t *lens, unsigned n, uint8_t *to)
{
	uint8_t text[TLS_MAX_PLAIN];
	size_t len = 0, from = 0;
	for (unsigned i = 0; i < n; i++) {
		fill(text, from, lens[i]);
		len += rig_forge(g, TLS_DATA, text, lens[i], i == 1 ? 3 : 0, to + len);
		from += lens[i];
	}
	return len;
}

// TLS-02
static void a_stream_means_the_same_wherever_it_is_cut(void **state)
{
	static const size_t lens[] = {1, 200, 0, 2500, 90};
	static uint8_t stream[8000];
	for (unsigned s = 0; s < rig_n_suites; s++) {
		struct rig g;
		rig_init(&g, &rig_suites[s], TLS_SERVER, s);
		struct tls_conn fresh = *g.conn;
		size_t len = stream_of(&g, lens, 5, stream);
		for (size_t cut = 0; cut <= len; cut++) {
			*g.conn = fresh;
			g.n_plain = 0;
			assert_int_equal(tls_conn_feed(g.conn, stream, cut), cut);
			assert_int_equal(tls_conn_feed(g.conn, stream + cut, len - cut), len - cut);
			rig_expect_sound(&g);
			expect_plain(&g, 2791);
			assert_int_equal(g.chunks.n_used, 0);
		}
		*g.conn = fresh;
		g.n_plain = 0;
		for (size_t i = 0; i < len; i++)
			assert_int_equal(tls_conn_feed(g.conn, stream + i, 1), 1);
		expect_plain(&g, 2791);
		rig_fini(&g);
	}
}

// TLS-08
static void what_is_not_taken_is_not_consumed_and_comes_again(void **state)
{
	static const size_t lens[] = {300, 6000, 16384, 10};
	static uint8_t stream[24000];
	for (unsigned s = 0; s < rig_n_suites; s++) {
		for (uint64_t seed = 0; seed < 40; seed++) {
			struct rig g;
			rig_init(&g, &rig_suites[s], TLS_SERVER, seed);
			size_t len = stream_of(&g, lens, 4, stream), at = 0, here = 0;
			while (at < len) {
				// As TCP: what was left, and at times more behind it.
				here += rand_below(&g.rand, 3) ? rand_below(&g.rand, 3000) : 0;
				here = here > len - at ? len - at : here;
				g.takes = rand_below(&g.rand, 2) ? rand_below(&g.rand, 9000) : 0;
				size_t n = tls_conn_feed(g.conn, stream + at, here);
				assert_true(n <= here);
				assert_true(n == here || !g.takes);
				at += n;
				here -= n;
			}
			rig_expect_sound(&g);
			expect_plain(&g, 22694);
			rig_fini(&g);
		}
	}
}

// TLS-08: nor does a peer fail for its consumer's slowness.
static void a_record_that_waits_for_its_taker_has_no_deadline(void **state)
{
	static uint8_t record[400], text[300];
	struct rig g;
	rig_init(&g, &rig_suites[0], TLS_SERVER, 3);
	size_t len = rig_forge(&g, TLS_DATA, text, sizeof(text), 0, record);
	g.takes = 0;
	assert_int_equal(tls_conn_feed(g.conn, record, 100), 100);
	assert_int_equal(tls_conn_deadline_ns(g.conn), g.now_ns + 20 * NS_PER_SECOND);
	assert_int_equal(tls_conn_feed(g.conn, record + 100, len - 100), 0);
	assert_int_equal(tls_conn_deadline_ns(g.conn), UINT64_MAX);
	assert_int_equal(tls_conn_feed(g.conn, record + 100, 0), 0);
	assert_int_equal(tls_conn_deadline_ns(g.conn), UINT64_MAX);
	g.now_ns += 3600 * NS_PER_SECOND;
	g.takes = 1000;
	assert_int_equal(tls_conn_feed(g.conn, record + 100, 10), 10); // as TCP keeps it
	assert_int_equal(tls_conn_deadline_ns(g.conn), g.now_ns + 20 * NS_PER_SECOND);
	assert_int_equal(tls_conn_feed(g.conn, record + 110, len - 110), len - 110);
	assert_int_equal(g.n_plain, 300);
	rig_fini(&g);
}

// TLS-02
static void a_record_that_does_not_become_whole_in_time_ends_the_connection(void **state)
{
	static uint8_t record[400], text[300];
	struct rig g;
	rig_init(&g, &rig_suites[0], TLS_SERVER, 3);
	rig_forge(&g, TLS_DATA, text, sizeof(text), 0, record);
	assert_int_equal(tls_conn_deadline_ns(g.conn), UINT64_MAX);
	tls_conn_feed(g.conn, record, 1);
	g.now_ns += 20 * NS_PER_SECOND - 1;
	tls_conn_feed(g.conn, record + 1, 100);
	tls_conn_expire(g.conn);
	rig_expect_sound(&g);
	g.now_ns++;
	tls_conn_expire(g.conn);
	rig_expect_failure(&g, TLS_CLOSE_NOTIFY, TLS_C_late_records);
	rig_fini(&g);
}

// TLS-01
static void an_altered_record_is_never_delivered(void **state)
{
	static const char text[] = "no one shall read this";
	for (unsigned s = 0; s < rig_n_suites; s++) {
		struct rig g;
		rig_init(&g, &rig_suites[s], TLS_SERVER, 4);
		struct tls_conn fresh = *g.conn;
		uint8_t record[100];
		size_t len = rig_forge(&g, TLS_DATA, text, sizeof(text), 0, record);
		for (size_t bit = 8 * TLS_HEADER; bit < 8 * len; bit++) {
			*g.conn = fresh;
			record[bit / 8] ^= (uint8_t)(1 << bit % 8);
			tls_conn_feed(g.conn, record, len);
			record[bit / 8] ^= (uint8_t)(1 << bit % 8);
			uint8_t alert;
			assert_true(tls_conn_failed(g.conn, &alert, NULL));
			assert_int_equal(alert, TLS_BAD_RECORD_MAC);
			assert_int_equal(g.n_calls, 0);
		}
		*g.conn = fresh;
		tls_conn_feed(g.conn, record, len);
		assert_int_equal(g.n_plain, sizeof(text));
		rig_fini(&g);
	}
}

// TLS-01
static void a_record_that_is_cut_by_a_lying_length_is_never_delivered(void **state)
{
	for (unsigned s = 0; s < rig_n_suites; s++) {
		struct rig g;
		uint8_t record[100] = {0};
		for (size_t less = 1; less < 60; less++) {
			rig_init(&g, &rig_suites[s], TLS_SERVER, less);
			size_t len = rig_forge(&g, TLS_DATA, "0123456789012345", 16, 0, record);
			if (less > len - TLS_HEADER) {
				rig_fini(&g);
				break;
			}
			record[4] = (uint8_t)(record[4] - less);
			tls_conn_feed(g.conn, record, len);
			assert_int_equal(g.n_calls, 0);
			rig_expect_failure(&g, TLS_BAD_RECORD_MAC, TLS_C_bad_tags);
			rig_fini(&g);
		}
	}
}

// TLS-01
static void replayed_reordered_and_missing_records_fail(void **state)
{
	enum { REPLAY, REORDER, OMIT, N_TRICKS };
	for (unsigned s = 0; s < rig_n_suites; s++) {
		for (unsigned trick = 0; trick < N_TRICKS; trick++) {
			struct rig g;
			uint8_t a[100], b[100];
			rig_init(&g, &rig_suites[s], TLS_SERVER, 5);
			size_t na = rig_forge(&g, TLS_DATA, "first", 5, 0, a);
			size_t nb = rig_forge(&g, TLS_DATA, "second", 6, 0, b);
			// AES-GCM under 1.2 has its nonce in the record: the number is in the
			// tag by what it covers.
			if (trick != OMIT)
				tls_conn_feed(g.conn, trick == REORDER ? b : a,
					trick == REORDER ? nb : na);
			else
				tls_conn_feed(g.conn, b, nb);
			size_t before = g.n_plain;
			tls_conn_feed(g.conn, a, na);
			assert_int_equal(g.n_plain, before);
			assert_int_equal(before, trick == REPLAY ? 5 : 0);
			rig_expect_failure(&g, TLS_BAD_RECORD_MAC, TLS_C_bad_tags);
			rig_fini(&g);
		}
	}
}

// TLS-03: by the header alone, before a byte of the body is there.
static void an_oversize_record_fails_by_its_header(void **state)
{
	for (unsigned s = 0; s < rig_n_suites; s++) {
		struct rig g;
		rig_init(&g, &rig_suites[s], TLS_SERVER, 6);
		size_t most = TLS_MAX_PLAIN + tls_overhead(g.conn) - TLS_HEADER;
		for (size_t len = most; len <= most + 1; len++) {
			uint8_t head[5] = {23, 3, 3, (uint8_t)(len >> 8), (uint8_t)len};
			rig_expect_sound(&g);
			struct tls_conn fresh = *g.conn;
			tls_conn_feed(g.conn, head, 5);
			if (len == most)
				*g.conn = fresh;
		}
		rig_expect_failure(&g, TLS_RECORD_OVERFLOW, TLS_C_oversize_records);
		assert_int_equal(g.chunks.n_used, g.out.len ? 1 : 0);
		rig_fini(&g);
	}
}

// TLS-251: data, and what is none; bytes of padding are no plaintext.
static void a_record_of_more_than_was_agreed_fails(void **state)
{
	static uint8_t record[2000], text[513];
	for (unsigned s = 0; s < rig_n_suites; s++) {
		for (uint8_t type = TLS_HANDSHAKE; type <= TLS_DATA; type++) {
			struct rig g;
			rig_init(&g, &rig_suites[s], TLS_SERVER, s);
			g.conn->max_plain = 512;
			size_t padding = rig_suites[s].version == TLS_1_3 ? 700 : 0;
			size_t len = rig_forge(&g, TLS_DATA, text, 512, padding, record);
			assert_int_equal(tls_conn_feed(g.conn, record, len), len);
			rig_expect_sound(&g);
			assert_int_equal(g.n_plain, 512);
			len = rig_forge(&g, type, text, 513, 0, record);
			assert_int_equal(tls_conn_feed(g.conn, record, len), len);
			rig_expect_failure(&g, TLS_RECORD_OVERFLOW, TLS_C_oversize_records);
			assert_int_equal(g.n_plain, 512);
			rig_fini(&g);
		}
	}
}

// TLS-05
static void padding_is_cut_off_and_nothing_but_padding_fails(void **state)
{
	static uint8_t record[17000], text[TLS_MAX_PLAIN];
	struct rig g;
	rig_init(&g, &rig_suites[0], TLS_SERVER, 7);
	for (size_t padding = 0; padding < 40; padding++) {
		size_t len = rig_forge(&g, TLS_DATA, "ab\0", 3, padding, record);
		tls_conn_feed(g.conn, record, len);
		assert_int_equal(g.n_plain, 3 * (padding + 1));
		assert_memory_equal(g.plain + 3 * padding, "ab\0", 3);
	}
	size_t len = rig_forge(&g, TLS_DATA, text, 1, TLS_MAX_PLAIN - 1, record);
	tls_conn_feed(g.conn, record, len);
	assert_int_equal(g.n_plain, 121);
	rig_expect_sound(&g);
	len = rig_forge(&g, 0, text, 100, 0, record);
	tls_conn_feed(g.conn, record, len);
	rig_expect_failure(&g, TLS_UNEXPECTED_MESSAGE, TLS_C_unexpected_records);
	rig_fini(&g);
}

// TH-84: what opening costs goes by all that is opened, as often as it is, not by what comes out.
static void th_84_padding_counts_as_what_it_takes_to_open_it(void **state)
{
	const size_t whole = TLS_MAX_PLAIN + 1 + AEAD_TAG;
	static uint8_t record[17000];
	struct rig g;
	rig_init(&g, &rig_suites[0], TLS_SERVER, 7);
	size_t len = rig_forge(&g, TLS_DATA, "ab", 2, TLS_MAX_PLAIN - 2, record);
	g.takes = 1;
	assert_int_equal(tls_conn_feed(g.conn, record, len), 0);
	assert_int_equal(g.opened[true], whole);
	g.takes = 1;
	assert_int_equal(tls_conn_feed(g.conn, record, len), len);
	assert_int_equal(g.opened[true], 2 * whole);
	assert_int_equal(g.opened[false], 0);
	len = rig_forge(&g, TLS_DATA, "", 0, 100, record);
	assert_int_equal(tls_conn_feed(g.conn, record, len), len);
	assert_int_equal(g.opened[false], 101 + AEAD_TAG);
	rig_expect_sound(&g);
	rig_fini(&g);
}

// TLS-04, and the same of 1.2, where types are in the clear; TLS-06
static void outer_types_and_versions_are_those_of_the_version(void **state)
{
	for (unsigned s = 0; s < rig_n_suites; s++) {
		bool is_13 = rig_suites[s].version == TLS_1_3;
		for (unsigned type = 0; type < 256; type++) {
			if (type == TLS_DATA ||
				(!is_13 && (type == TLS_ALERT || type == TLS_HANDSHAKE)))
				continue;
			struct rig g;
			uint8_t record[6] = {(uint8_t)type, 3, 3, 0, 1, 1};
			rig_init(&g, &rig_suites[s], type & 1 ? TLS_SERVER : TLS_CLIENT, 8);
			tls_conn_feed(g.conn, record, 6);
			rig_expect_failure(&g, TLS_UNEXPECTED_MESSAGE, TLS_C_unexpected_records);
			rig_fini(&g);
		}
		struct rig g;
		uint8_t record[100];
		rig_init(&g, &rig_suites[s], TLS_SERVER, 9);
		size_t len = rig_forge(&g, TLS_DATA, "x", 1, 0, record);
		record[2] = 1;
		tls_conn_feed(g.conn, record, len);
		if (is_13) // not looked at, but the tag covers it
			rig_expect_failure(&g, TLS_BAD_RECORD_MAC, TLS_C_bad_tags);
		else
			rig_expect_failure(&g, TLS_PROTOCOL_VERSION, TLS_C_wrong_versions);
		rig_fini(&g);
	}
}

// TLS-07
static void empty_records_have_a_budget(void **state)
{
	for (unsigned s = 0; s < rig_n_suites; s++) {
		struct rig g;
		rig_init(&g, &rig_suites[s], TLS_SERVER, 10);
		for (unsigned i = 0; i < 32; i++)
			rig_send(&g, TLS_DATA, "", 0);
		rig_expect_sound(&g);
		g.now_ns += NS_PER_SECOND;
		for (unsigned i = 0; i < 10; i++)
			rig_send(&g, TLS_DATA, "", 0);
		rig_expect_sound(&g);
		assert_int_equal(g.n_calls, 0);
		rig_send(&g, TLS_DATA, "", 0);
		rig_expect_failure(&g, TLS_UNEXPECTED_MESSAGE, TLS_C_empty_floods);
		rig_fini(&g);
		for (uint8_t type = TLS_ALERT; type <= TLS_HANDSHAKE; type++) {
			rig_init(&g, &rig_suites[s], TLS_SERVER, 11);
			rig_send(&g, type, "", 0);
			rig_expect_failure(&g, TLS_UNEXPECTED_MESSAGE, TLS_C_unexpected_records);
			rig_fini(&g);
		}
	}
}

// TLS-10
static void sequence_numbers_end_before_they_wrap(void **state)
{
	for (unsigned s = 0; s < rig_n_suites; s++) {
		struct rig g;
		rig_init(&g, &rig_suites[s], TLS_SERVER, 12);
		g.conn->read.seq = g.peer.d.seq = UINT64_MAX - 1;
		rig_send(&g, TLS_DATA, "last", 4);
		assert_int_equal(g.n_plain, 4);
		rig_send(&g, TLS_DATA, "one too many", 12);
		rig_expect_failure(&g, TLS_INTERNAL_ERROR, TLS_C_sequence_ends);
		rig_fini(&g);
	}
}

static void take_all_chunks(struct rig *g, struct buf *all)
{
	while (buf_reserve(all, &g->chunks, 256))
		;
}

// TLS-02
static void without_chunks_a_part_stays_with_tcp_and_a_whole_record_is_opened(void **state)
{
	static uint8_t record[400], text[300];
	struct rig g;
	struct buf all = {0};
	rig_init(&g, &rig_suites[0], TLS_SERVER, 13);
	size_t len = rig_forge(&g, TLS_DATA, text, sizeof(text), 0, record);
	take_all_chunks(&g, &all);
	assert_int_equal(tls_conn_feed(g.conn, record, len), len);
	assert_int_equal(g.n_plain, 300);
	rig_forge(&g, TLS_DATA, text, sizeof(text), 0, record);
	assert_int_equal(tls_conn_feed(g.conn, record, 9), 5); // a header needs none
	for (unsigned i = 1; i <= 3; i++) {
		assert_true(tls_conn_wants_chunks(g.conn));
		assert_int_equal(rig_counter(&g, TLS_C_waits_no_chunk), i);
		assert_int_equal(tls_conn_feed(g.conn, record + 5, i), 0);
	}
	rig_expect_sound(&g);
	buf_clear(&all, &g.chunks);
	assert_int_equal(tls_conn_feed(g.conn, record + 5, 100), 100);
	assert_false(tls_conn_wants_chunks(g.conn));
	take_all_chunks(&g, &all);
	assert_int_equal(tls_conn_feed(g.conn, record + 105, len - 105), len - 105); // the last one
	assert_int_equal(g.n_plain, 600);
	rig_expect_sound(&g);
	buf_clear(&all, &g.chunks);
	rig_fini(&g);
}

// A record of 300 bytes is there, of which the length is returned, and no chunk.
static size_t begin_without_chunks(
	struct rig *g, enum tls_role role, uint8_t record[400], struct buf *all)
{
	static const uint8_t text[300];
	rig_init(g, &rig_suites[0], role, 13);
	size_t len = rig_forge(g, TLS_DATA, text, sizeof(text), 0, record);
	take_all_chunks(g, all);
	return len;
}

static void give_back(struct rig *g, struct buf *all, size_t n_chunks)
{
	buf_consume(all, &g->chunks, n_chunks * (BUF_CHUNK_ROOM / 256 * 256));
}

static void th_70_a_backends_part_has_the_last_chunks(void **state)
{
	static uint8_t record[400];
	struct rig g;
	struct buf all = {0};
	begin_without_chunks(&g, TLS_CLIENT, record, &all);
	give_back(&g, &all, 1);
	assert_int_equal(tls_conn_feed(g.conn, record, 100), 100);
	assert_false(tls_conn_wants_chunks(g.conn));
	buf_clear(&all, &g.chunks);
	rig_fini(&g);
}

static void th_70_a_clients_part_takes_none_of_the_last_chunks(void **state)
{
	static uint8_t record[400];
	struct rig g;
	struct buf all = {0};
	size_t len = begin_without_chunks(&g, TLS_SERVER, record, &all);
	give_back(&g, &all, BUF_LAST_CHUNKS);
	assert_int_equal(pool_left(&g.chunks), BUF_LAST_CHUNKS);
	assert_int_equal(tls_conn_feed(g.conn, record, 5), 5);
	assert_false(tls_conn_wants_chunks(g.conn)); // as yet
	assert_int_equal(tls_conn_feed(g.conn, record + 5, 95), 0);
	assert_true(tls_conn_wants_chunks(g.conn));
	give_back(&g, &all, 1);
	assert_int_equal(tls_conn_feed(g.conn, record + 5, 95), 95);
	assert_false(tls_conn_wants_chunks(g.conn));
	buf_clear(&all, &g.chunks);
	assert_int_equal(tls_conn_feed(g.conn, record + 100, len - 100), len - 100);
	assert_int_equal(g.n_plain, 300);
	rig_expect_sound(&g);
	rig_fini(&g);
}

// TLS-02: nobody holds chunks for ever while others wait for them.
static void a_part_that_waits_for_chunks_keeps_its_deadline(void **state)
{
	static uint8_t record[400];
	struct rig g;
	struct buf all = {0};
	begin_without_chunks(&g, TLS_SERVER, record, &all);
	uint64_t deadline_ns = g.now_ns + 20 * NS_PER_SECOND;
	assert_int_equal(tls_conn_feed(g.conn, record, 100), 5);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(tls_conn_deadline_ns(g.conn), deadline_ns);
		tls_conn_expire(g.conn);
		rig_expect_sound(&g);
		g.now_ns += NS_PER_SECOND;
		assert_int_equal(tls_conn_feed(g.conn, record + 5, 95), 0);
	}
	tls_conn_expire(g.conn);
	assert_false(tls_conn_wants_chunks(g.conn));
	buf_clear(&all, &g.chunks);
	rig_expect_failure(&g, TLS_CLOSE_NOTIFY, TLS_C_late_records);
	rig_fini(&g);
}

// TLS-02: as TCP keeps bytes, or drops them and gets them again, cut elsewhere.
static void a_stream_means_the_same_though_chunks_run_out(void **state)
{
	static const size_t lens[] = {300, 6000, 16384, 10};
	static uint8_t stream[24000];
	for (unsigned s = 0; s < rig_n_suites; s++) {
		for (uint64_t seed = 0; seed < 40; seed++) {
			struct rig g;
			struct buf all = {0};
			rig_init(&g, &rig_suites[s], TLS_SERVER, seed);
			size_t len = stream_of(&g, lens, 4, stream), at = 0;
			while (at < len) {
				size_t here = 1 + rand_below(&g.rand, 1460);
				here = here > len - at ? len - at : here;
				bool none = rand_below(&g.rand, 2);
				if (none)
					take_all_chunks(&g, &all);
				size_t n = tls_conn_feed(g.conn, stream + at, here);
				assert_true(n <= here && (none || n == here));
				assert_int_equal(tls_conn_wants_chunks(g.conn), n < here);
				buf_clear(&all, &g.chunks);
				at += n;
			}
			rig_expect_sound(&g);
			expect_plain(&g, 22694);
			assert_true(rig_counter(&g, TLS_C_waits_no_chunk) > 0);
			rig_fini(&g);
		}
	}
}

RUN_SUITE("tls/records", cmocka_unit_test(a_stream_means_the_same_wherever_it_is_cut),
	cmocka_unit_test(what_is_not_taken_is_not_consumed_and_comes_again),
	cmocka_unit_test(a_record_that_waits_for_its_taker_has_no_deadline),
	cmocka_unit_test(a_record_that_does_not_become_whole_in_time_ends_the_connection),
	cmocka_unit_test(an_altered_record_is_never_delivered),
	cmocka_unit_test(a_record_that_is_cut_by_a_lying_length_is_never_delivered),
	cmocka_unit_test(replayed_reordered_and_missing_records_fail),
	cmocka_unit_test(an_oversize_record_fails_by_its_header),
	cmocka_unit_test(a_record_of_more_than_was_agreed_fails),
	cmocka_unit_test(padding_is_cut_off_and_nothing_but_padding_fails),
	cmocka_unit_test(th_84_padding_counts_as_what_it_takes_to_open_it),
	cmocka_unit_test(outer_types_and_versions_are_those_of_the_version),
	cmocka_unit_test(empty_records_have_a_budget),
	cmocka_unit_test(sequence_numbers_end_before_they_wrap),
	cmocka_unit_test(without_chunks_a_part_stays_with_tcp_and_a_whole_record_is_opened),
	cmocka_unit_test(th_70_a_backends_part_has_the_last_chunks),
	cmocka_unit_test(th_70_a_clients_part_takes_none_of_the_last_chunks),
	cmocka_unit_test(a_part_that_waits_for_chunks_keeps_its_deadline),
	cmocka_unit_test(a_stream_means_the_same_though_chunks_run_out))
