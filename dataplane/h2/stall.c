// SPDX-License-Identifier: Apache-2.0
// Streams whose bodies wait for a window of the peer's, judged by bytes in time (TH-15): one byte
// now and then is no progress.
#include "dataplane/h2/impl.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"

bool h2_conn_waits(const struct h2_conn *c)
{
	return !list_empty(&c->windowless) || (c->send_window <= 0 && !list_empty(&c->data_turns));
}

// The period begins now, or, if something was written that the peer may not have, at the first look
// when it has that.
static void watch(struct h2_stream *s, uint64_t written_end)
{
	const struct h2_conn *c = s->conn;
	s->watch = (struct h2_watch){
		.since_ns = h2_now(c->ctx),
		.written_end = c->written - c->out->len < written_end ? written_end : 0,
		.sent = s->body_sent,
		.all_sent = c->body_sent,
		.queued = s->out.len,
	};
}

static bool stalls(const struct h2_stream *s, uint64_t elapsed_ns, uint32_t rate)
{
	const struct h2_conn *c = s->conn;
	uint64_t least = elapsed_ns / NS_PER_MS * rate / 1000;
	uint64_t sent = s->body_sent - s->watch.sent;
	if (sent >= s->watch.queued) // what waited then is gone
		return false;
	// Where the connection's window is short, each stream has but a share of it.
	uint64_t taken = h2_send_window(s) > 0 ? c->body_sent - s->watch.all_sent : sent;
	return taken < least && taken < s->out.len;
}

static void look_at(struct h2_stream *s, uint64_t patience_ns, uint32_t rate)
{
	struct h2_conn *c = s->conn;
	uint64_t elapsed_ns = h2_now(c->ctx) - s->watch.since_ns;
	if (h2_send_window(s) > 0 && c->send_window > 0) {
		s->watch.since_ns = 0; // it waits for room in TCP
	} else if (!s->watch.since_ns || s->watch.since_ns < c->looks_since_ns) {
		watch(s, c->written);
	} else if (s->watch.written_end) {
		watch(s, s->watch.written_end);
	} else if (elapsed_ns >= patience_ns && stalls(s, elapsed_ns, rate)) {
		list_remove(&s->turn);
		s->turn_list = &c->stalled;
		list_append(&c->stalled, &s->turn);
	} else if (elapsed_ns >= patience_ns) {
		watch(s, c->written);
	}
}

static void look_through(struct list_link *list, uint64_t patience_ns, uint32_t rate)
{
	struct list_link *next;
	for (struct list_link *l = list->next; l != list; l = next) {
		next = l->next;
		look_at(CONTAINER_OF(l, struct h2_stream, turn), patience_ns, rate);
	}
}

bool h2_conn_look(struct h2_conn *c, uint64_t patience_ns, uint32_t rate)
{
	if (!c->looking)
		c->looks_since_ns = h2_now(c->ctx);
	look_through(&c->windowless, patience_ns, rate);
	look_through(&c->data_turns, patience_ns, rate);
	c->looking = h2_conn_waits(c);
	return c->looking;
}

struct h2_stream *h2_conn_stalled(const struct h2_conn *c)
{
	return list_empty(&c->stalled) ? NULL
	                               : CONTAINER_OF(c->stalled.next, struct h2_stream, turn);
}
