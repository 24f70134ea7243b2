// SPDX-License-Identifier: Apache-2.0
// The client's requests as streams of HTTP/2.
#include "tools/shunt-load/client_inside.h"
#include "tools/shunt-load/conn_h2.h"

static void on_message(struct h2_conn *h2, struct h2_stream *s, const struct h2_message *m)
{
	struct request *r = h2_stream_user(s);
	client_answer_message(r, m);
	if (m->end_stream)
		client_answer_ended(r);
}

static void on_data(
	struct h2_conn *h2, struct h2_stream *s, const uint8_t *p, size_t len, bool end_stream)
{
	struct request *r = h2_stream_user(s);
	client_answer_data(r, p, len);
	h2_stream_consumed(s, len);
	if (end_stream)
		client_answer_ended(r);
}

static void on_sent(struct h2_conn *h2, struct h2_stream *s, size_t n)
{
	struct request *r = h2_stream_user(s);
	r->client->result.content_out += n;
	if (!body_out_done(&r->out) && !body_out_push(&r->out, s))
		h2_stream_reset(s, H2_INTERNAL_ERROR);
}

static void on_closed(
	struct h2_conn *h2, struct h2_stream *s, enum h2_error code, bool by_peer, bool unprocessed)
{
	struct request *r = h2_stream_user(s);
	enum request_end end = r->on->conn.session ? REQUEST_ENDED : REQUEST_LOST;
	if (unprocessed)
		end = REQUEST_UNPROCESSED;
	if (h2_stream_malformed(s))
		end = REQUEST_MALFORMED;
	client_request_over(r, end);
}

static void on_settings(struct h2_conn *h2, uint32_t max_concurrent_streams)
{
	struct client_conn *k = h2_conn_user(h2);
	client_conn_freed(k->client, k);
}

static void on_goaway(struct h2_conn *h2, uint32_t last_id, enum h2_error code)
{
	struct client_conn *k = h2_conn_user(h2);
	k->client->result.goaways++;
	client_leave(k->client, k);
	client_conn_freed(k->client, k);
}

static const struct h2_events events = {
	.on_message = on_message,
	.on_data = on_data,
	.on_sent = on_sent,
	.on_closed = on_closed,
	.on_settings = on_settings,
	.on_goaway = on_goaway,
};

static void *context_new(struct client *c, uint32_t n_conns, uint32_t n_requests)
{
	const struct h2_conf conf = {
		.max_conns = n_conns,
		.max_streams = n_requests + 1,
		.max_concurrent_streams = 0, // nobody asks us
		.stream_window = 256 * 1024,
		.conn_window = 4 * 1024 * 1024,
		.max_header_bytes = 64 * 1024,
		.max_header_fields = 256,
		.now_ns = &c->now_ns,
		.seed = c->conf.seed,
	};
	return conn_h2_new(&conf, H2_CLIENT, &events, c->conf.chunks);
}

static void context_free(void *context)
{
	conn_h2_free(context);
}

static uint32_t room(const void *session)
{
	return h2_conn_stream_room(session);
}

static void *open_stream(void *session, const struct h2_message *m, struct request *r)
{
	return h2_stream_open(session, m, r);
}

static bool push(struct request *r)
{
	return body_out_push(&r->out, r->stream);
}

static void reset(struct request *r)
{
	h2_stream_reset(r->stream, H2_CANCEL);
}

const struct client_protocol client_http2 = {.conn = &conn_h2_protocol,
	.context_new = context_new,
	.context_free = context_free,
	.room = room,
	.open = open_stream,
	.push = push,
	.reset = reset};
