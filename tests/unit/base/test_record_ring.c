// SPDX-License-Identifier: Apache-2.0
#include "lb/base/record_ring.h"
#include "tests/support/check.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

static bool put(struct record_ring *r, uint32_t len, uint8_t fill)
{
	uint8_t *to = record_ring_place(r, len);
	if (to)
		memset(to, fill, len);
	return to;
}

// The next record has this length and content, and is passed.
static void assert_next(struct record_ring *r, uint32_t len, uint8_t fill)
{
	uint32_t n = 0;
	const uint8_t *from = record_ring_peek(r, &n);
	assert_non_null(from);
	assert_int_equal(n, len);
	assert_int_equal((uintptr_t)from % 8, 0);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(from[i], fill);
	record_ring_pass(r);
}

static void records_are_seen_when_published(void **state)
{
	struct record_ring r;
	uint32_t n;
	assert_int_equal(record_ring_init(&r, 200), 0);
	assert_int_equal(r.size, 256);
	assert_true(put(&r, 5, 1) && put(&r, 0, 2));
	assert_null(record_ring_peek(&r, &n));
	record_ring_publish(&r);
	assert_next(&r, 5, 1);
	assert_next(&r, 0, 2);
	assert_null(record_ring_peek(&r, &n));
	record_ring_fini(&r);
}

static void a_full_ring_refuses_until_a_record_is_passed(void **state)
{
	struct record_ring r;
	assert_int_equal(record_ring_init(&r, 64), 0);
	assert_true(put(&r, 24, 1) && put(&r, 24, 2)); // 32 bytes each
	assert_false(put(&r, 0, 3));
	record_ring_publish(&r);
	assert_next(&r, 24, 1);
	assert_true(put(&r, 24, 3));
	assert_false(put(&r, 1, 4));
	record_ring_publish(&r);
	assert_next(&r, 24, 2);
	assert_next(&r, 24, 3);
	record_ring_fini(&r);
}

static void a_record_above_half_of_the_ring_never_fits(void **state)
{
	struct record_ring r;
	assert_int_equal(record_ring_init(&r, 64), 0);
	assert_false(put(&r, 25, 1));
	assert_false(put(&r, UINT32_MAX, 1));
	assert_true(put(&r, 24, 1));
	record_ring_fini(&r);
}

static void a_record_lies_in_one_piece_at_each_place_of_the_ring(void **state)
{
	struct record_ring r;
	assert_int_equal(record_ring_init(&r, 256), 0);
	r.head = r.tail = r.seen_tail = UINT32_MAX - 263; // counters may wrap
	r.base += r.head;
	r.end = r.next;
	for (uint32_t i = 0; i < 1000; i++) {
		uint32_t len = i * 7 % 120;
		assert_true(put(&r, len, (uint8_t)i));
		record_ring_publish(&r);
		assert_next(&r, len, (uint8_t)i);
	}
	record_ring_fini(&r);
}

// What the reader gives back is used again from where records end, in each order of full and empty.
static void records_are_none_others_whatever_is_passed_meanwhile(void **state)
{
	struct record_ring r;
	uint32_t n_placed = 0, n_passed = 0, seed = 1;
	assert_int_equal(record_ring_init(&r, 1024), 0);
	for (int i = 0; i < 20000; i++) {
		seed = seed * 1664525 + 1013904223;
		uint32_t len = seed >> 8 & 255;
		if (seed >> 31) {
			n_placed += put(&r, len, (uint8_t)(n_placed * 3 + len));
			assert_true(r.next <= r.bytes + r.size);
			if (seed >> 30 & 1)
				record_ring_publish(&r);
			continue;
		}
		uint32_t n;
		const uint8_t *from = record_ring_peek(&r, &n);
		for (uint32_t k = 0; from && k < n; k++)
			assert_int_equal(from[k], (uint8_t)(n_passed * 3 + n));
		if (from) {
			record_ring_pass(&r);
			n_passed++;
		}
	}
	assert_in_range(n_passed, 5000, n_placed);
	record_ring_fini(&r);
}

static void a_record_that_is_too_long_leaves_the_room_to_others(void **state)
{
	struct record_ring r;
	assert_int_equal(record_ring_init(&r, 256), 0);
	assert_true(put(&r, 8, 1));
	assert_false(put(&r, 200, 2));
	assert_true(put(&r, 8, 3));
	record_ring_publish(&r);
	assert_next(&r, 8, 1);
	assert_next(&r, 8, 3);
	record_ring_fini(&r);
}

#define N_SENT 200000

static void *write_numbers(void *arg)
{
	struct record_ring *r = arg;
	for (uint32_t i = 0; i < N_SENT;) {
		uint32_t len = sizeof(i) * (1 + i % 9);
		uint32_t *to = record_ring_place(r, len);
		for (uint32_t k = 0; to && k < len / sizeof(i); k++)
			to[k] = i;
		i += to != NULL;
		if (!to || i % 5 == 0)
			record_ring_publish(r);
		if (!to)
			sched_yield();
	}
	record_ring_publish(r);
	return NULL;
}

static void two_threads_lose_and_change_nothing(void **state)
{
	struct record_ring r;
	pthread_t writer;
	assert_int_equal(record_ring_init(&r, 4096), 0);
	assert_int_equal(pthread_create(&writer, NULL, write_numbers, &r), 0);
	for (uint32_t i = 0; i < N_SENT;) {
		uint32_t len;
		const uint32_t *from = record_ring_peek(&r, &len);
		if (!from) {
			sched_yield();
			continue;
		}
		assert_int_equal(len, sizeof(i) * (1 + i % 9));
		for (uint32_t k = 0; k < len / sizeof(i); k++)
			assert_int_equal(from[k], i);
		record_ring_pass(&r);
		i++;
	}
	pthread_join(writer, NULL);
	record_ring_fini(&r);
}

RUN_SUITE("base/record_ring", cmocka_unit_test(records_are_seen_when_published),
	cmocka_unit_test(a_full_ring_refuses_until_a_record_is_passed),
	cmocka_unit_test(a_record_above_half_of_the_ring_never_fits),
	cmocka_unit_test(a_record_lies_in_one_piece_at_each_place_of_the_ring),
	cmocka_unit_test(records_are_none_others_whatever_is_passed_meanwhile),
	cmocka_unit_test(a_record_that_is_too_long_leaves_the_room_to_others),
	cmocka_unit_test(two_threads_lose_and_change_nothing))
