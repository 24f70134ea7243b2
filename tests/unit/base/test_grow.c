// SPDX-License-Identifier: Apache-2.0
#include "lb/base/grow.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <stdint.h>
#include <stdlib.h>

static void a_list_keeps_what_it_has_as_it_grows(void **state)
{
	uint64_t *list = NULL;
	uint32_t room = 0, n_grown = 0;
	for (uint32_t n = 0; n < 1000; n++) {
		uint32_t before = room;
		assert_true(grow(&list, n, &room, sizeof(*list)));
		assert_in_range(room, n + 1, UINT32_MAX);
		n_grown += room != before;
		list[n] = n;
	}
	for (uint32_t n = 0; n < 1000; n++)
		assert_int_equal(list[n], n);
	assert_in_range(n_grown, 1, 10); // it doubles
	free(list);
}

static void without_memory_a_list_is_as_before(void **state)
{
	char *list = NULL;
	uint32_t room = 0;
	assert_true(grow(&list, 0, &room, 1));
	char *before = list;
	uint32_t full = room;
	alloc_fail_arm(0);
	bool ok = grow(&list, room, &room, 1);
	assert_int_equal(ok, !alloc_fail_disarm());
	if (!ok) {
		assert_ptr_equal(list, before);
		assert_int_equal(room, full);
	}
	free(list);
}

static void a_list_has_less_than_twice_two_billion_places(void **state)
{
	char *list = NULL;
	uint32_t room = UINT32_MAX / 2 + 1;
	assert_false(grow(&list, room, &room, 1));
	assert_null(list);
}

RUN_SUITE("base/grow", cmocka_unit_test(a_list_keeps_what_it_has_as_it_grows),
	cmocka_unit_test(without_memory_a_list_is_as_before),
	cmocka_unit_test(a_list_has_less_than_twice_two_billion_places))
