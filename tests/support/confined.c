// SPDX-License-Identifier: Apache-2.0
#include "tests/support/confined.h"

#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NO_SECCOMP 77

static _Noreturn void child_main(bool (*work)(void *user), void *user)
{
	alloc_fail_arm(0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
		syscall(SYS_exit, NO_SECCOMP);
	bool ok = work(user);
	syscall(SYS_exit, alloc_fail_disarm() || !ok ? 1 : 0);
	__builtin_unreachable();
}

bool confined_run(bool (*work)(void *user), void *user)
{
	int status;
	// Sanitizers have threads of their own, of which a system call would kill one alone.
	if (!alloc_fail_works())
		return work(user);
	pid_t child = fork();
	if (child == 0)
		child_main(work, user);
	if (child < 0 || waitpid(child, &status, 0) != child)
		return false;
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_SECCOMP)
		skip();
	return status == 0;
}
