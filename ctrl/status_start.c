// SPDX-License-Identifier: Apache-2.0
#include "ctrl/status_start.h"

#include "ctrl/conf/config.h"
#include "ctrl/loop.h"
#include "ctrl/status/status_connections.h"
#include "ctrl/status/status_server.h"
#include "ctrl/xds/federation.h"

#include <event2/event.h>
#include <event2/listener.h>

#include <stdlib.h>
#include <unistd.h>

#define MAX_UNREAD_LEN ((size_t)64 << 20)
#define MAX_CONNECTIONS 64
#define PAUSE_US 100000 // until it accepts again, when the process has no descriptor left

struct status_port {
	struct loop *loop;
	struct status_server *server; // owned, as all that follows
	struct status_connections *connections;
	struct evconnlistener *listener; // NULL = another process has it
	struct event *pause;
};

static void on_ready(void *arg)
{
	status_server_dispatch(arg);
}

static void each_resource(
	void *ctx, void (*fn)(void *, const struct xds_entry_info *), void *fn_ctx)
{
	xds_federation_each(ctx, fn, fn_ctx);
}

static void on_connection(
	struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *at, int len, void *arg)
{
	struct status_port *p = arg;
	if (status_connections_add(p->connections, fd))
		status_server_connect(p->server, fd);
	else
		close(fd);
}

static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
	evconnlistener_enable(((struct status_port *)arg)->listener);
}

static void on_accept_failed(struct evconnlistener *l, void *arg)
{
	struct status_port *p = arg;
	const struct timeval pause = {.tv_usec = PAUSE_US};
	if (event_add(p->pause, &pause) == 0)
		evconnlistener_disable(l);
}

// Takes the listener.
static bool make_listener(struct status_port *p, int fd, struct socket_counts *counts)
{
	struct event_base *base = loop_base(p->loop);
	p->connections = status_connections_new(base, MAX_CONNECTIONS, counts);
	p->pause = event_new(base, -1, 0, on_pause_over, p);
	if (p->connections && p->pause)
		p->listener = evconnlistener_new(base, on_connection, p,
			LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_DISABLED, 0, fd);
	if (!p->listener) {
		close(fd);
		return false;
	}
	evconnlistener_set_error_cb(p->listener, on_accept_failed);
	return true;
}

static bool make_server(
	struct status_port *p, const struct xds_bootstrap *bootstrap, struct xds_federation *xds)
{
	struct status_server_conf conf = {
		.bootstrap = bootstrap,
		.user_agent_version = SHUNT_VERSION,
		.wheel = loop_wheel(p->loop),
		.max_unread_len = MAX_UNREAD_LEN,
		.wall_ns = loop_wall_ns,
		.each = each_resource,
		.ctx = xds,
	};
	if (status_server_new(&conf, &p->server) != 0)
		return false;
	if (loop_watch_fd(p->loop, status_server_fd(p->server), on_ready, p->server) == 0)
		return true;
	status_server_free(p->server);
	p->server = NULL;
	return false;
}

int status_start(int listener, const struct xds_bootstrap *bootstrap, struct xds_federation *xds,
	struct loop *loop, struct socket_counts *counts, struct status_port **ret,
	struct lb_err *err)
{
	struct status_port *p = calloc(1, sizeof(*p));
	if (p)
		p->loop = loop;
	if (!p || !make_server(p, bootstrap, xds)) {
		close(listener);
	} else if (make_listener(p, listener, counts)) {
		*ret = p;
		return 0;
	}
	status_stop(p);
	lb_err_set(err, "out of memory");
	return lb_err_within(err, "csds.listen");
}

void status_begin(struct status_port *p)
{
	evconnlistener_enable(p->listener);
}

int status_listener(const struct status_port *p)
{
	return p->listener ? evconnlistener_get_fd(p->listener) : -1;
}

void status_set_serving(struct status_port *p, bool serving)
{
	if (p)
		status_server_set_serving(p->server, serving);
}

void status_leave(struct status_port *p)
{
	if (p->listener) {
		event_del(p->pause);
		evconnlistener_free(p->listener);
	}
	p->listener = NULL;
}

void status_stop(struct status_port *p)
{
	if (!p)
		return;
	status_leave(p);
	if (p->pause)
		event_free(p->pause);
	if (p->server)
		loop_unwatch_fd(p->loop, status_server_fd(p->server));
	status_server_free(p->server);
	status_connections_free(p->connections);
	free(p);
}
