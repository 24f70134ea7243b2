// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/subset_seed.h"
#include "ctrl/conf/config.h"
#include "tests/support/check.h"

static uint64_t seed_of(char *text, const char *node, uint64_t chance)
{
	struct config_xds xds = {.subset_seed = text};
	const struct config config = {.xds = &xds};
	return subset_seed(&config, node, chance);
}

// A68-04
static void chance_decides_unless_there_is_a_text(void **state)
{
	(void)state;
	char first[] = "1", second[] = "2";
	const struct config nothing = {0};
	assert_int_equal(subset_seed(&nothing, "a", 7), 7);
	assert_int_equal(seed_of(NULL, "a", 8), 8);
	uint64_t seed = seed_of(first, "a", 7);
	assert_int_equal(seed_of(first, "a", 8), seed);
	assert_int_not_equal(seed, 7);
	assert_int_not_equal(seed_of(second, "a", 7), seed);
	assert_int_not_equal(seed_of(first, "b", 7), seed);
	assert_int_not_equal(seed_of(first, "", 7), seed);
}

RUN_SUITE("assemble/subset_seed", cmocka_unit_test(chance_decides_unless_there_is_a_text))
