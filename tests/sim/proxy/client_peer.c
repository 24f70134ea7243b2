// SPDX-License-Identifier: Apache-2.0
#include "lb/base/check.h"
#include "tests/sim/proxy/peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[N_KINDS] = {"echo", "download", "trailersonly", "plain", "head",
	"early", "reset", "resetlate", "refuse", "refuseonce", "badlength", "hang", "stall",
	"stallplain"};

uint8_t pattern(uint32_t id, uint32_t at)
{
	return (uint8_t)(id * 131 + at * 7 + (at >> 8));
}

static bool is_grpc(enum kind k)
{
	return k != KIND_PLAIN && k != KIND_HEAD && k != KIND_STALL_PLAIN;
}

static int to_int(struct str s)
{
	int v = 0;
	for (size_t i = 0; i < s.len; i++)
		v = 10 * v + (s.p[i] - '0');
	return v;
}

static void read_set_cookie(struct ask *a, struct str value)
{
	if (str_eq(value, STR(BACKENDS_COOKIE))) {
		a->n_backend_cookies++;
		return;
	}
	a->n_set_cookies++;
	CHECK(value.len < sizeof(a->set_cookie));
	memcpy(a->set_cookie, value.p, value.len);
	a->set_cookie[value.len] = '\0';
}

static void read_fields(struct ask *a, const struct h2_message *m)
{
	for (size_t i = 0; i < m->n_fields; i++) {
		const struct field *f = &m->fields[i];
		if (str_eq(f->name, STR("grpc-status")))
			a->grpc_status = to_int(f->value);
		else if (str_eq(f->name, STR("grpc-message")))
			snprintf(a->message, sizeof(a->message), "%.*s", (int)f->value.len,
				f->value.p);
		else if (str_eq(f->name, STR("x-shunt-cause")))
			snprintf(a->cause, sizeof(a->cause), "%.*s", (int)f->value.len, f->value.p);
		else if (str_eq(f->name, STR("x-request-id")))
			snprintf(a->request_id, sizeof(a->request_id), "%.*s", (int)f->value.len,
				f->value.p);
		else if (str_eq(f->name, STR("set-cookie")))
			read_set_cookie(a, f->value);
		else if (str_starts(f->name, STR("endpoint-load-metrics")))
			a->n_reports++;
	}
}

static void take_end(struct ask *a)
{
	CHECK(!a->got_end);
	a->got_end = true;
}

static void on_message(struct h2_conn *h2, struct h2_stream *s, const struct h2_message *m)
{
	struct ask *a = h2_stream_user(s);
	read_fields(a, m);
	if (m->kind == H2_INFORMATIONAL) {
		CHECK(a->http_status < 0 && m->status == 103);
		a->n_informational++;
		return;
	}
	if (m->kind == H2_RESPONSE)
		a->http_status = m->status;
	if (m->end_stream)
		take_end(a);
}

static void on_data(
	struct h2_conn *h2, struct h2_stream *s, const uint8_t *p, size_t len, bool end_stream)
{
	struct ask *a = h2_stream_user(s);
	bool local = (a->grpc_status < 0 && a->http_status >= 400) || a->kind == KIND_STALL;
	for (size_t i = 0; i < len && !local; i++)
		if (p[i] != pattern(a->id, a->received + (uint32_t)i))
			a->broken = true;
	if (local && !is_grpc(a->kind))
		snprintf(a->message, sizeof(a->message), "%.*s", (int)len, (const char *)p);
	a->received += (uint32_t)len;
	if (end_stream)
		take_end(a);
	if (a->client->slow)
		a->held += (uint32_t)len;
	else
		h2_stream_consumed(s, len);
	if (a->received >= a->cancel_after && !a->got_end) {
		a->cancelled = true;
		h2_stream_reset(s, H2_CANCEL);
	}
}

static void on_closed(
	struct h2_conn *h2, struct h2_stream *s, enum h2_error code, bool by_peer, bool unprocessed)
{
	struct ask *a = h2_stream_user(s);
	CHECK(!a->closed);
	a->closed = true;
	a->closed_ns = a->client->host->wire->now_ns;
	a->stream = NULL;
	a->code = code;
	a->by_peer = by_peer;
	a->conn_lost = !((struct client *)h2_conn_user(h2))->h2;
}

#define PIECE 4000

static void send_more(struct ask *a)
{
	uint8_t body[PIECE];
	while (a->stream && a->sent < a->size && h2_stream_queued(a->stream) < 2 * PIECE) {
		uint32_t n = a->size - a->sent < PIECE ? a->size - a->sent : PIECE;
		for (uint32_t i = 0; i < n; i++)
			body[i] = pattern(a->id, a->sent + i);
		a->sent += n;
		bool last = a->sent == a->size;
		CHECK(h2_stream_send_data(a->stream, body, n, last && !a->request_trailers));
		if (last && a->request_trailers) {
			struct field f = {.name = STR("x-trailer"), .value = STR("yes")};
			struct h2_message m = {.kind = H2_TRAILERS, .fields = &f, .n_fields = 1};
			CHECK(h2_stream_send_message(a->stream, &m));
		}
	}
}

static void on_sent(struct h2_conn *h2, struct h2_stream *s, size_t n)
{
	send_more(h2_stream_user(s));
}

static void on_settings(struct h2_conn *h2, uint32_t max_concurrent_streams)
{
}

static void on_goaway(struct h2_conn *h2, uint32_t last_id, enum h2_error code)
{
	struct client *c = h2_conn_user(h2);
	c->goaway = true;
}

#define SECURE_ROOM (64 << 10) // of output that waits to be sealed

static const struct h2_events events = {
	on_message, on_data, on_sent, on_closed, on_settings, on_goaway};

static void end(struct client *c)
{
	struct h2_conn *h2 = c->h2;
	c->h2 = NULL;
	c->over = true;
	h2_conn_free(h2, H2_INTERNAL_ERROR);
}

static size_t on_plain(void *user, const uint8_t *p, size_t len)
{
	struct client *c = user;
	return c->h2 ? h2_conn_feed(c->h2, p, len) : len;
}

static void begin(struct client *c)
{
	struct buf *out = tcp_conn_sendq(c->tcp);
	CHECK(buf_append(out, &c->host->chunks, c->header.p, c->header.len));
	if (c->tls) {
		tls_end_init(&c->secure, c->tls, c->tcp, &c->host->chunks, on_plain, c);
		out = &c->secure.plain;
	}
	c->h2 = h2_conn_new(c->ctx, H2_CLIENT, &events, out, c);
	CHECK(c->h2);
}

static void tcp_on_established(struct tcp_conn *tcp, void *user)
{
	struct client *c = user;
	if (!c->silent)
		begin(c);
	c->up = true;
}

static size_t tcp_on_data(struct tcp_conn *tcp, void *user, const uint8_t *p, size_t len)
{
	struct client *c = user;
	if (c->deaf || c->ration) {
		len = len < c->ration ? len : c->ration;
		c->ration -= len;
	}
	if (c->tls)
		return len ? tls_end_feed(&c->secure, p, len) : 0;
	return c->h2 && len ? h2_conn_feed(c->h2, p, len) : len;
}

static void tcp_on_send_room(struct tcp_conn *tcp, void *user)
{
}

static void tcp_on_eof(struct tcp_conn *tcp, void *user)
{
	struct client *c = user;
	if (c->h2)
		end(c);
	if (!c->stays)
		tcp_conn_shutdown(tcp);
}

static void tcp_on_closed(struct tcp_conn *tcp, void *user, enum tcp_close_reason reason)
{
	struct client *c = user;
	c->tcp = NULL;
	c->was_reset = reason == TCP_CLOSE_RESET;
	tls_end_fini(&c->secure);
	if (c->h2)
		end(c);
	c->over = true;
}

static const struct tcp_conn_ops tcp_ops = {
	tcp_on_established, tcp_on_data, tcp_on_send_room, tcp_on_eof, tcp_on_closed};

void client_open(struct client *c, struct host *h, struct h2_context *ctx, uint32_t frontend,
	struct ip_addr to, uint16_t port)
{
	*c = (struct client){.host = h,
		.ctx = ctx,
		.tls = c->tls,
		.frontend = frontend,
		.header = c->header,
		.silent = c->silent,
		.source = c->source};
	struct tcp_flow flow = {.local = wire_address(0, c->source ? c->source : 1),
		.remote = to,
		.remote_port = port};
	c->tcp = tcp_connect(h->tcp, &flow, 30 * SECOND, &tcp_ops, c);
	CHECK(c->tcp);
	h->due = true;
}

void client_abort(struct client *c)
{
	if (c->h2)
		end(c);
	if (c->tcp)
		tcp_conn_abort(c->tcp);
	c->tcp = NULL;
	tls_end_fini(&c->secure);
	c->over = true;
	if (c->host)
		c->host->due = true;
}

void client_say(struct client *c, const void *p, size_t len)
{
	CHECK(buf_append(tcp_conn_sendq(c->tcp), &c->host->chunks, p, len));
	tcp_conn_push(c->tcp);
	c->host->due = true;
}

bool client_has_room(const struct client *c)
{
	return c->h2 && h2_conn_stream_room(c->h2) > 0;
}

// Where its PROXY header does not say otherwise.
static struct ip_port address_of(const struct client *c)
{
	const struct tcp_flow *flow = tcp_conn_flow(c->tcp);
	return (struct ip_port){flow->local, flow->local_port};
}

void client_ask(struct client *c, struct ask *a)
{
	char path[96], authority[] = "calls.test";
	snprintf(path, sizeof(path), "/%s/%s/%u/%u", a->route, kind_names[a->kind], a->id, a->size);
	bool body = a->size &&
	            (a->kind == KIND_ECHO || a->kind == KIND_EARLY || a->kind == KIND_REFUSE_ONCE ||
			    a->kind == KIND_REFUSE || a->kind == KIND_HANG || a->has_body);
	struct field fields[9 + ASK_EXTRA];
	size_t n = 0;
	fields[n++] = (struct field){.name = STR("x-dup"), .value = STR("one")};
	if (is_grpc(a->kind))
		fields[n++] = (struct field){
			.name = STR("content-type"), .value = STR("application/grpc+proto")};
	if (is_grpc(a->kind) && !a->omit_te)
		fields[n++] = (struct field){.name = STR("te"), .value = STR("trailers")};
	fields[n++] = (struct field){.name = STR("x-dup"), .value = STR("two")};
	fields[n++] = (struct field){
		.name = STR("authorization"), .value = STR("secret"), .never_index = true};
	if (a->fail)
		fields[n++] = (struct field){.name = STR("x-fail"), .value = str_from(a->fail)};
	if (a->timeout)
		fields[n++] =
			(struct field){.name = STR("grpc-timeout"), .value = str_from(a->timeout)};
	for (size_t i = 0; i < ASK_EXTRA && a->extra[i].name.len; i++)
		fields[n++] = a->extra[i];
	static char huge[20000];
	if (a->huge) {
		memset(huge, 'h', sizeof(huge));
		fields[n++] = (struct field){.name = STR("x-huge"), .value = {huge, sizeof(huge)}};
	}
	struct h2_message m = {.kind = H2_REQUEST,
		.method = a->method              ? str_from(a->method)
	                  : a->kind == KIND_HEAD ? STR("HEAD")
	                  : is_grpc(a->kind)     ? STR("POST")
	                                         : STR("GET"),
		.scheme = STR("http"),
		.authority = str_from(authority),
		.path = str_from(path),
		.end_stream = !body && !a->open_ended,
		.content_length = -1,
		.fields = fields,
		.n_fields = n};
	a->client = c;
	a->begun = true;
	a->begun_ns = c->host->wire->now_ns;
	a->from = address_of(c);
	a->http_status = a->grpc_status = -1;
	if (!body)
		a->sent = a->size;
	if (!c->h2)
		begin(c);
	a->stream = h2_stream_open(c->h2, &m, a);
	CHECK(a->stream);
	send_more(a);
	c->host->due = true;
}

void client_cancel(struct ask *a)
{
	if (!a->stream)
		return;
	a->cancelled = true;
	h2_stream_reset(a->stream, H2_CANCEL);
	a->client->host->due = true;
}

void client_resume(struct client *c, struct ask *a)
{
	if (a->stream)
		h2_stream_consumed(a->stream, a->held);
	a->held = 0;
	c->host->due = true;
}

void client_listen(struct client *c)
{
	c->deaf = false;
	tcp_conn_resume(c->tcp);
	c->host->due = true;
}

void client_pump(struct client *c)
{
	enum h2_error code;
	if (c->tcp && c->tls && c->up) {
		if (c->h2 && c->secure.plain.len < SECURE_ROOM)
			h2_conn_pump(c->h2, SECURE_ROOM - c->secure.plain.len);
		c->host->due |= tls_end_pump(&c->secure) && tcp_conn_send_room(c->tcp);
	}
	if (!c->h2 || !c->tcp)
		return;
	if (!c->tls) {
		h2_conn_pump(c->h2, tcp_conn_send_room(c->tcp));
		tcp_conn_push(c->tcp);
	}
	if (h2_conn_failed(c->h2, &code)) {
		fprintf(stderr, "client: connection error %d\n", code);
		abort();
	}
}
