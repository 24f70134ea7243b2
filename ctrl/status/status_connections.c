// SPDX-License-Identifier: Apache-2.0
#include "ctrl/status/status_connections.h"

#include "ctrl/base/socket_counts.h"
#include "lb/base/log.h"

#include <event2/event.h>

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct place {
	struct event *over; // with a descriptor of its own
	int fd; // as it was added; no descriptor of ours
	bool is_let_in;
};

struct status_connections {
	struct event_base *base; // borrowed
	uint32_t n, max;
	struct socket_counts *counts; // borrowed
	struct place places[]; // [max], the oldest first
};

static void forget(struct status_connections *c, uint32_t i)
{
	struct place *p = &c->places[i];
	int fd = event_get_fd(p->over);
	event_free(p->over);
	close(fd);
	c->n--;
	c->counts->n_open--;
	memmove(p, p + 1, (c->n - i) * sizeof(*p));
}

// libgrpc, which has the other descriptor, and the client see the end.
static void end(struct status_connections *c, uint32_t i)
{
	(void)shutdown(event_get_fd(c->places[i].over), SHUT_RDWR);
	forget(c, i);
}

// The client has closed or reset it, or libgrpc has shut it down, which it does before it closes.
// Or the socket is writable, of which we are told for the sake of errors: libevent has no other
// name for them.
static void on_event(evutil_socket_t fd, short what, void *arg)
{
	struct status_connections *c = arg;
	struct pollfd now = {.fd = fd, .events = POLLRDHUP};
	uint32_t i = 0;
	if (poll(&now, 1, 0) != 1)
		return;
	while (event_get_fd(c->places[i].over) != fd)
		i++;
	end(c, i);
}

// Told in the log at the first one, the second, the fourth and so on.
static void end_oldest(struct status_connections *c)
{
	uint64_t n = ++c->counts->n_cut;
	if ((n & (n - 1)) == 0)
		log_warn("status port",
			"connections_cut=%" PRIu64
			" text=\"all %u places are taken: the oldest connection gave way\"",
			n, c->max);
	uint32_t i = 0;
	while (i < c->n && c->places[i].is_let_in)
		i++;
	end(c, i < c->n ? i : 0);
}

struct status_connections *status_connections_new(
	struct event_base *base, uint32_t max, struct socket_counts *counts)
{
	struct status_connections *c = calloc(1, sizeof(*c) + max * sizeof(struct place));
	if (c)
		*c = (struct status_connections){.base = base, .max = max, .counts = counts};
	return c;
}

bool status_connections_add(struct status_connections *c, int fd)
{
	if (c->n == c->max)
		end_oldest(c);
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	short events = EV_CLOSED | EV_WRITE | EV_ET | EV_PERSIST;
	struct event *over = own < 0 ? NULL : event_new(c->base, own, events, on_event, c);
	if (over && event_add(over, NULL) == 0) {
		c->places[c->n++] = (struct place){over, fd, false};
		c->counts->n_open++;
		return true;
	}
	if (over)
		event_free(over);
	if (own >= 0)
		close(own);
	return false;
}

void status_connections_let_in(struct status_connections *c, int fd)
{
	uint32_t i = c->n;
	while (i > 0 && c->places[i - 1].fd != fd)
		i--;
	if (i > 0)
		c->places[i - 1].is_let_in = true;
}

void status_connections_cut(struct status_connections *c)
{
	while (c && c->n)
		end(c, c->n - 1);
}

void status_connections_free(struct status_connections *c)
{
	while (c && c->n)
		forget(c, c->n - 1);
	free(c);
}
