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

// The step is half of the smaller one of what is and what will be in force, so that the change
// makes no credit due and is no work for each stream. Rounded down: of a window of 65535 bytes that
// comes in full frames of 16384, half comes back, and then the other half, one byte shorter, too.
void h2_flow_set_our_initial(struct h2_conn *c, uint32_t size)
{
	uint32_t configured = c->ctx->conf.stream_window;
	uint32_t smaller = size < configured ? size : configured;
	c->our_initial_window = size;
	c->credit_step = smaller / 2 + (smaller < 2);
}

void h2_flow_consumed(struct h2_stream *s, size_t len)
{
	s->unannounced += (uint32_t)len;
	// After END_STREAM the peer has nothing left to send there.
	if (s->live && !s->got_end && !list_linked(&s->credit) &&
		s->unannounced >= s->conn->credit_step)
		list_append(&s->conn->credits, &s->credit);
}

static bool conn_credit_due(const struct h2_conn *c)
{
	int64_t target = conn_target(c);
	return c->unannounced >= target / 2 &&
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
		s->recv_credit += s->unannounced;
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
	} else if (h2_send_window(s) + increment > H2_WINDOW_MAX) {
		h2_stream_fail(s, H2_FLOW_CONTROL_ERROR);
	} else {
		s->send_credit += increment;
		if (s->send_credit > c->most_credit)
			c->most_credit = s->send_credit;
		h2_stream_schedule(s);
	}
}

// What bounds the credits has grown with each stream that had more, and not shrunk when one ended.
static void tighten_most_credit(struct h2_conn *c)
{
	c->most_credit = 0; // of the streams to come
	for (struct list_link *l = c->streams.next; l != &c->streams; l = l->next) {
		const struct h2_stream *s = CONTAINER_OF(l, struct h2_stream, link);
		if (s->live && s->send_credit > c->most_credit)
			c->most_credit = s->send_credit;
	}
}

// RFC 9113 6.9.2. Constant time: the streams' windows are relative to this one. They are looked at
// only when one of them may overflow: to cause that again without an overflow, which ends the
// connection, takes another stream that was given nearly 2^31 and has ended.
bool h2_flow_set_peer_initial(struct h2_conn *c, uint32_t size)
{
	c->peer_initial_window = size;
	if (size + c->most_credit > H2_WINDOW_MAX)
		tighten_most_credit(c);
	if (size + c->windowless_credit > 0) { // for some; for whom is seen when it is their turn
		list_splice(&c->data_turns, &c->windowless);
		c->windowless_credit = -H2_WINDOW_MAX;
	}
	return size + c->most_credit <= H2_WINDOW_MAX;
}
