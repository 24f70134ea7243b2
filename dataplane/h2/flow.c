// SPDX-License-Identifier: Apache-2.0
// Flow control (RFC 9113 5.2, 6.9). A stream's window opens as its owner consumes; the
// connection's does, too, towards a client: it may send us conn_window unconsumed bytes in all
// (TH-88), and a slow stream stops only itself until these are used up. Towards a server it opens
// as bytes arrive: many clients share the connection to it, and what it sends was asked for, a
// stream window each.
#include "dataplane/h2/impl.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"

#define UPDATE_BYTES (H2_FRAME_HEAD + 4)
#define LEAST_STEP 4096
// Windows full that a client's connection has brought before it grows: with all its streams it
// fills as much of backends' own windows, without these reading on, and has none left to use it.
#define EARNS_FROM 16

bool h2_flow_receive(struct h2_conn *c, uint32_t len)
{
	c->recv_window -= len;
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

// The step is a quarter of the smaller one of what is and what will be in force, so that the change
// makes no credit due and is no work for each stream; of a small one half, since few bytes are not
// worth a frame. Rounded down: of a window of 65535 bytes that comes in full frames of 16384, the
// last quarter, one byte shorter, comes back, too.
void h2_flow_set_our_initial(struct h2_conn *c, uint32_t size)
{
	uint32_t configured = c->ctx->greetings[c->role].stream_window;
	uint32_t smaller = size < configured ? size : configured;
	uint32_t half = smaller / 2 + (smaller < 2), least = half < LEAST_STEP ? half : LEAST_STEP;
	c->our_initial_window = size;
	c->half_window = (int32_t)half;
	c->credit_step = (int32_t)(smaller / 4 > least ? smaller / 4 : least);
}

// So many bytes make a WINDOW_UPDATE due.
static int32_t step(const struct h2_stream *s)
{
	return s->conn->credit_step + (int32_t)((uint32_t)s->ahead / 4);
}

// After END_STREAM the peer has nothing left to send there.
static bool credit_due(const struct h2_stream *s)
{
	return s->unannounced >= step(s) && s->live && !s->got_end;
}

void h2_flow_consumed(struct h2_stream *s, size_t len)
{
	if (!len)
		return;
	s->unannounced += (int32_t)len;
	if (credit_due(s) && !list_linked(&s->credit))
		list_append(&s->conn->credits, &s->credit);
}

void h2_stream_set_ahead(struct h2_stream *s, uint32_t n)
{
	s->unannounced += (int32_t)n - s->ahead;
	s->ahead = (int32_t)n;
	list_remove(&s->credit);
	if (credit_due(s))
		list_append(&s->conn->credits, &s->credit);
}

bool h2_stream_is_short(const struct h2_stream *s)
{
	if (s->ahead - s->recv_credit < s->conn->half_window + s->ahead / 2 || s->got_end)
		return false;
	return s->content_length < 0 || s->content_length - s->received > h2_recv_window(s);
}

// Of what the peer has sent, a server keeps back what is not consumed yet.
static int64_t conn_kept(const struct h2_conn *c)
{
	return c->role == H2_CLIENT ? 0 : (int64_t)c->unconsumed;
}

// A quarter of what it may be at most, rounded down, and worth a frame: received - kept >= (most -
// kept) / 4. As kept is at least 0, few need more than the first comparison.
static bool conn_credit_due(const struct h2_conn *c)
{
	int64_t most = c->recv_most, received = most - c->recv_window;
	if (4 * received + 3 < most)
		return false;
	int64_t kept = conn_kept(c);
	return 4 * received + 3 >= most + 3 * kept && received >= most / 16 + kept;
}

// Half of the window in a round trip, or else that has passed, and it begins anew. A quarter of one
// may be between: what is given back in one piece comes in one piece, a round trip later or a
// little more.
static bool is_short(const struct h2_conn *c, struct h2_pace *p, uint64_t consumed, uint64_t window)
{
	uint64_t now = h2_now(c->ctx), rtt = c->events->round_trip_ns(c);
	bool in_time = p->mark_ns && rtt && now - p->mark_ns <= rtt + rtt / 4;
	if (in_time && consumed - p->mark < window / 2)
		return false;
	*p = (struct h2_pace){.mark_ns = now, .mark = consumed};
	return in_time;
}

static void tell_of_conn(struct h2_conn *c)
{
	if (!c->events->round_trip_ns)
		return;
	uint64_t consumed = (uint64_t)(c->granted - c->recv_window - conn_kept(c));
	bool is_large = c->recv_most > c->first_window;
	bool now_short = is_short(c, &c->pace, consumed, c->recv_most);
	if (c->role == H2_SERVER && consumed < EARNS_FROM * (uint64_t)c->recv_most)
		now_short = false;
	if (now_short || is_large)
		c->events->on_window(c, NULL, now_short);
}

static void tell_of_stream(struct h2_conn *c, struct h2_stream *s)
{
	if (!c->events->round_trip_ns)
		return;
	bool now_short = is_short(c, &s->pace, h2_stream_n_consumed(s), h2_stream_window(s));
	if (now_short || s->ahead > 0)
		c->events->on_window(c, s, now_short);
}

uint32_t h2_conn_first_window(const struct h2_conn *c)
{
	return c->first_window;
}

uint32_t h2_conn_window(const struct h2_conn *c)
{
	return c->recv_most;
}

void h2_conn_set_window(struct h2_conn *c, uint32_t bytes)
{
	c->recv_most = bytes;
}

uint64_t h2_stream_n_consumed(const struct h2_stream *s)
{
	return (uint64_t)s->received - s->unconsumed;
}

uint64_t h2_stream_unconsumed(const struct h2_stream *s)
{
	return s->unconsumed;
}

uint32_t h2_stream_window(const struct h2_stream *s)
{
	return (uint32_t)(s->conn->our_initial_window + s->ahead);
}

bool h2_flow_owes(const struct h2_conn *c)
{
	return !list_empty(&c->credits) || conn_credit_due(c);
}

// False = it waits for room.
static bool announce(struct h2_conn *c, uint32_t id, int64_t credit, size_t *room)
{
	if (*room < UPDATE_BYTES || !h2_put_window_update(c, id, (uint32_t)credit))
		return false;
	*room -= UPDATE_BYTES;
	return true;
}

bool h2_flow_announce(struct h2_conn *c, size_t *room)
{
	if (conn_credit_due(c))
		tell_of_conn(c);
	if (conn_credit_due(c)) {
		int64_t credit = c->recv_most - c->recv_window - conn_kept(c);
		if (!announce(c, 0, credit, room))
			return false;
		c->recv_window += credit;
		c->granted += credit;
	}
	while (!list_empty(&c->credits)) {
		struct h2_stream *s = CONTAINER_OF(c->credits.next, struct h2_stream, credit);
		tell_of_stream(c, s);
		if (!list_linked(&s->credit)) // less is due now
			continue;
		if (!announce(c, s->id, s->unannounced, room))
			return false;
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
