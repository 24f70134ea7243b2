// SPDX-License-Identifier: Apache-2.0
// Life of a connection, drain, and what leaves it in turns.
#include "dataplane/h2/impl.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/min.h"

// Streams that a client opens before it has seen the server's SETTINGS; RFC 9113 6.5.2 suggests
// that no server allows fewer.
#define STREAMS_UNTIL_SETTINGS 100

struct h2_conn *h2_conn_new(struct h2_context *ctx, enum h2_role role,
	const struct h2_events *events, struct buf *out, void *user)
{
	struct h2_conn *c = pool_take(&ctx->conns);
	if (!c)
		return NULL;
	*c = (struct h2_conn){
		.ctx = ctx,
		.events = events,
		.out = out,
		.user = user,
		.role = role,
		.allowance = &ctx->unbounded,
		.hash_key = rand_u64(&ctx->rand),
		.rx = {.head_need = H2_FRAME_HEAD,
			.preface_left = role == H2_SERVER ? H2_PREFACE_LEN : 0},
		.send_window = H2_WINDOW_DEFAULT,
		.peer_initial_window = H2_WINDOW_DEFAULT,
		.peer_max_frame = H2_FRAME_MAX,
		.peer_max_streams = STREAMS_UNTIL_SETTINGS,
		.next_id = 1,
		.goaway_sent_id = H2_ID_MAX,
		.scheme = STR("http"),
	};
	h2_set_bounds(c);
	h2_flow_set_our_initial(c, H2_WINDOW_DEFAULT);
	// Backends are near: bytes cost less there than the work of coding them.
	hpack_init(&c->hpack, role == H2_SERVER);
	list_init(&c->streams);
	list_init(&c->data_turns);
	list_init(&c->windowless);
	list_init(&c->end_turns);
	list_init(&c->credits);
	list_init(&c->done);
	list_init(&c->stalled);
	c->windowless_credit = -H2_WINDOW_MAX;
	if (role == H2_SERVER || h2_put_greeting(c))
		return c;
	pool_put(&ctx->conns, c);
	return NULL;
}

void h2_conn_free(struct h2_conn *c, enum h2_error code)
{
	if (!c)
		return;
	// The newest first, as above a GOAWAY's last id: who puts each before the others that wait
	// keeps their order.
	while (!list_empty(&c->streams))
		h2_stream_close(
			CONTAINER_OF(c->streams.prev, struct h2_stream, link), code, true, false);
	if (c->carried)
		h2_carrier_free(c);
	buf_clear(&c->rx.pending, c->ctx->chunks);
	hpack_fini(&c->hpack, c->ctx->hpack_mem);
	pool_put(&c->ctx->conns, c);
}

void *h2_conn_user(const struct h2_conn *c)
{
	return c->user;
}

bool h2_conn_failed(const struct h2_conn *c, enum h2_error *ret_code)
{
	if (c->failed)
		*ret_code = c->error;
	return c->failed;
}

uint64_t h2_conn_queued(const struct h2_conn *c)
{
	return c->queued;
}

uint64_t h2_conn_unconsumed(const struct h2_conn *c)
{
	return c->unconsumed;
}

static struct h2_stream *stream_at(const struct h2_conn *c, struct list_link *l)
{
	return l == &c->streams ? NULL : CONTAINER_OF(l, struct h2_stream, link);
}

struct h2_stream *h2_conn_newest(const struct h2_conn *c)
{
	return stream_at(c, c->streams.prev);
}

struct h2_stream *h2_stream_older(const struct h2_stream *s)
{
	return stream_at(s->conn, s->link.prev);
}

uint64_t h2_conn_written(const struct h2_conn *c)
{
	return c->written;
}

bool h2_conn_idle(const struct h2_conn *c)
{
	return list_empty(&c->streams) && c->out->len == 0;
}

uint32_t h2_conn_n_streams(const struct h2_conn *c)
{
	return c->n_streams;
}

void h2_conn_set_out(struct h2_conn *c, struct buf *out)
{
	DCHECK(!c->written && !c->carried);
	c->out = out;
}

bool h2_conn_ready(const struct h2_conn *c)
{
	return c->settings_seen;
}

uint32_t h2_conn_in_block(const struct h2_conn *c)
{
	return c->rx.block_id;
}

size_t h2_conn_unfinished(const struct h2_conn *c)
{
	return c->carried ? c->ctx->carrier->unfinished(c->carried) : c->rx.pending.len;
}

void h2_conn_ping(struct h2_conn *c)
{
	if (!c->failed && c->settings_seen && !c->ping_out)
		c->ping_out = h2_put_frame(c, H2_PING, 0, 0, H2_PING_PAYLOAD, 8);
}

bool h2_conn_ping_out(const struct h2_conn *c)
{
	return c->ping_out;
}

static void drain(struct h2_conn *c, uint32_t last_id, enum h2_error code)
{
	if (last_id < c->goaway_sent_id)
		c->goaway_sent_id = last_id;
	c->goaway_sent = true;
	if (c->carried)
		h2_carrier_drain(c, code);
	// Whoever has said nothing yet is told in its own protocol, once it begins.
	if (c->rx.foreign || h2_carrier_may_begin(c) || (!c->written && !h2_put_greeting(c)))
		return;
	h2_put_goaway(c, c->role == H2_SERVER ? c->goaway_sent_id : 0, code);
}

void h2_conn_drain_begin(struct h2_conn *c)
{
	drain(c, H2_ID_MAX, H2_NO_ERROR);
}

void h2_conn_drain_end(struct h2_conn *c, enum h2_error code)
{
	drain(c, h2_goaway_id(c), code);
}

static void took_end(struct h2_stream *s)
{
	s->sent_end = true;
	h2_stream_schedule(s);
	h2_stream_check_done(s);
}

// Ends that need no window. False = they wait for room.
static bool pump_ends(struct h2_conn *c, size_t *room)
{
	while (!list_empty(&c->end_turns)) {
		struct h2_stream *s = CONTAINER_OF(c->end_turns.next, struct h2_stream, turn);
		if (*room < H2_FRAME_HEAD)
			return false;
		uint64_t before = c->written;
		if (s->has_trailers ? !h2_put_packed_trailers(s) : !h2_put_data(s, NULL, 0, true))
			return false;
		*room -= min_size(*room, c->written - before);
		took_end(s);
	}
	return true;
}

// One frame of the stream whose turn it is, if it has window. False = it waits for room.
static bool pump_data(struct h2_conn *c, size_t *room)
{
	struct h2_stream *s = CONTAINER_OF(c->data_turns.next, struct h2_stream, turn);
	int64_t window = h2_send_window(s);
	if (window <= 0) { // since the initial window changed
		s->turn_list = NULL;
		list_remove(&s->turn);
		h2_stream_schedule(s);
		return true;
	}
	if (*room <= H2_FRAME_HEAD)
		return false;
	size_t len = min_size(s->out.len, H2_FRAME_MAX);
	len = min_size(len, min_size((size_t)window, (size_t)c->send_window));
	len = min_size(len, *room - H2_FRAME_HEAD);
	bool end = len == s->out.len && s->end_queued && !s->has_trailers;
	if (!h2_put_data(s, NULL, len, end))
		return false;
	c->queued -= len;
	*room -= H2_FRAME_HEAD + len;
	list_remove(&s->turn); // to the end of the line
	s->turn_list = NULL;
	if (end)
		took_end(s);
	else
		h2_stream_schedule(s);
	if (c->events->on_sent)
		c->events->on_sent(c, s, len); // may reset it
	return true;
}

static void report_done(struct h2_conn *c)
{
	while (!list_empty(&c->done))
		h2_stream_close(CONTAINER_OF(c->done.next, struct h2_stream, turn), H2_NO_ERROR,
			false, false);
}

static bool pump(struct h2_conn *c, size_t room)
{
	if (!h2_flow_announce(c, &room))
		return true;
	for (;;) {
		if (c->failed)
			return false;
		if (!pump_ends(c, &room))
			return !c->failed;
		if (list_empty(&c->data_turns) || c->send_window <= 0)
			return false;
		if (!pump_data(c, &room))
			return true;
	}
}

static __attribute__((noinline)) bool pump_all(struct h2_conn *c, size_t room)
{
	c->pumping = true;
	// An empty SETTINGS whose ACK found out of memory: no byte of it is left to be fed again.
	if (h2_rx_at_end(&c->rx))
		h2_conn_feed(c, (const uint8_t *)"", 0);
	bool more = !c->failed && pump(c, room);
	more |= !c->failed && !c->feeding && h2_rx_at_end(&c->rx);
	report_done(c);
	c->pumping = false;
	return more;
}

// Whatever the room.
static bool nothing_to_pump(const struct h2_conn *c)
{
	return list_empty(&c->done) && list_empty(&c->end_turns) && list_empty(&c->data_turns) &&
	       !h2_flow_owes(c) && !h2_rx_at_end(&c->rx);
}

bool h2_conn_pump(struct h2_conn *c, size_t room)
{
	if (c->pumping)
		return false;
	c->room_end = c->written + (room < UINT32_MAX ? room : UINT32_MAX);
	return !nothing_to_pump(c) && pump_all(c, room);
}
