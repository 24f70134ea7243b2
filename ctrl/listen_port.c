// SPDX-License-Identifier: Apache-2.0
#include "ctrl/listen_port.h"

#include <event2/util.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 128 // who comes while nobody accepts, as during a takeover, waits

static bool read_address(const char *text, struct sockaddr_storage *ret, socklen_t *ret_len)
{
	int len = sizeof(*ret);
	*ret = (struct sockaddr_storage){0};
	bool ok = evutil_parse_sockaddr_port(text, (struct sockaddr *)ret, &len) == 0;
	*ret_len = (socklen_t)len;
	return ok;
}

int listen_port_open(const char *address, bool beside, struct lb_err *reterr)
{
	const int yes = 1, share = beside;
	struct sockaddr_storage at;
	socklen_t len;
	if (!read_address(address, &at, &len))
		return lb_err_set(reterr, "'%s' is not an address with a port", address);
	int fd = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return lb_err_set(reterr, "socket: %s", strerror(errno));
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &share, sizeof(share)) == 0 &&
		bind(fd, (const struct sockaddr *)&at, len) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	int err = errno;
	close(fd);
	return lb_err_set(reterr, "%s: %s", address, strerror(err));
}

void listen_port_let(int fd, bool others)
{
	const int share = others;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &share, sizeof(share));
}

static bool listens(int fd)
{
	int yes = 0;
	socklen_t len = sizeof(yes);
	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &len) == 0 && yes;
}

static bool is_at(int fd, const struct sockaddr_storage *at)
{
	struct sockaddr_storage own = {0};
	socklen_t len = sizeof(own);
	if (getsockname(fd, (struct sockaddr *)&own, &len) != 0 || own.ss_family != at->ss_family)
		return false;
	if (own.ss_family == AF_INET) {
		const struct sockaddr_in *a = (const void *)&own, *b = (const void *)at;
		return a->sin_port == b->sin_port && a->sin_addr.s_addr == b->sin_addr.s_addr;
	}
	const struct sockaddr_in6 *a = (const void *)&own, *b = (const void *)at;
	return own.ss_family == AF_INET6 && a->sin6_port == b->sin6_port &&
	       memcmp(&a->sin6_addr, &b->sin6_addr, sizeof(a->sin6_addr)) == 0 &&
	       a->sin6_scope_id == b->sin6_scope_id;
}

void listen_ports_add(struct listen_ports *p, int fd)
{
	int own = p->n < LISTEN_PORTS_MAX && listens(fd) ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (own < 0)
		return;
	(void)evutil_make_socket_nonblocking(own); // both processes accept: who is late has nobody
	p->fds[p->n++] = own;
}

int listen_ports_take(struct listen_ports *p, const char *address)
{
	struct sockaddr_storage at;
	socklen_t len;
	bool ok = read_address(address, &at, &len);
	for (uint32_t i = 0; ok && i < p->n; i++) {
		int fd = p->fds[i];
		if (!is_at(fd, &at))
			continue;
		p->fds[i] = p->fds[--p->n];
		return fd;
	}
	return -1;
}

void listen_ports_let(const struct listen_ports *p, bool others)
{
	for (uint32_t i = 0; i < p->n; i++)
		listen_port_let(p->fds[i], others);
}

void listen_ports_close(struct listen_ports *p)
{
	while (p->n)
		close(p->fds[--p->n]);
}
