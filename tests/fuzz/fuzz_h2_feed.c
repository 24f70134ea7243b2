// SPDX-License-Identifier: Apache-2.0
// Any bytes into a connection of either role, with an owner that does anything allowed at any
// moment. Input: two bytes of options, then records of a length byte and that many bytes to feed;
// the bytes also decide what the owner does. Everything must come back at the end.
#include "dataplane/h2/impl.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define N_CHUNKS 256

struct owner {
	struct h2_context *ctx;
	struct h2_conn *conn;
	struct buf out;
	struct h2_stream *streams[64]; // open, in any order
	size_t n_streams;
	uint64_t dice;
};

static struct pool chunks;
static uint64_t now_ns;

static uint64_t roll(struct owner *o, uint64_t n)
{
	o->dice = o->dice * 6364136223846793005u + 1442695040888963407u;
	return (o->dice >> 33) % n;
}

static void act(struct owner *);

static void check_message(const struct h2_message *m)
{
	uint8_t sum = 0;
	CHECK(m->n_fields <= 100);
	for (size_t i = 0; i < m->n_fields; i++) {
		const struct field *f = &m->fields[i];
		CHECK(m->bad || f->name.len);
		for (size_t k = 0; k < f->name.len; k++)
			sum ^= (uint8_t)f->name.p[k];
		for (size_t k = 0; k < f->value.len; k++)
			sum ^= (uint8_t)f->value.p[k];
	}
	if (m->kind == H2_REQUEST && !m->bad)
		CHECK(m->method.len && m->authority.len);
	if (m->kind == H2_RESPONSE)
		CHECK(m->status >= 200 && m->status <= 999);
	__asm__ volatile("" : : "r"(sum)); // every byte was read
}

static void on_message(struct h2_conn *c, struct h2_stream *s, const struct h2_message *m)
{
	struct owner *o = h2_conn_user(c);
	check_message(m);
	if (m->kind == H2_REQUEST) {
		CHECK(o->n_streams < 64);
		o->streams[o->n_streams++] = s;
	}
	act(o);
}

static void on_data(struct h2_conn *c, struct h2_stream *s, const uint8_t *p, size_t len, bool end)
{
	struct owner *o = h2_conn_user(c);
	if (roll(o, 2))
		h2_stream_consumed(s, len);
	act(o);
}

static void on_sent(struct h2_conn *c, struct h2_stream *s, size_t n)
{
	act(h2_conn_user(c));
}

static void on_closed(
	struct h2_conn *c, struct h2_stream *s, enum h2_error code, bool by_peer, bool unprocessed)
{
	struct owner *o = h2_conn_user(c);
	size_t i = 0;
	while (i < o->n_streams && o->streams[i] != s)
		i++;
	CHECK(i < o->n_streams); // known, and told once
	o->streams[i] = o->streams[--o->n_streams];
}

static void on_settings(struct h2_conn *c, uint32_t max)
{
	act(h2_conn_user(c));
}

static void on_goaway(struct h2_conn *c, uint32_t last_id, enum h2_error code)
{
	act(h2_conn_user(c));
}

static const struct h2_events events = {
	on_message, on_data, on_sent, on_closed, on_settings, on_goaway};

static const struct field some_fields[] = {
	{STR("x-a"), STR("value"), false}, {STR("x-secret"), STR("42"), true}};

static void open_stream(struct owner *o)
{
	struct h2_message m = {.kind = H2_REQUEST,
		.method = roll(o, 4) ? STR("POST") : STR("HEAD"),
		.scheme = STR("http"),
		.authority = STR("a"),
		.path = STR("/"),
		.fields = some_fields,
		.n_fields = roll(o, 3),
		.end_stream = roll(o, 2)};
	if (o->n_streams == 64)
		return;
	struct h2_stream *s = h2_stream_open(o->conn, &m, NULL);
	if (s)
		o->streams[o->n_streams++] = s;
}

static void send_something(struct owner *o, struct h2_stream *s)
{
	static const uint8_t body[5000];
	struct h2_message m = {.kind = roll(o, 2) ? H2_TRAILERS : H2_RESPONSE,
		.status = 200,
		.fields = some_fields,
		.n_fields = roll(o, 3),
		.end_stream = roll(o, 4) == 0};
	if (h2_stream_sent_end(s))
		return;
	bool ok = roll(o, 2) ? h2_stream_send_message(s, &m)
	                     : h2_stream_send_data(s, body, roll(o, 5000), roll(o, 4) == 0);
	if (!ok)
		h2_stream_reset(s, H2_INTERNAL_ERROR);
}

static void act(struct owner *o)
{
	struct h2_stream *s = o->n_streams ? o->streams[roll(o, o->n_streams)] : NULL;
	uint64_t what = roll(o, 24);
	if (what == 0 && s)
		h2_stream_reset(s, H2_CANCEL);
	else if (what < 8 && s)
		send_something(o, s);
	else if (what < 12 && s)
		h2_stream_consumed(s, s->unconsumed);
	else if (what == 12)
		h2_conn_pump(o->conn, roll(o, 40000));
	else if (what == 14 && roll(o, 8) == 0)
		h2_conn_drain_begin(o->conn);
	else if (what == 15 && roll(o, 8) == 0)
		h2_conn_drain_end(o->conn, H2_NO_ERROR);
	else if (what < 20 && o->conn->role == H2_CLIENT)
		open_stream(o);
}

static void check_conn(struct h2_conn *c, const struct owner *o)
{
	uint32_t n_live = 0;
	uint64_t unconsumed = 0;
	for (struct list_link *l = c->streams.next; l != &c->streams; l = l->next) {
		const struct h2_stream *s = CONTAINER_OF(l, struct h2_stream, link);
		n_live += s->live;
		unconsumed += s->unconsumed;
		CHECK(c->failed || h2_send_window(s) <= H2_WINDOW_MAX);
		CHECK(h2_recv_window(s) <= H2_WINDOW_MAX);
		CHECK(!s->live || s->send_credit <= c->most_credit);
		CHECK(!s->live || h2_stream_find(c, s->id) == s);
	}
	for (struct list_link *l = c->windowless.next; l != &c->windowless; l = l->next)
		CHECK(h2_send_window(CONTAINER_OF(l, struct h2_stream, turn)) <= 0);
	CHECK(n_live == c->n_streams && unconsumed == c->unconsumed);
	CHECK(c->failed || (c->recv_window >= 0 && c->send_window >= 0));
	CHECK(c->role == H2_CLIENT || n_live <= c->ctx->conf.max_concurrent_streams);
}

static struct h2_context *context(void)
{
	static struct h2_context *ctx;
	static const struct h2_conf conf = {
		.max_conns = 1,
		.max_streams = 64,
		.max_concurrent_streams = 20,
		.stream_window = 3000,
		.conn_window = 70000,
		.max_header_bytes = 32768,
		.max_header_fields = 100,
		.now_ns = &now_ns,
	};
	if (!ctx) {
		CHECK(buf_pool_init(&chunks, N_CHUNKS) == 0);
		ctx = h2_context_new(&conf, &chunks);
		CHECK(ctx);
	}
	return ctx;
}

static void feed(struct owner *o, const uint8_t *p, size_t len)
{
	// Just these bytes in a block of their own, so that the sanitizer sees a read beyond them.
	uint8_t copy[256];
	CHECK(len <= sizeof(copy));
	uint8_t *at = copy + sizeof(copy) - len;
	memcpy(at, p, len);
	h2_conn_feed(o->conn, at, len);
	h2_conn_pump(o->conn, roll(o, 20000));
	check_conn(o->conn, o);
	if (roll(o, 2))
		buf_consume(&o->out, &chunks, roll(o, o->out.len + 1));
	now_ns += roll(o, NS_PER_SECOND);
}

// The beginning of a header block that is more than is gathered, for the input to go on with.
static void feed_large(struct owner *o)
{
	static uint8_t frame[H2_FRAME_HEAD + H2_FRAME_MAX];
	for (int i = 0; i < 5; i++) {
		h2_frame_pack(frame, &(struct h2_frame){.length = H2_FRAME_MAX,
					     .type = i ? H2_CONTINUATION : H2_HEADERS,
					     .id = 1});
		// Literal fields of "x", added to the table or not, the last one cut off.
		uint8_t *p = frame + H2_FRAME_HEAD, *end = frame + sizeof(frame);
		while (end - p > 200) {
			uint8_t len = (uint8_t)roll(o, 120);
			*p++ = roll(o, 2) ? 0x40 : 0;
			*p++ = 1;
			*p++ = 'x';
			*p++ = len;
			memset(p, 'v', len);
			p += len;
		}
		static const uint8_t cut[] = {0, 1, 'x', 0x7f, 0x81, 0xff, 3};
		if (i == 4 || roll(o, 4) == 0)
			memcpy(p, cut, sizeof(cut));
		else
			memset(p, 0x82, (size_t)(end - p));
		h2_conn_feed(o->conn, frame, sizeof(frame));
	}
	check_conn(o->conn, o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	struct owner o = {.ctx = context(), .dice = data[0] + 256u * data[1]};
	enum h2_role role = data[0] & 1 ? H2_CLIENT : H2_SERVER;
	o.conn = h2_conn_new(o.ctx, role, &events, &o.out, &o);
	CHECK(o.conn);
	if (role == H2_SERVER && !(data[0] & 2))
		feed(&o, (const uint8_t *)H2_PREFACE, H2_PREFACE_LEN);
	if (!(data[0] & 4))
		feed(&o, (const uint8_t *)"\0\0\0\4\0\0\0\0\0", 9);
	if (data[1] & 128) {
		if (role == H2_CLIENT)
			open_stream(&o);
		feed_large(&o);
	}
	for (size_t at = 2; at < size;) {
		size_t len = data[at++];
		if (len > size - at)
			len = size - at;
		feed(&o, data + at, len);
		act(&o);
		at += len;
	}
	h2_conn_free(o.conn, H2_CANCEL);
	buf_clear(&o.out, &chunks);
	CHECK(o.n_streams == 0 && chunks.n_used == 0 && o.ctx->streams.n_used == 0);
	CHECK(hpack_mem_used(o.ctx->hpack_mem) == 0);
	return 0;
}
