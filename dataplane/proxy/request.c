// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/request.h"

#include "dataplane/proxy/backend.h"
#include "dataplane/proxy/client.h"
#include "dataplane/proxy/forward.h"
#include "dataplane/proxy/state.h"
#include "dataplane/proxy/upstream.h"
#include "lb/base/check.h"
#include "lb/cluster.h"
#include "lb/link.h"
#include "lb/picker.h"
#include "lb/req.h"
#include "lb/route.h"
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
	DCHECK(r->ended && !r->listed);
	proxy_replay_drop(r->proxy, &r->replay);
	pool_put(&r->proxy->requests, r);
}

void proxy_request_end(struct proxy_request *r, enum lb_cause cause)
{
	if (r->ended)
		return;
	r->ended = true;
	counter_add(&r->proxy->link->counters.ended[cause], 1);
	if (r->cluster_id == PROXY_NO_CLUSTER)
		return;
	struct lb_cluster_counters *c = cluster_counters(r);
	counter_add(&c->ended[cause], 1);
	counter_add(&c->active, -UINT64_C(1));
}

// Out of whatever list its state has it on.
static void unlist(struct proxy_request *r)
{
	struct proxy *p = r->proxy;
	if (!r->listed)
		return;
	r->listed = false;
	switch ((enum proxy_request_state)r->state) {
	case PROXY_REQUEST_PICKING:
		proxy_queue_remove(p, r);
		break;
	case PROXY_REQUEST_ROOM:
		proxy_list_remove(&p->backends[r->endpoint_id].waiting, r);
		break;
	case PROXY_REQUEST_ENDING:
		proxy_list_remove(&r->owner->answered, r);
		return;
	case PROXY_REQUEST_SENT:
	case PROXY_REQUEST_ANSWERED:
		CHECK(false); // they are on no list
	}
	p->queues.n_waiting--;
	counter_add(&cluster_counters(r)->queued, -UINT64_C(1));
}

// The caller puts it into the list that goes with state.
static void set_listed(struct proxy_request *r, enum proxy_request_state state)
{
	DCHECK(!r->listed);
	r->state = (uint8_t)state;
	r->listed = true;
	r->proxy->queues.n_waiting++;
	counter_add(&cluster_counters(r)->queued, 1);
}

// Nobody's any more: its last event does not come back here.
static struct h2_stream *detach_upstream(struct proxy_request *r)
{
	struct h2_stream *s = r->upstream;
	r->upstream = NULL;
	h2_stream_set_user(s, NULL);
	proxy_conn_touch(h2_conn_user(h2_stream_conn(s)));
	return s;
}

void proxy_request_drop_upstream(struct proxy_request *r, enum h2_error code)
{
	if (r->upstream)
		h2_stream_reset(detach_upstream(r), code);
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

void proxy_request_answered_all(struct proxy_request *r)
{
	// Otherwise the backend gets told that the rest won't come (HX-15).
	if (r->upstream && h2_stream_sent_end(r->upstream) && !h2_stream_queued(r->upstream))
		detach_upstream(r);
	proxy_request_drop_upstream(r, H2_NO_ERROR);
	proxy_replay_drop(r->proxy, &r->replay);
	unlist(r);
	r->state = PROXY_REQUEST_ENDING;
	if (!r->client)
		return;
	proxy_conn_touch(&r->owner->conn);
	// The client need not send the rest (RFC 9113 8.1), but must first have the answer: its
	// connection sees to it (client.c).
	if (!r->request_done) {
		r->listed = true;
		proxy_list_append(&r->owner->answered, r);
	}
}

void proxy_request_fail(
	struct proxy_request *r, const struct proxy_reply *reply, enum h2_error code_if_answered)
{
	proxy_request_enter(r);
	proxy_request_end(r, reply->cause);
	unlist(r);
	proxy_request_drop_upstream(r, H2_CANCEL);
	if (r->state >= PROXY_REQUEST_ANSWERED) {
		drop_client(r, code_if_answered);
	} else if (r->client) {
		proxy_count(r->proxy, PROXY_REPLIES);
		if (proxy_reply_send(r->client, reply, r->is_grpc, !r->is_head))
			proxy_request_answered_all(r);
		else
			drop_client(r, H2_INTERNAL_ERROR);
	}
	r->state = PROXY_REQUEST_ENDING;
	proxy_request_leave(r);
}

static void fail(struct proxy_request *r, enum lb_cause cause, struct str text)
{
	struct proxy_reply reply = proxy_reply_for(cause, text);
	proxy_request_fail(r, &reply, H2_INTERNAL_ERROR);
}

void proxy_request_fail_overload(struct proxy_request *r)
{
	fail(r, LB_CAUSE_OVERLOAD, STR("the load balancer is out of memory"));
}

// Stores the newcomer's fields and bounds the queues. False = it failed.
static bool may_wait(struct proxy_request *r, const struct h2_message *head)
{
	struct proxy *p = r->proxy;
	if (proxy_replay_stored(&r->replay))
		return true; // has waited or was sent before
	if (p->queues.n_waiting >= p->conf.max_queued) {
		proxy_count(p, PROXY_QUEUE_OVERFLOWS);
		fail(r, LB_CAUSE_OVERFLOW, STR("too many requests wait for a backend"));
		return false;
	}
	if (!proxy_replay_put_head(p, &r->replay, head)) {
		proxy_request_fail_overload(r);
		return false;
	}
	return true;
}

static void wait_for_pick(struct proxy_request *r, const struct h2_message *head)
{
	if (r->listed && r->state == PROXY_REQUEST_PICKING)
		return; // keeps its place
	if (!may_wait(r, head))
		return;
	unlist(r);
	set_listed(r, PROXY_REQUEST_PICKING);
	proxy_queue_append(r->proxy, r);
	proxy_count(r->proxy, PROXY_QUEUED_PICK);
}

static void wait_for_room(
	struct proxy_request *r, struct proxy_backend *b, const struct h2_message *head)
{
	if (!may_wait(r, head))
		return;
	unlist(r);
	r->endpoint_id = b->id;
	set_listed(r, PROXY_REQUEST_ROOM);
	proxy_backend_wait(b, r);
	proxy_count(r->proxy, PROXY_QUEUED_ROOM);
}

// HEADERS to the backend. Trailing parts that are stored already follow in send_stored.
static bool send_head(
	struct proxy_request *r, struct proxy_upstream *u, const struct h2_message *head)
{
	unlist(r);
	struct h2_message m;
	if (!proxy_forward_head(r->proxy, head, r->is_grpc, &m) || !proxy_upstream_open(u, r, &m)) {
		proxy_request_fail_overload(r);
		return false;
	}
	r->state = PROXY_REQUEST_SENT;
	r->endpoint_id = u->endpoint_id;
	return true;
}

// A request that has just come, straight through.
static void send_fresh(
	struct proxy_request *r, struct proxy_upstream *u, const struct h2_message *head)
{
	if (!send_head(r, u, head))
		return;
	// Without the copy it is as good, only never sent again.
	bool kept = proxy_replay_put_head(r->proxy, &r->replay, head);
	(void)kept;
}

void proxy_request_send_stored(struct proxy_request *r, struct proxy_upstream *u)
{
	struct proxy *p = r->proxy;
	struct proxy_replay *stored = &r->replay;
	size_t body_len = proxy_replay_body_len(stored);
	bool trailers = stored->trailers_len != 0;
	struct h2_message m;
	proxy_request_enter(r);
	proxy_replay_head(p, stored, &m);
	m.is_grpc = r->is_grpc;
	m.end_stream = r->request_done && !body_len && !trailers;
	bool ok = send_head(r, u, &m);
	if (ok && body_len)
		ok = proxy_replay_send_body(p, stored, r->upstream, r->request_done && !trailers,
			body_len <= PROXY_REPLAY_BODY_MAX);
	if (ok && trailers) {
		proxy_replay_trailers(p, stored, &m);
		ok = h2_stream_send_message(r->upstream, &m);
	}
	if (!proxy_replay_stored(stored))
		proxy_replay_drop(p, stored);
	if (!ok && !r->ended)
		proxy_request_fail_overload(r);
	proxy_request_leave(r);
}

static struct lb_req view(const struct proxy_request *r, const struct h2_message *m)
{
	const char *pinned = r->proxy->conf.frontends[r->frontend].authority;
	return (struct lb_req){.authority = pinned ? str_from(pinned) : m->authority,
		.path = m->path,
		.method = m->method,
		.scheme = m->scheme,
		.is_grpc = r->is_grpc,
		.fields = m->fields,
		.n_fields = m->n_fields};
}

// Asks the cluster's picker of this turn and acts on it. head is the request as it came, or NULL:
// take the stored one.
static void pick(struct proxy_request *r, const struct h2_message *head)
{
	struct proxy *p = r->proxy;
	const struct lb_cluster *cluster = lb_snapshot_cluster(p->snapshot, r->cluster_id);
	if (!cluster) {
		fail(r, LB_CAUSE_NO_CONFIG, STR("no such cluster"));
		return;
	}
	struct h2_message stored;
	if (!head)
		proxy_replay_head(p, &r->replay, &stored);
	struct lb_req req = view(r, head ? head : &stored);
	struct lb_pick_ctx ctx = {.req = &req,
		.rand = &p->rand,
		.position = &p->positions[r->cluster_id],
		.ready = p->ready};
	struct lb_pick chosen = cluster->picker->pick(cluster->picker, &ctx);
	struct proxy_backend *b;
	struct proxy_upstream *u;
	switch (chosen.kind) {
	case LB_PICK_FAIL:
		fail(r, LB_CAUSE_NO_HEALTHY, str_from(chosen.text));
		return;
	case LB_PICK_QUEUE:
		if (chosen.endpoint)
			proxy_backend_want(p, chosen.endpoint);
		wait_for_pick(r, head);
		return;
	case LB_PICK_ENDPOINT:
		break;
	}
	if (chosen.want)
		proxy_backend_want(p, chosen.want);
	b = proxy_backend_find(p, chosen.endpoint);
	if (!b) {
		wait_for_pick(r, head);
		return;
	}
	u = proxy_backend_room(b);
	if (!u)
		wait_for_room(r, b, head);
	else if (head)
		send_fresh(r, u, head);
	else
		proxy_request_send_stored(r, u);
}

bool proxy_request_pick_again(struct proxy_request *r)
{
	proxy_request_enter(r);
	pick(r, NULL);
	bool moved = !r->listed || r->state != PROXY_REQUEST_PICKING;
	proxy_request_leave(r);
	return moved;
}

void proxy_request_back_to_queue(struct proxy_request *r)
{
	unlist(r);
	set_listed(r, PROXY_REQUEST_PICKING);
	proxy_queue_prepend(r->proxy, r);
}

// Which cluster, or the answer that there is none.
static void route(struct proxy_request *r, const struct h2_message *m)
{
	struct proxy *p = r->proxy;
	const struct lb_frontend *f = &p->snapshot->frontends[r->frontend];
	if (!f->routes) {
		fail(r, LB_CAUSE_NO_CONFIG, str_from(f->error));
		return;
	}
	struct lb_req req = view(r, m);
	// A tunnel is not a request for a resource (HX-17).
	struct lb_route_result to = {.kind = LB_ROUTE_NONE};
	struct lb_route_ctx ctx = {.rand = &p->rand, .scratch = p->route_scratch};
	if (!str_eq(m->method, STR("CONNECT")))
		to = lb_route_find(f->routes, &req, &ctx);
	switch (to.kind) {
	case LB_ROUTE_CLUSTER:
		break;
	case LB_ROUTE_UNSUPPORTED: {
		struct proxy_reply reply = proxy_reply_for(
			LB_CAUSE_NO_ROUTE, STR("the route's action is unsupported"));
		reply.http_status = 503; // routing.md A28-V04
		proxy_request_fail(r, &reply, H2_INTERNAL_ERROR);
		return;
	}
	case LB_ROUTE_NO_VHOST:
		fail(r, LB_CAUSE_NO_ROUTE, STR("no virtual host for this authority"));
		return;
	case LB_ROUTE_NONE:
		fail(r, LB_CAUSE_NO_ROUTE, STR("no route matches"));
		return;
	}
	r->cluster_id = to.cluster_id;
	counter_add(&cluster_counters(r)->started, 1);
	counter_add(&cluster_counters(r)->active, 1);
	if (proxy_queue_must_wait(p, r->cluster_id))
		wait_for_pick(r, m);
	else
		pick(r, m);
}

// Not even a request object: HEADERS alone, so that nothing needs to be remembered.
static void refuse(struct proxy *p, struct h2_stream *s, const struct h2_message *m)
{
	struct proxy_reply reply =
		proxy_reply_for(LB_CAUSE_OVERLOAD, STR("too many live requests"));
	counter_add(&p->link->counters.ended[LB_CAUSE_OVERLOAD], 1);
	proxy_count(p, PROXY_REPLIES);
	bool sent = proxy_reply_send(s, &reply, m->is_grpc, false);
	if (!sent || !m->end_stream)
		h2_stream_reset(s, sent ? H2_NO_ERROR : H2_INTERNAL_ERROR);
}

static void answer_bad(struct proxy_request *r, uint16_t status)
{
	struct proxy_reply reply = proxy_reply_for(LB_CAUSE_CLIENT_PROTOCOL,
		status == 431 ? STR("request header fields too large") : STR("bad request"));
	reply.http_status = status;
	proxy_request_fail(r, &reply, H2_PROTOCOL_ERROR);
}

void proxy_request_begin(
	struct proxy_client *c, struct h2_stream *stream, const struct h2_message *m)
{
	struct proxy *p = c->conn.proxy;
	counter_add(&p->link->counters.requests, 1);
	counter_add(&p->link->counters.frontend_requests[c->frontend], 1);
	struct proxy_request *r = pool_take(&p->requests);
	if (!r) {
		refuse(p, stream, m);
		return;
	}
	*r = (struct proxy_request){.client = stream,
		.owner = c,
		.proxy = p,
		.cluster_id = PROXY_NO_CLUSTER,
		.frontend = c->frontend,
		.is_grpc = m->is_grpc,
		.is_head = str_eq(m->method, STR("HEAD")),
		.request_done = m->end_stream};
	h2_stream_set_user(stream, r);
	proxy_request_enter(r);
	if (m->bad)
		answer_bad(r, m->bad);
	else
		route(r, m);
	proxy_request_leave(r);
}

void proxy_request_client_closed(struct proxy_request *r, enum lb_cause cause)
{
	proxy_request_enter(r);
	r->client = NULL;
	unlist(r);
	proxy_request_end(r, cause);
	r->state = PROXY_REQUEST_ENDING;
	proxy_request_drop_upstream(r, H2_CANCEL); // HX-18
	proxy_request_leave(r);
}

void proxy_request_upstream_closed(
	struct proxy_request *r, enum h2_error code, bool unprocessed, enum lb_cause cause)
{
	proxy_request_enter(r);
	r->upstream = NULL;
	bool again = unprocessed && !r->retried && r->state == PROXY_REQUEST_SENT &&
	             proxy_replay_stored(&r->replay) && !r->proxy->freeing;
	if (again) { // RT-11
		r->retried = true;
		r->skip = r->credited;
		proxy_count(r->proxy, PROXY_RETRIES);
		proxy_request_back_to_queue(r);
	} else if (r->state != PROXY_REQUEST_ENDING) {
		struct proxy_reply reply = cause == LB_CAUSE_UPSTREAM_RESET
		                                   ? proxy_reply_for_reset(code)
		                                   : proxy_reply_for(cause, STR(""));
		if (cause == LB_CAUSE_UPSTREAM_LOST)
			reply.text = STR("the backend's connection was lost");
		else if (cause == LB_CAUSE_UPSTREAM_PROTOCOL)
			reply.text = STR("the backend broke the protocol");
		if (unprocessed)
			reply.grpc_status = proxy_reply_for_reset(H2_REFUSED_STREAM).grpc_status;
		// HX-20
		proxy_request_fail(r, &reply, code == H2_CANCEL ? H2_CANCEL : H2_INTERNAL_ERROR);
	}
	proxy_request_leave(r);
}
