// SPDX-License-Identifier: Apache-2.0
#include "ctrl/takeover/peer.h"

#include <event2/event.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 4
#define HIGH_FD 1000 // above those of devices, files and clients

struct takeover_peer {
	int fd; // owned
	pid_t pid;
	struct event *event; // owned
	struct takeover_peer_events events;
	void *ctx;
};

static bool address_of(const char *path, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	size_t len = strlen(path);
	if (len < sizeof(ret->sun_path))
		memcpy(ret->sun_path, path, len);
	return len < sizeof(ret->sun_path);
}

static bool is_trusted(int fd, uid_t *ret_uid)
{
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t len = sizeof(peer);
	int rc = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	*ret_uid = peer.uid;
	return rc == 0 && (peer.uid == 0 || peer.uid == geteuid());
}

static pid_t pid_of(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 ? peer.pid : 0;
}

// When a process ends Linux closes its descriptors from the highest one down, and takes tens of
// milliseconds for each socket of a device: this one first, so that the other end hears it at once.
static int raise_fd(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
	if (high < 0) // so many it may not have
		return fd;
	close(fd);
	return high;
}

int takeover_peer_connect(const char *path, unsigned timeout_s, struct lb_err *reterr)
{
	const struct timeval most = {.tv_sec = timeout_s};
	struct sockaddr_un addr;
	uid_t uid;
	if (!address_of(path, &addr))
		return lb_err_set(reterr, "%s: is too long", path);
	int fd =
		socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (timeout_s ? 0 : SOCK_NONBLOCK), 0);
	if (fd < 0)
		return lb_err_set(reterr, "socket: %s", strerror(errno));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) == 0 &&
		connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0) {
		if (is_trusted(fd, &uid))
			return raise_fd(fd);
		close(fd);
		return lb_err_set(reterr, "%s: is another user's", path);
	}
	int err = errno;
	close(fd);
	if (err == ENOENT || err == ECONNREFUSED)
		return -ENOENT;
	return lb_err_set(reterr, "%s: %s", path, strerror(err));
}

int takeover_peer_listen(const char *path, struct lb_err *reterr)
{
	struct sockaddr_un addr;
	struct stat st;
	int other = takeover_peer_connect(path, 0, reterr);
	if (other >= 0) {
		close(other);
		return lb_err_set(reterr, "%s: another process serves this socket", path);
	}
	if (other != -ENOENT)
		return other;
	bool is_there = lstat(path, &st) == 0;
	if (is_there && !S_ISSOCK(st.st_mode))
		return lb_err_set(reterr, "%s: exists and is not a socket", path);
	if (is_there)
		unlink(path); // an error shows as bind's
	(void)address_of(path, &addr);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return lb_err_set(reterr, "socket: %s", strerror(errno));
	mode_t old = umask(0177);
	bool ok = bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0 &&
	          listen(fd, BACKLOG) == 0;
	int err = errno;
	umask(old);
	if (ok)
		return fd;
	close(fd);
	return lb_err_set(reterr, "%s: %s", path, strerror(err));
}

int takeover_peer_accept(int listener, uid_t *ret_uid)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0 || is_trusted(fd, ret_uid))
		return fd;
	takeover_peer_turn_away(fd, "another user's process");
	return -EPERM;
}

union control { // of one descriptor
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

static int say(int fd, const struct takeover_message *m, int given)
{
	uint8_t bytes[TAKEOVER_MAX_MESSAGE];
	union control control = {{0}};
	struct iovec part = {bytes, takeover_wire_write(m, bytes)};
	struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
	if (given >= 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		*c = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(c), &given, sizeof(given));
	}
	return sendmsg(fd, &msg, MSG_NOSIGNAL) == (ssize_t)part.iov_len ? 0 : -EPIPE;
}

int takeover_peer_say(int fd, const struct takeover_message *m)
{
	return say(fd, m, -1);
}

// What is longer than any message may be is cut, and so refused. The kernel closes descriptors that
// have no room.
static int hear(int fd, int flags, struct takeover_message *ret, int *ret_given)
{
	uint8_t bytes[TAKEOVER_MAX_MESSAGE + 1];
	union control control;
	struct iovec part = {bytes, sizeof(bytes)};
	struct msghdr msg = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = ret_given ? control.bytes : NULL,
		.msg_controllen = ret_given ? sizeof(control.bytes) : 0};
	ssize_t n = recvmsg(fd, &msg, flags | MSG_CMSG_CLOEXEC);
	// It closed before it had read all that we said; what it said last is behind the error.
	if (n < 0 && errno == ECONNRESET)
		n = recvmsg(fd, &msg, flags | MSG_CMSG_CLOEXEC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(ret_given, CMSG_DATA(c), sizeof(*ret_given));
	return n <= 0 ? -EPIPE : takeover_wire_read(bytes, (size_t)n, ret);
}

int takeover_peer_hear_with(
	int fd, unsigned timeout_s, struct takeover_message *ret, int *ret_given)
{
	struct timeval most = {.tv_sec = timeout_s};
	if (ret_given)
		*ret_given = -1;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) != 0)
		return -errno;
	return hear(fd, 0, ret, ret_given);
}

int takeover_peer_hear(int fd, unsigned timeout_s, struct takeover_message *ret)
{
	return takeover_peer_hear_with(fd, timeout_s, ret, NULL);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct takeover_peer *p = arg;
	struct takeover_message m;
	int given = -1;
	int rc = hear(fd, MSG_DONTWAIT, &m, &given);
	if (rc == 0) {
		p->events.on_message(p->ctx, &m, given);
	} else if (rc != -EAGAIN) {
		event_del(p->event);
		p->events.on_end(p->ctx);
	}
	if (given >= 0)
		close(given);
}

struct takeover_peer *takeover_peer_new(
	struct event_base *base, int fd, const struct takeover_peer_events *events, void *ctx)
{
	struct takeover_peer *p = calloc(1, sizeof(*p));
	if (!p) {
		close(fd);
		return NULL;
	}
	*p = (struct takeover_peer){.fd = fd, .pid = pid_of(fd), .events = *events, .ctx = ctx};
	p->event = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, p);
	if (p->event && event_add(p->event, NULL) == 0)
		return p;
	takeover_peer_free(p);
	return NULL;
}

void takeover_peer_hand_on(
	struct takeover_peer *p, const struct takeover_peer_events *events, void *ctx)
{
	p->events = *events;
	p->ctx = ctx;
}

void takeover_peer_free(struct takeover_peer *p)
{
	if (!p)
		return;
	if (p->event)
		event_free(p->event);
	close(p->fd);
	free(p);
}

void takeover_peer_tell(struct takeover_peer *p, const struct takeover_message *m)
{
	(void)takeover_peer_say(p->fd, m);
}

static struct takeover_message refusal(const char *why)
{
	struct takeover_message m = {.kind = TAKEOVER_REFUSED};
	snprintf(m.text, sizeof(m.text), "%s", why);
	return m;
}

void takeover_peer_refuse(struct takeover_peer *p, const char *why)
{
	struct takeover_message m = refusal(why);
	takeover_peer_tell(p, &m);
}

void takeover_peer_turn_away(int fd, const char *why)
{
	struct takeover_message m = refusal(why);
	(void)takeover_peer_say(fd, &m);
	close(fd);
}

void takeover_peer_give(struct takeover_peer *p, const struct takeover_message *m, int fd)
{
	(void)say(p->fd, m, fd);
}

bool takeover_peer_refuses(const struct takeover_peer *p)
{
	struct takeover_message m;
	return hear(p->fd, MSG_DONTWAIT | MSG_PEEK, &m, NULL) == 0 && m.kind == TAKEOVER_REFUSED;
}

pid_t takeover_peer_pid_of(const struct takeover_peer *p)
{
	return p->pid;
}
