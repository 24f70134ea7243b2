// SPDX-License-Identifier: Apache-2.0
#include "ctrl/status_start.h"

#include "ctrl/certs/credentials.h"
#include "ctrl/conf/config.h"
#include "ctrl/loop.h"
#include "ctrl/status/status_connections.h"
#include "ctrl/status/status_relay.h"
#include "ctrl/status/status_server.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/federation.h"

#include <event2/event.h>
#include <event2/listener.h>

#include <stdlib.h>
#include <unistd.h>

#define MAX_UNREAD_LEN ((size_t)64 << 20)
#define MAX_CONNECTIONS 64
#define PAUSE_US 100000 // until it accepts again, when the process has no descriptor left
#define FIRST_US 2000 // until it looks again whether there is a first context

struct status_port {
	struct loop *loop;
	struct credentials *credentials;
	uint32_t credential; // counted; LB_PLAIN_TEXT = in the clear
	struct status_server *server; // owned, as all that follows
	struct status_connections *connections;
	struct status_relay *relay; // NULL = in the clear
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
	if (!status_connections_add(p->connections, fd))
		close(fd);
	else if (p->relay)
		status_relay_add(p->relay, fd);
	else
		status_server_connect(p->server, fd);
}

static void on_let_in(void *arg, int client, int fd)
{
	struct status_port *p = arg;
	status_connections_let_in(p->connections, client);
	status_server_connect(p->server, fd);
}

static struct tlshs_context *context(void *arg)
{
	const struct status_port *p = arg;
	const struct lb_credential *now = credentials_at(p->credentials, p->credential);
	return now ? now->tls : NULL;
}

static void carry_on(void *arg, int fd, int timeout_ms)
{
	status_relay_wait(((struct status_port *)arg)->relay, fd, timeout_ms);
}

static void cut_all(void *arg)
{
	status_connections_cut(((struct status_port *)arg)->connections);
}

static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
	status_begin(arg);
}

static bool pause_for(struct status_port *p, long us)
{
	const struct timeval pause = {.tv_usec = us};
	return event_add(p->pause, &pause) == 0;
}

static void on_accept_failed(struct evconnlistener *l, void *arg)
{
	if (pause_for(arg, PAUSE_US))
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

static bool make_relay(struct status_port *p, const struct status_start_conf *c)
{
	const struct config_csds_tls *tls = c->config->tls;
	const struct status_relay_conf conf = {
		.base = loop_base(p->loop),
		.wheel = loop_wheel(p->loop),
		.clock_ns = loop_clock_ns,
		.counts = c->counts,
		.context = context,
		.connect = on_let_in,
		.ctx = p,
	};
	if (!tls)
		return true;
	p->credential =
		credentials_take(p->credentials, &(struct credential_want){
							 .role = TLSHS_SERVER,
							 .identity = tls->certificate,
							 .ca = tls->ca,
							 .require_peer_certificate = tls->ca,
						 });
	p->relay = status_relay_new(&conf);
	return p->relay;
}

static bool make_server(struct status_port *p, const struct status_start_conf *c)
{
	struct status_server_conf conf = {
		.bootstrap = c->bootstrap,
		.user_agent_version = SHUNT_VERSION,
		.wheel = loop_wheel(p->loop),
		.max_unread_len = MAX_UNREAD_LEN,
		.wall_ns = loop_wall_ns,
		.each = each_resource,
		.ctx = c->xds,
		.wait = p->relay ? carry_on : NULL,
		.cut = cut_all,
		.end_ctx = p,
	};
	if (status_server_new(&conf, &p->server) != 0)
		return false;
	if (loop_watch_fd(p->loop, status_server_fd(p->server), on_ready, p->server) == 0)
		return true;
	status_server_free(p->server);
	p->server = NULL;
	return false;
}

int status_check_providers(
	const struct config *config, const struct xds_bootstrap *bootstrap, struct lb_err *err)
{
	const struct config_csds_tls *t = config->csds ? config->csds->tls : NULL;
	if (!t)
		return 0;
	if (xds_bootstrap_check_provider(bootstrap, t->certificate, XDS_CERT_OWN, err))
		return lb_err_within(err, "csds.tls.certificate");
	if (t->ca && xds_bootstrap_check_provider(bootstrap, t->ca, XDS_CERT_CA, err))
		return lb_err_within(err, "csds.tls.ca");
	return 0;
}

int status_start(int listener, const struct status_start_conf *c, struct status_port **ret,
	struct lb_err *err)
{
	struct status_port *p = calloc(1, sizeof(*p));
	if (p) {
		p->loop = c->loop;
		p->credentials = c->credentials;
	}
	if (!p || !make_relay(p, c) || !make_server(p, c)) {
		close(listener);
	} else if (make_listener(p, listener, c->counts)) {
		*ret = p;
		return 0;
	}
	status_stop(p);
	lb_err_set(err, "out of memory");
	return lb_err_within(err, "csds.listen");
}

void status_begin(struct status_port *p)
{
	bool waits = p->relay && credentials_is_new(p->credentials, p->credential);
	if (!waits || !pause_for(p, FIRST_US))
		evconnlistener_enable(p->listener);
}

int status_await(struct status_port *p, struct lb_err *err)
{
	if (!p->relay)
		return 0;
	credentials_await(p->credentials);
	const char *why = credentials_error(p->credentials, p->credential);
	if (context(p) || !why[0])
		return 0;
	lb_err_set(err, "%s", why);
	return lb_err_within(err, "csds.tls");
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
	status_relay_free(p->relay);
	status_connections_free(p->connections);
	if (p->credential != LB_PLAIN_TEXT)
		credentials_give(p->credentials, p->credential);
	free(p);
}
