// SPDX-License-Identifier: Apache-2.0
// When the memory of a storm of handshakes is given back.
#include "lb/base/time.h"
#include "tests/support/check.h"
#include "tlshs/storm.h"

#define S NS_PER_SECOND
#define NOW (3600 * S)

static void few_at_a_time_are_no_storm(void **state)
{
	(void)state;
	struct tlshs_storm s = {0};
	for (uint64_t i = 0; i < 100; i++) {
		tlshs_storm_see(&s, 127);
		assert_false(tlshs_storm_is_over(&s, 0, NOW + i * S));
	}
}

static void tls_218_a_storm_is_over_when_three_quarters_have_ended(void **state)
{
	(void)state;
	struct tlshs_storm s = {0};
	tlshs_storm_see(&s, 128);
	assert_false(tlshs_storm_is_over(&s, 33, NOW));
	assert_true(tlshs_storm_is_over(&s, 32, NOW));
}

// One that is seen while there is nothing to do: another thread's.
static void a_storm_of_others_is_one(void **state)
{
	(void)state;
	struct tlshs_storm s = {0};
	assert_false(tlshs_storm_is_over(&s, 400, NOW));
	assert_true(tlshs_storm_is_over(&s, 100, NOW));
}

static void tls_218_the_rest_is_due_as_it_ends_and_then_nothing_is(void **state)
{
	(void)state;
	struct tlshs_storm s = {0};
	tlshs_storm_see(&s, 400);
	assert_true(tlshs_storm_is_over(&s, 100, NOW));
	assert_false(tlshs_storm_is_over(&s, 26, NOW + 10 * S));
	assert_false(tlshs_storm_is_over(&s, 25, NOW + 10 * S - 1));
	assert_true(tlshs_storm_is_over(&s, 25, NOW + 10 * S));
	assert_true(tlshs_storm_is_over(&s, 3, NOW + 20 * S));
	assert_false(tlshs_storm_is_over(&s, 1, NOW + 30 * S));
	assert_true(tlshs_storm_is_over(&s, 0, NOW + 30 * S));
	for (uint64_t i = 0; i < 100; i++)
		assert_false(tlshs_storm_is_over(&s, 0, NOW + (40 + i) * S));
}

static void who_comes_later_does_not_put_the_rest_off(void **state)
{
	(void)state;
	struct tlshs_storm s = {0};
	tlshs_storm_see(&s, 128);
	assert_true(tlshs_storm_is_over(&s, 4, NOW));
	tlshs_storm_see(&s, 127);
	assert_false(tlshs_storm_is_over(&s, 2, NOW + 10 * S));
	assert_true(tlshs_storm_is_over(&s, 1, NOW + 10 * S));
}

static void tls_218_ten_seconds_pass_from_one_storm_to_the_next(void **state)
{
	(void)state;
	struct tlshs_storm s = {0};
	unsigned n = 0;
	for (uint64_t i = 0; i < 100; i++) {
		tlshs_storm_see(&s, 1000);
		n += tlshs_storm_is_over(&s, 0, NOW + i * S);
	}
	assert_int_equal(n, 10);
}

RUN_SUITE("tlshs/storm", cmocka_unit_test(few_at_a_time_are_no_storm),
	cmocka_unit_test(tls_218_a_storm_is_over_when_three_quarters_have_ended),
	cmocka_unit_test(a_storm_of_others_is_one),
	cmocka_unit_test(tls_218_the_rest_is_due_as_it_ends_and_then_nothing_is),
	cmocka_unit_test(who_comes_later_does_not_put_the_rest_off),
	cmocka_unit_test(tls_218_ten_seconds_pass_from_one_storm_to_the_next))
