// SPDX-License-Identifier: Apache-2.0
#include "lb/base/rand.h"
#include "lb/index/strsort.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ITEMS 3000

static void check_sorted(struct lb_strsort_item *items, uint32_t n)
{
	static bool seen[MAX_ITEMS];
	memset(seen, 0, sizeof(seen));
	assert_true(lb_strsort(items, n));
	for (uint32_t i = 0; i < n; i++) {
		assert_false(seen[items[i].index]); // none is lost
		seen[items[i].index] = true;
		if (i == 0)
			continue;
		const struct lb_strsort_item *a = &items[i - 1], *b = &items[i];
		size_t len = a->len < b->len ? a->len : b->len;
		int order = len ? memcmp(a->p, b->p, len) : 0;
		assert_true(order < 0 || (order == 0 && a->len <= b->len));
	}
}

// Few kinds of bytes, zeros among them, make shared beginnings and equal strings.
static void random_strings_are_sorted(void **state)
{
	(void)state;
	static uint8_t texts[MAX_ITEMS][40];
	static struct lb_strsort_item items[MAX_ITEMS];
	struct rand r;
	rand_init(&r, 3);
	for (int round = 0; round < 300; round++) {
		uint32_t n = (uint32_t)rand_below(&r, round % 10 ? 100 : MAX_ITEMS);
		uint64_t kinds = 1 + rand_below(&r, 4), same = rand_below(&r, 30);
		for (uint32_t i = 0; i < n; i++) {
			items[i] = (struct lb_strsort_item){
				.p = texts[i], .len = rand_below(&r, 41), .index = i};
			for (size_t k = 0; k < items[i].len; k++)
				texts[i][k] = k < same ? 7 : (uint8_t)(rand_below(&r, kinds) * 85);
		}
		check_sorted(items, n);
	}
}

// The stack is bounded however long the common beginning is.
static void long_equal_strings_are_sorted(void **state)
{
	(void)state;
	static uint8_t text[300000];
	static struct lb_strsort_item items[100];
	for (uint32_t i = 0; i < 100; i++)
		items[i] = (struct lb_strsort_item){
			.p = text, .len = sizeof(text) - i % 7, .index = i};
	check_sorted(items, 100);
}

static void each_failed_allocation_is_survived(void **state)
{
	(void)state;
	struct lb_strsort_item items[2] = {{.p = (const uint8_t *)"b", .len = 1},
		{.p = (const uint8_t *)"a", .len = 1, .index = 1}};
	bool ok = false;
	ALLOC_FAIL_EACH(ok = lb_strsort(items, 2), !ok, (void)0);
	assert_int_equal(items[0].index, 1);
}

RUN_SUITE("lb/strsort", cmocka_unit_test(random_strings_are_sorted),
	cmocka_unit_test(long_equal_strings_are_sorted),
	cmocka_unit_test(each_failed_allocation_is_survived))
