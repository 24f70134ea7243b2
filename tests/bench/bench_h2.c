// SPDX-License-Identifier: Apache-2.0
// bench_h2: a unary gRPC request through both roles of HTTP/2, client and server connected by
// memory: ten header fields and a message there, response, message and trailers back. Ours beside
// nghttp2's sessions, which do the same. tools/bench runs it.
//
// one: a request at a time. batch: 32 at once, as a busy connection has them.
#include "dataplane/h2/h2.h"
#include "lb/base/check.h"
#include "tests/bench/ways.h"

#include <nghttp2/nghttp2.h>

#include <stdlib.h>

#define BATCH 32
#define BODY 64
#define N_CHUNKS 1024
#define N_REQUEST_FIELDS 6 // and four pseudo-header fields

static const char *const request_fields[N_REQUEST_FIELDS][2] = {{"te", "trailers"},
	{"content-type", "application/grpc"}, {"user-agent", "grpc-go/1.62.0"},
	{"grpc-accept-encoding", "gzip"}, {"x-request-id", "5f0c5a1c3e2b4d6f"},
	{"grpc-timeout", "999m"}};
static const char path[] = "/helloworld.greeter.v1.Greeter/SayHello";
static const char authority[] = "greeter.default.svc.cluster.local:50051";
static const uint8_t body[BODY];

// Ours.

struct end {
	struct h2_context *ctx;
	struct h2_conn *conn;
	struct buf out;
};
struct shunt {
	struct pool chunks;
	struct end client, server;
	uint32_t in_flight;
	uint64_t n_done, n_answer_fields;
};

static void on_request(struct h2_conn *c, struct h2_stream *s, const struct h2_message *m)
{
	CHECK(m->n_fields == N_REQUEST_FIELDS && m->is_grpc && !m->end_stream);
}

static void on_request_data(
	struct h2_conn *c, struct h2_stream *s, const uint8_t *p, size_t len, bool end)
{
	static const struct field type = {STR("content-type"), STR("application/grpc"), false},
				  status = {STR("grpc-status"), STR("0"), false};
	h2_stream_consumed(s, len);
	if (!end)
		return;
	struct h2_message head = {
		.kind = H2_RESPONSE, .status = 200, .fields = &type, .n_fields = 1};
	struct h2_message trailers = {.kind = H2_TRAILERS, .fields = &status, .n_fields = 1};
	CHECK(h2_stream_send_message(s, &head) && h2_stream_send_data(s, body, BODY, false) &&
		h2_stream_send_message(s, &trailers));
}

static void on_answer(struct h2_conn *c, struct h2_stream *s, const struct h2_message *m)
{
	((struct shunt *)h2_conn_user(c))->n_answer_fields += m->n_fields;
}

static void on_answer_data(
	struct h2_conn *c, struct h2_stream *s, const uint8_t *p, size_t len, bool end)
{
	h2_stream_consumed(s, len);
}

static void on_served(
	struct h2_conn *c, struct h2_stream *s, enum h2_error code, bool by_peer, bool unprocessed)
{
	CHECK(code == H2_NO_ERROR);
}

static void on_answered(
	struct h2_conn *c, struct h2_stream *s, enum h2_error code, bool by_peer, bool unprocessed)
{
	CHECK(code == H2_NO_ERROR);
	((struct shunt *)h2_conn_user(c))->n_done++;
}

static const struct h2_events client_events = {.on_message = on_answer,
				      .on_data = on_answer_data,
				      .on_closed = on_answered},
			      server_events = {.on_message = on_request,
				      .on_data = on_request_data,
				      .on_closed = on_served};

static void end_init(struct shunt *s, struct end *e, enum h2_role role)
{
	struct h2_conf conf = {.max_conns = 1,
		.max_streams = 4 * BATCH,
		.max_concurrent_streams = 100,
		.stream_window = 65535,
		.conn_window = 1 << 20,
		.max_header_bytes = 16 << 10,
		.max_header_fields = 100};
	e->ctx = h2_context_new(&conf, &s->chunks);
	CHECK(e->ctx);
	e->conn = h2_conn_new(
		e->ctx, role, role == H2_CLIENT ? &client_events : &server_events, &e->out, s);
	CHECK(e->conn);
}

static bool carry(struct shunt *s, struct end *from, struct end *to)
{
	bool any = false;
	h2_conn_pump(from->conn, SIZE_MAX);
	while (from->out.len) {
		size_t n;
		const uint8_t *p = buf_peek(&from->out, &n);
		CHECK(h2_conn_feed(to->conn, p, n) == n);
		buf_consume(&from->out, &s->chunks, n);
		any = true;
	}
	return any;
}

static void settle(struct shunt *s)
{
	bool any;
	do {
		any = carry(s, &s->client, &s->server);
		any |= carry(s, &s->server, &s->client);
	} while (any);
	h2_conn_pump(s->client.conn, 0);
}

static void ask(struct shunt *s)
{
	struct field fields[N_REQUEST_FIELDS];
	for (int i = 0; i < N_REQUEST_FIELDS; i++)
		fields[i] = (struct field){
			str_from(request_fields[i][0]), str_from(request_fields[i][1]), false};
	struct h2_message m = {.kind = H2_REQUEST,
		.method = STR("POST"),
		.scheme = STR("http"),
		.authority = STR(authority),
		.path = STR(path),
		.fields = fields,
		.n_fields = N_REQUEST_FIELDS};
	struct h2_stream *stream = h2_stream_open(s->client.conn, &m, NULL);
	CHECK(stream && h2_stream_send_data(stream, body, BODY, true));
}

static void reconnect(struct shunt *s)
{
	struct end *ends[] = {&s->client, &s->server};
	for (int i = 0; i < 2; i++) {
		h2_conn_free(ends[i]->conn, H2_NO_ERROR);
		buf_clear(&ends[i]->out, &s->chunks);
		ends[i]->conn = h2_conn_new(ends[i]->ctx, i ? H2_SERVER : H2_CLIENT,
			i ? &server_events : &client_events, &ends[i]->out, s);
		CHECK(ends[i]->conn);
	}
	settle(s);
}

static void shunt_run(void *ctx, uint64_t n_ops)
{
	struct shunt *s = ctx;
	uint64_t until = s->n_done + n_ops, begun = s->n_done, fields = s->n_answer_fields;
	while (s->n_done < until) {
		uint64_t left = until - s->n_done;
		uint32_t n = left < s->in_flight ? (uint32_t)left : s->in_flight;
		// A connection ends with its stream ids.
		if (h2_conn_stream_room(s->client.conn) < n)
			reconnect(s);
		for (uint32_t i = 0; i < n; i++)
			ask(s);
		settle(s);
	}
	CHECK(s->n_done == until && s->n_answer_fields - fields == 2 * (until - begun));
}

static void shunt_init(struct shunt *s, uint32_t in_flight)
{
	s->in_flight = in_flight;
	CHECK(buf_pool_init(&s->chunks, N_CHUNKS) == 0);
	end_init(s, &s->client, H2_CLIENT);
	end_init(s, &s->server, H2_SERVER);
	settle(s);
}

// Theirs.

struct rival {
	nghttp2_session *client, *server;
	uint32_t in_flight;
	uint64_t n_done, n_fields, n_asked;
};

static nghttp2_nv pair(const char *name, const char *value)
{
	return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
		strlen(value),
		NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE}; // as ours does
}

static ssize_t read_request(nghttp2_session *session, int32_t id, uint8_t *out, size_t len,
	uint32_t *flags, nghttp2_data_source *source, void *user)
{
	CHECK(len >= BODY);
	memcpy(out, body, BODY);
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	return BODY;
}

static ssize_t read_answer(nghttp2_session *session, int32_t id, uint8_t *out, size_t len,
	uint32_t *flags, nghttp2_data_source *source, void *user)
{
	nghttp2_nv status = pair("grpc-status", "0");
	CHECK(len >= BODY);
	memcpy(out, body, BODY);
	*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
	CHECK(nghttp2_submit_trailer(session, id, &status, 1) == 0);
	return BODY;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *f, const uint8_t *name,
	size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags, void *user)
{
	((struct rival *)user)->n_fields++;
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *f, void *user)
{
	struct rival *r = user;
	if (session != r->server || f->hd.type != NGHTTP2_DATA ||
		!(f->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	nghttp2_nv head[] = {pair(":status", "200"), pair("content-type", "application/grpc")};
	nghttp2_data_provider data = {.read_callback = read_answer};
	CHECK(nghttp2_submit_response(session, f->hd.stream_id, head, 2, &data) == 0);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
	struct rival *r = user;
	CHECK(code == 0);
	r->n_done += session == r->client;
	return 0;
}

static bool rival_carry(nghttp2_session *from, nghttp2_session *to)
{
	bool any = false;
	for (;;) {
		const uint8_t *p;
		ssize_t n = nghttp2_session_mem_send(from, &p);
		CHECK(n >= 0);
		if (n == 0)
			return any;
		CHECK(nghttp2_session_mem_recv(to, p, (size_t)n) == n);
		any = true;
	}
}

static void rival_settle(struct rival *r)
{
	bool any;
	do {
		any = rival_carry(r->client, r->server);
		any |= rival_carry(r->server, r->client);
	} while (any);
}

static void rival_connect(struct rival *r)
{
	static const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 100}};
	nghttp2_session_callbacks *callbacks;
	CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	CHECK(nghttp2_session_client_new(&r->client, callbacks, r) == 0);
	CHECK(nghttp2_session_server_new(&r->server, callbacks, r) == 0);
	nghttp2_session_callbacks_del(callbacks);
	CHECK(nghttp2_submit_settings(r->client, NGHTTP2_FLAG_NONE, settings, 1) == 0);
	CHECK(nghttp2_submit_settings(r->server, NGHTTP2_FLAG_NONE, settings, 1) == 0);
	rival_settle(r);
}

static void rival_ask(struct rival *r)
{
	nghttp2_nv fields[4 + N_REQUEST_FIELDS] = {pair(":method", "POST"), pair(":scheme", "http"),
		pair(":authority", authority), pair(":path", path)};
	for (int i = 0; i < N_REQUEST_FIELDS; i++)
		fields[4 + i] = pair(request_fields[i][0], request_fields[i][1]);
	nghttp2_data_provider data = {.read_callback = read_request};
	int32_t id =
		nghttp2_submit_request(r->client, NULL, fields, 4 + N_REQUEST_FIELDS, &data, NULL);
	CHECK(id > 0);
}

static void rival_run(void *ctx, uint64_t n_ops)
{
	struct rival *r = ctx;
	uint64_t until = r->n_done + n_ops, begun = r->n_done, fields = r->n_fields;
	while (r->n_done < until) {
		uint64_t left = until - r->n_done;
		uint32_t n = left < r->in_flight ? (uint32_t)left : r->in_flight;
		for (uint32_t i = 0; i < n; i++)
			rival_ask(r);
		rival_settle(r);
		r->n_asked += n;
		if (r->n_asked < 1u << 29)
			continue;
		r->n_asked = 0;
		nghttp2_session_del(r->client);
		nghttp2_session_del(r->server);
		rival_connect(r);
	}
	CHECK(r->n_done == until && r->n_fields - fields == 13 * (until - begun));
}

int main(int argc, char **argv)
{
	static struct shunt ours[2];
	static struct rival theirs[2] = {{.in_flight = 1}, {.in_flight = BATCH}};
	struct bench_way ways[4];
	for (size_t i = 0; i < 2; i++) {
		shunt_init(&ours[i], theirs[i].in_flight);
		rival_connect(&theirs[i]);
		const char *name = i ? "batch" : "one";
		ways[2 * i] = (struct bench_way){
			"shunt", name, ours[i].in_flight, shunt_run, &ours[i], 0};
		ways[2 * i + 1] = (struct bench_way){
			"nghttp2", name, theirs[i].in_flight, rival_run, &theirs[i], 0};
	}
	return bench_ways("h2", ways, 4, argc, argv);
}
