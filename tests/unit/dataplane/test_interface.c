// SPDX-License-Identifier: Apache-2.0
#include "dataplane/interface.h"
#include "tests/support/check.h"

#include <sys/resource.h>

#define NOBODYS 1000000 // an index that no interface has

static void an_interface_is_gone_only_if_the_kernel_says_so(void **state)
{
	unsigned loopback = interface_find("lo");
	struct rlimit before, none;
	assert_true(interface_exists(loopback));
	assert_false(interface_exists(NOBODYS));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	bool is_there = interface_exists(loopback);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(is_there); // for want of a descriptor nobody can tell
}

RUN_SUITE("dataplane/interface", cmocka_unit_test(an_interface_is_gone_only_if_the_kernel_says_so))
