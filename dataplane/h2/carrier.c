// SPDX-License-Identifier: Apache-2.0
// What comes on a connection that does not speak HTTP/2, and its beginning and end.
#include "dataplane/h2/carrier.h"

#include "dataplane/h2/impl.h"
#include "lb/base/check.h"

// One at a time is open, and no peer ever sees its number.
#define CARRIED_ID 1
// As a header block (feed.c).
#define WORK_REQUEST 4608

static const struct h2_carrier *ops_of(const struct h2_conn *c)
{
	return c->ctx->carrier;
}

void h2_context_set_carrier(struct h2_context *ctx, const struct h2_carrier *ops, void *arg)
{
	ctx->carrier = ops;
	ctx->carrier_arg = arg;
}

void h2_carrier_set_scheme(struct h2_conn *c, struct str scheme)
{
	c->scheme = scheme;
}

bool h2_carrier_may_begin(const struct h2_conn *c)
{
	return ops_of(c) && c->scheme.len && !c->written && !c->carried;
}

bool h2_carrier_begin(struct h2_conn *c)
{
	const struct h2_carrier *ops = ops_of(c);
	if (!h2_carrier_may_begin(c))
		return false;
	c->carried = ops->begin(c->ctx->carrier_arg, c, c->out, c->scheme);
	if (!c->carried)
		return false;
	c->rx.foreign = true;
	c->send_window = INT64_MAX; // TCP's alone bounds what goes out
	h2_flow_set_peer_initial(c, H2_WINDOW_MAX);
	h2_flow_set_our_initial(c, c->ctx->greetings[H2_SERVER].stream_window);
	if (c->events->on_settings)
		c->events->on_settings(c, 1);
	if (c->goaway_sent)
		ops->drain(c->carried);
	return true;
}

void h2_carrier_free(struct h2_conn *c)
{
	ops_of(c)->free(c->carried);
}

static uint32_t window_of(const struct h2_conn *c)
{
	const struct h2_stream *s = c->rx.stream;
	int64_t window = s ? h2_recv_window(s) : c->our_initial_window;
	window = window < c->recv_window ? window : c->recv_window;
	return window > 0 ? (uint32_t)window : 0;
}

bool h2_conn_holds(const struct h2_conn *c)
{
	return c->carried && !c->failed && ops_of(c)->holds(c->carried, window_of(c));
}

bool h2_conn_must_abort(const struct h2_conn *c)
{
	return c->carried && ops_of(c)->ends_with_conn(c->carried);
}

// It has no stream.
static void refuse(struct h2_conn *c, struct h2_message *m, uint16_t status, struct str why)
{
	m->bad = status;
	c->ctx->block_busy = true;
	c->events->on_refused(c, m, why);
	c->ctx->block_busy = false;
}

// A request whose head, or whose rest, can't be understood or does not come. Returns whether the
// connection goes on to the end of an answer.
static bool give_up(struct h2_conn *c, uint16_t status, struct str why)
{
	struct h2_stream *s = c->rx.stream;
	*c->allowance -= WORK_REQUEST;
	c->gave_up = true;
	if (s) {
		const struct h2_message rest = {.kind = H2_TRAILERS,
			.bad = status,
			.end_stream = true,
			.content_length = -1};
		h2_carrier_trailers(c, &rest);
		return !c->failed && s->end_queued;
	}
	struct h2_message m;
	ops_of(c)->known(c->carried, &m);
	refuse(c, &m, status, why);
	return false;
}

size_t h2_carrier_feed(struct h2_conn *c, const uint8_t *p, size_t len)
{
	const struct h2_carrier *ops = ops_of(c);
	struct str why;
	if (c->gave_up)
		return len;
	size_t n = ops->feed(c->carried, p, len, window_of(c));
	if (c->failed)
		return n;
	uint16_t status = ops->failed(c->carried, &why);
	if (status && !give_up(c, status, why))
		h2_conn_fail(c, H2_PROTOCOL_ERROR);
	// Another number for each section, as its time is its own.
	c->rx.block_id = ops->in_head(c->carried) ? (uint32_t)c->n_opened + 1 : 0;
	return n;
}

static void request_ended(struct h2_conn *c, struct h2_stream *s)
{
	s->got_end = true;
	list_remove(&s->credit);
	c->rx.stream = NULL;
	h2_stream_check_done(s);
}

void h2_carrier_request(struct h2_conn *c, const struct h2_message *m, bool waits_for_100)
{
	struct h2_context *ctx = c->ctx;
	*c->allowance -= WORK_REQUEST;
	struct h2_stream *s = h2_stream_new(c, CARRIED_ID);
	if (!s) {
		h2_count(ctx, H2_C_streams_refused_memory);
		struct h2_message refused = *m;
		refuse(c, &refused, 503, STR("the load balancer is out of memory"));
		h2_carrier_end(c);
		return;
	}
	h2_count(ctx, H2_C_streams_accepted);
	s->got_head = true;
	s->is_head = str_eq(m->method, STR("HEAD"));
	s->content_length = m->content_length;
	c->rx.stream = s;
	if (m->end_stream)
		request_ended(c, s);
	ctx->block_busy = true;
	c->events->on_message(c, s, m);
	ctx->block_busy = false;
	if (waits_for_100 && c->rx.stream && !c->failed)
		h2_carrier_put_100(c);
}

void h2_carrier_data(struct h2_conn *c, const uint8_t *p, size_t len, bool end_stream)
{
	struct h2_stream *s = c->rx.stream;
	if (!s)
		return;
	DCHECK(len <= window_of(c));
	*c->allowance -= H2_WORK_FRAME; // a chunk may have one byte
	c->recv_window -= (int64_t)len;
	s->recv_credit -= (int64_t)len;
	s->received += (int64_t)len;
	h2_flow_delivered(s, (uint32_t)len);
	if (end_stream)
		request_ended(c, s);
	c->events->on_data(c, s, p, len, end_stream);
}

void h2_carrier_trailers(struct h2_conn *c, const struct h2_message *m)
{
	struct h2_stream *s = c->rx.stream;
	if (!s)
		return;
	request_ended(c, s);
	c->ctx->block_busy = true;
	c->events->on_message(c, s, m);
	c->ctx->block_busy = false;
}

void h2_carrier_drain(struct h2_conn *c, enum h2_error code)
{
	ops_of(c)->drain(c->carried);
	// RFC 9110 15.5.9
	if (code && !c->failed && ops_of(c)->in_head(c->carried))
		give_up(c, 408, STR("the request did not come in time"));
}

uint8_t h2_conn_version(const struct h2_conn *c)
{
	return c->carried ? c->ctx->carrier->version(c->carried) : 20;
}
