// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/inflight.h"

#include "dataplane/h2/carrier.h"
#include "dataplane/proxy/backend.h"
#include "dataplane/proxy/client.h"
#include "dataplane/proxy/kill.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "dataplane/proxy/trail.h"
#include "dataplane/proxy/upstream.h"
#include "lb/base/container_of.h"
#include "lb/pick/inflight.h"
#include "lb/pick/link.h"

// Of a millisecond, in looks at an object, which may wait for a cache line or three; to write one
// down costs as much as so many looks. That is 15 to 35 us of it, whatever else there is to do.
// 64,000 connections take an eighth of a second, and two if each is older than all before it.
#define BUDGET 512
#define ROW_COST 16

static bool is_from(const struct lb_inflight_query *q, const struct ip_addr *ip)
{
	return !q->has_source || ip_in_prefix(ip, &q->source.ip, q->source.bits);
}

static bool is_at(const struct lb_inflight_query *q, uint32_t frontend)
{
	return q->frontend == LB_INFLIGHT_ANY || q->frontend == frontend;
}

static bool is_in(const struct lb_inflight_query *q, uint32_t state)
{
	return q->states >> state & 1;
}

static bool is_the_one(const struct proxy *p, uint64_t began_ns)
{
	const struct lb_inflight_handle *h = &p->link->inflight->query.handle;
	return h->began_ns == began_ns && h->slot == p->inflight.at &&
	       h->is_backend == p->inflight.at_upstreams && h->worker == p->link->worker;
}

static inline bool may_be(const struct proxy *p, uint64_t began_ns)
{
	return !p->link->inflight->query.has_handle || is_the_one(p, began_ns);
}

// To know the state of a connection, more of it must be read than the rest needs.
static bool is_in_any(const struct lb_inflight_query *q)
{
	return q->states == UINT32_MAX;
}

// Requests.

// Of private ones those that wait for their client's are told as if it had none yet, as most do.
static bool has_connection(const struct proxy_backend *b)
{
	return b->n_ready && !b->is_private;
}

static enum lb_request_state state_of_request(const struct proxy_request *r)
{
	switch ((enum proxy_request_state)r->state) {
	case PROXY_REQUEST_PAUSED:
		return LB_REQUEST_paused;
	case PROXY_REQUEST_PICKING:
		return LB_REQUEST_picking;
	case PROXY_REQUEST_ROOM:
		return has_connection(&r->proxy->backends[r->endpoint_id]) ? LB_REQUEST_queued
		                                                           : LB_REQUEST_connecting;
	case PROXY_REQUEST_SENT:
		return r->request_done ? LB_REQUEST_sent : LB_REQUEST_sending;
	case PROXY_REQUEST_ANSWERED:
		return LB_REQUEST_answering;
	case PROXY_REQUEST_ENDING:
		break;
	}
	return LB_REQUEST_delivering;
}

// The texts of a request take the most time.
static bool has_id(const struct lb_inflight_query *q, const struct proxy_request *r)
{
	struct str texts[LB_FAILURE_N_TEXTS] = {{0}};
	if (!q->id[0])
		return true;
	(void)proxy_trail_texts(r, texts);
	return str_eq(texts[LB_FAILURE_id], str_from(q->id));
}

static bool wants_request(const struct lb_inflight_query *q, const struct proxy_request *r)
{
	return r->began_ns <= q->before_ns && is_at(q, r->frontend) &&
	       (q->cluster == LB_INFLIGHT_ANY || q->cluster == r->cluster_id) &&
	       (is_from(q, &r->client_ip) || is_from(q, &r->owner->address)) &&
	       is_in(q, state_of_request(r)) && may_be(r->proxy, r->began_ns) && has_id(q, r);
}

static void tell_request(const struct proxy_request *r, struct lb_inflight_row *row)
{
	bool is_sent = r->state >= PROXY_REQUEST_SENT;
	row->bytes_in = h2_stream_n_received(r->client);
	row->bytes_out = h2_stream_n_sent(r->client);
	row->peer = (struct ip_port){r->owner->address, r->owner->port};
	row->frontend = r->frontend;
	row->state = (uint8_t)state_of_request(r);
	row->slot = r->proxy->inflight.at;
	struct lb_inflight_request *to = &row->request;
	to->has_endpoint = proxy_request_has_backend(r);
	to->endpoint =
		to->has_endpoint ? r->proxy->backends[r->endpoint_id].addr : (struct ip_port){0};
	to->n_attempts = r->trail.n_tries + is_sent;
	struct str texts[LB_FAILURE_N_TEXTS] = {{0}};
	to->route_index = proxy_trail_texts(r, texts);
#define X(name, size) lb_inflight_put(to->name, size, texts[LB_FAILURE_##name]);
	LB_INFLIGHT_TEXTS(X)
#undef X
}

// One that was put back into its pool had ended. True = it was written down.
static bool look_at_request(struct lb_inflight *f, const struct proxy_request *r)
{
	struct lb_inflight_row *row = NULL;
	if (r->ended)
		return false;
	f->n_all++;
	if (wants_request(&f->query, r))
		row = lb_inflight_find_place(f, r->began_ns);
	if (row)
		tell_request(r, row);
	return row;
}

// Connections.

static enum lb_conn_state state_of_client(const struct proxy_client *c)
{
	if (!c->conn.h2)
		return LB_CONN_closing;
	if (c->header)
		return LB_CONN_header;
	if (c->conn.secure && proxy_secure_is_shaking(c->conn.secure))
		return LB_CONN_handshake;
	if (proxy_leave_begun(&c->leave) || c->drained)
		return LB_CONN_leaving;
	return h2_conn_n_streams(c->conn.h2) ? LB_CONN_open : LB_CONN_idle;
}

static enum lb_conn_state state_of_upstream(const struct proxy_upstream *u)
{
	if (!u->backend)
		return LB_CONN_closing;
	switch (u->state) {
	case PROXY_UPSTREAM_CONNECTING:
		return u->conn.h2 && u->conn.secure && proxy_secure_is_shaking(u->conn.secure)
		               ? LB_CONN_handshake
		               : LB_CONN_connecting;
	case PROXY_UPSTREAM_RETIRING:
		return LB_CONN_leaving;
	case PROXY_UPSTREAM_READY:
		break;
	}
	return h2_conn_n_streams(u->conn.h2) ? LB_CONN_open : LB_CONN_idle;
}

// Who has yet to say what it speaks may be of either version.
static uint8_t http_of(const struct proxy_conn *c)
{
	if (!c->h2 || (h2_conn_version(c->h2) == 20 && !h2_conn_ready(c->h2)))
		return 0;
	return h2_conn_version(c->h2);
}

static void tell_conn(struct proxy_conn *c, struct lb_inflight_row *row)
{
	const struct tcp_flow *flow = tcp_conn_flow(c->tcp);
	const struct tls_conn *tls = c->secure ? c->secure->tls : NULL;
	row->bytes_out = proxy_conn_taken(c);
	row->conn = (struct lb_inflight_conn){
		.local = {flow->local, flow->local_port},
		.endpoint = LB_INFLIGHT_ANY,
		.n_streams = c->h2 ? h2_conn_n_streams(c->h2) : 0,
		.waiting = proxy_conn_left(c) + (c->h2 ? h2_conn_queued(c->h2) : 0),
		.tls = tls ? tls_conn_version(tls) : 0,
		.http = http_of(c),
	};
	row->slot = c->proxy->inflight.at;
	tcp_conn_tell(c->tcp, &row->conn.tcp);
	row->bytes_in = row->conn.tcp.n_received;
}

static bool wants_client(const struct lb_inflight_query *q, const struct proxy_client *c)
{
	return !q->by_endpoint && c->conn.began_ns <= q->before_ns && is_at(q, c->frontend) &&
	       is_from(q, &c->address) && may_be(c->conn.proxy, c->conn.began_ns) &&
	       (is_in_any(q) || is_in(q, state_of_client(c)));
}

// One that was put back into its pool had no TCP connection any more.
static bool look_at_client(struct lb_inflight *f, struct proxy_client *c)
{
	struct lb_inflight_row *row = NULL;
	if (!c->conn.tcp)
		return false;
	f->n_all++;
	if (wants_client(&f->query, c))
		row = lb_inflight_find_place(f, c->conn.began_ns);
	if (!row)
		return false;
	tell_conn(&c->conn, row);
	row->peer = (struct ip_port){c->address, c->port};
	row->frontend = c->frontend;
	row->state = (uint8_t)state_of_client(c);
	return true;
}

static bool wants_upstream(const struct lb_inflight_query *q, const struct proxy_upstream *u)
{
	uint32_t id = u->endpoint_id;
	return q->frontend == LB_INFLIGHT_ANY && !q->has_source &&
	       (!q->by_endpoint || q->endpoints[id / 64] >> id % 64 & 1) &&
	       u->conn.began_ns <= q->before_ns && may_be(u->conn.proxy, u->conn.began_ns) &&
	       (is_in_any(q) || is_in(q, state_of_upstream(u)));
}

static bool look_at_upstream(struct lb_inflight *f, struct proxy_upstream *u)
{
	struct lb_inflight_row *row = NULL;
	if (!u->conn.tcp)
		return false;
	f->n_all++;
	if (wants_upstream(&f->query, u))
		row = lb_inflight_find_place(f, u->conn.began_ns);
	if (!row)
		return false;
	const struct tcp_flow *flow = tcp_conn_flow(u->conn.tcp);
	tell_conn(&u->conn, row);
	row->conn.endpoint = u->endpoint_id;
	row->peer = (struct ip_port){flow->remote, flow->remote_port};
	row->state = (uint8_t)state_of_upstream(u);
	return true;
}

// The walk.

static const struct pool *pool_of(const struct proxy *p)
{
	if (p->link->inflight->query.kind == LB_INFLIGHT_REQUESTS)
		return &p->requests;
	return p->inflight.at_upstreams ? &p->upstreams : &p->clients;
}

static bool look(struct proxy *p, void *object)
{
	struct lb_inflight *f = p->link->inflight;
	if (f->query.kind == LB_INFLIGHT_REQUESTS)
		return look_at_request(f, object);
	return p->inflight.at_upstreams ? look_at_upstream(f, object) : look_at_client(f, object);
}

// Behind a pool's last object. True = there is another pool.
static bool go_on(struct proxy_inflight *i, enum lb_inflight_kind kind)
{
	if (kind == LB_INFLIGHT_REQUESTS || i->at_upstreams)
		return false;
	i->at_upstreams = true;
	i->at = 0;
	return true;
}

// To look at the id of a request costs as much as to write it down.
static int cost(const struct lb_inflight *f, bool is_written)
{
	return is_written || f->query.id[0] ? ROW_COST : 1;
}

static void again(struct proxy *p)
{
	twheel_arm(p->wheel, &p->inflight.timer, twheel_now(p->wheel) + TWHEEL_NS_PER_TICK);
}

static void look_at_some(struct twheel_timer *t)
{
	struct proxy *p = CONTAINER_OF(t, struct proxy, inflight.timer);
	struct proxy_inflight *i = &p->inflight;
	struct lb_inflight *f = p->link->inflight;
	for (int budget = BUDGET; budget > 0;) {
		const struct pool *pool = pool_of(p);
		if (i->at < pool_n_seen(pool)) {
			budget -= cost(f, look(p, pool_at(pool, i->at)));
			i->at++;
		} else if (!go_on(i, f->query.kind)) {
			lb_inflight_done(f);
			return;
		}
	}
	again(p);
}

// What is marked ends.

static bool end_request(struct proxy_request *r, uint64_t began_ns)
{
	bool is_there = !r->ended && r->began_ns == began_ns;
	if (is_there)
		proxy_kill_request(r);
	return is_there;
}

static bool end_conn(struct proxy *p, const struct lb_inflight_row *row, uint32_t *ret_n_streams)
{
	bool is_client = row->conn.endpoint == LB_INFLIGHT_ANY;
	// First in both.
	struct proxy_conn *c = pool_at(is_client ? &p->clients : &p->upstreams, row->slot);
	if (!c->tcp || c->began_ns != row->began_ns)
		return false;
	*ret_n_streams = c->h2 ? h2_conn_n_streams(c->h2) : 0;
	if (is_client)
		proxy_kill_client(CONTAINER_OF(c, struct proxy_client, conn));
	else
		proxy_kill_upstream(CONTAINER_OF(c, struct proxy_upstream, conn));
	return true;
}

static void end_some(struct twheel_timer *t)
{
	struct proxy *p = CONTAINER_OF(t, struct proxy, inflight.timer);
	struct lb_inflight *f = p->link->inflight;
	bool is_requests = f->query.kind == LB_INFLIGHT_REQUESTS;
	for (int budget = BUDGET; budget > 0 && p->inflight.at < f->n_rows; p->inflight.at++) {
		const struct lb_inflight_row *row = &f->rows[p->inflight.at];
		uint32_t n_streams = 0;
		if (!row->is_marked)
			continue;
		bool ends = is_requests
		                    ? end_request(pool_at(&p->requests, row->slot), row->began_ns)
		                    : end_conn(p, row, &n_streams);
		f->n_ended += ends;
		budget -= ROW_COST * (int)(1 + n_streams);
	}
	if (p->inflight.at < f->n_rows)
		again(p);
	else
		lb_inflight_done(f);
}

void proxy_inflight_begin(struct proxy *p)
{
	bool ends = p->link->inflight->ends;
	p->inflight = (struct proxy_inflight){.timer.fire = ends ? end_some : look_at_some};
	twheel_arm(p->wheel, &p->inflight.timer, twheel_now(p->wheel));
}
