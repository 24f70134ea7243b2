// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/forward.h"

#include "dataplane/proxy/backend.h"
#include "dataplane/proxy/client.h"
#include "dataplane/proxy/head.h"
#include "dataplane/proxy/leaf.h"
#include "dataplane/proxy/reclaim.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/pick/answer.h"

// What comes in such pieces needs no larger window.
#define NO_LARGE_PIECE 512

static void note_progress(struct proxy_request *r)
{
	r->progress.at_ns = r->proxy->now_ns;
}

static void touch(struct h2_stream *s)
{
	proxy_conn_touch(h2_conn_user(h2_stream_conn(s)));
}

// There was no memory for it; or the connection has failed, whose end, in this turn, tells the
// request why. Only what has all that it waited for must not hear of another end before that.
static __attribute__((cold)) void cannot_send(struct proxy_request *r, const struct h2_stream *to)
{
	enum h2_error code;
	if (!h2_conn_failed(h2_stream_conn(to), &code) || code == H2_INTERNAL_ERROR)
		proxy_request_fail_overload(r);
	else if (to == r->client && r->upstream && h2_stream_got_end(r->upstream))
		proxy_request_leave_upstream(r);
}

// Keeps the body of a request under way for a second attempt, or gives that up.
static void keep_for_retry(struct proxy_request *r, const uint8_t *data, size_t len)
{
	struct proxy_replay *kept = &r->replay;
	if (!proxy_replay_stored(kept))
		return;
	if (!proxy_retry_may_keep(r, proxy_replay_body_len(kept) + len) ||
		!proxy_replay_put_body(r->proxy, kept, data, len))
		proxy_retry_give_up(r);
}

// Left for the backend.
static void request_sent(struct proxy_request *r, size_t n)
{
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

// Left for the client.
static void response_sent(struct proxy_request *r, size_t n)
{
	if (!n)
		return;
	r->owner->body_sent_ns = r->proxy->now_ns;
	if (!r->upstream)
		return;
	touch(r->upstream);
	h2_stream_consumed(r->upstream, n);
}

// At once: a look a second would come too late.
static inline void note_shut(struct proxy_request *r)
{
	if (r->client && h2_stream_is_shut(r->client))
		proxy_reclaim_note_shut(r);
}

void proxy_forward_request_data(
	struct h2_conn *h2, struct h2_stream *s, const uint8_t *data, size_t len, bool end_stream)
{
	struct proxy_request *r = h2_stream_user(s);
	if (!r)
		return;
	proxy_request_enter(r);
	note_progress(r);
	if (end_stream) {
		r->request_done = true;
		proxy_accounting_request_done(r);
	}
	r->bodies.in += len;
	if (r->access.is_on)
		proxy_access_request_data(r);
	if (proxy_request_waits(r)) {
		// Held without giving window back: at most a stream's window (HX-24).
		if (!proxy_replay_put_body(r->proxy, &r->replay, data, len))
			proxy_request_fail_overload(r);
	} else if (r->upstream) {
		if (r->state == PROXY_REQUEST_SENT)
			keep_for_retry(r, data, len);
		touch(r->upstream);
		size_t sent;
		if (!h2_stream_pass_data(r->upstream, data, len, end_stream, &sent))
			cannot_send(r, r->upstream);
		else
			request_sent(r, sent);
	} else if (r->client && len) {
		// Answered already. Until it hears that, the client may wait for window.
		touch(r->client);
		h2_stream_consumed(r->client, len);
	}
	proxy_request_leave(r);
}

static struct str why_bad(uint16_t status)
{
	switch (status) {
	case 408:
		return STR("the rest of the request did not come in time");
	case 431:
		return STR("trailers too large");
	case 503:
		return STR("the load balancer is out of memory");
	default:
		return STR("the rest of the request is malformed");
	}
}

void proxy_forward_request_trailers(struct proxy_request *r, const struct h2_message *m)
{
	proxy_request_enter(r);
	note_progress(r);
	r->request_done = true;
	proxy_accounting_request_done(r);
	if (r->access.is_on)
		proxy_access_request_data(r);
	if (m->bad && r->state < PROXY_REQUEST_ENDING) {
		if (r->upstream) // TH-91: it is reset there
			proxy_source_ended_early(r->owner->source, r->proxy->now_ns);
		proxy_request_answer_bad(r, m->bad, why_bad(m->bad));
	} else if (proxy_request_waits(r)) {
		if (!proxy_replay_put_trailers(r->proxy, &r->replay, m))
			proxy_request_fail_overload(r);
	} else if (r->upstream) {
		if (proxy_replay_stored(&r->replay) &&
			!proxy_replay_put_trailers(r->proxy, &r->replay, m))
			proxy_retry_give_up(r);
		touch(r->upstream);
		if (!h2_stream_send_message(r->upstream, m))
			cannot_send(r, r->upstream);
	}
	proxy_request_leave(r);
}

void proxy_forward_request_sent(struct h2_conn *h2, struct h2_stream *s, size_t n)
{
	struct proxy_request *r = h2_stream_user(s);
	if (!r)
		return;
	note_progress(r);
	request_sent(r, n);
}

static __attribute__((noinline)) void fields_do_not_fit(struct proxy_request *r)
{
	struct proxy_reply reply = proxy_reply_for(
		LB_CAUSE_OVER_SHARE, STR("the client does not take what waits for it"));
	proxy_count(r->proxy, PROXY_answers_over_buffer);
	proxy_request_fail(r, &reply, H2_ENHANCE_YOUR_CALM);
}

// Fields for the client; false = it has too much to take, and the request ended.
static bool may_send_fields(struct proxy_request *r)
{
	if (proxy_client_buffer_takes_fields(r->owner))
		return true;
	fields_do_not_fit(r);
	return false;
}

// gRPC knows none; the stream of a plain request gets them in order (HX-16).
static void forward_informational(struct proxy_request *r, const struct h2_message *m)
{
	r->was_hinted = true;
	if (r->is_grpc || !r->client || !may_send_fields(r))
		return;
	touch(r->client);
	if (!h2_stream_send_message(r->client, m))
		cannot_send(r, r->client);
}

// Trailers-Only with a status for which the route's policy has another try (RT-07).
static bool try_again(struct proxy_request *r, const struct h2_message *m)
{
	uint64_t delay_ns;
	if (!m->end_stream || !r->plan.retry.statuses)
		return false;
	int status = proxy_retry_status_of(m);
	if (!proxy_retry_status(r, status, m, &delay_ns))
		return false;
	proxy_trail_try(r, LB_CAUSE_OK, status);
	proxy_request_leave_upstream(r);
	r->answer = LB_ANSWER_NONE; // the client is not told of this one
	r->proxy->attempts->on_retry(r, delay_ns);
	return true;
}

// From here on there is no other attempt (RT-06).
static void forward_answer(struct proxy_request *r, const struct h2_message *m)
{
	char room[PROXY_ID_MAX];
	struct str id = {0};
	if (!may_send_fields(r))
		return;
	proxy_leaf_end_retries(r);
	if (lb_answer_is_failure(r->answer))
		id = proxy_trail_answer(r, m, room);
	if (!r->access.is_on || !proxy_access_answer(r, m->status))
		proxy_replay_drop(r->proxy, &r->replay);
	touch(r->client);
	struct h2_message longer;
	if (r->session.set_cookie.len || id.len) {
		if (!proxy_head_to_client(r, m, id, &longer)) {
			proxy_request_fail_overload(r);
			return;
		}
		m = &longer;
	}
	if (!h2_stream_send_message(r->client, m)) {
		cannot_send(r, r->client);
		return;
	}
	if (r->session.on)
		proxy_session_drop(r->proxy, &r->session);
	r->state = PROXY_REQUEST_ANSWERED;
	r->frames_cut = !r->is_grpc || !m->is_grpc || m->content_length >= 0;
	if (m->end_stream)
		proxy_request_answered_all(r);
}

void proxy_forward_response_head(struct proxy_request *r, const struct h2_message *m)
{
	proxy_request_enter(r);
	note_progress(r);
	if (m->kind == H2_INFORMATIONAL) {
		forward_informational(r, m);
	} else {
		proxy_accounting_answer(r, m);
		if (!try_again(r, m))
			forward_answer(r, m);
	}
	proxy_request_leave(r);
}

// A call whose answer ends without trailers (gRPC over HTTP/2, "Responses"): nothing is left that
// could carry an id.
static __attribute__((noinline)) void note_no_trailers(struct proxy_request *r)
{
	char room[PROXY_ID_MAX];
	const struct h2_message none = {.kind = H2_TRAILERS};
	if (lb_answer_is_failure(r->answer))
		(void)proxy_trail_answer(r, &none, room);
}

void proxy_forward_response_data(
	struct h2_conn *h2, struct h2_stream *s, const uint8_t *data, size_t len, bool end_stream)
{
	struct proxy_request *r = h2_stream_user(s);
	if (!r)
		return;
	proxy_request_enter(r);
	note_progress(r);
	if (!r->frames_cut)
		proxy_frames_feed(&r->frames, data, len);
	touch(r->client);
	size_t sent;
	if (!h2_stream_pass_data(r->client, data, len, end_stream, &sent)) {
		cannot_send(r, r->client);
		proxy_request_leave(r);
		return;
	}
	response_sent(r, sent);
	r->bodies.out += len;
	if (end_stream) {
		proxy_accounting_answer_data_end(r);
		if (r->is_grpc)
			note_no_trailers(r);
		proxy_request_answered_all(r);
	} else if (len > NO_LARGE_PIECE && h2_stream_is_short(s)) {
		proxy_backend_answers_long(&r->proxy->backends[r->endpoint_id]);
		proxy_client_buffer_widen(r);
	}
	note_shut(r);
	proxy_request_leave(r);
}

void proxy_forward_response_trailers(struct proxy_request *r, const struct h2_message *m)
{
	char room[PROXY_ID_MAX];
	struct h2_message longer;
	proxy_request_enter(r);
	touch(r->client);
	proxy_accounting_answer_trailers(r, m);
	if (may_send_fields(r)) {
		if (r->is_grpc && lb_answer_is_failure(r->answer) &&
			proxy_head_to_client(r, m, proxy_trail_answer(r, m, room), &longer))
			m = &longer;
		if (!h2_stream_send_message(r->client, m))
			cannot_send(r, r->client);
		else
			proxy_request_answered_all(r);
	}
	proxy_request_leave(r);
}

void proxy_forward_response_sent(struct h2_conn *h2, struct h2_stream *s, size_t n)
{
	struct proxy_request *r = h2_stream_user(s);
	if (!r)
		return;
	note_progress(r);
	response_sent(r, n);
	note_shut(r);
}
