// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/route.h"

#include "dataplane/h2/carrier.h"
#include "dataplane/proxy/attempt.h"
#include "dataplane/proxy/client.h"
#include "dataplane/proxy/peer.h"
#include "dataplane/proxy/plan.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/pick/link.h"
#include "lb/route/filter.h"
#include "lb/route/route.h"
#include "lb/snapshot.h"

#include <stddef.h>
#include <string.h>

static const struct str too_large = STR("request header fields too large");

// HX-50. False = the request has failed.
static __attribute__((noinline)) bool forward_head(struct proxy_request *r,
	const struct lb_forwarding *f, const struct h2_message *m, struct h2_message *ret)
{
	const struct proxy_secure *s = r->owner->conn.secure;
	const struct proxy_peer *peer = s ? s->peer : NULL;
	const struct proxy_forwarded_from from = {.address = r->owner->address,
		.is_tls = s != NULL,
		.peer = peer ? &peer->certificate : NULL,
		.own_uris = peer ? peer->own_uris : NULL};
	if (proxy_forwarded_write(f, &from, m, &r->proxy->scratch.forwarded, ret, &r->client_ip))
		return true;
	proxy_request_answer_bad(r, 431, too_large);
	return false;
}

// A call of its own, since few virtual hosts are counted.
static __attribute__((noinline)) void enter_vhost(struct proxy_request *r, uint16_t number)
{
	r->vhost = number;
	counter_add(&r->proxy->link->vhosts[number].started, 1);
}

// Out of the way of those that have a cluster.
static __attribute__((noinline)) void fail_unrouted(
	struct proxy_request *r, enum lb_route_kind kind)
{
	if (kind == LB_ROUTE_UNSUPPORTED)
		proxy_request_fail_with(
			r, LB_CAUSE_NO_ACTION, STR("the route's action is unsupported"));
	else if (kind == LB_ROUTE_NO_VHOST)
		proxy_request_fail_with(
			r, LB_CAUSE_NO_ROUTE, STR("no virtual host for this authority"));
	else
		proxy_request_fail_with(r, LB_CAUSE_NO_ROUTE, STR("no route matches"));
}

// Which cluster, or the answer that there is none.
static void route(struct proxy_request *r, const struct h2_message *m)
{
	struct proxy *p = r->proxy;
	const struct lb_frontend *f = lb_snapshot_frontend(p->snapshot, r->chain);
	if (!f->routes) {
		proxy_request_fail_with(r, LB_CAUSE_NO_CONFIG, str_from(f->error));
		return;
	}
	struct h2_message forwarded;
	if (f->filters && f->filters->forwarding.on) {
		if (!forward_head(r, &f->filters->forwarding, m, &forwarded))
			return;
		m = &forwarded;
	}
	if (f->filters && f->filters->tracing.on)
		proxy_trace_begin(r, &f->filters->tracing, m);
	struct lb_req req = proxy_request_view(r, m);
	struct lb_route_ctx ctx = {.rand = &p->rand, .scratch = p->scratch.route};
	struct lb_route_result to = lb_route_find(f->routes, &req, &ctx);
	r->trail.routed = (struct lb_route_place){to.vhost_serial, to.vhost_index, to.route_index};
	if (__builtin_expect(to.vhost_number, 0))
		enter_vhost(r, to.vhost_number);
	if (to.kind != LB_ROUTE_CLUSTER) {
		fail_unrouted(r, to.kind);
		return;
	}
	char why[PROXY_RBAC_TEXT_MAX];
	enum proxy_plan_outcome outcome = proxy_plan_filter(r, &req, &to, why);
	r->cluster_id = (uint16_t)to.cluster_id;
	struct lb_cluster_counters *c = &p->link->clusters[r->cluster_id];
	counter_add(&c->started, 1);
	counter_add(&c->active, 1);
	if (outcome == PROXY_PLAN_NO_MEMORY) {
		proxy_request_fail_overload(r);
	} else if (outcome == PROXY_PLAN_DENIED) {
		proxy_request_fail_with(r, LB_CAUSE_DENIED, str_from(why));
	} else if (proxy_plan_make(r, m, &req, to.policy)) {
		proxy_attempt_first(r, m);
		proxy_plan_end_turn(r, &req);
	}
}

static void count_request(struct proxy_client *c)
{
	struct proxy *p = c->conn.proxy;
	counter_add(&p->link->counters.requests, 1);
	counter_add(&p->link->counters.frontend_requests[c->frontend], 1);
}

// All that is kept of a request without an object. The form is for its answer; its id lies in room.
static struct proxy_reply_form end_at_once(struct proxy_client *c, const struct h2_message *m,
	const struct proxy_reply *reply, bool is_grpc, char room[PROXY_ID_MAX])
{
	struct proxy *p = c->conn.proxy;
	const struct proxy_reply_form form = {.is_grpc = is_grpc,
		.with_details = p->frontends[c->frontend]->reply_details,
		.request_id = proxy_trail_refuse(c, m, reply, room)};
	if (p->link->access)
		proxy_access_refuse(c, m, reply, &form);
	counter_add(&p->link->counters.ended[reply->cause], 1);
	struct lb_frontend_times *f = &p->link->frontends[c->frontend];
	counter_add(&f->ended[reply->cause], 1);
	counter_add(&f->answers[is_grpc ? lb_answer_grpc(reply->grpc_status)
					: lb_answer_http(reply->http_status)],
		1);
	return form;
}

// Not even a request object: HEADERS alone, so that nothing needs to be remembered.
static void refuse(struct proxy_client *c, struct h2_stream *s, const struct h2_message *m,
	enum lb_cause cause, struct str why)
{
	struct proxy *p = c->conn.proxy;
	struct proxy_reply reply = proxy_reply_for(cause, why);
	char room[PROXY_ID_MAX];
	const struct proxy_reply_form form = end_at_once(c, m, &reply, m->is_grpc, room);
	proxy_count(p, PROXY_local_replies);
	bool sent = proxy_reply_send(s, &reply, &form);
	if (!sent || !m->end_stream)
		h2_stream_reset(s, sent ? H2_NO_ERROR : H2_INTERNAL_ERROR);
}

static struct str why_bad(const struct h2_message *m)
{
	if (m->bad == 431)
		return too_large;
	return m->authority.len ? STR("malformed :path") : STR("no authority");
}

static void init(struct proxy_request *r, struct proxy_client *c, struct h2_stream *stream,
	const struct h2_message *m)
{
	struct proxy *p = c->conn.proxy;
	memset(r, 0, offsetof(struct proxy_request, replay.small));
	r->client = stream;
	r->owner = c;
	r->proxy = p;
	r->replay.sum = &c->buffer.kept;
	r->cluster_id = PROXY_NO_CLUSTER;
	r->timeout_field = PROXY_NO_FIELD;
	r->state = PROXY_REQUEST_PICKING;
	r->frontend = c->frontend;
	r->chain = c->chain;
	r->client_ip = c->address;
	r->began_ns = p->now_ns;
	r->answer = LB_ANSWER_NONE;
	r->is_grpc = m->is_grpc;
	r->is_head = str_eq(m->method, STR("HEAD"));
	r->request_done = m->end_stream;
	r->waits_for_ready = p->frontends[c->frontend]->wait_for_ready == LB_WAIT_ALWAYS;
}

void proxy_route_request(
	struct proxy_client *c, struct h2_stream *stream, const struct h2_message *m)
{
	struct proxy *p = c->conn.proxy;
	count_request(c);
	if (!proxy_source_may_have(
		    &p->sources, c->source->n_requests, p->requests.n_used, p->requests.n_total)) {
		refuse(c, stream, m, LB_CAUSE_OVER_SHARE, STR("too many live requests"));
		return;
	}
	if (proxy_source_breaks_off(&p->sources, c->source, p->now_ns)) {
		proxy_count(p, PROXY_refused_early_ends);
		refuse(c, stream, m, LB_CAUSE_OVER_SHARE,
			STR("too many requests of this client were ended early"));
		return;
	}
	struct proxy_request *r = pool_take(&p->requests);
	if (!r) {
		refuse(c, stream, m, LB_CAUSE_OVERLOAD, STR("too many live requests"));
		return;
	}
	c->source->n_requests++;
	init(r, c, stream, m);
	p->fresh = r;
	p->fresh_head = m;
	if (p->link->access)
		proxy_access_begin(r, m);
	h2_stream_set_user(stream, r);
	proxy_request_enter(r);
	if (m->bad)
		proxy_request_answer_bad(r, m->bad, why_bad(m));
	else
		route(r, m);
	if (r->access.is_on)
		proxy_access_routed(r);
	p->fresh = NULL;
	proxy_request_leave(r);
}

void proxy_route_refused(struct proxy_client *c, const struct h2_message *m, struct str why)
{
	const struct proxy_reply reply = proxy_reply_for_bad(m->bad, why);
	char room[PROXY_ID_MAX];
	struct field fields[PROXY_REPLY_ADDED];
	count_request(c);
	const struct proxy_reply_form form = end_at_once(c, m, &reply, false, room);
	if (!m->bad)
		return;
	proxy_count(c->conn.proxy, PROXY_local_replies);
	h2_carrier_refuse(
		c->conn.h2, &(struct h2_message){.kind = H2_RESPONSE,
				    .status = m->bad,
				    .end_stream = true,
				    .fields = fields,
				    .n_fields = proxy_reply_add_fields(&reply, &form, fields)});
}
