// SPDX-License-Identifier: Apache-2.0
#include "lb/base/lines.h"
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
		blocks[i] = lines_new(1, size);
		between[i] = malloc(1 + i % 100); // so that others come to lie at every offset
		assert_non_null(blocks[i]);
		assert_int_equal((uintptr_t)blocks[i] % LINE_SIZE, 0);
		for (size_t k = 0; k < size; k++)
			assert_int_equal(blocks[i][k], 0);
		size_t whole = (size + LINE_SIZE - 1) / LINE_SIZE * LINE_SIZE;
		memset(blocks[i], (int)i | 1, whole); // a sanitizer sees whether it is ours
	}
	for (size_t i = 0; i < N; i++) {
		size_t size = 1 + i * 37 % 9000;
		for (size_t k = 0; k < size; k++)
			assert_int_equal(blocks[i][k], (uint8_t)(i | 1));
		uintptr_t line = (uintptr_t)between[i] / LINE_SIZE;
		for (size_t b = 0; b < N; b++) {
			uintptr_t first = (uintptr_t)blocks[b] / LINE_SIZE;
			size_t n = (1 + b * 37 % 9000 + LINE_SIZE - 1) / LINE_SIZE;
			assert_false(line >= first && line < first + n);
		}
	}
	for (size_t i = 0; i < N; i++) {
		free(between[i]);
		lines_free(blocks[i]);
	}
	lines_free(NULL);
}

static void too_much_is_refused(void **state)
{
	assert_null(lines_new(SIZE_MAX / 2, 3));
	assert_null(lines_new(1, SIZE_MAX - 70));
}

RUN_SUITE("base/lines", cmocka_unit_test(no_line_is_anybody_elses),
	cmocka_unit_test(too_much_is_refused))
