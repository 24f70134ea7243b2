// SPDX-License-Identifier: Apache-2.0
// The client's requests in HTTP/1.1 (RFC 9112): one at a time on a connection, which stays. A
// request is given up by closing its connection, and it certainly was not processed if the peer's
// FIN came before it had acknowledged a byte of it: whoever closes reads nothing more.
#include "lb/base/check.h"
#include "tools/shunt-load/client_inside.h"
#include "tools/shunt-load/h1_answer.h"

#include <stdlib.h>
#include <string.h>

// Of all connections.
struct context {
	struct client *client;
	struct pool sessions;
	size_t max_head;
	char head[]; // a request's, while it is made
};

struct session {
	struct context *ctx;
	struct client_conn *on;
	struct buf *out; // borrowed
	struct request *request; // that is open; NULL = none
	uint32_t begun_at; // in the bytes that TCP was given
	const char *failed; // why it ends; NULL = it does not
	struct h1_answer answer;
};

static size_t room_for_head(const struct plan *p)
{
	size_t path = 0, len = p->authority.len + 128; // method, version, host, our id
	for (uint32_t i = 0; i < p->n_paths; i++)
		path = p->paths[i].text.len > path ? p->paths[i].text.len : path;
	for (size_t i = 0; i < p->n_fields; i++)
		len += p->fields[i].name.len + p->fields[i].value.len + 4;
	return len + path;
}

static void *context_new(struct client *c, uint32_t n_conns, uint32_t n_requests)
{
	size_t max_head = room_for_head(c->conf.plan);
	struct context *ctx = malloc(sizeof(*ctx) + max_head);
	if (!ctx)
		return NULL;
	ctx->client = c;
	ctx->max_head = max_head;
	if (pool_init(&ctx->sessions, sizeof(struct session), n_conns) == 0)
		return ctx;
	free(ctx);
	return NULL;
}

static void context_free(void *context)
{
	struct context *ctx = context;
	if (ctx)
		pool_fini(&ctx->sessions);
	free(ctx);
}

static void *begin(struct conn *conn, struct buf *out)
{
	struct context *ctx = conn->side->context;
	struct session *s = pool_take(&ctx->sessions);
	if (!s)
		return NULL;
	s->ctx = ctx;
	s->on = client_conn_of(conn);
	s->out = out;
	s->request = NULL;
	s->failed = NULL;
	return s;
}

// The request is over, and the session free for the next one.
static void let_go(struct session *s, enum request_end how)
{
	struct request *r = s->request;
	s->request = NULL;
	client_request_over(r, how);
}

static void end(void *session)
{
	struct session *s = session;
	if (s->request)
		let_go(s, REQUEST_LOST);
	pool_put(&s->ctx->sessions, s);
}

static void eof(void *session)
{
	struct session *s = session;
	struct conn *conn = &s->on->conn;
	if (!s->request || h1_answer_has_begun(&s->answer))
		return;
	if ((int32_t)(conn_n_acked(conn) - s->begun_at) <= 0)
		let_go(s, REQUEST_UNPROCESSED);
}

static void on_head(void *user, uint16_t status)
{
	const struct session *s = user;
	const struct h2_message m = {.kind = H2_RESPONSE, .status = status};
	client_answer_message(s->request, &m);
}

static void on_data(void *user, const uint8_t *p, size_t len)
{
	const struct session *s = user;
	client_answer_data(s->request, p, len);
}

static const struct h1_answer_events events = {.on_head = on_head, .on_data = on_data};

// No request follows on this connection.
static void leave(struct session *s, const char *why)
{
	struct client *c = s->ctx->client;
	s->failed = why;
	client_leave(c, s->on);
}

static void end_answer(struct session *s)
{
	struct request *r = s->request;
	client_answer_ended(r);
	if (h1_answer_closes(&s->answer)) {
		s->ctx->client->result.goaways++;
		leave(s, "told to go");
	} else if (!body_out_done(&r->out)) {
		leave(s, "answered before the whole request was sent");
	}
	let_go(s, REQUEST_ENDED);
}

static size_t feed(void *session, const uint8_t *p, size_t len)
{
	struct session *s = session;
	if (!s->request) {
		s->ctx->client->result.unasked++;
		s->failed = "HTTP/1.1: bytes that nobody asked for";
		return len;
	}
	size_t n = h1_answer_feed(&s->answer, p, len, &events, s);
	bool ended = h1_answer_has_ended(&s->answer);
	if (ended && n == len) {
		end_answer(s);
	} else if (ended || h1_answer_malformed(&s->answer)) {
		s->failed = ended ? "HTTP/1.1: bytes behind an answer"
		                  : h1_answer_malformed(&s->answer);
		let_go(s, REQUEST_MALFORMED);
	}
	return len;
}

// The request's body, as far as there is room.
static bool pump(void *session, size_t room)
{
	struct session *s = session;
	struct client *c = s->ctx->client;
	uint8_t piece[BODY_GRPC_PREFIX + BODY_PIECE];
	struct body_out *b = s->request ? &s->request->out : NULL;
	while (b && !body_out_done(b) && room && !s->failed) {
		size_t n = body_out_next(b, room, piece);
		if (!buf_append(s->out, c->conf.chunks, piece, n))
			s->failed = "out of memory";
		room -= n;
		c->result.content_out += n;
	}
	return b && !body_out_done(b);
}

static const char *failed(const void *session)
{
	return ((const struct session *)session)->failed;
}

static const struct conn_protocol protocol = {.alpn = "http/1.1",
	.begin = begin,
	.end = end,
	.feed = feed,
	.pump = pump,
	.failed = failed,
	.eof = eof};

static uint32_t room_of(const void *session)
{
	const struct session *s = session;
	return !s->request && !s->failed;
}

static char *put(char *to, struct str text)
{
	memcpy(to, text.p, text.len);
	return to + text.len;
}

static char *put_field(char *to, struct str name, struct str value)
{
	to = put(put(to, name), STR(": "));
	if (value.len)
		to = put(to, value);
	return put(to, STR("\r\n"));
}

#define VERSION " HTTP/1.1\r\n"

static size_t len_of_field(struct str name, struct str value)
{
	return name.len + value.len + 4;
}

static size_t len_of_head(const struct h2_message *m)
{
	size_t len = m->method.len + 1 + m->path.len + STR(VERSION).len;
	len += len_of_field(STR("host"), m->authority);
	for (size_t i = 0; i < m->n_fields; i++)
		len += len_of_field(m->fields[i].name, m->fields[i].value);
	return len + 2;
}

// RFC 9112 3. Returns its length.
static size_t put_head(struct context *ctx, const struct h2_message *m)
{
	CHECK(len_of_head(m) <= ctx->max_head);
	char *to = put(put(ctx->head, m->method), STR(" "));
	to = put(put(to, m->path), STR(VERSION));
	to = put_field(to, STR("host"), m->authority);
	for (size_t i = 0; i < m->n_fields; i++)
		to = put_field(to, m->fields[i].name, m->fields[i].value);
	to = put(to, STR("\r\n"));
	return (size_t)(to - ctx->head);
}

static void *open_request(void *session, const struct h2_message *m, struct request *r)
{
	struct session *s = session;
	struct context *ctx = s->ctx;
	uint32_t at = conn_n_queued(&s->on->conn);
	if (!buf_append(s->out, ctx->client->conf.chunks, ctx->head, put_head(ctx, m)))
		return NULL;
	s->request = r;
	s->begun_at = at;
	h1_answer_init(&s->answer);
	return s;
}

static void reset(struct request *r)
{
	struct session *s = r->stream;
	leave(s, "given up");
	let_go(s, REQUEST_ENDED);
}

const struct client_protocol client_http1 = {.conn = &protocol,
	.context_new = context_new,
	.context_free = context_free,
	.room = room_of,
	.open = open_request,
	.reset = reset};
