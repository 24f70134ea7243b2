// SPDX-License-Identifier: Apache-2.0
#include "lb/base/arena.h"
#include "lb/base/rand.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#define N 2000

static bool is_filled(const uint8_t *p, size_t len, uint8_t with)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != with)
			return false;
	return true;
}

// Each piece is written whole, and read when all are there.
static void pieces_are_zeroed_aligned_and_apart(void **state)
{
	struct lb_arena a = {0};
	struct rand rand;
	static uint8_t *pieces[N];
	static size_t lens[N];
	rand_init(&rand, 1);
	for (size_t i = 0; i < N; i++) {
		lens[i] = rand_below(&rand, i % 50 ? 64 : 5000);
		if (i % 3 == 0) {
			char text[5000];
			memset(text, 'x', sizeof(text));
			struct str copy, from = {text, lens[i]};
			assert_true(lb_arena_copy(&a, from, &copy));
			assert_true(str_eq(copy, from));
			assert_int_equal(copy.p[copy.len], 0);
			pieces[i] = (uint8_t *)(uintptr_t)copy.p;
		} else {
			pieces[i] = lb_arena_alloc(&a, lens[i], 1);
			assert_non_null(pieces[i]);
			assert_int_equal((uintptr_t)pieces[i] % 8, 0);
			assert_true(is_filled(pieces[i], lens[i], 0));
		}
		memset(pieces[i], (int)(i % 251), lens[i]);
	}
	for (size_t i = 0; i < N; i++)
		assert_true(is_filled(pieces[i], lens[i], (uint8_t)(i % 251)));
	lb_arena_fini(&a);
	assert_int_equal(a.n_bytes, 0);
}

static void small_pieces_share_blocks_that_grow(void **state)
{
	struct lb_arena a = {0};
	for (int i = 0; i < 100000; i++)
		assert_non_null(lb_arena_alloc(&a, 2, 8));
	assert_true(a.n_bytes < 1600000 * 5 / 4);
	lb_arena_fini(&a);
}

// The block that serves small ones goes on serving them.
static void large_piece_wastes_no_room(void **state)
{
	struct lb_arena a = {0};
	assert_non_null(lb_arena_alloc(&a, 1, 8));
	size_t before = a.n_bytes;
	assert_non_null(lb_arena_alloc(&a, 1000, 10));
	size_t large = a.n_bytes - before;
	assert_in_range(large, 10000, 10064);
	assert_non_null(lb_arena_alloc(&a, 1, 8));
	assert_int_equal(a.n_bytes, before + large);
	lb_arena_fini(&a);
}

static void product_that_overflows_is_refused(void **state)
{
	struct lb_arena a = {0};
	assert_null(lb_arena_alloc(&a, SIZE_MAX / 2, 3));
	assert_null(lb_arena_alloc(&a, SIZE_MAX, 1));
	assert_int_equal(a.n_bytes, 0);
}

static bool build(struct lb_arena *a)
{
	struct str copy;
	for (int i = 0; i < 20; i++)
		if (!lb_arena_alloc(a, 1, 40) || !lb_arena_copy(a, STR("europe-west4"), &copy) ||
			!lb_arena_alloc(a, 1, 500))
			return false;
	return true;
}

static void want_of_memory_is_said_and_leaks_nothing(void **state)
{
	struct lb_arena a = {0};
	bool ok = false;
	ALLOC_FAIL_EACH(ok = build(&a); if (!ok) lb_arena_fini(&a), !ok, lb_arena_fini(&a));
}

RUN_SUITE("base/arena", cmocka_unit_test(pieces_are_zeroed_aligned_and_apart),
	cmocka_unit_test(small_pieces_share_blocks_that_grow),
	cmocka_unit_test(large_piece_wastes_no_room),
	cmocka_unit_test(product_that_overflows_is_refused),
	cmocka_unit_test(want_of_memory_is_said_and_leaks_nothing))
