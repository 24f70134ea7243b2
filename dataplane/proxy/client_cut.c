// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/client_cut.h"

#include "dataplane/h2/carrier.h"
#include "dataplane/proxy/client.h"
#include "dataplane/proxy/client_buffer.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/retry.h"
#include "dataplane/proxy/state.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"

// Who has more than its bound is to take a part of its answers in a second, or is cut.
#define MEASURE_NS NS_PER_SECOND
#define TAKE_ALL_IN 4 // seconds

void proxy_client_cut(struct proxy_client *c, enum proxy_counter why)
{
	proxy_count(c->conn.proxy, why);
	c->conn.ops->on_expired(&c->conn); // client.c, which calls this file
}

// Behind what its client does not take, a reply would wait, and keep the request for as long.
// HTTP/1.1 has nothing else.
static bool takes_reply(const struct proxy_client *c)
{
	return !proxy_client_buffer_unread(c) || h2_conn_version(c->conn.h2) != 20;
}

void proxy_client_cut_stream(struct proxy_client *c, struct h2_stream *s, enum proxy_counter why)
{
	struct proxy_request *r = h2_stream_user(s);
	struct proxy_reply reply =
		proxy_reply_for(LB_CAUSE_OVER_SHARE, STR("too much is kept for this client"));
	proxy_count(c->conn.proxy, why);
	if (!r)
		h2_stream_reset(s, H2_ENHANCE_YOUR_CALM);
	else if (takes_reply(c))
		proxy_request_fail(r, &reply, H2_ENHANCE_YOUR_CALM);
	else
		proxy_request_reset(r, &reply, H2_ENHANCE_YOUR_CALM);
}

static bool has_answer(const struct h2_stream *s)
{
	return h2_stream_queued(s) != 0;
}

// Small ones are many, and free little.
static bool has_much(const struct h2_stream *s)
{
	return proxy_client_buffer_of(s) >= PROXY_FIRST_WINDOW;
}

// The newest first.
static void cut_while(struct proxy_client *c, bool (*is_over)(const struct proxy_client *),
	bool (*has)(const struct h2_stream *))
{
	struct h2_stream *older;
	for (struct h2_stream *s = h2_conn_newest(c->conn.h2); s && is_over(c); s = older) {
		older = h2_stream_older(s);
		if (has(s))
			proxy_client_cut_stream(c, s, PROXY_streams_cut_for_buffer);
	}
}

// What was sent is as good without its copy, only never sent again.
static void give_up_copies(struct proxy_client *c)
{
	for (struct h2_stream *s = h2_conn_newest(c->conn.h2); s; s = h2_stream_older(s)) {
		struct proxy_request *r = h2_stream_user(s);
		if (r && r->upstream && proxy_replay_stored(&r->replay))
			proxy_retry_give_up(r);
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
	cut_while(c, proxy_client_buffer_answers_are_over, has_answer);
	if (proxy_client_buffer_sum_is_over(c))
		give_up_copies(c);
	cut_while(c, proxy_client_buffer_sum_is_over, has_much);
}

static bool is_over(const struct proxy_client *c)
{
	return proxy_client_buffer_answers_are_over(c) || proxy_client_buffer_sum_is_over(c);
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
