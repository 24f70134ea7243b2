// SPDX-License-Identifier: Apache-2.0
#include "ctrl/metrics/connections.h"

#include "lb/base/time.h"

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define LOOK_S 1 // at times, for closed ones, and to accept again after a failure
#define MAX_UNREAD 16384 // bytes: twice the longest header (metrics_server.c)

struct connection {
	struct bufferevent *b; // with a count of its own
	bool is_answered;
	uint64_t since_ns; // accepted, or the last change of is_answered
};

struct connections {
	struct connections_conf conf;
	struct evconnlistener *listener; // the evhttp's, as its entry; NULL = we have left
	struct evhttp_bound_socket *entry;
	struct event *look; // owned
	bool accepts;
	uint32_t n;
	struct connection open[]; // [max]
};

// evhttp doesn't tell the end of a connection that never asked anything. Whoever frees a
// bufferevent takes its callbacks away, and a live one of evhttp's has some: those without have
// only our count.
static bool is_over(struct bufferevent *b)
{
	bufferevent_data_cb on_read, on_write;
	bufferevent_event_cb on_event;
	void *arg;
	bufferevent_getcb(b, &on_read, &on_write, &on_event, &arg);
	return !on_read && !on_write && !on_event;
}

static void forget_closed(struct connections *c)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < c->n; i++) {
		if (is_over(c->open[i].b))
			bufferevent_decref(c->open[i].b);
		else
			c->open[n++] = c->open[i];
	}
	c->n = n;
}

// evhttp ends it as when its own time-out has come.
static void end(struct connection *k)
{
	bufferevent_trigger_event(k->b, BEV_EVENT_READING | BEV_EVENT_TIMEOUT, 0);
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
	struct connections *c = arg;
	uint64_t now_ns = c->conf.clock_ns();
	for (uint32_t i = 0; i < c->n; i++) {
		struct connection *k = &c->open[i];
		uint64_t most = k->is_answered ? c->conf.answer_ns : c->conf.request_ns;
		if (!is_over(k->b) && now_ns >= k->since_ns + most)
			end(k);
	}
	forget_closed(c);
	if (c->accepts)
		evconnlistener_enable(c->listener);
}

static bool goes_before(const struct connection *a, const struct connection *b)
{
	return a->is_answered != b->is_answered ? !a->is_answered : a->since_ns < b->since_ns;
}

static void make_room(struct connections *c)
{
	struct connection *first = &c->open[0];
	for (uint32_t i = 1; i < c->n; i++)
		if (goes_before(&c->open[i], first))
			first = &c->open[i];
	end(first);
	forget_closed(c);
}

// What the listener calls back with is evhttp's, and not to be looked at.
static void on_accept_failed(struct evconnlistener *l, void *http)
{
	evconnlistener_disable(l); // until on_look()
}

// Each new connection gets one from here. With NULL evhttp would make its own, without bounds.
static struct bufferevent *on_connection(struct event_base *base, void *arg)
{
	struct connections *c = arg;
	forget_closed(c);
	if (c->n == c->conf.max)
		make_room(c);
	// It closes the socket with our count: if evhttp did, the events that it still has would be
	// those of whoever gets the descriptor next.
	struct bufferevent *b = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
	if (!b)
		return NULL;
	// While evhttp writes an answer it reads on and leaves what comes in the buffer.
	bufferevent_setwatermark(b, EV_READ, 0, MAX_UNREAD);
	if (c->n == c->conf.max)
		return b;
	bufferevent_incref(b);
	c->open[c->n++] = (struct connection){.b = b, .since_ns = c->conf.clock_ns()};
	return b;
}

static void note(struct connections *c, struct evhttp_request *request, bool is_answered)
{
	struct evhttp_connection *of = evhttp_request_get_connection(request);
	struct bufferevent *b = of ? evhttp_connection_get_bufferevent(of) : NULL;
	for (uint32_t i = 0; i < c->n; i++)
		if (c->open[i].b == b) {
			c->open[i].is_answered = is_answered;
			c->open[i].since_ns = c->conf.clock_ns();
		}
}

static void on_answered(struct evhttp_request *request, void *arg)
{
	note(arg, request, false);
}

void connections_answering(struct connections *c, struct evhttp_request *request)
{
	note(c, request, true);
	if (!c->listener) // where it comes back another process answers
		evhttp_add_header(
			evhttp_request_get_output_headers(request), "Connection", "close");
	evhttp_request_set_on_complete_cb(request, on_answered, c);
}

// Takes the listener.
static int start(struct connections *c, struct lb_err *reterr)
{
	const struct timeval interval = {.tv_sec = LOOK_S};
	c->look = event_new(c->conf.base, -1, EV_PERSIST, on_look, c);
	if (c->look && event_add(c->look, &interval) == 0)
		c->listener = evconnlistener_new(c->conf.base, NULL, NULL,
			LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_DISABLED, 0,
			c->conf.listener);
	if (!c->listener) {
		close(c->conf.listener);
		return lb_err_set(reterr, "out of memory");
	}
	evconnlistener_set_error_cb(c->listener, on_accept_failed);
	evhttp_set_bevcb(c->conf.http, on_connection, c);
	c->entry = evhttp_bind_listener(c->conf.http, c->listener);
	if (c->entry)
		return 0;
	evconnlistener_free(c->listener);
	return lb_err_set(reterr, "out of memory");
}

struct connections *connections_new(const struct connections_conf *conf, struct lb_err *reterr)
{
	struct connections *c = calloc(1, sizeof(*c) + conf->max * sizeof(c->open[0]));
	if (!c) {
		close(conf->listener);
		lb_err_set(reterr, "out of memory");
		return NULL;
	}
	c->conf = *conf;
	if (start(c, reterr) == 0)
		return c;
	connections_free(c);
	return NULL;
}

void connections_begin(struct connections *c)
{
	c->accepts = true;
	evconnlistener_enable(c->listener);
}

int connections_listener(const struct connections *c)
{
	return c->listener ? evconnlistener_get_fd(c->listener) : -1;
}

void connections_leave(struct connections *c)
{
	if (!c->listener)
		return;
	c->accepts = false;
	evhttp_del_accept_socket(c->conf.http, c->entry); // closes it
	c->listener = NULL;
	c->entry = NULL;
}

void connections_free(struct connections *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->n; i++)
		bufferevent_decref(c->open[i].b);
	if (c->look)
		event_free(c->look);
	free(c);
}
