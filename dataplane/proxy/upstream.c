// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/upstream.h"

#include "dataplane/proxy/announce.h"
#include "dataplane/proxy/backend.h"
#include "dataplane/proxy/client_buffer.h"
#include "dataplane/proxy/close_reason.h"
#include "dataplane/proxy/forward.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "dataplane/proxy/window.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/pick/endpoint.h"
#include "lb/pick/link.h"

#define LAST_ID 0x7fffffff // RFC 9113 5.1.1
#define IDLE_NS (30 * NS_PER_SECOND)
#define IN_USE_NS NS_PER_SECOND // from its newest stream on
#define LATE_NS (100 * NS_PER_MS)

// Even if all open streams are reset after the budget is used up, it is less than nghttp2 lets
// pass. More only where no other connection may be opened.
#define MAX_STREAMS 800
// Of a backend: with more, connections are not retired for resets. Streams that never end keep
// them.
#define MAX_RETIRED 64

static struct lb_endpoint_counters *counters(const struct proxy_upstream *u)
{
	return &u->conn.proxy->link->endpoints[u->endpoint_id];
}

// Out of the backend's books, before the streams hear that they are lost: none of them may be sent
// here again.
static void leave_backend(struct proxy_upstream *u, const char *why)
{
	struct proxy_backend *b = u->backend;
	if (!b)
		return;
	enum proxy_upstream_state was = u->state;
	b->broke_promise |= u->promises && !u->has_answered;
	u->state = PROXY_UPSTREAM_RETIRING;
	if (was == PROXY_UPSTREAM_READY)
		proxy_backend_not_ready(b, u, why);
	proxy_backend_remove(b, u);
	u->backend = NULL;
	counter_sub(&counters(u)->connections, 1);
	if (was == PROXY_UPSTREAM_CONNECTING)
		proxy_backend_attempt_failed(b, why);
}

static void over(struct proxy_upstream *u, const char *why, enum h2_error code)
{
	leave_backend(u, why);
	proxy_conn_over(&u->conn, code);
}

static void gone(struct proxy_upstream *u, const char *why, bool abort)
{
	leave_backend(u, why);
	u->cut = true;
	proxy_conn_gone(&u->conn, H2_INTERNAL_ERROR, abort);
}

// We end it: GOAWAY, then FIN.
static void close_gracefully(struct proxy_upstream *u, const char *why)
{
	h2_conn_drain_end(u->conn.h2, H2_NO_ERROR);
	proxy_conn_pump(&u->conn);
	over(u, why, H2_NO_ERROR);
}

void proxy_upstream_abort(struct proxy_upstream *u)
{
	gone(u, "shutting down", true);
}

void proxy_upstream_part(struct proxy_upstream *u)
{
	if (u->state == PROXY_UPSTREAM_CONNECTING)
		proxy_upstream_abort(u);
	else
		close_gracefully(u, "shutting down");
}

void proxy_upstream_retire(struct proxy_upstream *u, const char *why)
{
	if (u->state == PROXY_UPSTREAM_CONNECTING) {
		gone(u, why, true);
		return;
	}
	bool was_ready = u->state == PROXY_UPSTREAM_READY;
	u->state = PROXY_UPSTREAM_RETIRING;
	if (was_ready)
		proxy_backend_not_ready(u->backend, u, why);
	proxy_conn_touch(&u->conn); // closed there when it has no stream
}

static void idle_fire(struct twheel_timer *t)
{
	struct proxy_upstream *u =
		CONTAINER_OF(proxy_conn_of_timer(t), struct proxy_upstream, conn);
	const struct proxy_backend *b = u->backend;
	if (!u->conn.h2 || h2_conn_n_streams(u->conn.h2) || b->n_ready <= b->n_kept)
		return;
	proxy_count(u->conn.proxy, PROXY_upstreams_idled);
	proxy_upstream_retire(u, "idle");
}

// Only spare connections are closed for being idle, and those of single clients.
static void watch_idle(struct proxy_upstream *u)
{
	if (u->state == PROXY_UPSTREAM_READY && u->backend->n_ready > u->backend->n_kept &&
		!h2_conn_n_streams(u->conn.h2) && !twheel_armed(&u->conn.timer))
		proxy_conn_arm(&u->conn, idle_fire, IDLE_NS);
}

// Our resets have used up what its backend lets pass.
static bool is_spent(const struct proxy_upstream *u)
{
	const struct proxy_backend *b = u->backend;
	return gcra_is_over(&u->conn.resets, &proxy_conn_reset_limit, u->conn.proxy->now_ns) &&
	       b->n_conns - b->n_ready - b->n_connecting < MAX_RETIRED;
}

// Another one is ready before it goes.
static __attribute__((noinline)) void replace_early(struct proxy_upstream *u)
{
	struct proxy_backend *b = u->backend;
	if (u->state != PROXY_UPSTREAM_READY || b->releasing)
		return;
	if (!is_spent(u)) {
		if (b->n_ready < 2)
			proxy_backend_add(b);
		return;
	}
	u->spent = true;
	proxy_count(u->conn.proxy, PROXY_upstreams_retired_resets);
	proxy_upstream_retire(u, "too many resets");
	proxy_backend_replace(b);
}

static void watch_resets(struct proxy_upstream *u)
{
	if (gcra_debt_ns(&u->conn.resets, u->conn.proxy->now_ns) >
		proxy_conn_reset_limit.burst_ns / 2)
		replace_early(u);
}

static uint32_t max_streams(const struct proxy_upstream *u)
{
	bool may_have_another = u->backend->n_ready < u->conn.proxy->conf.max_conns_per_endpoint;
	return may_have_another && u->max_streams > MAX_STREAMS ? MAX_STREAMS : u->max_streams;
}

bool proxy_upstream_has_room(struct proxy_upstream *u)
{
	enum h2_error code;
	if (h2_conn_n_streams(u->conn.h2) >= max_streams(u) || h2_conn_failed(u->conn.h2, &code))
		return false;
	if (u->last_id >= LAST_ID) {
		proxy_upstream_retire(u, "stream ids used up");
		return false;
	}
	return proxy_conn_has_room(&u->conn) && !is_spent(u);
}

bool proxy_upstream_open(
	struct proxy_upstream *u, struct proxy_request *r, const struct h2_message *head)
{
	r->sent_from = (uint32_t)h2_conn_written(u->conn.h2);
	r->upstream = h2_stream_open(u->conn.h2, head, r);
	if (!r->upstream)
		return false;
	u->last_id = h2_stream_id(r->upstream);
	u->opened_ns = u->conn.proxy->now_ns;
	counter_add(&counters(u)->started, 1);
	counter_add(&counters(u)->active, 1);
	twheel_cancel(u->conn.proxy->wheel, &u->conn.timer);
	proxy_conn_touch(&u->conn);
	if (u->backend->n_expect_long) {
		u->backend->n_expect_long--;
		proxy_client_buffer_widen(r);
	}
	return true;
}

static void on_send_room(struct proxy_conn *conn)
{
	struct proxy_upstream *u = CONTAINER_OF(conn, struct proxy_upstream, conn);
	if (u->state == PROXY_UPSTREAM_READY)
		proxy_backend_opened(u->backend, u);
}

static void on_flushed(struct proxy_conn *conn)
{
	struct proxy_upstream *u = CONTAINER_OF(conn, struct proxy_upstream, conn);
	enum h2_error code;
	if (h2_conn_failed(u->conn.h2, &code)) {
		// Of a flood's streams only one, if any, is at fault.
		bool flood = code == H2_ENHANCE_YOUR_CALM;
		u->broke_protocol = !flood;
		over(u, flood ? "it sent too much" : "protocol error", code);
		return;
	}
	watch_resets(u);
	if ((u->state == PROXY_UPSTREAM_RETIRING || u->backend->releasing) &&
		!h2_conn_n_streams(u->conn.h2)) {
		close_gracefully(u, "retired");
	} else {
		watch_idle(u);
	}
}

static void on_expired(struct proxy_conn *conn)
{
	gone(CONTAINER_OF(conn, struct proxy_upstream, conn), "no answer to PING", true);
}

static void on_secured(struct proxy_conn *conn)
{
}

// A server that refuses our certificate may say so when we are done already (RFC 8446 4.4.2.4).
static void on_broken(struct proxy_conn *conn, const char *why, bool by_peer)
{
	struct proxy_upstream *u = CONTAINER_OF(conn, struct proxy_upstream, conn);
	u->broke_protocol = !by_peer;
	u->cut = true;
	over(u, why, H2_PROTOCOL_ERROR);
}

static void on_eof(struct proxy_conn *conn)
{
	struct proxy_upstream *u = CONTAINER_OF(conn, struct proxy_upstream, conn);
	struct proxy_backend *b = u->backend;
	bool is_idle_one = u->state == PROXY_UPSTREAM_READY && b->is_private;
	if (h2_conn_n_streams(u->conn.h2)) // nobody answers what is yet to be sent
		gone(u, "closed by peer", true);
	else
		over(u, "closed by peer", H2_INTERNAL_ERROR);
	if (is_idle_one)
		proxy_backend_replace(b);
}

static void on_worn(struct proxy_conn *conn)
{
	struct proxy_upstream *u = CONTAINER_OF(conn, struct proxy_upstream, conn);
	if (u->state != PROXY_UPSTREAM_READY)
		return;
	proxy_upstream_retire(u, "its keys are used up");
	proxy_backend_replace(u->backend);
}

static const struct proxy_conn_ops conn_ops = {.on_send_room = on_send_room,
	.on_flushed = on_flushed,
	.on_expired = on_expired,
	.on_secured = on_secured,
	.on_broken = on_broken,
	.on_eof = on_eof,
	.on_worn = on_worn};

static void on_message(struct h2_conn *h2, struct h2_stream *s, const struct h2_message *m)
{
	struct proxy_upstream *u = h2_conn_user(h2);
	struct proxy_request *r = h2_stream_user(s);
	if (!u->has_answered && u->backend)
		u->backend->broke_promise = false;
	u->has_answered = true;
	if (!r)
		return;
	if (m->kind == H2_TRAILERS)
		proxy_forward_response_trailers(r, m);
	else
		proxy_forward_response_head(r, m);
}

// RT-11
static enum proxy_reach reach_of(const struct proxy_upstream *u, const struct proxy_request *r,
	const struct h2_stream *s, bool unprocessed)
{
	if (unprocessed)
		return h2_stream_id(s) > u->goaway_id ? PROXY_REACH_UNREAD : PROXY_REACH_REFUSED;
	bool never_sent = u->cut && u->conn.tcp && proxy_conn_never_sent(&u->conn, r->sent_from);
	return never_sent ? PROXY_REACH_NONE : PROXY_REACH_UNKNOWN;
}

static void on_stream_closed(
	struct h2_conn *h2, struct h2_stream *s, enum h2_error code, bool by_peer, bool unprocessed)
{
	struct proxy_upstream *u = h2_conn_user(h2);
	counter_sub(&counters(u)->active, 1);
	if (by_peer && u->conn.h2 && h2_stream_malformed(s))
		proxy_conn_charge_reset(&u->conn);
	if (u->state == PROXY_UPSTREAM_READY)
		proxy_backend_opened(u->backend, u);
	proxy_conn_touch(&u->conn);
	struct proxy_request *r = h2_stream_user(s);
	if (!r)
		return;
	enum lb_cause cause = LB_CAUSE_UPSTREAM_PROTOCOL;
	if (h2_stream_too_large(s))
		cause = LB_CAUSE_UPSTREAM_TOO_LARGE;
	else if (!u->conn.h2 && !u->broke_protocol)
		cause = LB_CAUSE_UPSTREAM_LOST;
	else if (u->conn.h2 && by_peer && !h2_stream_malformed(s))
		cause = LB_CAUSE_UPSTREAM_RESET;
	struct proxy_upstream_end end = {.code = code,
		.cause = cause,
		.reach = reach_of(u, r, s, unprocessed),
		.conn_lost = !u->conn.h2 && cause != LB_CAUSE_UPSTREAM_TOO_LARGE,
		.conn_number = u->number};
	u->conn.proxy->attempts->on_upstream_end(r, &end);
}

static void on_settings(struct h2_conn *h2, uint32_t max_concurrent_streams)
{
	struct proxy_upstream *u = h2_conn_user(h2);
	u->max_streams = max_concurrent_streams;
	if (u->state == PROXY_UPSTREAM_CONNECTING) {
		u->state = PROXY_UPSTREAM_READY;
		u->ready_ns = u->conn.proxy->now_ns;
		twheel_cancel(u->conn.proxy->wheel, &u->conn.timer);
		proxy_backend_ready(u->backend, u);
	} else if (u->state == PROXY_UPSTREAM_READY) {
		proxy_backend_opened(u->backend, u);
	}
}

static void on_goaway(struct h2_conn *h2, uint32_t last_id, enum h2_error code)
{
	struct proxy_upstream *u = h2_conn_user(h2);
	u->goaway_id = last_id;
	proxy_count(u->conn.proxy, PROXY_upstream_goaways);
	if (u->state != PROXY_UPSTREAM_READY)
		return;
	// Many requests may come at once, and a backend that takes so many a connection says so
	// before it answers the first.
	u->promises = last_id && h2_conn_n_streams(h2) && !u->backend->broke_promise;
	proxy_upstream_retire(u, "GOAWAY");
	bool is_recent = u->last_id && u->conn.proxy->now_ns - u->opened_ns < IN_USE_NS;
	if (is_recent || h2_conn_n_streams(h2) || u->backend->is_private)
		proxy_backend_replace(u->backend);
}

static const struct h2_events events = {.on_message = on_message,
	.on_data = proxy_forward_response_data,
	.on_sent = proxy_forward_request_sent,
	.on_closed = on_stream_closed,
	.on_settings = on_settings,
	.on_goaway = on_goaway,
	.round_trip_ns = proxy_window_round_trip_ns,
	.on_window = proxy_window_of_upstream};

static void on_established(struct tcp_conn *tcp, void *user)
{
	struct proxy_upstream *u = user;
	const struct proxy_backend *b = u->backend;
	tcp_conn_set_user_timeout(tcp, u->silence.user_timeout_ns);
	tcp_conn_set_keepalive(tcp, u->silence.tcp_keepalive_ns);
	const struct lb_header *header = lb_endpoint_header(b->endpoint);
	if (!proxy_announce_and_start(&u->conn, tcp, header, b->client, &events, &u->silence))
		gone(u, "out of memory", true);
}

// TH-65: new requests go elsewhere. Those under way wait for as long as TCP does: it may be the
// path that is dark for a while.
static void on_unanswered(struct tcp_conn *tcp, void *user)
{
	struct proxy_upstream *u = user;
	if (u->state != PROXY_UPSTREAM_READY)
		return;
	proxy_count(u->conn.proxy, PROXY_upstreams_unanswered);
	proxy_upstream_retire(u, "no answer");
}

static void on_tcp_closed(struct tcp_conn *tcp, void *user, enum tcp_close_reason reason)
{
	const struct proxy_secure *s = ((struct proxy_upstream *)user)->conn.secure;
	// What refuses us by an alert may reset us in the same turn (RFC 8446 4.4.2.4).
	gone(user, s && s->broken ? proxy_secure_why(s) : proxy_close_reason(reason), false);
}

static const struct tcp_conn_ops tcp_ops = {.on_established = on_established,
	.on_data = proxy_conn_on_data,
	.on_send_room = proxy_conn_on_send_room,
	.on_unanswered = on_unanswered,
	.on_eof = proxy_conn_on_eof,
	.on_closed = on_tcp_closed};

static void on_refused(struct proxy_conn *conn, const char *why, bool has_tcp)
{
	gone(CONTAINER_OF(conn, struct proxy_upstream, conn), why, has_tcp);
}

// NULL = no memory.
static struct tcp_conn *connect_tcp(
	struct proxy_upstream *u, const struct tcp_flow *flow, bool is_through)
{
	const struct proxy_through_conf through = {
		.target = &u->backend->addr, .behind = &tcp_ops, .on_refused = on_refused};
	uint64_t ns = u->connect_timeout_ns;
	return is_through ? proxy_through_connect(&u->through, &u->conn, &through, flow, ns)
	                  : tcp_connect(u->conn.proxy->tcp, flow, ns, &tcp_ops, u);
}

static void connect_fire(struct twheel_timer *t)
{
	struct proxy_upstream *u =
		CONTAINER_OF(proxy_conn_of_timer(t), struct proxy_upstream, conn);
	struct proxy_secure *s = u->conn.secure;
	bool is_shaking = u->conn.h2 && s && proxy_secure_is_shaking(s);
	if (is_shaking)
		proxy_secure_time_out(s);
	const char *why = proxy_through_time_out(&u->through);
	if (!why)
		why = u->conn.h2 ? "no SETTINGS" : "connect timeout";
	gone(u, is_shaking ? proxy_secure_why(s) : why, true);
}

static void late_fire(struct twheel_timer *t)
{
	struct proxy_upstream *u =
		CONTAINER_OF(proxy_conn_of_timer(t), struct proxy_upstream, conn);
	uint64_t whole_ns = u->connect_timeout_ns;
	proxy_conn_arm(&u->conn, connect_fire, whole_ns > LATE_NS ? whole_ns - LATE_NS : 0);
	proxy_backend_is_late(u->backend);
}

void proxy_upstream_expect(struct proxy_upstream *u)
{
	DCHECK(u->state == PROXY_UPSTREAM_CONNECTING);
	proxy_conn_arm(&u->conn, late_fire, LATE_NS);
}

static void say(uint64_t *ns, uint32_t ms)
{
	if (ms)
		*ns = ms * NS_PER_MS;
}

// CL-09: what clusters ask for now; a connection keeps it for its life.
static void set_timers(struct proxy_upstream *u)
{
	const struct proxy *p = u->conn.proxy;
	struct lb_timers timers = lb_timers_read(&p->shared->timers[u->endpoint_id]);
	u->silence = p->conf.terms.backend_silence;
	u->connect_timeout_ns = p->conf.connect_timeout_ns;
	say(&u->connect_timeout_ns, timers.connect_ms);
	say(&u->silence.tcp_keepalive_ns, timers.tcp_keepalive_ms);
	say(&u->silence.ping_interval_ns, timers.ping_interval_ms);
	say(&u->silence.ping_timeout_ns, timers.ping_timeout_ms);
}

// Its name is the endpoint's, which outlives its connections.
static bool secure(struct proxy_upstream *u)
{
	const struct lb_endpoint *e = u->backend->endpoint;
	uint32_t id = lb_endpoint_credential(e);
	return id == LB_PLAIN_TEXT ||
	       proxy_conn_secure(&u->conn, TLS_CLIENT, id, lb_endpoint_server_name(e),
		       proxy_secure_source(u->conn.proxy, &u->backend->addr));
}

struct proxy_upstream *proxy_upstream_connect(struct proxy_backend *b, const char **ret_why)
{
	struct proxy *p = b->proxy;
	const struct ip_port *proxy = lb_endpoint_proxy(b->endpoint),
			     *to = proxy ? proxy : &b->addr;
	struct tcp_flow flow = {.remote = to->ip, .remote_port = to->port};
	proxy_count(p, PROXY_connects);
	*ret_why = p->conf.source_for(p->conf.source_ctx, &flow.remote, &flow.local);
	if (*ret_why)
		return NULL;
	*ret_why = "out of memory";
	struct proxy_upstream *u = pool_take(&p->upstreams);
	if (!u)
		return NULL;
	*u = (struct proxy_upstream){.backend = b,
		.endpoint_id = b->id,
		.number = (uint32_t)p->counters[PROXY_connects],
		.goaway_id = LAST_ID};
	proxy_conn_init(&u->conn, p, &conn_ops, &p->upstreams);
	set_timers(u);
	if (!secure(u)) {
		pool_put(&p->upstreams, u);
		return NULL;
	}
	u->conn.tcp = connect_tcp(u, &flow, proxy);
	if (!u->conn.tcp) {
		proxy_conn_drop(&u->conn);
		pool_put(&p->upstreams, u);
		return NULL;
	}
	counter_add(&counters(u)->connections, 1);
	proxy_conn_arm(&u->conn, connect_fire, u->connect_timeout_ns);
	return u;
}
