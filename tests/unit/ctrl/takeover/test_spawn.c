// SPDX-License-Identifier: Apache-2.0
#include "ctrl/takeover/spawn.h"
#include "tests/support/check.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

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

// OPS-265
static void its_end_is_told_once_with_its_status(void **state)
{
	static char program[] = "false";
	char *argv[] = {program, NULL};
	struct takeover_spawn s;
	pid_t started, ended;
	int status;
	assert_int_equal(takeover_spawn_init(&s, 1, argv), 0);
	assert_false(takeover_spawn_ended(&s, &ended, &status)); // nothing was started
	assert_int_equal(takeover_spawn_run(&s), 0);
	started = s.last;
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)started, &info, WEXITED | WNOWAIT), 0);
	assert_true(takeover_spawn_ended(&s, &ended, &status));
	assert_int_equal(ended, started);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
	assert_false(takeover_spawn_ended(&s, &ended, &status));
	assert_int_equal(takeover_spawn_run(&s), 0); // another may come
	assert_int_equal(waitpid(s.last, &status, 0), s.last);
	takeover_spawn_fini(&s);
}

// FL-174
static void who_was_followed_says_why_it_starts_nobody(void **state)
{
	static char program[] = "cat", file[] = "/dev/zero";
	char *argv[] = {program, file, NULL};
	struct takeover_spawn s;
	int status;
	assert_int_equal(takeover_spawn_init(&s, 2, argv), 0);
	s.argv[2] = NULL; // cat knows no --takeover
	int out = dup(STDOUT_FILENO), fds[2];
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(dup2(fds[1], STDOUT_FILENO), STDOUT_FILENO); // it waits there
	int rc = takeover_spawn_run(&s), again = takeover_spawn_run(&s);
	assert_int_equal(dup2(out, STDOUT_FILENO), STDOUT_FILENO);
	assert_int_equal(rc, 0);
	assert_string_equal(
		takeover_spawn_why_not(again), "the one that was started before still runs");
	assert_string_equal(takeover_spawn_why_not(-ENOENT), "No such file or directory");
	assert_int_equal(kill(s.last, SIGKILL), 0);
	assert_int_equal(waitpid(s.last, &status, 0), s.last);
	takeover_spawn_fini(&s);
	close(fds[0]);
	close(fds[1]);
	close(out);
}

RUN_SUITE("takeover/spawn", cmocka_unit_test(who_was_followed_says_why_it_starts_nobody),
	cmocka_unit_test(the_program_is_started_whatever_the_machine),
	cmocka_unit_test(its_end_is_told_once_with_its_status))
