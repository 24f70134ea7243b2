// SPDX-License-Identifier: Apache-2.0
#include "ctrl/doctor/reach.h"

#include "ctrl/doctor/host.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUT_OF_TIME "no answer within 2 s"
#define MAX_ADDRESSES 32 // of a name; the rest are not tried

// Begins to connect: its socket, or -errno.
static int begin_dial(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, a->ai_addr, a->ai_addrlen) == 0 || errno == EINPROGRESS)
		return fd < 0 ? -errno : fd;
	int rc = -errno;
	close(fd);
	return rc;
}

// Of one that poll() names. 0 or errno.
static int end_dial(int fd)
{
	int error = 0;
	socklen_t len = sizeof(error);
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 ? error : errno;
}

// In the child, until end_in_time() ends it: all addresses at once, as one that says nothing must
// not keep the others from being tried. Why it is not reached; "" = it is.
static const char *dial(const struct doctor_target *t)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
	struct pollfd tries[MAX_ADDRESSES];
	nfds_t n = 0, left = 0;
	int rc = getaddrinfo(t->host, t->port, &hints, &list);
	if (rc)
		return gai_strerror(rc);
	for (const struct addrinfo *a = list; a && n < MAX_ADDRESSES; a = a->ai_next) {
		int fd = begin_dial(a);
		if (fd < 0)
			rc = -fd;
		else
			tries[n++] = (struct pollfd){.fd = fd, .events = POLLOUT};
	}
	for (left = n; left > 0;) {
		if (poll(tries, n, -1) < 0)
			return strerror(errno);
		for (nfds_t i = 0; i < n; i++) {
			if (tries[i].fd < 0 || !tries[i].revents)
				continue;
			rc = end_dial(tries[i].fd);
			if (rc == 0)
				return "";
			tries[i].fd = -1; // poll() passes over it
			left--;
		}
	}
	return strerror(rc);
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
	y->pid = fork();
	if (y->pid < 0) {
		lb_err_set(&t->err, "fork: %s", strerror(errno));
		close(ends[0]);
		close(ends[1]);
		y->pid = 0;
		return;
	}
	y->fd = ends[0];
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
	bool told = read(y->fd, why, sizeof(why) - 1) > 0;
	close(y->fd);
	waitpid(y->pid, NULL, 0);
	lb_err_set(&t->err, "%s", told ? why : OUT_OF_TIME);
}

void reach_targets(void *ctx, struct doctor_target *targets, unsigned n)
{
	struct try *tries = calloc(n ? n : 1, sizeof(*tries));
	for (unsigned i = 0; !tries && i < n; i++)
		lb_err_set(&targets[i].err, "out of memory");
	if (!tries)
		return;
	for (unsigned i = 0; i < n; i++)
		begin(&tries[i], &targets[i]);
	for (unsigned i = 0; i < n; i++)
		end(&tries[i], &targets[i]);
	free(tries);
}
