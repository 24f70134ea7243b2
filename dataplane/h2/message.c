// SPDX-License-Identifier: Apache-2.0
// Messages out: h2_message to HEADERS and CONTINUATION. HPACK order is wire order, so a block is
// encoded only when it goes to the output at once; trailers behind a body wait unencoded.
#include "dataplane/h2/hpack_tables.h"
#include "dataplane/h2/impl.h"
#include "lb/base/check.h"

struct packed_field {
	uint32_t name_len, value_len;
	uint8_t never_index, name_id;
};

#define MAX_PSEUDO 4

static struct field pseudo(enum hpack_name id, struct str value)
{
	return (struct field){.name = {hpack_known[id].name, hpack_known[id].len},
		.value = value,
		.name_id = (uint8_t)id};
}

static size_t pseudo_fields(const struct h2_message *m, char status[3], struct field *out)
{
	size_t n = 0;
	if (m->kind == H2_REQUEST) {
		out[n++] = pseudo(HPACK_METHOD, m->method);
		if (m->scheme.len)
			out[n++] = pseudo(HPACK_SCHEME, m->scheme);
		if (m->authority.len)
			out[n++] = pseudo(HPACK_AUTHORITY, m->authority);
		if (m->path.len)
			out[n++] = pseudo(HPACK_PATH, m->path);
	} else if (m->kind != H2_TRAILERS) {
		status[0] = (char)('0' + m->status / 100 % 10);
		status[1] = (char)('0' + m->status / 10 % 10);
		status[2] = (char)('0' + m->status % 10);
		out[n++] = pseudo(HPACK_STATUS, (struct str){status, 3});
	}
	return n;
}

static void put_piece(struct h2_conn *c, const struct h2_frame *f, const uint8_t *payload)
{
	uint8_t *head = buf_reserve(c->out, c->ctx->chunks, H2_FRAME_HEAD);
	CHECK(head); // room was looked for before encoding
	h2_frame_pack(head, f);
	bool ok = buf_append(c->out, c->ctx->chunks, payload, f->length);
	CHECK(ok);
	c->written += H2_FRAME_HEAD + f->length;
	counter_add(&c->ctx->counters[H2_C_frames_out_data + f->type], 1);
}

// RFC 9113 4.3, 6.10.
static void put_block(struct h2_stream *s, const uint8_t *p, size_t len, bool end_stream)
{
	struct h2_frame f = {
		.id = s->id,
		.type = H2_HEADERS,
		.flags = end_stream ? H2_FLAG_END_STREAM : 0,
	};
	do {
		f.length = (uint32_t)(len < H2_FRAME_MAX ? len : H2_FRAME_MAX);
		if (f.length == len)
			f.flags |= H2_FLAG_END_HEADERS;
		put_piece(s->conn, &f, p);
		p += f.length;
		len -= f.length;
		f.type = H2_CONTINUATION;
		f.flags = 0;
	} while (len);
	h2_count(s->conn->ctx, H2_C_header_blocks_out);
}

// The block is behind a place for its frame's header, at the end of the output.
static void put_in_place(struct h2_stream *s, uint8_t *head, size_t len, bool end_stream)
{
	struct h2_conn *c = s->conn;
	const struct h2_frame f = {
		.length = (uint32_t)len,
		.id = s->id,
		.type = H2_HEADERS,
		.flags = H2_FLAG_END_HEADERS | (end_stream ? H2_FLAG_END_STREAM : 0),
	};
	h2_frame_pack(head, &f);
	buf_added(c->out, H2_FRAME_HEAD + len);
	c->written += H2_FRAME_HEAD + len;
	h2_count(c->ctx, H2_C_frames_out_headers);
	h2_count(c->ctx, H2_C_header_blocks_out);
}

static size_t bound_of(
	const struct field *first, size_t n_first, const struct field *fields, size_t n)
{
	return (n_first ? hpack_bound(first, n_first) : 0) + hpack_bound(fields, n);
}

// For a block that is encoded elsewhere first.
static bool has_room(const struct h2_context *ctx, size_t bound)
{
	// A frame header may leave up to its own length unused at the end of a chunk.
	size_t frames = bound / H2_FRAME_MAX + 1;
	size_t chunks = (bound + 2 * H2_FRAME_HEAD * frames) / BUF_CHUNK_ROOM + 1;
	return bound <= ctx->max_encoded && pool_left(ctx->chunks) >= chunks;
}

// Fields of `first` come first.
static bool put_fields(struct h2_stream *s, const struct field *first, size_t n_first,
	const struct field *fields, size_t n, bool end_stream)
{
	struct h2_conn *c = s->conn;
	struct h2_context *ctx = c->ctx;
	size_t bound = bound_of(first, n_first, fields, n);
	uint8_t *head = buf_space(c->out, ctx->chunks, H2_FRAME_HEAD + bound);
	if (!head && !has_room(ctx, bound)) {
		h2_count(ctx, H2_C_no_memory);
		return false;
	}
	uint8_t *block = head ? head + H2_FRAME_HEAD : ctx->encoded;
	size_t len = 0;
	if (n_first)
		len = hpack_encode(&c->hpack, ctx->hpack_mem, first, n_first, block);
	len += hpack_encode(&c->hpack, ctx->hpack_mem, fields, n, block + len);
	if (head)
		put_in_place(s, head, len, end_stream);
	else
		put_block(s, block, len, end_stream);
	return true;
}

static bool put_message(struct h2_stream *s, const struct h2_message *m, bool end_stream)
{
	char status[3];
	struct field first[MAX_PSEUDO];
	if (m->n_fields + MAX_PSEUDO > s->conn->ctx->max_fields)
		return false;
	size_t n_first = pseudo_fields(m, status, first);
	return put_fields(s, first, n_first, m->fields, m->n_fields, end_stream);
}

bool h2_put_message(struct h2_stream *s, const struct h2_message *m, bool end_stream)
{
	if (__builtin_expect(s->conn->carried != NULL, false))
		return h2_carrier_put_message(s, m, end_stream);
	return put_message(s, m, end_stream);
}

bool h2_pack_trailers(struct h2_stream *s, const struct h2_message *m)
{
	struct pool *chunks = s->conn->ctx->chunks;
	// Refused now, or they would wait for ever.
	bool ok = m->n_fields <= s->conn->ctx->max_fields &&
	          bound_of(NULL, 0, m->fields, m->n_fields) <= s->conn->ctx->max_encoded;
	for (size_t i = 0; ok && i < m->n_fields; i++) {
		const struct field *f = &m->fields[i];
		struct packed_field p = {
			(uint32_t)f->name.len, (uint32_t)f->value.len, f->never_index, f->name_id};
		ok = buf_append(&s->trailers, chunks, &p, sizeof(p)) &&
		     buf_append(&s->trailers, chunks, f->name.p, f->name.len) &&
		     buf_append(&s->trailers, chunks, f->value.p, f->value.len);
	}
	if (!ok)
		buf_clear(&s->trailers, chunks);
	s->conn->queued += s->trailers.len;
	return ok;
}

bool h2_put_packed_trailers(struct h2_stream *s)
{
	struct h2_context *ctx = s->conn->ctx;
	struct buf_cursor at = {0};
	char *text = ctx->packed;
	size_t n = 0;
	while (at.offset < s->trailers.len) {
		struct packed_field p;
		buf_cursor_read(&s->trailers, &at, &p, sizeof(p));
		buf_cursor_read(&s->trailers, &at, text, p.name_len + p.value_len);
		ctx->trailers[n++] = (struct field){.name = {text, p.name_len},
			.value = {text + p.name_len, p.value_len},
			.never_index = p.never_index,
			.name_id = p.name_id};
		text += p.name_len + p.value_len;
	}
	const struct h2_message m = {
		.kind = H2_TRAILERS, .end_stream = true, .fields = ctx->trailers, .n_fields = n};
	if (!h2_put_message(s, &m, true))
		return false;
	s->conn->queued -= s->trailers.len;
	buf_clear(&s->trailers, ctx->chunks);
	return true;
}
