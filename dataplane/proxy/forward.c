// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/forward.h"

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"

#include <string.h>

static void touch(struct h2_stream *s)
{
	proxy_conn_touch(h2_conn_user(h2_stream_conn(s)));
}

static bool has_te(const struct h2_message *m)
{
	for (size_t i = 0; i < m->n_fields; i++)
		if (str_eq(m->fields[i].name, STR("te")))
			return true; // it is `trailers`, or h2/ would have refused it (HX-05)
	return false;
}

bool proxy_forward_head(
	struct proxy *p, const struct h2_message *m, bool is_grpc, struct h2_message *ret)
{
	*ret = *m;
	if (!is_grpc || has_te(m))
		return true;
	// gRPC over HTTP/2, "Requests": a backend may refuse a call without it.
	if (m->n_fields > p->max_fields)
		return false;
	if (m->fields != p->fields && m->n_fields)
		memcpy(p->fields, m->fields, m->n_fields * sizeof(*m->fields));
	p->fields[m->n_fields] = (struct field){.name = STR("te"), .value = STR("trailers")};
	ret->fields = p->fields;
	ret->n_fields = m->n_fields + 1;
	return true;
}

static bool waits(const struct proxy_request *r)
{
	return r->state == PROXY_REQUEST_PICKING || r->state == PROXY_REQUEST_ROOM;
}

// Keeps the body of a request under way for a second attempt, or gives that up.
static void keep_for_retry(struct proxy_request *r, const uint8_t *data, size_t len)
{
	struct proxy_replay *kept = &r->replay;
	if (!proxy_replay_stored(kept))
		return;
	if (proxy_replay_body_len(kept) + len > PROXY_REPLAY_BODY_MAX ||
		!proxy_replay_put_body(r->proxy, kept, data, len))
		proxy_replay_drop(r->proxy, kept);
}

void proxy_forward_request_data(
	struct h2_conn *h2, struct h2_stream *s, const uint8_t *data, size_t len, bool end_stream)
{
	struct proxy_request *r = h2_stream_user(s);
	if (!r)
		return;
	proxy_request_enter(r);
	if (end_stream)
		r->request_done = true;
	if (waits(r)) {
		// Held without giving window back: at most a stream's window (HX-24).
		if (!proxy_replay_put_body(r->proxy, &r->replay, data, len))
			proxy_request_fail_overload(r);
	} else if (r->upstream) {
		if (r->state == PROXY_REQUEST_SENT)
			keep_for_retry(r, data, len);
		touch(r->upstream);
		if (!h2_stream_send_data(r->upstream, data, len, end_stream))
			proxy_request_fail_overload(r);
	} else if (r->client && len) {
		// Answered already. Until it hears that, the client may wait for window.
		touch(r->client);
		h2_stream_consumed(r->client, len);
	}
	proxy_request_leave(r);
}

void proxy_forward_request_trailers(struct proxy_request *r, const struct h2_message *m)
{
	proxy_request_enter(r);
	r->request_done = true;
	if (waits(r)) {
		if (!proxy_replay_put_trailers(r->proxy, &r->replay, m))
			proxy_request_fail_overload(r);
	} else if (r->upstream) {
		if (proxy_replay_stored(&r->replay) &&
			!proxy_replay_put_trailers(r->proxy, &r->replay, m))
			proxy_replay_drop(r->proxy, &r->replay);
		touch(r->upstream);
		if (!h2_stream_send_message(r->upstream, m))
			proxy_request_fail_overload(r);
	}
	proxy_request_leave(r);
}

void proxy_forward_request_sent(struct h2_conn *h2, struct h2_stream *s, size_t n)
{
	struct proxy_request *r = h2_stream_user(s);
	if (!r)
		return;
	// A second attempt sends bytes for which the client has had its window back.
	size_t again = n < r->skip ? n : r->skip;
	r->skip -= (uint32_t)again;
	n -= again;
	r->credited += (uint32_t)n;
	if (!r->client || !n)
		return;
	touch(r->client);
	h2_stream_consumed(r->client, n);
}

void proxy_forward_response_head(struct proxy_request *r, const struct h2_message *m)
{
	proxy_request_enter(r);
	if (m->kind == H2_INFORMATIONAL) {
		// gRPC knows none; the stream of a plain request gets them in order (HX-16).
		if (!r->is_grpc && r->client) {
			touch(r->client);
			if (!h2_stream_send_message(r->client, m))
				proxy_request_fail_overload(r);
		}
		proxy_request_leave(r);
		return;
	}
	proxy_replay_drop(r->proxy, &r->replay);
	touch(r->client);
	if (!h2_stream_send_message(r->client, m)) {
		proxy_request_fail_overload(r);
	} else {
		r->state = PROXY_REQUEST_ANSWERED;
		if (m->end_stream)
			proxy_request_answered_all(r);
	}
	proxy_request_leave(r);
}

void proxy_forward_response_data(
	struct h2_conn *h2, struct h2_stream *s, const uint8_t *data, size_t len, bool end_stream)
{
	struct proxy_request *r = h2_stream_user(s);
	if (!r)
		return;
	proxy_request_enter(r);
	touch(r->client);
	if (!h2_stream_send_data(r->client, data, len, end_stream))
		proxy_request_fail_overload(r);
	else if (end_stream)
		proxy_request_answered_all(r);
	proxy_request_leave(r);
}

void proxy_forward_response_trailers(struct proxy_request *r, const struct h2_message *m)
{
	proxy_request_enter(r);
	touch(r->client);
	if (!h2_stream_send_message(r->client, m))
		proxy_request_fail_overload(r);
	else
		proxy_request_answered_all(r);
	proxy_request_leave(r);
}

void proxy_forward_response_sent(struct h2_conn *h2, struct h2_stream *s, size_t n)
{
	struct proxy_request *r = h2_stream_user(s);
	if (!r)
		return;
	if (!r->upstream || !n)
		return;
	touch(r->upstream);
	h2_stream_consumed(r->upstream, n);
}
