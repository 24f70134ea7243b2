// SPDX-License-Identifier: Apache-2.0
// Bytes in: cuts the peer's stream into frames, in place where a frame lies whole in the input.
// DATA is passed on as it comes; other payloads and header blocks wait in rx.pending for their end.
#include "dataplane/h2/impl.h"

// CVE-2024-27919 and kin: so many for nothing, and one more for so many bytes.
#define MAX_CONTINUATIONS 8
#define BYTES_PER_CONTINUATION 1024
// Those that say how a frame of DATA or HEADERS is made up. For DATA the others mean nothing.
#define FORM_FLAGS (H2_FLAG_PADDED | H2_FLAG_PRIORITY | H2_FLAG_END_HEADERS)

// What a frame costs beside its bytes, until its owner has done what it asks for, in about an
// instruction each: most of a request is to route and forward it, and of a reset to pass it on.
#define WORK_FRAME H2_WORK_FRAME
#define WORK_HEADERS (WORK_FRAME + 4096)
#define WORK_RST_STREAM (WORK_FRAME + 1536)

static uint32_t min_u32(uint32_t a, size_t b)
{
	return b < a ? (uint32_t)b : a;
}

static int64_t work_of(const struct h2_frame *f)
{
	if (f->type == H2_HEADERS)
		return WORK_HEADERS;
	return f->type == H2_RST_STREAM ? WORK_RST_STREAM : WORK_FRAME;
}

// Rules that span frames.
static enum h2_error check_order(const struct h2_conn *c, const struct h2_frame *f)
{
	if (!c->settings_seen && (f->type != H2_SETTINGS || f->flags & H2_FLAG_ACK))
		return H2_PROTOCOL_ERROR; // RFC 9113 3.4
	bool in_block = c->rx.block_id != 0;
	if (in_block != (f->type == H2_CONTINUATION) || (in_block && f->id != c->rx.block_id))
		return H2_PROTOCOL_ERROR; // 6.10
	if (f->type == H2_PUSH_PROMISE)
		return H2_PROTOCOL_ERROR; // 8.4: never enabled, and never from a client
	return H2_NO_ERROR;
}

static void stop_stream(struct h2_conn *c)
{
	c->rx.padding += c->rx.left;
	c->rx.left = 0;
	c->rx.stream = NULL;
}

// HX-08: a body that does not fit its content-length never reaches the owner as complete.
static bool body_fits(const struct h2_stream *s, uint32_t len, bool end)
{
	int64_t received = s->received + len;
	if (s->content_length < 0)
		return true;
	return end ? received == s->content_length : received <= s->content_length;
}

// The error of a DATA frame with its stream, once its length is known.
static enum h2_error check_data(const struct h2_conn *c, const struct h2_stream *s)
{
	const struct h2_frame *f = &c->rx.frame;
	if (s->got_end)
		return H2_STREAM_CLOSED;
	if (h2_recv_window(s) < f->length)
		return H2_FLOW_CONTROL_ERROR;
	if (!s->got_head) {
		counter_add(&c->ctx->counters[H2_C_malformed_sequence], 1);
		return H2_PROTOCOL_ERROR; // RFC 9113 8.1
	}
	if (!body_fits(s, c->rx.left, f->flags & H2_FLAG_END_STREAM)) {
		counter_add(&c->ctx->counters[H2_C_malformed_content_length], 1);
		return H2_PROTOCOL_ERROR;
	}
	return H2_NO_ERROR;
}

static void late_data(struct h2_conn *c)
{
	uint32_t id = c->rx.frame.id;
	stop_stream(c);
	if (h2_stream_past(c, id) == H2_PAST_RESET) {
		h2_count(c->ctx, H2_C_ignored_closed_stream);
		return;
	}
	h2_count(c->ctx, H2_C_stream_errors);
	h2_stream_refuse(c, id, H2_STREAM_CLOSED, true); // RFC 9113 6.1
}

static void deliver_data(struct h2_conn *c, const uint8_t *p, uint32_t len)
{
	struct h2_rx *rx = &c->rx;
	struct h2_stream *s = rx->stream;
	rx->left -= len;
	bool end = rx->left == 0 && rx->frame.flags & H2_FLAG_END_STREAM;
	if (!s)
		return;
	s->received += len;
	h2_flow_delivered(s, len);
	if (end) {
		s->got_end = true;
		list_remove(&s->credit);
		h2_stream_check_done(s);
	}
	c->events->on_data(c, s, p, len, end);
}

static void begin_data(struct h2_conn *c)
{
	struct h2_rx *rx = &c->rx;
	const struct h2_frame *f = &rx->frame;
	bool end = f->flags & H2_FLAG_END_STREAM;
	if (h2_id_idle(c, f->id)) {
		h2_conn_fail(c, H2_PROTOCOL_ERROR);
		return;
	}
	if (!h2_flow_receive(c, f->length) || !h2_abuse_empty(c, rx->left == 0 && !end))
		return;
	struct h2_stream *s = h2_stream_find(c, f->id);
	if (!s) {
		late_data(c);
		return;
	}
	enum h2_error code = check_data(c, s);
	if (code) {
		stop_stream(c);
		h2_stream_fail(s, code);
		return;
	}
	rx->stream = s;
	s->recv_credit -= f->length;
	h2_flow_consumed(s, f->length - rx->left); // padding is nobody's to consume
	if (rx->left == 0 && end)
		deliver_data(c, NULL, 0);
}

// RFC 9113 6.1, 6.2: cuts padding off. False = more padding than payload.
static bool take_padding(struct h2_rx *rx)
{
	const struct h2_frame *f = &rx->frame;
	rx->padding = f->flags & H2_FLAG_PADDED ? rx->head[H2_FRAME_HEAD] : 0;
	rx->left = f->length - (rx->head_need - H2_FRAME_HEAD);
	if (rx->padding > rx->left)
		return false;
	rx->left -= rx->padding;
	return true;
}

static void begin_headers(struct h2_conn *c)
{
	struct h2_rx *rx = &c->rx;
	const struct h2_frame *f = &rx->frame;
	rx->block_id = f->id;
	rx->block_flags = f->flags;
	rx->block_self = false;
	if (f->flags & H2_FLAG_PRIORITY) {
		const uint8_t *p = rx->head + H2_FRAME_HEAD + (f->flags & H2_FLAG_PADDED ? 1 : 0);
		rx->block_self = (h2_read_u32(p) & H2_ID_MAX) == f->id; // RFC 7540 5.3.1
	}
}

static void begin_continuation(struct h2_conn *c)
{
	struct h2_rx *rx = &c->rx;
	const struct h2_frame *f = &rx->frame;
	uint32_t most = MAX_CONTINUATIONS + rx->block_len / BYTES_PER_CONTINUATION;
	if (++rx->n_continuations > most)
		h2_receive_excess(c, H2_ABUSE_CONTINUATION);
	else
		h2_abuse_empty(c, f->length == 0 && !(f->flags & H2_FLAG_END_HEADERS));
}

// Header and prefix are complete; where there is a prefix, both are in rx->head.
static void begin_frame(struct h2_conn *c)
{
	struct h2_rx *rx = &c->rx;
	const struct h2_frame *f = &rx->frame;
	rx->in_payload = true;
	rx->padding = 0;
	rx->left = f->length;
	if (f->type == H2_CONTINUATION)
		begin_continuation(c);
	else if (f->type >= H2_N_FRAME_TYPES)
		h2_abuse_ignored(c);
	if (f->type != H2_DATA && f->type != H2_HEADERS)
		return;
	if (!take_padding(rx))
		h2_conn_fail(c, H2_PROTOCOL_ERROR);
	else if (f->type == H2_DATA)
		begin_data(c);
	else
		begin_headers(c);
	rx->n_continuations = rx->block_len = 0;
}

static void parse_head(struct h2_conn *c, const uint8_t head[H2_FRAME_HEAD])
{
	struct h2_rx *rx = &c->rx;
	rx->frame = h2_frame_unpack(head);
	const struct h2_frame *f = &rx->frame;
	uint8_t type = f->type < H2_N_FRAME_TYPES ? f->type : H2_N_FRAME_TYPES;
	counter_add(&c->ctx->counters[H2_C_frames_in_data + type], 1);
	*c->allowance -= work_of(f);
	enum h2_error code = h2_frame_check(f);
	if (!code)
		code = check_order(c, f);
	if (code)
		h2_conn_fail(c, code);
	rx->head_have = H2_FRAME_HEAD;
	rx->head_need = (uint8_t)(H2_FRAME_HEAD + h2_frame_prefix(f));
}

// Bytes taken.
static size_t feed_head(struct h2_conn *c, const uint8_t *p, size_t len)
{
	struct h2_rx *rx = &c->rx;
	uint32_t n = H2_FRAME_HEAD;
	if (rx->head_have == 0 && len >= H2_FRAME_HEAD) {
		parse_head(c, p);
		if (rx->head_need > H2_FRAME_HEAD)
			memcpy(rx->head, p, H2_FRAME_HEAD);
	} else {
		n = min_u32((uint32_t)(rx->head_need - rx->head_have), len);
		memcpy(rx->head + rx->head_have, p, n);
		rx->head_have = (uint8_t)(rx->head_have + n);
		if (rx->head_have == H2_FRAME_HEAD)
			parse_head(c, rx->head);
	}
	if (rx->head_have == rx->head_need && !c->failed)
		begin_frame(c);
	return n;
}

static void out_of_memory(struct h2_conn *c)
{
	h2_count(c->ctx, H2_C_no_memory);
	h2_conn_fail(c, H2_INTERNAL_ERROR);
}

static bool keep_piece(struct h2_conn *c, const uint8_t *p, size_t len)
{
	if (buf_append(&c->rx.pending, c->ctx->chunks, p, len))
		return true;
	out_of_memory(c);
	return false;
}

static void feed_fragment(struct h2_conn *c, const uint8_t *p, uint32_t n)
{
	struct h2_rx *rx = &c->rx;
	rx->left -= n;
	rx->block_len += n;
	if (rx->block_len > H2_MAX_BLOCK) {
		h2_receive_excess(c, H2_ABUSE_CONTINUATION);
		return;
	}
	if (rx->pending.len + n > H2_MAX_GATHERED && !h2_receive_part(c))
		return;
	if (rx->block_parted) {
		uint32_t skipped = min_u32(rx->part.skip, n);
		rx->part.skip -= skipped;
		p += skipped;
		n -= skipped;
	}
	if (rx->left == 0 && rx->frame.flags & H2_FLAG_END_HEADERS)
		h2_receive_block(c, p, n);
	else if (c->role == H2_SERVER && buf_is_short(c->ctx->chunks))
		out_of_memory(c); // the last ones are for answers
	else
		keep_piece(c, p, n);
}

// Frames whose payload is needed whole. GOAWAY's debug data is not (RFC 9113 6.8), and an unknown
// frame's nothing.
static uint32_t payload_wanted(const struct h2_frame *f)
{
	if (f->type >= H2_N_FRAME_TYPES)
		return 0;
	return f->type == H2_GOAWAY ? 8 : f->length;
}

// Small frames fit one chunk; SETTINGS of a kilobyte and more is refused before it matters.
#define MAX_KEPT 512

static void feed_control(struct h2_conn *c, const uint8_t *p, uint32_t n)
{
	struct h2_rx *rx = &c->rx;
	uint32_t seen = rx->frame.length - rx->left;
	uint32_t wanted = payload_wanted(&rx->frame);
	rx->left -= n;
	if (seen >= wanted && !(seen == 0 && wanted == 0 && rx->left == 0))
		return; // behind the part that matters
	if (seen == 0 && n >= wanted) {
		h2_receive_frame(c, p);
		return;
	}
	uint32_t more = min_u32(wanted - seen, n);
	if (rx->pending.len + more <= MAX_KEPT && !keep_piece(c, p, more))
		return;
	if (seen + n < wanted)
		return;
	uint8_t payload[MAX_KEPT];
	size_t kept = rx->pending.len;
	buf_copy_out(&rx->pending, 0, payload, kept);
	buf_clear(&rx->pending, c->ctx->chunks);
	h2_receive_frame(c, payload);
}

// Bytes taken.
static size_t feed_payload(struct h2_conn *c, const uint8_t *p, size_t len)
{
	struct h2_rx *rx = &c->rx;
	uint32_t n = min_u32(rx->left, len);
	if (rx->left == 0 && rx->padding) {
		n = min_u32(rx->padding, len);
		rx->padding -= n;
	} else if (rx->frame.type == H2_DATA) {
		if (n)
			deliver_data(c, p, n);
	} else if (rx->frame.type == H2_HEADERS || rx->frame.type == H2_CONTINUATION) {
		feed_fragment(c, p, n);
	} else {
		feed_control(c, p, n);
	}
	if (rx->left == 0 && rx->padding == 0) {
		rx->in_payload = false;
		rx->head_have = 0;
		rx->head_need = H2_FRAME_HEAD;
		rx->stream = NULL;
	}
	return n;
}

// True = the frame at hand asks for an answer that there is no room for.
static bool clogged(const struct h2_conn *c)
{
	const struct h2_rx *rx = &c->rx;
	const struct buf *out = c->out;
	if (rx->frame.type != H2_PING && rx->frame.type != H2_SETTINGS)
		return false;
	size_t tail = out->tail ? BUF_CHUNK_ROOM - (size_t)out->tail->end : 0;
	return tail < H2_FRAME_HEAD + 8 && pool_left(c->ctx->chunks) == 0;
}

// What most bytes are: a frame of a body, or a header block in one frame, that is there to its end
// and has neither padding nor priority. Returns its length, which is taken; 0 = it is none of
// these.
static size_t feed_whole(struct h2_conn *c, const uint8_t *p, size_t len)
{
	struct h2_rx *rx = &c->rx;
	if (len < H2_FRAME_HEAD || rx->head_have || rx->block_id || !c->settings_seen)
		return 0;
	const struct h2_frame f = h2_frame_unpack(p);
	bool is_data = f.type == H2_DATA;
	uint8_t expected = is_data ? 0 : H2_FLAG_END_HEADERS;
	if (f.type > H2_HEADERS || !f.id || f.length > H2_FRAME_MAX ||
		f.length > len - H2_FRAME_HEAD || (f.flags & FORM_FLAGS) != expected)
		return 0;
	counter_add(&c->ctx->counters[H2_C_frames_in_data + f.type], 1);
	*c->allowance -= is_data ? WORK_FRAME : WORK_HEADERS;
	rx->frame = f;
	rx->padding = 0;
	if (is_data) {
		rx->left = f.length;
		begin_data(c);
		if (!c->failed && rx->left)
			deliver_data(c, p + H2_FRAME_HEAD, rx->left);
		rx->stream = NULL;
	} else {
		rx->left = 0;
		begin_headers(c);
		h2_receive_block(c, p + H2_FRAME_HEAD, f.length);
	}
	return H2_FRAME_HEAD + f.length;
}

size_t h2_conn_feed(struct h2_conn *c, const uint8_t *p, size_t len)
{
	if (c->feeding || c->ctx->block_busy)
		return 0;
	c->feeding = true;
	size_t at = 0;
	// A payload of no bytes is a step of its own, which nothing that is fed later would bring.
	while (!c->failed && ((at != len && *c->allowance > 0) || h2_rx_at_end(&c->rx))) {
		if (c->rx.preface_left) {
			size_t n = h2_preface_feed(c, p + at, len - at);
			at += n;
			if (!n)
				break;
		} else if (!c->rx.in_payload) {
			size_t whole = feed_whole(c, p + at, len - at);
			at += whole ? whole : feed_head(c, p + at, len - at);
		} else if (clogged(c)) {
			break;
		} else {
			at += feed_payload(c, p + at, len - at);
		}
	}
	c->feeding = false;
	*c->allowance -= (int64_t)at;
	return c->failed ? len : at;
}
