// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/telling.h"
#include "lb/base/time.h"
#include "tests/support/check.h"

#define NOW (1000 * NS_PER_SECOND)

static void fl_155_clients_are_told_evenly_over_the_first_tenth_of_what_is_left(void **state)
{
	(void)state;
	struct rand rand;
	uint32_t counts[10] = {0};
	uint64_t telling_ns = proxy_telling_ns(NOW, NOW + 300 * NS_PER_SECOND);
	assert_int_equal(telling_ns, 30 * NS_PER_SECOND);
	rand_init(&rand, 1);
	for (int i = 0; i < 100000; i++) {
		uint64_t at_ns = proxy_telling_at(NOW, telling_ns, &rand);
		assert_in_range(at_ns, NOW, NOW + telling_ns);
		counts[(at_ns - NOW) / (3 * NS_PER_SECOND + 1)]++;
	}
	for (int i = 0; i < 10; i++)
		assert_in_range(counts[i], 9700, 10300);
}

// However late it comes, it is told before the end, and what is late at once.
static void fl_155_who_comes_later_has_a_tenth_of_what_is_left_then(void **state)
{
	(void)state;
	struct rand rand;
	rand_init(&rand, 1);
	for (uint64_t left_ns = 300 * NS_PER_SECOND; left_ns; left_ns /= 2)
		assert_true(proxy_telling_at(NOW, proxy_telling_ns(NOW, NOW + left_ns), &rand) <
			    NOW + left_ns);
	assert_int_equal(proxy_telling_ns(NOW, NOW), 0);
	assert_int_equal(proxy_telling_ns(NOW, NOW - NS_PER_SECOND), 0);
	assert_int_equal(proxy_telling_at(NOW, 0, &rand), NOW);
}

RUN_SUITE("proxy/telling",
	cmocka_unit_test(fl_155_clients_are_told_evenly_over_the_first_tenth_of_what_is_left),
	cmocka_unit_test(fl_155_who_comes_later_has_a_tenth_of_what_is_left_then))
