// SPDX-License-Identifier: Apache-2.0
#include "ctrl/status/status_connections.h"

#include <event2/event.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct status_connections {
	struct event_base *base; // borrowed
	uint32_t n, max;
	struct event *over[]; // [max], the oldest first; each with a descriptor of its own
};

static void forget(struct status_connections *c, uint32_t i)
{
	int fd = event_get_fd(c->over[i]);
	event_free(c->over[i]);
	close(fd);
	c->n--;
	memmove(&c->over[i], &c->over[i + 1], (c->n - i) * sizeof(struct event *));
}

// The client has closed it, or libgrpc, which shuts a socket down before it closes it.
static void on_over(evutil_socket_t fd, short what, void *arg)
{
	struct status_connections *c = arg;
	uint32_t i = 0;
	while (event_get_fd(c->over[i]) != fd)
		i++;
	forget(c, i);
}

static void end_oldest(struct status_connections *c)
{
	(void)shutdown(event_get_fd(c->over[0]), SHUT_RDWR);
	forget(c, 0);
}

struct status_connections *status_connections_new(struct event_base *base, uint32_t max)
{
	struct status_connections *c = calloc(1, sizeof(*c) + max * sizeof(struct event *));
	if (c)
		*c = (struct status_connections){.base = base, .max = max};
	return c;
}

bool status_connections_add(struct status_connections *c, int fd)
{
	if (c->n == c->max)
		end_oldest(c);
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	struct event *over = own < 0 ? NULL : event_new(c->base, own, EV_CLOSED, on_over, c);
	if (over && event_add(over, NULL) == 0) {
		c->over[c->n++] = over;
		return true;
	}
	if (over)
		event_free(over);
	if (own >= 0)
		close(own);
	return false;
}

uint32_t status_connections_count(const struct status_connections *c)
{
	return c->n;
}

void status_connections_free(struct status_connections *c)
{
	while (c && c->n)
		forget(c, c->n - 1);
	free(c);
}
