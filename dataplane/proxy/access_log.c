// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/access_log.h"

#include "dataplane/h2/carrier.h"
#include "dataplane/h2/hpack_names.h"
#include "dataplane/proxy/client.h"
#include "dataplane/proxy/local_reply.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "dataplane/proxy/trace.h"
#include "lb/cluster.h"
#include "lb/pick/access_set.h"
#include "lb/pick/link.h"
#include "lb/route/route.h"
#include "lb/snapshot.h"

#define PSEUDO_NAMES (sizeof(":method:path:authority:scheme") - 1)

static bool is(const struct field *f, struct str name)
{
	return str_eq(f->name, name);
}

// HTTP/1.1 gives no numbers. Lengths differ, and most fields are none of these.
static enum lb_access_text text_by_name(const struct field *f)
{
	switch (f->name.len) {
	case sizeof("user-agent") - 1:
		return is(f, STR("user-agent")) ? LB_ACCESS_USER_AGENT : LB_ACCESS_N_TEXTS;
	case sizeof("traceparent") - 1:
		return is(f, STR("traceparent")) ? LB_ACCESS_TRACEPARENT : LB_ACCESS_N_TEXTS;
	case sizeof("x-request-id") - 1:
		return is(f, STR("x-request-id")) ? LB_ACCESS_REQUEST_ID : LB_ACCESS_N_TEXTS;
	case sizeof("x-forwarded-for") - 1:
		return is(f, STR("x-forwarded-for")) ? LB_ACCESS_FORWARDED_FOR : LB_ACCESS_N_TEXTS;
	default:
		return LB_ACCESS_N_TEXTS;
	}
}

static enum lb_access_text text_of(const struct field *f)
{
	static const uint8_t texts[HPACK_N_NAMES] = {// + 1
		[HPACK_USER_AGENT] = LB_ACCESS_USER_AGENT + 1,
		[HPACK_TRACEPARENT] = LB_ACCESS_TRACEPARENT + 1,
		[HPACK_X_REQUEST_ID] = LB_ACCESS_REQUEST_ID + 1,
		[HPACK_X_FORWARDED_FOR] = LB_ACCESS_FORWARDED_FOR + 1};
	if (!f->name_id)
		return text_by_name(f);
	return texts[f->name_id] ? (enum lb_access_text)(texts[f->name_id] - 1) : LB_ACCESS_N_TEXTS;
}

static void put_texts(struct lb_access_record *a, const struct h2_message *m)
{
	lb_access_begin(a);
	lb_access_put(a, LB_ACCESS_METHOD, m->method);
	lb_access_put(a, LB_ACCESS_PATH, m->path);
	lb_access_put(a, LB_ACCESS_AUTHORITY, m->authority);
	size_t n_bytes =
		PSEUDO_NAMES + m->method.len + m->path.len + m->authority.len + m->scheme.len;
	for (size_t i = 0; i < m->n_fields; i++) {
		enum lb_access_text text = text_of(&m->fields[i]);
		n_bytes += m->fields[i].name.len + m->fields[i].value.len;
		bool is_empty_id = text == LB_ACCESS_REQUEST_ID && !m->fields[i].value.len;
		if (text != LB_ACCESS_N_TEXTS && !a->made[text] && !is_empty_id) // the first
			lb_access_put(a, text, m->fields[i].value);
	}
	a->head_in = (uint32_t)n_bytes;
}

void proxy_access_keep(struct proxy_request *r)
{
	struct proxy *p = r->proxy;
	struct h2_message stored = {0};
	if (r->access.record)
		return;
	bool is_fresh = p->fresh == r;
	if (!is_fresh && proxy_replay_stored(&r->replay))
		proxy_replay_head(p, &r->replay, &stored);
	r->access.record = pool_take(&p->access_records); // there are as many as requests
	put_texts(r->access.record, is_fresh ? p->fresh_head : &stored);
}

// Those of the listener; NULL = none, or the proxy's end.
static const struct lb_access_set *logs_of(const struct proxy *p, uint32_t chain)
{
	return p->snapshot ? lb_snapshot_frontend(p->snapshot, chain)->access : NULL;
}

static bool has_any(const struct proxy *p, uint32_t chain)
{
	return p->link->access->has_own || logs_of(p, chain);
}

static uint64_t who_wants(
	const struct proxy *p, uint32_t chain, const struct lb_access_brief *brief)
{
	const struct lb_access *own = p->link->access;
	uint64_t logs = lb_access_set_want(logs_of(p, chain), brief);
	return own->has_own && lb_access_wants(&own->filter, brief) ? logs | LB_ACCESS_OWN : logs;
}

static void turn_on(struct proxy_request *r, const struct h2_message *m)
{
	struct proxy_access *a = &r->access;
	a->is_on = true;
	a->version = h2_conn_version(r->owner->conn.h2);
	a->received_ns = m->end_stream ? r->proxy->now_ns : 0;
}

void proxy_access_begin(struct proxy_request *r, const struct h2_message *m)
{
	struct proxy *p = r->proxy;
	if (has_any(p, r->chain))
		turn_on(r, m);
}

void proxy_access_trace(struct proxy_request *r, const struct h2_message *m)
{
	turn_on(r, m);
	r->access.is_traced = true;
}

void proxy_access_routed(struct proxy_request *r)
{
	if (!proxy_replay_stored(&r->replay))
		proxy_access_keep(r);
}

void proxy_access_request_data(struct proxy_request *r)
{
	if (r->request_done)
		r->access.received_ns = r->proxy->now_ns;
}

void proxy_access_sent(struct proxy_request *r, const struct ip_port *backend)
{
	struct proxy_access *a = &r->access;
	a->backend = *backend;
	if (a->n_attempts < UINT8_MAX)
		a->n_attempts++;
	if (a->is_traced)
		proxy_trace_sent(r);
}

bool proxy_access_answer(struct proxy_request *r, uint16_t status)
{
	r->access.status = status;
	r->access.answered_ns = r->proxy->now_ns;
	// Chunks are others' need.
	if (!r->access.record && !proxy_replay_is_small(&r->replay))
		proxy_access_keep(r);
	return !r->access.record;
}

void proxy_access_reply(struct proxy_request *r, const struct proxy_reply *reply)
{
	r->access.status = r->is_grpc ? 200 : reply->http_status;
}

// Its cluster is not held any more, and for a client that takes its answer slowly the names may be
// gone.
static void put_names(struct proxy_request *r)
{
	const struct lb_snapshot *s = r->proxy->snapshot; // NULL at the proxy's end
	struct lb_route_names names;
	if (!s)
		return;
	const struct lb_cluster *c =
		r->cluster_id != PROXY_NO_CLUSTER ? lb_snapshot_cluster(s, r->cluster_id) : NULL;
	const struct lb_route_table *t = lb_snapshot_frontend(s, r->chain)->routes;
	if (c)
		lb_access_put(r->access.record, LB_ACCESS_CLUSTER, str_from(c->name));
	if (t && lb_route_names(t, &r->trail.routed, &names))
		lb_access_put(r->access.record, LB_ACCESS_ROUTE, names.route);
}

// Fills in what is told of it.
static void complete(struct proxy_request *r, struct lb_access_brief brief, uint64_t logs)
{
	const struct proxy_access *from = &r->access;
	proxy_access_keep(r);
	put_names(r);
	struct lb_access_record *a = from->record;
	a->brief = brief;
	a->logs = logs;
	a->received_ns = from->received_ns;
	a->answered_ns = from->answered_ns;
	a->body_in = r->bodies.in;
	a->body_out = r->bodies.out;
	a->client = (struct ip_port){r->owner->address, r->owner->port};
	a->backend = from->backend;
	a->frontend = r->frontend;
	a->n_attempts = from->n_attempts;
	a->protocol = from->version;
	a->is_tls = r->owner->conn.secure != NULL;
}

void proxy_access_over(struct proxy_request *r)
{
	struct proxy *p = r->proxy;
	bool has_grpc = r->answer < LB_ANSWER_GRPC_OTHER;
	const struct lb_access_brief brief = {
		.began_ns = r->began_ns,
		.ended_ns = p->now_ns,
		.status = r->access.status,
		.grpc_status = has_grpc ? r->answer : LB_ACCESS_NO_GRPC,
		.cause = r->cause,
		.draw = rand_u32(&p->rand),
		.delayed = r->fault.delay_ns,
	};
	uint64_t logs = who_wants(p, r->chain, &brief);
	if (logs || r->access.is_traced)
		complete(r, brief, logs);
	if (logs)
		lb_access_tell(p->link->access, r->access.record);
	if (r->access.is_traced)
		proxy_trace_over(r);
	if (r->access.record)
		pool_put(&p->access_records, r->access.record);
}

void proxy_access_refuse(struct proxy_client *c, const struct h2_message *m,
	const struct proxy_reply *reply, const struct proxy_reply_form *form)
{
	struct proxy *p = c->conn.proxy;
	struct lb_access_record note, *a = &note;
	if (!has_any(p, c->chain))
		return;
	put_texts(a, m);
	if (!a->made[LB_ACCESS_REQUEST_ID])
		lb_access_put(a, LB_ACCESS_REQUEST_ID, form->request_id);
	a->brief = (struct lb_access_brief){
		.began_ns = p->now_ns,
		.ended_ns = p->now_ns,
		.status = form->is_grpc ? 200 : reply->http_status,
		.grpc_status = form->is_grpc ? (uint8_t)reply->grpc_status : LB_ACCESS_NO_GRPC,
		.cause = (uint8_t)reply->cause,
		.draw = rand_u32(&p->rand),
	};
	a->received_ns = m->end_stream ? p->now_ns : 0;
	a->client = (struct ip_port){c->address, c->port};
	a->frontend = c->frontend;
	a->protocol = h2_conn_version(c->conn.h2);
	a->is_tls = c->conn.secure != NULL;
	a->logs = who_wants(p, c->chain, &a->brief);
	if (a->logs)
		lb_access_tell(p->link->access, a);
}
