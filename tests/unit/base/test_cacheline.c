// SPDX-License-Identifier: Apache-2.0
#include "lb/base/cacheline.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

static void no_line_is_anybody_elses(void **state)
{
	enum { N = 400 };
	static uint8_t *blocks[N];
	static void *between[N];
	for (size_t i = 0; i < N; i++) {
		size_t size = 1 + i * 37 % 9000;
		blocks[i] = cacheline_alloc(1, size);
		between[i] = malloc(1 + i % 100); // so that others come to lie at every offset
		assert_non_null(blocks[i]);
		assert_int_equal((uintptr_t)blocks[i] % CACHELINE_SIZE, 0);
		for (size_t k = 0; k < size; k++)
			assert_int_equal(blocks[i][k], 0);
		size_t whole = (size + CACHELINE_SIZE - 1) / CACHELINE_SIZE * CACHELINE_SIZE;
		memset(blocks[i], (int)i | 1, whole); // a sanitizer sees whether it is ours
	}
	for (size_t i = 0; i < N; i++) {
		size_t size = 1 + i * 37 % 9000;
		for (size_t k = 0; k < size; k++)
			assert_int_equal(blocks[i][k], (uint8_t)(i | 1));
		uintptr_t line = (uintptr_t)between[i] / CACHELINE_SIZE;
		for (size_t b = 0; b < N; b++) {
			uintptr_t first = (uintptr_t)blocks[b] / CACHELINE_SIZE;
			size_t n = (1 + b * 37 % 9000 + CACHELINE_SIZE - 1) / CACHELINE_SIZE;
			assert_false(line >= first && line < first + n);
		}
	}
	for (size_t i = 0; i < N; i++) {
		free(between[i]);
		cacheline_free(blocks[i]);
	}
	cacheline_free(NULL);
}

static void too_much_is_refused(void **state)
{
	assert_null(cacheline_alloc(SIZE_MAX / 2, 3));
	assert_null(cacheline_alloc(1, SIZE_MAX - 70));
}

RUN_SUITE("base/cacheline", cmocka_unit_test(no_line_is_anybody_elses),
	cmocka_unit_test(too_much_is_refused))
