// SPDX-License-Identifier: Apache-2.0
#include "ctrl/takeover/spawn.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int takeover_spawn_init(struct takeover_spawn *s, int argc, char **argv)
{
	*s = (struct takeover_spawn){.argv = calloc((size_t)argc + 2, sizeof(*s->argv))};
	if (!s->argv)
		return -ENOMEM;
	memcpy(s->argv, argv, (size_t)argc * sizeof(*argv));
	s->argv[argc] = "--takeover"; // twice does no harm
	if (sched_getaffinity(0, sizeof(s->cores), &s->cores) != 0)
		CPU_ZERO(&s->cores); // EINVAL: a machine of more cores than fit
	return 0;
}

void takeover_spawn_fini(struct takeover_spawn *s)
{
	free(s->argv);
}

// Descriptors of ours are not to outlive us in it: an interface's socket would gather frames.
static int spawn(struct takeover_spawn *s)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	int rc = posix_spawn_file_actions_init(&actions);
	if (rc)
		return -rc;
	rc = posix_spawnattr_init(&attr);
	if (!rc) {
		rc = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
		posix_spawnattr_setsigmask(&attr, &none);
		posix_spawnattr_setsigdefault(&attr, &all);
		posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
		if (!rc)
			rc = posix_spawnp(&s->last, s->argv[0], &actions, &attr, s->argv, environ);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&actions);
	return -rc;
}

// What is started inherits the cores of the thread that starts it, which keeps off the workers'.
int takeover_spawn_run(struct takeover_spawn *s)
{
	cpu_set_t ours;
	if (s->last && waitpid(s->last, NULL, WNOHANG) == 0)
		return -EBUSY;
	s->last = 0;
	bool change = CPU_COUNT(&s->cores) > 0;
	if (change && (sched_getaffinity(0, sizeof(ours), &ours) != 0 ||
			      sched_setaffinity(0, sizeof(s->cores), &s->cores) != 0))
		return -errno;
	int rc = spawn(s);
	if (change)
		sched_setaffinity(0, sizeof(ours), &ours);
	if (rc)
		s->last = 0;
	return rc;
}

const char *takeover_spawn_why_not(int rc)
{
	return rc == -EBUSY ? "the one that was started before still runs" : strerror(-rc);
}

bool takeover_spawn_ended(struct takeover_spawn *s, pid_t *ret_pid, int *ret_status)
{
	if (!s->last || waitpid(s->last, ret_status, WNOHANG) != s->last)
		return false;
	*ret_pid = s->last;
	s->last = 0;
	return true;
}
