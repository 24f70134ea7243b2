// SPDX-License-Identifier: Apache-2.0
#include "ctrl/doctor/reach.h"

#include "ctrl/doctor/host.h"

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUT_OF_TIME "no answer within 2 s"

static int dial_one(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc = fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : -errno;
	if (fd >= 0)
		close(fd);
	return rc;
}

// In the child. Why it is not reached; "" = it is.
static const char *dial(const struct doctor_target *t)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
	int rc = getaddrinfo(t->host, t->port, &hints, &list);
	if (rc)
		return gai_strerror(rc);
	for (const struct addrinfo *a = list; a; a = a->ai_next) {
		rc = dial_one(a);
		if (rc == 0)
			return "";
	}
	return strerror(-rc);
}

// Of the child.
static void end_in_time(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	signal(SIGALRM, SIG_DFL);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	alarm(REACH_S);
}

struct
try {
	pid_t pid; // 0 = there is no child
	int fd; // of what it says
};

static void begin(struct try *y, struct doctor_target *t)
{
	int ends[2];
	*y = (struct try){.fd = -1};
	if (t->is_unix) {
		int rc = doctor_system.dial(NULL, t->host);
		if (rc)
			lb_err_set(&t->err, "%s", strerror(-rc));
		return;
	}
	if (pipe(ends) != 0) {
		lb_err_set(&t->err, "pipe: %s", strerror(errno));
		return;
	}
	y->fd = ends[0];
	y->pid = fork();
	if (y->pid == 0) {
		end_in_time();
		const char *why = dial(t);
		bool told = write(ends[1], why, strlen(why) + 1) > 0; // with its 0
		_exit(told ? 0 : 1);
	}
	close(ends[1]);
}

// Whoever is out of time has said nothing.
static void end(struct try *y, struct doctor_target *t)
{
	char why[sizeof(t->err.text)] = "";
	if (y->fd < 0)
		return;
	bool told = y->pid > 0 && read(y->fd, why, sizeof(why) - 1) > 0;
	close(y->fd);
	if (y->pid > 0)
		waitpid(y->pid, NULL, 0);
	lb_err_set(&t->err, "%s", told ? why : OUT_OF_TIME);
}

void reach_targets(void *ctx, struct doctor_target *targets, unsigned n)
{
	struct try *tries = calloc(n ? n : 1, sizeof(*tries));
	if (!tries)
		return;
	for (unsigned i = 0; i < n; i++)
		begin(&tries[i], &targets[i]);
	for (unsigned i = 0; i < n; i++)
		end(&tries[i], &targets[i]);
	free(tries);
}
