// SPDX-License-Identifier: Apache-2.0
// Flow control (RFC 9113 5.2, 6.9). A stream's window opens as its owner consumes; the
// connection's opens as bytes arrive, so that a slow stream stops only itself. A client that sends
// us more than conn_window unconsumed bytes in all is stopped as a whole; a server is not: many
// clients share the connection to it, and what it sends was asked for, a stream window each.
#include "dataplane/h2/impl.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"

#define UPDATE_BYTES (H2_FRAME_HEAD + 4)

static int64_t conn_target(const struct h2_conn *c)
{
	uint32_t window = c->ctx->conf.conn_window;
	return window > H2_WINDOW_DEFAULT ? window : H2_WINDOW_DEFAULT;
}

bool h2_flow_receive(struct h2_conn *c, uint32_t len)
{
	c->recv_window -= len;
	c->unannounced += len;
	if (c->recv_window >= 0)
		return true;
	h2_conn_fail(c, H2_FLOW_CONTROL_ERROR);
	return false;
}

void h2_flow_delivered(struct h2_stream *s, uint32_t len)
{
	s->unconsumed += len;
	s->conn->unconsumed += len;
}

void h2_flow_consumed(struct h2_stream *s, size_t len)
{
	s->unannounced += (uint32_t)len;
	// After END_STREAM the peer has nothing left to send there.
	if (s->live && !s->got_end && s->unannounced && !list_linked(&s->credit) &&
		s->unannounced * 2ull >= (uint64_t)s->conn->our_initial_window)
		list_append(&s->conn->credits, &s->credit);
}

static bool conn_credit_due(const struct h2_conn *c)
{
	int64_t target = conn_target(c);
	return c->unannounced * 2ll >= target &&
	       (c->role == H2_CLIENT || c->unconsumed <= (uint64_t)target);
}

bool h2_flow_owes(const struct h2_conn *c)
{
	return !list_empty(&c->credits) || conn_credit_due(c);
}

bool h2_flow_announce(struct h2_conn *c, size_t *room)
{
	if (conn_credit_due(c)) {
		if (*room < UPDATE_BYTES || !h2_put_window_update(c, 0, c->unannounced))
			return false;
		*room -= UPDATE_BYTES;
		c->recv_window += c->unannounced;
		c->unannounced = 0;
	}
	while (!list_empty(&c->credits)) {
		struct h2_stream *s = CONTAINER_OF(c->credits.next, struct h2_stream, credit);
		if (*room < UPDATE_BYTES || !h2_put_window_update(c, s->id, s->unannounced))
			return false;
		*room -= UPDATE_BYTES;
		s->recv_window += s->unannounced;
		s->unannounced = 0;
		list_remove(&s->credit);
	}
	return true;
}

static void conn_window_update(struct h2_conn *c, uint32_t increment)
{
	if (increment == 0)
		h2_conn_fail(c, H2_PROTOCOL_ERROR);
	else if (c->send_window + increment > H2_WINDOW_MAX)
		h2_conn_fail(c, H2_FLOW_CONTROL_ERROR);
	else
		c->send_window += increment;
}

void h2_flow_window_update(struct h2_conn *c, uint32_t id, uint32_t increment)
{
	if (!h2_abuse_window_update(c))
		return;
	if (id == 0) {
		conn_window_update(c, increment);
		return;
	}
	struct h2_stream *s = h2_stream_find(c, id);
	if (!s) {
		if (h2_id_idle(c, id))
			h2_conn_fail(c, H2_PROTOCOL_ERROR);
		else
			h2_count(c->ctx, H2_C_ignored_closed_stream);
	} else if (increment == 0) {
		h2_stream_fail(s, H2_PROTOCOL_ERROR);
	} else if (s->send_window + increment > H2_WINDOW_MAX) {
		h2_stream_fail(s, H2_FLOW_CONTROL_ERROR);
	} else {
		s->send_window += increment;
		h2_stream_schedule(s);
	}
}

// RFC 9113 6.9.2.
bool h2_flow_set_peer_initial(struct h2_conn *c, uint32_t size)
{
	int64_t delta = (int64_t)size - c->peer_initial_window;
	c->peer_initial_window = size;
	for (struct list_link *l = c->streams.next; l != &c->streams; l = l->next) {
		struct h2_stream *s = CONTAINER_OF(l, struct h2_stream, link);
		if (!s->live)
			continue;
		s->send_window += delta;
		if (s->send_window > H2_WINDOW_MAX)
			return false;
		h2_stream_schedule(s);
	}
	return true;
}

void h2_flow_set_our_initial(struct h2_conn *c)
{
	int64_t delta = (int64_t)c->ctx->conf.stream_window - c->our_initial_window;
	c->our_initial_window = c->ctx->conf.stream_window;
	for (struct list_link *l = c->streams.next; l != &c->streams; l = l->next) {
		struct h2_stream *s = CONTAINER_OF(l, struct h2_stream, link);
		s->recv_window += delta;
		h2_flow_consumed(s, 0); // may be due by the new measure
	}
}
