// SPDX-License-Identifier: Apache-2.0
// What complete frames and header blocks of the peer mean (RFC 9113 5.1, 6, 8.1).
#include "dataplane/h2/impl.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"

// A backend that never comes to its final response.
#define MAX_INFORMATIONAL 100

_Static_assert(H2_C_well_formed + H2_TOO_LARGE == H2_C_malformed_too_large,
	"counters follow enum h2_malformed");

static void on_rst_stream(struct h2_conn *c, uint32_t id, enum h2_error code)
{
	struct h2_stream *s = h2_stream_find(c, id);
	if (!s && h2_id_idle(c, id)) {
		h2_conn_fail(c, H2_PROTOCOL_ERROR);
		return;
	}
	if (!h2_abuse_charge_reset(c))
		return;
	if (s)
		h2_stream_close(s, code, true, code == H2_REFUSED_STREAM);
	else
		h2_count(c->ctx, H2_C_ignored_closed_stream);
}

// RFC 9113 5.3: deprecated, but its errors still are errors.
static void on_priority(struct h2_conn *c, const uint8_t *payload)
{
	const struct h2_frame *f = &c->rx.frame;
	if (!h2_abuse_priority(c))
		return;
	enum h2_error code = H2_NO_ERROR;
	if (f->length != 5)
		code = H2_FRAME_SIZE_ERROR;
	else if ((h2_read_u32(payload) & H2_ID_MAX) == f->id) // RFC 7540 5.3.1
		code = H2_PROTOCOL_ERROR;
	if (!code)
		return;
	struct h2_stream *s = h2_stream_find(c, f->id);
	if (s)
		h2_stream_fail(s, code);
	else
		h2_conn_fail(c, code);
}

static void on_ping(struct h2_conn *c, const uint8_t *payload)
{
	if (!(c->rx.frame.flags & H2_FLAG_ACK)) {
		if (h2_put_frame(c, H2_PING, H2_FLAG_ACK, 0, payload, 8))
			h2_abuse_answer(c);
	} else if (c->ping_out && memcmp(payload, H2_PING_PAYLOAD, 8) == 0) {
		c->ping_out = false;
	} else {
		h2_count(c->ctx, H2_C_ping_ack_unasked);
		h2_abuse_ignored(c);
	}
}

// RFC 9113 6.8. Only streams that we opened are above its id.
static void on_goaway(struct h2_conn *c, const uint8_t *payload)
{
	uint32_t last_id = h2_read_u32(payload) & H2_ID_MAX;
	enum h2_error code = h2_read_u32(payload + 4);
	if (c->goaway_got && last_id > c->goaway_got_id) {
		h2_conn_fail(c, H2_PROTOCOL_ERROR);
		return;
	}
	if (c->goaway_got && !h2_abuse_ignored(c))
		return;
	c->goaway_got = true;
	c->goaway_got_id = last_id;
	if (c->events->on_goaway)
		c->events->on_goaway(c, last_id, code);
	while (c->role == H2_CLIENT && !list_empty(&c->streams)) {
		struct h2_stream *s = CONTAINER_OF(c->streams.prev, struct h2_stream, link);
		if (s->id <= last_id)
			break;
		h2_stream_close(s, H2_REFUSED_STREAM, true, true);
	}
}

void h2_receive_frame(struct h2_conn *c, const uint8_t *payload)
{
	const struct h2_frame *f = &c->rx.frame;
	switch (f->type) {
	case H2_PRIORITY:
		on_priority(c, payload);
		break;
	case H2_RST_STREAM:
		on_rst_stream(c, f->id, h2_read_u32(payload));
		break;
	case H2_SETTINGS:
		if (f->flags & H2_FLAG_ACK)
			h2_settings_acked(c);
		else
			h2_settings_received(c, payload, f->length);
		break;
	case H2_PING:
		on_ping(c, payload);
		break;
	case H2_GOAWAY:
		on_goaway(c, payload);
		break;
	case H2_WINDOW_UPDATE:
		h2_flow_window_update(c, f->id, h2_read_u32(payload) & H2_WINDOW_MAX);
		break;
	default: // RFC 9113 5.5: unknown types are ignored
		break;
	}
}

// What is pending, and the last piece behind it. *len: of that, and then of all.
static __attribute__((noinline)) const uint8_t *gather(
	struct h2_conn *c, const uint8_t *last_piece, size_t *len)
{
	struct h2_context *ctx = c->ctx;
	struct buf *pending = &c->rx.pending;
	size_t before = pending->len;
	DCHECK(before + *len <= H2_MAX_GATHERED);
	buf_copy_out(pending, 0, ctx->gathered, before);
	buf_clear(pending, ctx->chunks);
	if (*len)
		memcpy(ctx->gathered + before, last_piece, *len);
	*len += before;
	return ctx->gathered;
}

void h2_receive_excess(struct h2_conn *c, enum h2_abuse kind)
{
	struct h2_stream *s = h2_stream_find(c, c->rx.block_id);
	if (s && c->role == H2_CLIENT) {
		s->too_large = true;
		h2_stream_fail(s, H2_ENHANCE_YOUR_CALM);
	}
	h2_abuse_fail(c, kind);
}

// False = the connection has failed.
static bool decoded(struct h2_conn *c, enum hpack_result r)
{
	struct h2_context *ctx = c->ctx;
	if (r == HPACK_OK)
		return true;
	if (r == HPACK_STOPPED)
		h2_receive_excess(c, H2_ABUSE_HEADER_BOMB);
	else if (r == HPACK_NO_MEMORY)
		h2_count(ctx, H2_C_no_memory);
	h2_conn_fail(c, r == HPACK_BAD ? H2_COMPRESSION_ERROR : H2_INTERNAL_ERROR);
	return false;
}

// Runs the block, or the rest of it, through HPACK and the header rules. False = the connection has
// failed.
static bool decode(struct h2_conn *c, const uint8_t *last_piece, size_t len)
{
	struct h2_context *ctx = c->ctx;
	const struct hpack_sink sink = {h2_block_add, h2_block_moves, &ctx->block};
	const uint8_t *bytes = c->rx.pending.len ? gather(c, last_piece, &len) : last_piece;
	enum hpack_result r;
	if (!c->rx.block_parted) {
		r = hpack_decode(&c->hpack, ctx->hpack_mem, ctx->hpack_memo, bytes, len,
			ctx->decoded, &sink);
	} else {
		h2_block_resume(&ctx->block, &c->rx.facts);
		r = hpack_decode_last(&c->rx.part, &c->hpack, ctx->hpack_mem, ctx->hpack_memo,
			bytes, len, ctx->decoded, &sink);
	}
	c->rx.block_parted = false;
	h2_count(ctx, H2_C_header_blocks_in);
	return decoded(c, r) && h2_abuse_header(c, ctx->block.list_bytes, len);
}

static void deliver(struct h2_conn *c, struct h2_stream *s)
{
	struct h2_context *ctx = c->ctx;
	c->rx.stream = s;
	if (ctx->block.message.end_stream) {
		s->got_end = true;
		list_remove(&s->credit);
		h2_stream_check_done(s);
	}
	ctx->block_busy = true;
	c->events->on_message(c, s, &ctx->block.message);
	ctx->block_busy = false;
	c->rx.stream = NULL;
}

static void count_malformed(struct h2_conn *c, enum h2_malformed why)
{
	counter_add(&c->ctx->counters[H2_C_well_formed + why], 1);
}

static bool accepts(struct h2_conn *c, uint32_t id)
{
	struct h2_context *ctx = c->ctx;
	if (id > c->goaway_sent_id) {
		h2_count(ctx, H2_C_streams_refused_drain);
		h2_stream_refuse(c, id, H2_REFUSED_STREAM, false);
		return false;
	}
	if (c->n_streams >= c->max_streams) {
		h2_count(ctx, H2_C_streams_refused_limit);
		h2_stream_refuse(c, id, H2_REFUSED_STREAM, true);
		return false;
	}
	return true;
}

// HX-08: END_STREAM right behind the header block.
static bool length_fits(const struct h2_message *m)
{
	return !m->end_stream || m->content_length <= 0;
}

static __attribute__((cold)) void refuse(struct h2_conn *c, uint32_t id, enum h2_malformed why)
{
	struct h2_context *ctx = c->ctx;
	struct h2_message *m = &ctx->block.message;
	h2_count(ctx, H2_C_stream_errors);
	h2_stream_refuse(c, id, H2_PROTOCOL_ERROR, true);
	m->bad = 0;
	ctx->block_busy = true;
	if (c->events->on_refused)
		c->events->on_refused(c, m, h2_malformed_text(why));
	ctx->block_busy = false;
}

static void new_request(struct h2_conn *c, uint32_t id)
{
	struct h2_context *ctx = c->ctx;
	struct h2_block *b = &ctx->block;
	c->last_peer_id = id;
	if (!accepts(c, id))
		return;
	enum h2_malformed why = h2_block_end(b, c->rx.block_flags & H2_FLAG_END_STREAM);
	if (!why && !length_fits(&b->message))
		why = H2_BAD_CONTENT_LENGTH;
	count_malformed(c, why);
	if (why || c->rx.block_self) {
		refuse(c, id, why);
		return;
	}
	struct h2_stream *s = h2_stream_new(c, id);
	if (!s) {
		h2_count(ctx, H2_C_streams_refused_memory);
		h2_stream_refuse(c, id, H2_REFUSED_STREAM, false);
		return;
	}
	h2_count(ctx, H2_C_streams_accepted);
	if (b->message.bad)
		h2_count(ctx, b->message.bad == 431 ? H2_C_requests_too_large_431
						    : H2_C_requests_bad_400);
	s->got_head = true;
	s->is_head = b->facts.method_head;
	s->is_connect = b->facts.method_connect;
	s->is_grpc = b->facts.is_grpc;
	s->content_length = b->message.content_length;
	deliver(c, s);
}

// RFC 9110 8.6, 6.4.1: what the length of a response may be.
static void take_response_length(struct h2_stream *s, const struct h2_message *m)
{
	bool no_body = s->is_head || m->status == 204 || m->status == 304;
	s->content_length = no_body ? 0 : m->content_length;
	if (!no_body && s->is_connect)
		s->content_length = -1;
}

// HX-25: a request whose trailers are too large gets the same answer as for its header.
static enum h2_malformed judge_large(struct h2_conn *c, struct h2_stream *s)
{
	struct h2_message *m = &c->ctx->block.message;
	if (c->role == H2_SERVER) {
		h2_count(c->ctx, H2_C_requests_too_large_431);
		m->bad = 431;
		return H2_WELL_FORMED;
	}
	s->too_large = true;
	return H2_TOO_LARGE;
}

static void more_headers(struct h2_conn *c, struct h2_stream *s)
{
	struct h2_message *m = &c->ctx->block.message;
	enum h2_malformed why =
		h2_block_end(&c->ctx->block, c->rx.block_flags & H2_FLAG_END_STREAM);
	if (s->got_end) { // RFC 9113 5.1, "half-closed (remote)"
		h2_stream_fail(s, H2_STREAM_CLOSED);
		return;
	}
	if (m->kind == H2_RESPONSE)
		take_response_length(s, m);
	int64_t total = s->content_length;
	if (m->kind == H2_TRAILERS && m->content_length >= 0)
		total = m->content_length;
	if (!why && m->end_stream && total >= 0 && total != s->received)
		why = H2_BAD_CONTENT_LENGTH;
	if (why == H2_TOO_LARGE)
		why = judge_large(c, s);
	count_malformed(c, why);
	if (why || c->rx.block_self) {
		h2_stream_fail(s, s->too_large ? H2_ENHANCE_YOUR_CALM : H2_PROTOCOL_ERROR);
		return;
	}
	if (m->kind == H2_INFORMATIONAL && ++s->n_informational > MAX_INFORMATIONAL) {
		h2_count(c->ctx, H2_C_abuse_informational);
		h2_stream_fail(s, H2_ENHANCE_YOUR_CALM);
		return;
	}
	if (m->kind == H2_RESPONSE)
		s->got_head = true;
	deliver(c, s);
}

// A block on a stream that is no more (HX-26). The table has seen it, whatever follows.
static void late_block(struct h2_conn *c, uint32_t id)
{
	switch (h2_stream_past(c, id)) {
	case H2_PAST_RESET:
		h2_count(c->ctx, H2_C_ignored_closed_stream);
		h2_abuse_ignored(c);
		break;
	case H2_PAST_ENDED:
		h2_conn_fail(c, H2_STREAM_CLOSED);
		break;
	case H2_PAST_NEVER: // RFC 9113 5.1.1: an id below an earlier one
		h2_conn_fail(c, H2_PROTOCOL_ERROR);
		break;
	}
}

// The block at hand, of the stream *ret_s, if there is one. False = the connection has failed.
static inline __attribute__((always_inline)) bool begin(
	struct h2_conn *c, bool idle, struct h2_stream **ret_s)
{
	struct h2_block *b = &c->ctx->block;
	uint32_t id = c->rx.block_id;
	if (idle && (c->role == H2_CLIENT || id % 2 == 0)) {
		h2_conn_fail(c, H2_PROTOCOL_ERROR);
		return false;
	}
	struct h2_stream *s = h2_stream_find(c, id);
	bool response = c->role == H2_CLIENT && s && !s->got_head;
	h2_block_begin(b, idle ? H2_REQUEST : response ? H2_RESPONSE : H2_TRAILERS);
	b->connect_stream = s && s->is_connect;
	b->grpc_stream = s && s->is_grpc;
	b->length_forbidden = s && !response && s->content_length >= 0;
	*ret_s = s;
	return true;
}

void h2_receive_block(struct h2_conn *c, const uint8_t *last_piece, size_t len)
{
	uint32_t id = c->rx.block_id;
	bool idle = h2_id_idle(c, id);
	struct h2_stream *s;
	bool ok = begin(c, idle, &s) && decode(c, last_piece, len);
	c->rx.block_id = 0;
	if (!ok)
		return;
	if (s)
		more_headers(c, s);
	else if (idle)
		new_request(c, id);
	else
		late_block(c, id);
}

__attribute__((cold)) bool h2_receive_part(struct h2_conn *c)
{
	struct h2_context *ctx = c->ctx;
	struct h2_rx *rx = &c->rx;
	const struct hpack_sink sink = {h2_block_add, h2_block_moves, &ctx->block};
	struct h2_stream *s;
	if (!begin(c, h2_id_idle(c, rx->block_id), &s))
		return false;
	if (!rx->block_parted) {
		rx->part = (struct hpack_part){0};
		rx->facts = ctx->block.facts;
		rx->block_parted = true;
	}
	h2_block_resume(&ctx->block, &rx->facts);
	size_t len = 0, used;
	const uint8_t *bytes = gather(c, NULL, &len);
	enum hpack_result r = hpack_decode_part(&rx->part, &c->hpack, ctx->hpack_mem,
		ctx->hpack_memo, bytes, len, ctx->decoded, &sink, &used);
	if (!decoded(c, r))
		return false;
	rx->facts = ctx->block.facts;
	if (buf_append(&rx->pending, ctx->chunks, bytes + used, len - used))
		return true;
	h2_count(ctx, H2_C_no_memory);
	h2_conn_fail(c, H2_INTERNAL_ERROR);
	return false;
}
