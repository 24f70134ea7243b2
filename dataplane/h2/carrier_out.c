// SPDX-License-Identifier: Apache-2.0
// Answers on a connection that does not speak HTTP/2: what wire.c and message.c would write as
// frames they give to the functions here.
#include "dataplane/h2/carrier.h"
#include "dataplane/h2/impl.h"

// What a piece of a body may take besides those it lies in: its frame, and cuts in the queue.
#define CHUNKS_SPARE 4

static const struct h2_carrier *ops_of(const struct h2_conn *c)
{
	return c->ctx->carrier;
}

static void count_written(struct h2_conn *c, size_t before)
{
	c->written += c->out->len - before;
}

void h2_carrier_refuse(struct h2_conn *c, const struct h2_message *m)
{
	size_t before = c->out->len;
	ops_of(c)->refuse(c->carried, m);
	count_written(c, before);
}

void h2_carrier_end(struct h2_conn *c)
{
	c->failed = true;
	c->error = H2_NO_ERROR;
}

void h2_carrier_put_100(struct h2_conn *c)
{
	const struct h2_message m = {.kind = H2_INFORMATIONAL, .status = 100, .content_length = -1};
	size_t before = c->out->len;
	// Without it clients go on after a while, and none may follow an answer.
	(void)!ops_of(c)->put_message(c->carried, &m);
	count_written(c, before);
}

// The rest of a request whose answer is complete may still come: its stream is reset then.
static void answered(struct h2_stream *s)
{
	if (s->got_end && ops_of(s->conn)->closes(s->conn->carried))
		h2_carrier_end(s->conn);
}

bool h2_carrier_put_message(struct h2_stream *s, const struct h2_message *m, bool end_stream)
{
	struct h2_conn *c = s->conn;
	const struct h2_carrier *ops = ops_of(c);
	size_t before = c->out->len;
	bool ok = m->kind == H2_TRAILERS ? ops->put_end(c->carried, m)
	                                 : ops->put_message(c->carried, m);
	count_written(c, before);
	if (ok && end_stream)
		answered(s);
	return ok;
}

static bool put_body(struct h2_stream *s, const uint8_t *data, size_t len)
{
	struct h2_conn *c = s->conn;
	struct pool *chunks = c->ctx->chunks;
	struct buf body = {0};
	if (!len)
		return true;
	if (data)
		return ops_of(c)->put_data(c->carried, data, len);
	if (buf_move(&body, &s->out, len, chunks) && ops_of(c)->put_buf(c->carried, &body))
		return true;
	buf_clear(&body, chunks);
	return false;
}

// As h2_put_data(). Half a frame can't be taken back.
bool h2_carrier_put_data(struct h2_stream *s, const uint8_t *data, size_t len, bool end)
{
	struct h2_conn *c = s->conn;
	if (pool_left(c->ctx->chunks) < CHUNKS_SPARE + len / BUF_CHUNK_ROOM) {
		h2_count(c->ctx, H2_C_no_memory);
		return false;
	}
	size_t before = c->out->len;
	bool ok = put_body(s, data, len) && (!end || ops_of(c)->put_end(c->carried, NULL));
	count_written(c, before);
	if (!ok) {
		h2_conn_fail(c, H2_INTERNAL_ERROR);
		return false;
	}
	c->body_sent += len;
	s->body_sent += len;
	if (end)
		answered(s);
	return true;
}

// No frame says that a body is cut: the connection ends, in the midst of an answer or behind one
// whose request is still coming.
void h2_carrier_reset(struct h2_conn *c, enum h2_error code)
{
	if (ops_of(c)->closes(c->carried))
		h2_carrier_end(c);
	else
		h2_conn_fail(c, code ? code : H2_CANCEL);
}
