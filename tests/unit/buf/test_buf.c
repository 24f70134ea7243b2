// SPDX-License-Identifier: Apache-2.0
#include "dataplane/buf/buf.h"
#include "lb/base/rand.h"
#include "tests/support/check.h"

#include <string.h>

static struct pool chunks;

static int setup(void **state)
{
	return buf_pool_init(&chunks, 64);
}

static int teardown(void **state)
{
	unsigned left_out = chunks.n_used;
	pool_fini(&chunks);
	return left_out == 0 ? 0 : -1;
}

static uint8_t pattern(size_t i)
{
	return (uint8_t)(i * 7 + i / 251);
}

static void fill(uint8_t *p, size_t from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		p[i] = pattern(from + i);
}

static void expect(const struct buf *b, size_t from)
{
	static uint8_t out[64 * BUF_CHUNK_SIZE];
	buf_copy_out(b, 0, out, b->len);
	for (size_t i = 0; i < b->len; i++)
		assert_int_equal(out[i], pattern(from + i));
}

static void append_is_all_or_nothing(void **state)
{
	static uint8_t big[65 * BUF_CHUNK_ROOM];
	struct buf b = {0};
	assert_false(buf_append(&b, &chunks, big, 64 * BUF_CHUNK_ROOM + 1));
	assert_int_equal(b.len, 0);
	assert_int_equal(chunks.n_used, 0);
	assert_true(buf_append(&b, &chunks, big, 64 * BUF_CHUNK_ROOM));
	assert_false(buf_append(&b, &chunks, big, 1));
	assert_null(buf_reserve(&b, &chunks, 1));
	struct buf other = {0};
	assert_false(buf_append(&other, &chunks, big, 1));
	assert_null(other.head);
	buf_clear(&b, &chunks);
	assert_null(b.head);
	assert_null(b.tail);
}

static void reserve_gives_contiguous_bytes_across_a_chunk_edge(void **state)
{
	static uint8_t data[BUF_CHUNK_ROOM - 5];
	struct buf b = {0};
	fill(data, 0, sizeof(data));
	assert_true(buf_append(&b, &chunks, data, sizeof(data)));
	uint8_t *p = buf_reserve(&b, &chunks, 9);
	fill(p, sizeof(data), 9);
	assert_int_equal(b.len, sizeof(data) + 9);
	expect(&b, 0);
	buf_clear(&b, &chunks);
}

static void space_is_only_in_the_last_chunk_and_counts_when_used(void **state)
{
	struct buf b = {0};
	assert_null(buf_space(&b, &chunks, BUF_CHUNK_ROOM + 1));
	assert_int_equal(chunks.n_used, 0);
	uint8_t *p = buf_space(&b, &chunks, BUF_CHUNK_ROOM);
	assert_int_equal(b.len, 0);
	fill(p, 0, 10);
	buf_added(&b, 10);
	assert_int_equal(b.len, 10);
	assert_null(buf_space(&b, &chunks, BUF_CHUNK_ROOM - 9));
	p = buf_space(&b, &chunks, BUF_CHUNK_ROOM - 10);
	fill(p, 10, BUF_CHUNK_ROOM - 10);
	buf_added(&b, BUF_CHUNK_ROOM - 10);
	expect(&b, 0);
	assert_int_equal(chunks.n_used, 1);
	buf_clear(&b, &chunks);
}

static void a_failed_move_moves_nothing(void **state)
{
	static uint8_t data[3 * BUF_CHUNK_ROOM];
	struct buf a = {0}, b = {0}, rest = {0};
	fill(data, 0, sizeof(data));
	assert_true(buf_append(&a, &chunks, data, sizeof(data)));
	while (buf_append(&rest, &chunks, data, BUF_CHUNK_ROOM))
		;
	assert_false(buf_move(&b, &a, BUF_CHUNK_ROOM + 1, &chunks));
	assert_int_equal(a.len, sizeof(data));
	assert_int_equal(b.len, 0);
	expect(&a, 0);
	assert_true(buf_move(&b, &a, BUF_CHUNK_ROOM, &chunks)); // whole chunks need no new one
	expect(&b, 0);
	expect(&a, BUF_CHUNK_ROOM);
	buf_clear(&a, &chunks);
	buf_clear(&b, &chunks);
	buf_clear(&rest, &chunks);
}

static void moved_scraps_do_not_pin_a_chunk_each(void **state)
{
	static uint8_t data[BUF_CHUNK_ROOM];
	struct buf q = {0};
	for (unsigned i = 0; i < 200; i++) { // 32 bytes at the end of a chunk, each time
		struct buf scrap = {0};
		assert_true(buf_append(&scrap, &chunks, data, BUF_CHUNK_ROOM));
		buf_consume(&scrap, &chunks, BUF_CHUNK_ROOM - 32);
		assert_true(buf_move(&q, &scrap, 32, &chunks));
	}
	assert_int_equal(q.len, 200 * 32);
	assert_true(chunks.n_used <= 200 * 32 / BUF_CHUNK_ROOM + 1);
	buf_clear(&q, &chunks);
}

static void a_cursor_reads_on_while_the_queue_grows(void **state)
{
	static uint8_t data[5000], out[5000];
	struct buf b = {0};
	struct buf_cursor at = {0};
	fill(data, 0, sizeof(data));
	assert_true(buf_append(&b, &chunks, data, BUF_CHUNK_ROOM));
	buf_cursor_read(&b, &at, out, BUF_CHUNK_ROOM); // now at the very end of a full chunk
	assert_true(buf_append(&b, &chunks, data + BUF_CHUNK_ROOM, 5000 - BUF_CHUNK_ROOM));
	buf_consume(&b, &chunks, 100);
	buf_cursor_read(&b, &(struct buf_cursor){0}, out, 1);
	assert_int_equal(out[0], pattern(100));
	at.offset -= 100;
	buf_cursor_read(&b, &at, out, 3);
	assert_int_equal(out[0], pattern(BUF_CHUNK_ROOM));
	assert_int_equal(out[2], pattern(BUF_CHUNK_ROOM + 2));
	buf_clear(&b, &chunks);
}

static void pieces_behind_a_mark_are_what_was_appended_since(void **state)
{
	static uint8_t data[5000];
	struct buf b = {0};
	fill(data, 0, sizeof(data));
	assert_true(buf_append(&b, &chunks, data, BUF_CHUNK_ROOM)); // the mark is at a chunk's end
	struct buf_cursor at = buf_end(&b);
	assert_true(buf_append(&b, &chunks, data, sizeof(data)));
	size_t seen = 0;
	for (size_t n; at.offset < b.len; seen += n) {
		uint8_t *p = buf_cursor_piece(&b, &at, &n);
		assert_true(n > 0);
		assert_memory_equal(p, data + seen, n);
		*p ^= 1; // it may be written to
	}
	assert_int_equal(seen, sizeof(data));
	uint8_t changed;
	buf_copy_out(&b, BUF_CHUNK_ROOM, &changed, 1);
	assert_int_equal(changed, data[0] ^ 1);
	buf_clear(&b, &chunks);
}

static void a_cut_falls_between_chunks_if_little_is_left_out(void **state)
{
	static uint8_t data[9 * BUF_CHUNK_ROOM];
	struct buf b = {0};
	assert_int_equal(buf_cut(&b, 100, 8), 0);
	assert_true(buf_append(&b, &chunks, data, sizeof(data)));
	assert_int_equal(buf_cut(&b, 100, 8), 100);
	assert_int_equal(buf_cut(&b, 16384, 24), 8 * BUF_CHUNK_ROOM);
	assert_int_equal(buf_cut(&b, 2500, 24), BUF_CHUNK_ROOM);
	assert_int_equal(buf_cut(&b, 3500, 24), 3500);
	assert_int_equal(buf_cut(&b, sizeof(data) + 1, 24), sizeof(data));
	assert_int_equal(buf_cut(&b, sizeof(data), 3), 3 * BUF_CHUNK_ROOM);
	buf_clear(&b, &chunks);
}

// Naive twin: a queue of a known pattern is described by the number of its first byte.
static void random_operations_keep_order_and_bound_memory(void **state)
{
	static uint8_t data[6000], out[6000];
	struct rand r;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		rand_init(&r, seed);
		struct buf a = {0}, b = {0}; // bytes flow into a, from a to b, and out of b
		size_t n_in = 0, n_out = 0;
		for (unsigned step = 0; step < 2000; step++) {
			size_t n = rand_below(&r, rand_below(&r, 2) ? 6000 : 200);
			uint8_t *p;
			switch (rand_below(&r, 6)) {
			case 0:
				fill(data, n_in, n);
				if (buf_append(&a, &chunks, data, n))
					n_in += n;
				break;
			case 1:
				n = 1 + n % 256;
				p = buf_reserve(&a, &chunks, n);
				if (p) {
					fill(p, n_in, n);
					n_in += n;
				}
				break;
			case 4:
				p = buf_space(&a, &chunks, n + 1);
				if (p) {
					n /= 2;
					fill(p, n_in, n + 1);
					buf_added(&a, n + 1);
					n_in += n + 1;
				}
				break;
			case 2:
				(void)!buf_move(&b, &a, n < a.len ? n : a.len, &chunks);
				break;
			case 3:
				n = n < b.len ? n : b.len;
				buf_consume(&b, &chunks, n);
				n_out += n;
				break;
			default:
				if (b.len) {
					size_t from = rand_below(&r, b.len);
					n = n < b.len - from ? n : b.len - from;
					buf_copy_out(&b, from, out, n);
					for (size_t i = 0; i < n; i++)
						assert_int_equal(out[i], pattern(n_out + from + i));
				}
			}
			assert_int_equal(a.len + b.len, n_in - n_out);
			// b's parts come from a, whose reservations may leave 255 bytes unused.
			assert_true(
				chunks.n_used <= 4 + 2 * (a.len + b.len) / (BUF_CHUNK_ROOM - 256));
		}
		expect(&a, n_in - a.len);
		expect(&b, n_out);
		buf_clear(&a, &chunks);
		buf_clear(&b, &chunks);
		assert_int_equal(chunks.n_used, 0);
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
RUN_SUITE("buf/buf", CASE(append_is_all_or_nothing),
	CASE(reserve_gives_contiguous_bytes_across_a_chunk_edge),
	CASE(space_is_only_in_the_last_chunk_and_counts_when_used),
	CASE(a_failed_move_moves_nothing), CASE(moved_scraps_do_not_pin_a_chunk_each),
	CASE(a_cursor_reads_on_while_the_queue_grows),
	CASE(pieces_behind_a_mark_are_what_was_appended_since),
	CASE(a_cut_falls_between_chunks_if_little_is_left_out),
	CASE(random_operations_keep_order_and_bound_memory))
