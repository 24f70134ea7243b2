// SPDX-License-Identifier: Apache-2.0
// That what the tests of packet paths rely on does find a system call and an allocation.
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/support/confined.h"
#include "tests/support/quiet.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool nothing(void *user)
{
	return true;
}

static bool something_fails(void *user)
{
	return false;
}

static bool a_system_call(void *user)
{
	syscall(SYS_getppid);
	return true;
}

static bool an_allocation(void *user)
{
	void *volatile p = malloc(16);
	free(p);
	return true;
}

static void whoever_does_what_workers_may_not_is_found(void **state)
{
	assert_true(confined_run(nothing, NULL));
	assert_false(confined_run(something_fails, NULL));
	assert_int_equal(confined_run(a_system_call, NULL), !alloc_fail_works());
	assert_int_equal(confined_run(an_allocation, NULL), !alloc_fail_works());
}

static void what_is_watched_in_parts_is_found(void **state)
{
	if (!quiet_start())
		skip();
	a_system_call(NULL);
	an_allocation(NULL);
	quiet_watch(true);
	a_system_call(NULL);
	an_allocation(NULL);
	quiet_watch(false);
	struct quiet q = quiet_stop();
	assert_int_equal(q.n_watched, 1);
	assert_int_equal(q.n_allocations, 1);
	assert_int_equal(q.n_calls, 1);
	assert_int_equal(q.last_call, SYS_getppid);
}

RUN_SUITE("base/confined", cmocka_unit_test(whoever_does_what_workers_may_not_is_found),
	cmocka_unit_test(what_is_watched_in_parts_is_found))
