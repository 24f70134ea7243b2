// SPDX-License-Identifier: Apache-2.0
// OPS-242
#include "tests/support/check.h"
#include "tools/shuntctl/ping.h"

static void who_hears_nothing_at_all_fails(void **state)
{
	assert_int_equal(ping_status("answered: 0\n", 0), 1);
	assert_int_equal(ping_status("answered: 1\n", 0), 0);
	assert_int_equal(ping_status("requests: 3\n", 1), 1);
	assert_int_equal(ping_status("{\"data\":{\"answered\":0,\"replies\":[]}}\n", 0), 1);
	assert_int_equal(ping_status("{\"data\":{\"answered\":10,\"replies\":[]}}\n", 0), 0);
}

static void no_other_command_is_ping(void **state)
{
	assert_true(ping_is_asked("ping 10.0.0.1"));
	assert_false(ping_is_asked("pings 10.0.0.1"));
	assert_false(ping_is_asked("show ping"));
}

RUN_SUITE("shuntctl/ping", cmocka_unit_test(who_hears_nothing_at_all_fails),
	cmocka_unit_test(no_other_command_is_ping))
