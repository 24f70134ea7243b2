// SPDX-License-Identifier: Apache-2.0
// The first few of many, beside a sort of all.
#include "ctrl/page/worst.h"
#include "tests/support/check.h"

#include <stdlib.h>

struct row {
	uint32_t key, number;
};

static bool is_before(const void *x, const void *y)
{
	const struct row *a = x, *b = y;
	return a->key != b->key ? a->key > b->key : a->number < b->number;
}

static int compare(const void *x, const void *y)
{
	return is_before(x, y) ? -1 : 1;
}

static unsigned n_dropped;
static void drop(void *row)
{
	n_dropped++;
}

static void they_are_those_of_a_sort(void **state)
{
	uint32_t seed = 3;
	for (uint32_t n = 0; n < 200; n += 7) {
		struct row all[200];
		struct worst w;
		uint32_t n_kept = n < 16 ? n : 16, n_added = 0;
		n_dropped = 0;
		assert_true(worst_init(&w, sizeof(struct row), 16, is_before, drop));
		for (uint32_t i = 0; i < n; i++) {
			seed = seed * 1664525 + 1013904223;
			all[i] = (struct row){seed >> 29, i};
			if (worst_wants(&w, &all[i])) {
				worst_add(&w, &all[i]);
				n_added++;
			}
		}
		qsort(all, n, sizeof(all[0]), compare);
		assert_int_equal(w.n, n_kept);
		assert_int_equal(worst_left_out(&w), n - n_kept);
		for (uint32_t i = 0; i < n_kept; i++)
			assert_int_equal(
				((const struct row *)worst_at(&w, i))->number, all[i].number);
		worst_fini(&w);
		assert_int_equal(n_dropped, n_added);
	}
}

RUN_SUITE("ctrl/page/worst", cmocka_unit_test(they_are_those_of_a_sort))
