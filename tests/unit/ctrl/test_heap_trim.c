// SPDX-License-Identifier: Apache-2.0
// When the heap is trimmed: after much was heard, in silence, and seldom.
#include "ctrl/heap_trim.h"
#include "lb/base/time.h"
#include "tests/support/check.h"

#define S NS_PER_SECOND
#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static void little_is_not_worth_it(void **state)
{
	(void)state;
	struct heap_trim t = {0};
	heap_trim_heard(&t, MIB - 1);
	assert_false(heap_trim_due(&t, 1 * S));
	assert_false(heap_trim_due(&t, 2 * S));
	heap_trim_heard(&t, 1);
	assert_true(heap_trim_due(&t, 3 * S));
	assert_false(heap_trim_due(&t, 60 * S)); // nothing was heard since
}

// Milliseconds of the control thread are not spent while it has updates to carry out.
static void under_load_the_heap_is_left_alone(void **state)
{
	struct heap_trim t = {0};
	uint64_t now = S;
	(void)state;
	for (int i = 0; i < 100; i++, now += S) {
		heap_trim_heard(&t, 2 * MIB);
		assert_false(heap_trim_due(&t, now));
	}
	assert_true(heap_trim_due(&t, now));
}

static void a_trickle_is_no_load(void **state)
{
	(void)state;
	struct heap_trim t = {0};
	heap_trim_heard(&t, 8 * MIB);
	assert_false(heap_trim_due(&t, 1 * S));
	heap_trim_heard(&t, 2 * KIB);
	assert_true(heap_trim_due(&t, 2 * S));
}

static void ten_seconds_pass_from_one_time_to_the_next(void **state)
{
	(void)state;
	struct heap_trim t = {0};
	unsigned n = 0;
	for (uint64_t i = 0; i < 100; i++) {
		if (i % 2 == 0)
			heap_trim_heard(&t, 4 * MIB);
		n += heap_trim_due(&t, (i + 1) * S);
	}
	assert_int_equal(n, 10);
}

RUN_SUITE("ctrl/heap_trim", cmocka_unit_test(little_is_not_worth_it),
	cmocka_unit_test(under_load_the_heap_is_left_alone), cmocka_unit_test(a_trickle_is_no_load),
	cmocka_unit_test(ten_seconds_pass_from_one_time_to_the_next))
