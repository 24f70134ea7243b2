// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/client_cut.h"

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/client_buffer.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"

// Who has more than its bound is to take a part of its answers in a second, or is cut.
#define MEASURE_NS NS_PER_SECOND
#define TAKE_ALL_IN 4 // seconds

void proxy_client_cut(struct proxy_client *c, enum proxy_counter why)
{
	proxy_count(c->conn.proxy, why);
	c->conn.ops->on_expired(&c->conn);
}

void proxy_client_cut_stream(struct proxy_client *c, struct h2_stream *s, enum proxy_counter why)
{
	struct proxy_request *r = h2_stream_user(s);
	struct proxy_reply reply =
		proxy_reply_for(LB_CAUSE_OVER_SHARE, STR("too much is kept for this client"));
	proxy_count(c->conn.proxy, why);
	if (r)
		proxy_request_reset(r, &reply, H2_ENHANCE_YOUR_CALM);
	else
		h2_stream_reset(s, H2_ENHANCE_YOUR_CALM);
}

static uint64_t answer_of(const struct h2_stream *s)
{
	return h2_stream_queued(s);
}

// Streams that have some of it, the newest first.
static void cut_streams(
	struct proxy_client *c, uint64_t over, uint64_t (*of)(const struct h2_stream *))
{
	struct h2_stream *s = h2_conn_newest(c->conn.h2);
	while (s && over) {
		struct h2_stream *older = h2_stream_older(s);
		uint64_t n = of(s);
		if (n)
			proxy_client_cut_stream(c, s, PROXY_streams_cut_for_buffer);
		over = n < over ? over - n : 0;
		s = older;
	}
}

// What lies in TCP can't be taken back from there.
static void cut_to_bound(struct proxy_client *c)
{
	if (proxy_conn_unsent(&c->conn) > c->buffer.bound + c->buffer.earned) {
		proxy_client_cut(c, PROXY_clients_cut_for_buffer);
		return;
	}
	proxy_conn_touch(&c->conn);
	cut_streams(c, proxy_client_buffer_answers_over(c), answer_of);
	cut_streams(c, proxy_client_buffer_sum_over(c), proxy_client_buffer_of);
}

static bool is_over(const struct proxy_client *c)
{
	return proxy_client_buffer_answers_over(c) || proxy_client_buffer_sum_over(c);
}

static void fire(struct twheel_timer *t)
{
	struct proxy_client *c = CONTAINER_OF(t, struct proxy_client, buffer.timer);
	uint64_t took = proxy_client_buffer_taken(c) - c->buffer.taken_mark;
	if (is_over(c) && took * TAKE_ALL_IN < proxy_client_buffer_unread(c))
		cut_to_bound(c);
	else
		proxy_client_cut_watch(c);
}

void proxy_client_cut_watch(struct proxy_client *c)
{
	struct twheel *w = c->conn.proxy->wheel;
	if (!is_over(c))
		return;
	c->buffer.taken_mark = proxy_client_buffer_taken(c);
	c->buffer.timer.fire = fire;
	twheel_arm(w, &c->buffer.timer, twheel_now(w) + MEASURE_NS);
}
