// SPDX-License-Identifier: Apache-2.0
#include "lb/index/strmap.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <stdio.h>

static void keys_are_numbered_in_the_order_they_come(void **state)
{
	(void)state;
	struct lb_strmap *m = lb_strmap_new(0, 0);
	assert_non_null(m);
	assert_int_equal(lb_strmap_find(m, STR("a")), LB_STRMAP_NONE);
	assert_int_equal(lb_strmap_add(m, STR("b")), 0);
	assert_int_equal(lb_strmap_add(m, STR("a")), 1);
	assert_int_equal(lb_strmap_add(m, (struct str){0}), 2);
	assert_int_equal(lb_strmap_add(m, STR("b")), 0);
	assert_int_equal(lb_strmap_add(m, STR("b\0")), 3);
	assert_int_equal(lb_strmap_count(m), 4);
	assert_true(lb_strmap_seal(m));
	assert_int_equal(lb_strmap_find(m, STR("a")), 1);
	assert_int_equal(lb_strmap_find(m, (struct str){0}), 2);
	assert_int_equal(lb_strmap_find(m, STR("b\0")), 3);
	assert_int_equal(lb_strmap_find(m, STR("c")), LB_STRMAP_NONE);
	lb_strmap_free(m);
	lb_strmap_free(NULL);
}

static void thousands_are_found_and_others_are_not(void **state)
{
	(void)state;
	enum { N = 20000 };
	for (uint32_t expected = 0; expected <= N; expected += N) {
		struct lb_strmap *m = lb_strmap_new(expected, 4);
		assert_non_null(m);
		char name[24];
		for (uint32_t i = 0; i < 2 * N; i++) {
			snprintf(name, sizeof(name), "/service%u", i);
			if (i >= N)
				continue;
			assert_int_equal(lb_strmap_add(m, str_from(name)), i);
			assert_int_equal(*(uint32_t *)lb_strmap_value(m, i), 0);
			*(uint32_t *)lb_strmap_value(m, i) = ~i;
		}
		assert_true(lb_strmap_seal(m));
		// Slots are three quarters full at most, and more than three eighths.
		assert_true(lb_strmap_size(m) < N * (16 + 22 + 4 + 4 + 8));
		for (uint32_t i = 0; i < 2 * N; i++) {
			snprintf(name, sizeof(name), "/service%u", i);
			assert_int_equal(
				lb_strmap_find(m, str_from(name)), i < N ? i : LB_STRMAP_NONE);
			const uint32_t *value = lb_strmap_find_value(m, str_from(name));
			assert_true(i < N ? *value == ~i : !value);
		}
		lb_strmap_free(m);
	}
}

static struct lb_strmap *make(void)
{
	struct lb_strmap *m = lb_strmap_new(1, 8);
	bool ok = m != NULL;
	for (int i = 0; ok && i < 40; i++) {
		char name[3] = {(char)('a' + i), 'x', 0};
		ok = lb_strmap_add(m, str_from(name)) == (uint32_t)i;
	}
	if (ok && lb_strmap_seal(m))
		return m;
	lb_strmap_free(m);
	return NULL;
}

static void each_failed_allocation_is_survived(void **state)
{
	(void)state;
	struct lb_strmap *m = NULL;
	ALLOC_FAIL_EACH(m = make(), !m, lb_strmap_free(m));
}

RUN_SUITE("lb/strmap", cmocka_unit_test(keys_are_numbered_in_the_order_they_come),
	cmocka_unit_test(thousands_are_found_and_others_are_not),
	cmocka_unit_test(each_failed_allocation_is_survived))
