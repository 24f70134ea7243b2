// SPDX-License-Identifier: Apache-2.0
#include "lb/index/string_index.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <stdio.h>

static void keys_are_numbered_in_the_order_they_come(void **state)
{
	(void)state;
	struct lb_string_index *m = lb_string_index_new(0, 0);
	assert_non_null(m);
	assert_int_equal(lb_string_index_find(m, STR("a")), LB_STRING_INDEX_NONE);
	assert_int_equal(lb_string_index_add(m, STR("b")), 0);
	assert_int_equal(lb_string_index_add(m, STR("a")), 1);
	assert_int_equal(lb_string_index_add(m, (struct str){0}), 2);
	assert_int_equal(lb_string_index_add(m, STR("b")), 0);
	assert_int_equal(lb_string_index_add(m, STR("b\0")), 3);
	assert_int_equal(lb_string_index_count(m), 4);
	assert_true(lb_string_index_seal(m));
	assert_int_equal(lb_string_index_find(m, STR("a")), 1);
	assert_int_equal(lb_string_index_find(m, (struct str){0}), 2);
	assert_int_equal(lb_string_index_find(m, STR("b\0")), 3);
	assert_int_equal(lb_string_index_find(m, STR("c")), LB_STRING_INDEX_NONE);
	lb_string_index_free(m);
	lb_string_index_free(NULL);
}

static void thousands_are_found_and_others_are_not(void **state)
{
	(void)state;
	enum { N = 20000 };
	for (uint32_t expected = 0; expected <= N; expected += N) {
		struct lb_string_index *m = lb_string_index_new(expected, 4);
		assert_non_null(m);
		char name[24];
		for (uint32_t i = 0; i < 2 * N; i++) {
			snprintf(name, sizeof(name), "/service%u", i);
			if (i >= N)
				continue;
			assert_int_equal(lb_string_index_add(m, str_from(name)), i);
			assert_int_equal(*(uint32_t *)lb_string_index_value(m, i), 0);
			*(uint32_t *)lb_string_index_value(m, i) = ~i;
		}
		assert_true(lb_string_index_seal(m));
		// Slots are three quarters full at most, and more than three eighths.
		assert_true(lb_string_index_size(m) < N * (16 + 22 + 4 + 4 + 8));
		for (uint32_t i = 0; i < 2 * N; i++) {
			snprintf(name, sizeof(name), "/service%u", i);
			assert_int_equal(lb_string_index_find(m, str_from(name)),
				i < N ? i : LB_STRING_INDEX_NONE);
			const uint32_t *value = lb_string_index_find_value(m, str_from(name));
			assert_true(i < N ? *value == ~i : !value);
		}
		lb_string_index_free(m);
	}
}

static struct lb_string_index *make(void)
{
	struct lb_string_index *m = lb_string_index_new(1, 8);
	bool ok = m != NULL;
	for (int i = 0; ok && i < 40; i++) {
		char name[3] = {(char)('a' + i), 'x', 0};
		ok = lb_string_index_add(m, str_from(name)) == (uint32_t)i;
	}
	if (ok && lb_string_index_seal(m))
		return m;
	lb_string_index_free(m);
	return NULL;
}

static void each_failed_allocation_is_survived(void **state)
{
	(void)state;
	struct lb_string_index *m = NULL;
	ALLOC_FAIL_EACH(m = make(), !m, lb_string_index_free(m));
}

RUN_SUITE("lb/string_index", cmocka_unit_test(keys_are_numbered_in_the_order_they_come),
	cmocka_unit_test(thousands_are_found_and_others_are_not),
	cmocka_unit_test(each_failed_allocation_is_survived))
