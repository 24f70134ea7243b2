// SPDX-License-Identifier: Apache-2.0
// Any bytes into a connection of HTTP/1.1, in pieces, by an owner that answers in any way at any
// moment. Input: records of a length byte and that many bytes to feed. A second connection gets all
// of it in single bytes, with an owner who answers each request at its end: where both answered
// alike, both must have heard the same. Everything must come back.
#include "dataplane/h1/h1.h"
#include "lb/base/check.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define N_CHUNKS 256
#define MAX_FIELDS 128

struct owner {
	struct h1_conn *conn;
	struct buf out;
	uint64_t heard; // hash of all events
	uint64_t n_requests;
};

static struct pool chunks;
static struct h1_context *ctx;

static void hear(struct owner *o, const void *p, size_t len)
{
	const uint8_t *bytes = p;
	for (size_t i = 0; i < len; i++)
		o->heard = (o->heard ^ bytes[i]) * UINT64_C(0x100000001b3);
}

static void hear_str(struct owner *o, struct str s)
{
	hear(o, &s.len, sizeof(s.len));
	hear(o, s.p, s.len);
}

// By what was asked, so that two owners that heard the same answer the same.
static void answer(struct owner *o)
{
	uint64_t dice = o->heard;
	struct h1_message m = {.kind = H1_RESPONSE,
		.status = (uint16_t)(200 + dice % 300),
		.content_length = dice >> 16 & 1 ? (int64_t)(dice >> 17 & 15) : -1,
		.end_stream = dice >> 32 & 1};
	if (!h1_conn_send_message(o->conn, &m) || m.end_stream)
		return;
	uint8_t body[16] = {0};
	bool sent = h1_conn_send_data(o->conn, body, dice >> 24 & 15);
	sent &= h1_conn_send_end(o->conn, NULL);
	__asm__ volatile("" : : "r"(sent));
}

static void check_fields(struct owner *o, const struct h1_message *m)
{
	CHECK(m->n_fields <= MAX_FIELDS + 1);
	for (size_t i = 0; i < m->n_fields; i++) {
		const struct field *f = &m->fields[i];
		CHECK(f->name.len && !str_eq(f->name, STR("host")));
		CHECK(!str_eq(f->name, STR("connection")));
		CHECK(!str_eq(f->name, STR("transfer-encoding")));
		for (size_t k = 0; k < f->name.len; k++)
			CHECK(f->name.p[k] > ' ' && (f->name.p[k] < 'A' || f->name.p[k] > 'Z'));
		CHECK(!memchr(f->name.p, ':', f->name.len));
		for (size_t k = 0; k < f->value.len; k++)
			CHECK((uint8_t)f->value.p[k] >= ' ' || f->value.p[k] == '\t');
		hear_str(o, f->name);
		hear_str(o, f->value);
	}
}

static void on_message(struct h1_conn *c, const struct h1_message *m)
{
	struct owner *o = h1_conn_user(c);
	check_fields(o, m);
	if (m->kind == H1_REQUEST) {
		o->n_requests++;
		CHECK(m->method.len && m->scheme.len && m->authority.len && m->path.len);
		hear_str(o, m->method);
		hear_str(o, m->scheme);
		hear_str(o, m->authority);
		hear_str(o, m->path);
	}
	CHECK(h1_conn_busy(c));
	if (m->end_stream)
		answer(o);
}

static void on_data(struct h1_conn *c, const uint8_t *p, size_t len, bool end_stream)
{
	struct owner *o = h1_conn_user(c);
	CHECK(h1_conn_busy(c));
	hear(o, p, len);
	if (end_stream)
		answer(o);
}

static const struct h1_events events = {on_message, on_data};

static void feed(struct owner *o, const uint8_t *p, size_t len)
{
	for (size_t at = 0, n = 1; at < len && n; at += n) {
		n = h1_conn_feed(o->conn, p + at, len - at);
		CHECK(n > 0 && n <= len - at); // nothing waits: all is answered and consumed
	}
	buf_clear(&o->out, &chunks);
}

static void init(void)
{
	const struct h1_conf conf = {
		.max_conns = 2, .max_header_bytes = 4096, .max_header_fields = MAX_FIELDS};
	CHECK(buf_pool_init(&chunks, N_CHUNKS) == 0);
	ctx = h1_context_new(&conf, &chunks);
	CHECK(ctx);
}

static void end(struct owner *o)
{
	uint16_t status;
	bool refused = h1_conn_failed(o->conn, &status) && h1_conn_refuse(o->conn, status, NULL, 0);
	CHECK(!refused || h1_conn_closes(o->conn));
	h1_conn_free(o->conn);
	buf_clear(&o->out, &chunks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct owner whole = {0}, bytewise = {0};
	uint16_t status[2];
	if (!ctx)
		init();
	whole.conn = h1_conn_new(ctx, &events, &whole.out, STR("http"), &whole);
	bytewise.conn = h1_conn_new(ctx, &events, &bytewise.out, STR("http"), &bytewise);
	CHECK(whole.conn && bytewise.conn);
	while (size) {
		size_t len = data[0] < size - 1 ? data[0] : size - 1;
		uint8_t *piece = malloc(len ? len : 1); // a sanitizer sees a read beyond it
		CHECK(piece);
		memcpy(piece, data + 1, len);
		feed(&whole, piece, len);
		for (size_t i = 0; i < len; i++)
			feed(&bytewise, piece + i, 1);
		free(piece);
		data += 1 + len;
		size -= 1 + len;
	}
	CHECK(whole.heard == bytewise.heard && whole.n_requests == bytewise.n_requests);
	CHECK(h1_conn_failed(whole.conn, &status[0]) == h1_conn_failed(bytewise.conn, &status[1]));
	CHECK(h1_conn_closes(whole.conn) == h1_conn_closes(bytewise.conn));
	end(&whole);
	end(&bytewise);
	CHECK(chunks.n_used == 0);
	return 0;
}
