// SPDX-License-Identifier: Apache-2.0
#include "tests/support/quiet.h"

#include "tests/support/alloc_fail.h"

#include <linux/prctl.h>
#include <signal.h>
#include <sys/prctl.h>

static struct quiet seen;
static volatile sig_atomic_t n_calls, last_call;
static volatile char calls = SYSCALL_DISPATCH_FILTER_ALLOW;

static void on_call(int signal, siginfo_t *info, void *context)
{
	calls = SYSCALL_DISPATCH_FILTER_ALLOW;
	n_calls++;
	last_call = info->si_syscall;
}

void quiet_watch(bool begins)
{
	if (begins) {
		seen.n_watched++;
		alloc_fail_arm(0);
		calls = SYSCALL_DISPATCH_FILTER_BLOCK;
		return;
	}
	calls = SYSCALL_DISPATCH_FILTER_ALLOW;
	seen.n_allocations += alloc_fail_disarm();
}

bool quiet_start(void)
{
	const struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO};
	seen = (struct quiet){0};
	n_calls = last_call = 0;
	sigaction(SIGSYS, &action, NULL);
	return alloc_fail_works() &&
	       prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &calls) == 0;
}

struct quiet quiet_stop(void)
{
	prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0);
	seen.n_calls = n_calls;
	seen.last_call = last_call;
	return seen;
}
