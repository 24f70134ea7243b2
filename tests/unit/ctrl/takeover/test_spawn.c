// SPDX-License-Identifier: Apache-2.0
#include "ctrl/takeover/spawn.h"
#include "tests/support/check.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/wait.h>

int __real_sched_getaffinity(pid_t, size_t size, cpu_set_t *ret);
int __wrap_sched_getaffinity(pid_t, size_t size, cpu_set_t *ret);

static bool is_big; // the machine has more cores than a cpu_set_t

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *ret)
{
	errno = EINVAL;
	return is_big ? -1 : __real_sched_getaffinity(pid, size, ret);
}

// FL-16
static void the_program_is_started_whatever_the_machine(void **state)
{
	static char program[] = "test", wanted[] = "--takeover";
	char *argv[] = {program, wanted, (char[]){"="}, NULL}; // test --takeover = --takeover
	for (int i = 0; i < 2; i++) {
		struct takeover_spawn s;
		int status = -1;
		is_big = i;
		assert_int_equal(takeover_spawn_init(&s, 3, argv), 0);
		assert_int_equal(takeover_spawn_run(&s), 0);
		assert_int_equal(waitpid(s.last, &status, 0), s.last);
		assert_int_equal(status, 0);
		takeover_spawn_fini(&s);
	}
}

RUN_SUITE("takeover/spawn", cmocka_unit_test(the_program_is_started_whatever_the_machine))
