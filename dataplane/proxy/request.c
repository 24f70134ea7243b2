// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/request.h"

#include "dataplane/proxy/backend.h"
#include "dataplane/proxy/client.h"
#include "dataplane/proxy/leaf.h"
#include "dataplane/proxy/state.h"
#include "lb/base/check.h"
#include "lb/cluster.h"
#include "lb/pick/link.h"
#include "lb/snapshot.h"

static struct lb_cluster_counters *cluster_counters(const struct proxy_request *r)
{
	return &r->proxy->link->clusters[r->cluster_id];
}

void proxy_request_enter(struct proxy_request *r)
{
	r->n_running++;
}

void proxy_request_leave(struct proxy_request *r)
{
	if (--r->n_running || r->client || r->upstream)
		return;
	DCHECK(r->ended && !list_linked(&r->link) && !r->paused);
	if (r->access.is_on)
		proxy_access_over(r);
	proxy_replay_drop(r->proxy, &r->replay);
	if (r->session.on)
		proxy_session_drop(r->proxy, &r->session);
	r->owner->source->n_requests--;
	r->owner->buffer.earned -= r->earned;
	proxy_latency_request_over(r);
	pool_put(&r->proxy->requests, r);
}

void proxy_request_end(struct proxy_request *r, enum lb_cause cause)
{
	if (r->ended)
		return;
	r->ended = true;
	proxy_leaf_end_retries(r);
	r->cause = (uint8_t)cause;
	if (r->fault.counted)
		proxy_fault_end(r);
	counter_add(&r->proxy->link->counters.ended[cause], 1);
	counter_add(&r->proxy->link->frontends[r->frontend].ended[cause], 1);
	if (r->cluster_id == PROXY_NO_CLUSTER)
		return;
	struct lb_cluster_counters *c = cluster_counters(r);
	counter_add(&c->ended[cause], 1);
	counter_sub(&c->active, 1);
}

void proxy_request_unlist(struct proxy_request *r)
{
	struct proxy *p = r->proxy;
	if (r->paused) {
		r->paused = false;
		twheel_cancel(p->wheel, &r->pause);
		p->queues.n_paused--;
		r->owner->source->n_waiting--;
		counter_sub(&cluster_counters(r)->queued, 1);
		return;
	}
	switch ((enum proxy_request_state)r->state) {
	case PROXY_REQUEST_PICKING:
		proxy_queue_remove(&p->queues, r);
		break;
	case PROXY_REQUEST_ROOM:
		proxy_line_remove(&p->lines, r);
		break;
	case PROXY_REQUEST_ENDING:
		list_remove(&r->link);
		return;
	case PROXY_REQUEST_PAUSED:
	case PROXY_REQUEST_SENT:
	case PROXY_REQUEST_ANSWERED:
		CHECK(false); // they are on no list
	}
	p->queues.n_waiting--;
	r->owner->source->n_waiting--;
	counter_sub(&cluster_counters(r)->queued, 1);
}

void proxy_request_set_waiting(struct proxy_request *r, enum proxy_request_state state)
{
	DCHECK(!list_linked(&r->link) && !r->paused);
	r->state = (uint8_t)state;
	r->proxy->queues.n_waiting++;
	r->owner->source->n_waiting++;
	counter_add(&cluster_counters(r)->queued, 1);
}

void proxy_request_set_paused(struct proxy_request *r)
{
	DCHECK(!list_linked(&r->link) && !r->paused);
	r->state = PROXY_REQUEST_PAUSED;
	r->paused = true;
	r->proxy->queues.n_paused++;
	r->owner->source->n_waiting++;
	counter_add(&cluster_counters(r)->queued, 1);
}

// Nothing is to come but the last events.
static void set_ending(struct proxy_request *r)
{
	proxy_request_stop_waiting(r);
	if (twheel_armed(&r->deadline))
		twheel_cancel(r->proxy->wheel, &r->deadline);
	if (r->state != PROXY_REQUEST_ENDING)
		r->whole_ns = r->proxy->now_ns;
	r->state = PROXY_REQUEST_ENDING;
}

// Nobody's any more: its last event does not come back here.
static struct h2_stream *detach_upstream(struct proxy_request *r)
{
	struct h2_stream *s = r->upstream;
	r->upstream = NULL;
	if (r->ahead)
		proxy_client_buffer_narrow(&r->owner->buffer, &r->ahead);
	proxy_accounting_close(r);
	h2_stream_set_user(s, NULL);
	proxy_conn_touch(h2_conn_user(h2_stream_conn(s)));
	return s;
}

void proxy_request_drop_upstream(struct proxy_request *r, enum h2_error code)
{
	if (!r->upstream)
		return;
	struct h2_stream *s = detach_upstream(r);
	proxy_conn_charge_reset(h2_conn_user(h2_stream_conn(s)));
	h2_stream_reset(s, code);
}

static void drop_client(struct proxy_request *r, enum h2_error code)
{
	struct h2_stream *s = r->client;
	if (!s)
		return;
	r->client = NULL;
	h2_stream_set_user(s, NULL);
	proxy_conn_touch(&r->owner->conn);
	h2_stream_reset(s, code);
}

void proxy_request_leave_upstream(struct proxy_request *r)
{
	if (r->upstream && h2_stream_sent_end(r->upstream) && !h2_stream_queued(r->upstream))
		detach_upstream(r);
	proxy_request_drop_upstream(r, H2_NO_ERROR);
}

void proxy_request_answered_all(struct proxy_request *r)
{
	proxy_request_leave_upstream(r);
	if (!r->access.is_on || r->access.record) // else it goes at the end
		proxy_replay_drop(r->proxy, &r->replay);
	set_ending(r);
	if (!r->client)
		return;
	proxy_conn_touch(&r->owner->conn);
	// The client need not send the rest (RFC 9113 8.1), but must first have the answer: its
	// connection sees to it (client.c).
	if (!r->request_done)
		list_append(&r->owner->answered, &r->link);
}

static bool tells_details(const struct proxy_request *r)
{
	return r->proxy->frontends[r->frontend]->reply_details;
}

static bool answer(struct proxy_request *r, const struct proxy_reply *reply, struct str id)
{
	const struct proxy_reply_form form = {.is_grpc = r->is_grpc,
		.with_body = !r->is_head,
		.with_details = tells_details(r),
		.request_id = id,
		.body_len = &r->bodies.out};
	if (r->access.is_on)
		proxy_access_reply(r, reply);
	r->answer = r->is_grpc ? lb_answer_grpc(reply->grpc_status)
	                       : lb_answer_http(reply->http_status);
	proxy_count(r->proxy, PROXY_local_replies);
	return proxy_reply_send(r->client, reply, &form);
}

static void fail(struct proxy_request *r, const struct proxy_reply *reply, bool may_answer,
	enum h2_error code)
{
	char room[PROXY_ID_MAX];
	proxy_request_enter(r);
	struct str id = proxy_trail_id(r, room);
	proxy_trail_fail(r, reply, id);
	proxy_request_end(r, reply->cause);
	bool answers = may_answer && r->state < PROXY_REQUEST_ANSWERED;
	set_ending(r);
	proxy_request_drop_upstream(r, H2_CANCEL);
	if (!answers) {
		drop_client(r, code);
	} else if (r->client) {
		if (answer(r, reply, id))
			proxy_request_answered_all(r);
		else
			drop_client(r, H2_INTERNAL_ERROR);
	}
	proxy_request_leave(r);
}

void proxy_request_fail(
	struct proxy_request *r, const struct proxy_reply *reply, enum h2_error code_if_answered)
{
	fail(r, reply, true, code_if_answered);
}

void proxy_request_reset(
	struct proxy_request *r, const struct proxy_reply *reply, enum h2_error code)
{
	fail(r, reply, false, code);
}

void proxy_request_cut_short(
	struct proxy_request *r, const struct proxy_reply *reply, enum h2_error code_if_cut)
{
	proxy_request_enter(r);
	char room[PROXY_ID_MAX];
	struct proxy_reply_form form = {.is_grpc = true, .with_details = tells_details(r)};
	bool fits = r->state == PROXY_REQUEST_ANSWERED && r->is_grpc && !r->frames_cut &&
	            proxy_frames_whole(&r->frames) && r->client;
	if (fits)
		form.request_id = proxy_trail_id(r, room);
	if (fits && proxy_reply_send_trailers(r->client, reply, &form)) {
		proxy_trail_fail(r, reply, form.request_id);
		proxy_request_end(r, reply->cause);
		r->answer = lb_answer_grpc(reply->grpc_status);
		proxy_request_drop_upstream(r, H2_CANCEL);
		proxy_request_answered_all(r);
	} else {
		proxy_request_fail(r, reply, code_if_cut);
	}
	proxy_request_leave(r);
}

void proxy_request_cut_all(
	struct h2_conn *h2, const struct proxy_reply *reply, enum h2_error code_if_cut)
{
	struct h2_stream *older;
	for (struct h2_stream *s = h2_conn_newest(h2); s; s = older) {
		struct proxy_request *r = h2_stream_user(s);
		older = h2_stream_older(s);
		if (r)
			proxy_request_cut_short(r, reply, code_if_cut);
	}
}

void proxy_request_fail_with(struct proxy_request *r, enum lb_cause cause, struct str text)
{
	struct proxy_reply reply = proxy_reply_for(cause, text);
	proxy_request_fail(r, &reply, H2_INTERNAL_ERROR);
}

void proxy_request_fail_overload(struct proxy_request *r)
{
	proxy_request_fail_with(r, LB_CAUSE_OVERLOAD, STR("the load balancer is out of memory"));
}

struct lb_req proxy_request_view(const struct proxy_request *r, const struct h2_message *m)
{
	const char *pinned = r->proxy->frontends[r->frontend]->authority;
	return (struct lb_req){.authority = m->authority,
		.pinned = pinned ? str_from(pinned) : (struct str){0},
		.path = m->path,
		.method = m->method,
		.scheme = m->scheme,
		.is_grpc = r->is_grpc,
		.fields = m->fields,
		.n_fields = m->n_fields,
		.connection = r->owner->random};
}

void proxy_request_answer_bad(struct proxy_request *r, uint16_t status, struct str why)
{
	const struct proxy_reply reply = proxy_reply_for_bad(status, why);
	proxy_request_fail(r, &reply, H2_PROTOCOL_ERROR);
}

void proxy_request_client_closed(struct proxy_request *r, enum lb_cause cause)
{
	proxy_request_enter(r);
	if (cause == LB_CAUSE_CLIENT_PROTOCOL && !r->ended) {
		char room[PROXY_ID_MAX];
		const struct proxy_reply none =
			proxy_reply_for(cause, STR("the client broke the protocol"));
		proxy_trail_fail(r, &none, proxy_trail_id(r, room));
	}
	r->client = NULL;
	set_ending(r);
	if (cause == LB_CAUSE_OK && !r->ended)
		proxy_source_ended_well(r->owner->source);
	else if (r->upstream && cause != LB_CAUSE_DRAINED)
		proxy_source_ended_early(r->owner->source, r->proxy->now_ns);
	proxy_request_end(r, cause);
	proxy_request_drop_upstream(r, H2_CANCEL); // HX-18
	proxy_request_leave(r);
}
