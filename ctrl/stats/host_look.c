// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/host_look.h"

#include "lb/base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct host_look {
	const char *program, *config;
	pid_t pid; // 0 = there is no process
	int fd; // of what it says; -1 = that is read, or nobody wants to know
	char *said; // owned
	size_t len, room;
	uint64_t until_ns;
	bool cut; // it said too much, or took too long
};

struct host_look *host_look_new(const char *program, const char *config)
{
	struct host_look *l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->program = program;
	l->config = config;
	l->fd = -1;
	return l;
}

static void forget(struct host_look *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	free(l->said);
	l->said = NULL;
	l->len = l->room = 0;
	l->cut = false;
}

// Whether the process is gone. flags: of waitpid().
static bool is_gone(struct host_look *l, int flags)
{
	if (l->pid && waitpid(l->pid, NULL, flags) != 0)
		l->pid = 0;
	return !l->pid;
}

// One that was ended is gone a little later: who begins the next look takes its status.
void host_look_end(struct host_look *l)
{
	if (l->pid)
		kill(l->pid, SIGKILL);
	(void)is_gone(l, WNOHANG);
	forget(l);
}

void host_look_free(struct host_look *l)
{
	if (!l)
		return;
	host_look_end(l);
	(void)is_gone(l, 0);
	free(l);
}

// It has none of our descriptors, among which are devices, and the signals' actions of a fresh
// process.
static int spawn(const struct host_look *l, int to, pid_t *ret)
{
	const char *const argv[] = {
		l->program, "--check", "--device", "--json", "-c", l->config, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	int rc = posix_spawn_file_actions_init(&files);
	if (rc)
		return rc;
	rc = posix_spawnattr_init(&attr);
	if (rc == 0) {
		posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
		posix_spawnattr_setsigmask(&attr, &none);
		posix_spawnattr_setsigdefault(&attr, &all);
		if (posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0) ||
			posix_spawn_file_actions_adddup2(&files, to, 1) ||
			posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0) ||
			posix_spawn_file_actions_addclosefrom_np(&files, 3))
			rc = ENOMEM;
		if (rc == 0)
			rc = posix_spawn(ret, l->program, &files, &attr,
				(char *const *)(uintptr_t)argv, environ);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&files);
	return rc;
}

int host_look_begin(struct host_look *l, uint64_t now_ns)
{
	int ends[2];
	if (l->fd >= 0 || !is_gone(l, WNOHANG))
		return -EBUSY;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -errno;
	int rc = fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0 ? errno : spawn(l, ends[1], &l->pid);
	close(ends[1]);
	if (rc) {
		close(ends[0]);
		l->pid = 0;
		return -rc;
	}
	l->fd = ends[0];
	l->until_ns = now_ns + HOST_LOOK_NS;
	return 0;
}

static bool make_room(struct host_look *l)
{
	if (l->len < l->room)
		return true;
	size_t room = l->room ? 2 * l->room : 4096;
	char *said = room <= HOST_LOOK_MAX ? realloc(l->said, room) : NULL;
	if (!said)
		return false;
	l->said = said;
	l->room = room;
	return true;
}

// Whether it may say more.
static bool read_on(struct host_look *l)
{
	while (make_room(l)) {
		ssize_t n = read(l->fd, l->said + l->len, l->room - l->len);
		if (n <= 0)
			return n < 0 && (errno == EAGAIN || errno == EINTR);
		l->len += (size_t)n;
	}
	l->cut = true;
	return false;
}

int host_look_poll(struct host_look *l, uint64_t now_ns, json_t **ret, struct lb_err *reterr)
{
	json_error_t error;
	bool in_time = now_ns < l->until_ns, more = !l->cut && read_on(l);
	if (more && in_time)
		return -EAGAIN;
	l->cut |= more;
	if (l->pid && (l->cut || !in_time))
		kill(l->pid, SIGKILL);
	if (!is_gone(l, WNOHANG))
		return -EAGAIN;
	*ret = l->cut ? NULL : json_loadb(l->said ? l->said : "", l->len, 0, &error);
	if (!*ret)
		lb_err_set(reterr, "%s",
			l->cut ? "it takes too long, or says too much" : "it says nothing of use");
	forget(l);
	return *ret ? 0 : -EINVAL;
}
