// SPDX-License-Identifier: Apache-2.0
#include "tests/support/check.h"
#include "tools/fleet-sim/options.h"

#define READ(o, ...)                                                                               \
	options_read((int)(sizeof((char *[]){"", __VA_ARGS__}) / sizeof(char *)),                  \
		(char *[]){"", __VA_ARGS__}, o)

static void all_tables_unless_some_are_named(void **state)
{
	(void)state;
	struct options o;
	assert_true(READ(&o, "--seed", "18446744073709551615"));
	assert_true(o.scale && o.load && o.subsets && o.spread && o.rolling && o.age);
	assert_int_equal(o.seed, UINT64_MAX);
	assert_int_equal(o.hosts, 1000);
	assert_true(READ(&o, "age", "--hosts", "10", "load"));
	assert_true(o.load && o.age && !o.scale && !o.subsets && !o.spread && !o.rolling);
	assert_int_equal(o.hosts, 10);
}

static void what_is_wrong_is_refused(void **state)
{
	(void)state;
	struct options o;
	assert_false(READ(&o, "--hosts"));
	assert_false(READ(&o, "--hosts", "9"));
	assert_false(READ(&o, "--hosts", "10001"));
	assert_false(READ(&o, "--hosts", "-1"));
	assert_false(READ(&o, "--hosts", "1x"));
	assert_false(READ(&o, "--hosts", ""));
	assert_false(READ(&o, "--waves", "1")); // there would be nowhere to go
	assert_true(READ(&o, "--waves", "2"));
	assert_false(READ(&o, "--farewell-s", "1")); // as shuntd
	assert_false(READ(&o, "--farewell-s", "591")); // and 3 s, 2 s and 5 s are more than 600
	assert_true(READ(&o, "--farewell-s", "591", "--drain-s", "2"));
	assert_false(READ(&o, "--farewell-s", "591", "scale", "rolling"));
	assert_false(READ(&o, "--nobodys", "1"));
	assert_false(READ(&o, "nobodys"));
}

static void waves_need_not_fit_where_there_are_none(void **state)
{
	(void)state;
	struct options o;
	assert_true(READ(&o, "--farewell-s", "591", "scale"));
	assert_true(READ(&o, "age", "load", "--wave-s", "1"));
}

RUN_SUITE("fleet-sim/options", cmocka_unit_test(all_tables_unless_some_are_named),
	cmocka_unit_test(what_is_wrong_is_refused),
	cmocka_unit_test(waves_need_not_fit_where_there_are_none))
