// SPDX-License-Identifier: Apache-2.0
// Messages out: h2_message to HEADERS and CONTINUATION. HPACK order is wire order, so a block is
// encoded only when it goes to the output at once; trailers behind a body wait unencoded.
#include "dataplane/h2/impl.h"
#include "lb/base/check.h"

struct packed_field {
	uint32_t name_len, value_len;
	uint32_t never_index;
};

static uint8_t *bytes(const char *p)
{
	return (uint8_t *)(uintptr_t)p; // nghttp2_nv takes no const, and writes nothing
}

static void add(
	struct h2_context *ctx, size_t *n, struct str name, struct str value, bool never_index)
{
	ctx->nvs[(*n)++] = (nghttp2_nv){
		.name = bytes(name.p),
		.namelen = name.len,
		.value = bytes(value.p),
		.valuelen = value.len,
		.flags = never_index ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE,
	};
}

static void add_pseudo(
	struct h2_context *ctx, size_t *n, const struct h2_message *m, char status[3])
{
	if (m->kind == H2_REQUEST) {
		add(ctx, n, STR(":method"), m->method, false);
		if (m->scheme.len)
			add(ctx, n, STR(":scheme"), m->scheme, false);
		if (m->authority.len)
			add(ctx, n, STR(":authority"), m->authority, false);
		if (m->path.len)
			add(ctx, n, STR(":path"), m->path, false);
	} else if (m->kind != H2_TRAILERS) {
		status[0] = (char)('0' + m->status / 100 % 10);
		status[1] = (char)('0' + m->status / 10 % 10);
		status[2] = (char)('0' + m->status % 10);
		add(ctx, n, STR(":status"), (struct str){status, 3}, false);
	}
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

static bool put_nvs(struct h2_stream *s, size_t n, bool end_stream)
{
	struct h2_conn *c = s->conn;
	struct h2_context *ctx = c->ctx;
	size_t bound = hpack_bound(ctx->nvs, n);
	// A frame header may leave up to its own length unused at the end of a chunk.
	size_t frames = bound / H2_FRAME_MAX + 1;
	size_t chunks = (bound + 2 * H2_FRAME_HEAD * frames) / BUF_CHUNK_ROOM + 1;
	if (bound > ctx->max_encoded || pool_left(ctx->chunks) < chunks) {
		h2_count(ctx, H2_C_no_memory);
		return false;
	}
	ptrdiff_t len = hpack_encode(
		&c->hpack, &ctx->nghttp2_mem, ctx->nvs, n, ctx->encoded, ctx->max_encoded);
	if (len < 0) { // the table has parted from the peer's
		h2_count(ctx, H2_C_no_memory);
		h2_conn_fail(c, H2_INTERNAL_ERROR);
		return false;
	}
	put_block(s, ctx->encoded, (size_t)len, end_stream);
	return true;
}

bool h2_put_message(struct h2_stream *s, const struct h2_message *m, bool end_stream)
{
	struct h2_context *ctx = s->conn->ctx;
	char status[3];
	size_t n = 0;
	if (m->n_fields + 4 > ctx->max_nvs)
		return false;
	add_pseudo(ctx, &n, m, status);
	for (size_t i = 0; i < m->n_fields; i++)
		add(ctx, &n, m->fields[i].name, m->fields[i].value, m->fields[i].never_index);
	return put_nvs(s, n, end_stream);
}

bool h2_pack_trailers(struct h2_stream *s, const struct h2_message *m)
{
	struct pool *chunks = s->conn->ctx->chunks;
	size_t len = 0;
	for (size_t i = 0; i < m->n_fields; i++)
		len += m->fields[i].name.len + m->fields[i].value.len;
	bool ok = m->n_fields <= s->conn->ctx->max_nvs && len <= s->conn->ctx->max_encoded;
	for (size_t i = 0; ok && i < m->n_fields; i++) {
		const struct field *f = &m->fields[i];
		struct packed_field p = {
			(uint32_t)f->name.len, (uint32_t)f->value.len, f->never_index};
		ok = buf_append(&s->trailers, chunks, &p, sizeof(p)) &&
		     buf_append(&s->trailers, chunks, f->name.p, f->name.len) &&
		     buf_append(&s->trailers, chunks, f->value.p, f->value.len);
	}
	if (!ok)
		buf_clear(&s->trailers, chunks);
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
		add(ctx, &n, (struct str){text, p.name_len},
			(struct str){text + p.name_len, p.value_len}, p.never_index);
		text += p.name_len + p.value_len;
	}
	if (!put_nvs(s, n, true))
		return false;
	buf_clear(&s->trailers, ctx->chunks);
	return true;
}
