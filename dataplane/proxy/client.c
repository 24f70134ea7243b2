// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/client.h"

#include "dataplane/h2/carrier.h"
#include "dataplane/proxy/admit.h"
#include "dataplane/proxy/client_backend.h"
#include "dataplane/proxy/client_cut.h"
#include "dataplane/proxy/client_header.h"
#include "dataplane/proxy/client_hello.h"
#include "dataplane/proxy/client_windows.h"
#include "dataplane/proxy/drain.h"
#include "dataplane/proxy/forward.h"
#include "dataplane/proxy/idle.h"
#include "dataplane/proxy/pressure_walk.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/route.h"
#include "dataplane/proxy/state.h"
#include "dataplane/proxy/window.h"
#include "dataplane/proxy/work.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/chain_set.h"
#include "lb/pick/limits.h"
#include "lb/pick/link.h"
#include "lb/snapshot.h"

#define SETTINGS_TIMEOUT_NS (10 * NS_PER_SECOND)
#define BLOCK_TIMEOUT_NS (10 * NS_PER_SECOND) // TH-04

static struct proxy_client *client_of(struct list_link *l)
{
	return l ? CONTAINER_OF(l, struct proxy_client, link) : NULL;
}

struct proxy_client *proxy_client_first(const struct proxy *p)
{
	return client_of(list_first(&p->client_list));
}

struct proxy_client *proxy_client_after(const struct proxy_client *c)
{
	return client_of(list_after(&c->conn.proxy->client_list, &c->link));
}

static void link_client(struct proxy_client *c, struct proxy_source *known)
{
	struct proxy *p = c->conn.proxy;
	list_insert(&p->client_list, &c->link);
	c->source = proxy_source_join(&p->sources, known, &tcp_conn_flow(c->conn.tcp)->remote);
	h2_conn_share(c->conn.h2, &c->source->budgets);
	h2_conn_set_allowance(c->conn.h2, &p->work.allowance);
	p->work.allowance -= PROXY_WORK_ACCEPT;
	counter_add(&p->link->counters.client_connections, 1);
	counter_add(&p->link->counters.frontend_uses[c->frontend], 1);
}

static void unlink_client(struct proxy_client *c)
{
	struct proxy *p = c->conn.proxy;
	struct proxy_client *after = proxy_client_after(c);
	proxy_drain_forget(&p->drain, c, after);
	proxy_pressure_forget(&p->pressure, c, after);
	list_remove(&c->link);
	list_remove(&c->idle);
	proxy_work_forget(c);
	proxy_source_leave(&p->sources, c->source);
	counter_sub(&p->link->counters.client_connections, 1);
	counter_sub(&p->link->counters.frontend_uses[c->frontend], 1);
}

static void silent_fire(struct twheel_timer *t);

static void not_silent(struct proxy_client *c)
{
	if (c->conn.timer.fire == silent_fire)
		twheel_cancel(c->conn.proxy->wheel, &c->conn.timer);
}

static void on_message(struct h2_conn *h2, struct h2_stream *s, const struct h2_message *m)
{
	struct proxy_request *r = h2_stream_user(s);
	if (m->kind == H2_REQUEST) {
		struct proxy_client *c = h2_conn_user(h2);
		if (!c->has_asked)
			not_silent(c); // HTTP/1.1 that was agreed upon has no settings
		c->has_asked = true;
		list_remove(&c->idle);
		proxy_route_request(c, s, m);
	} else if (r)
		proxy_forward_request_trailers(r, m);
}

static void on_refused(struct h2_conn *h2, const struct h2_message *m, struct str why)
{
	proxy_route_refused(h2_conn_user(h2), m, why);
}

static void on_stream_closed(
	struct h2_conn *h2, struct h2_stream *s, enum h2_error code, bool by_peer, bool unprocessed)
{
	struct proxy_client *c = h2_conn_user(h2);
	struct proxy_request *r = h2_stream_user(s);
	if (!r)
		return;
	enum lb_cause cause;
	if (c->conn.h2 && !by_peer)
		cause = LB_CAUSE_OK; // both ends, or our RST_STREAM after the whole answer
	else if (c->cut)
		cause = LB_CAUSE_DRAINED;
	else if (c->broke_protocol)
		cause = LB_CAUSE_CLIENT_PROTOCOL;
	else if (!c->conn.h2)
		cause = LB_CAUSE_CLIENT_LOST;
	else
		cause = h2_stream_malformed(s) ? LB_CAUSE_CLIENT_PROTOCOL : LB_CAUSE_CLIENT_RESET;
	if (cause == LB_CAUSE_DRAINED && !r->ended)
		proxy_drain_count_cut(c->conn.proxy);
	proxy_request_client_closed(r, cause);
}

static void on_settings(struct h2_conn *h2, uint32_t max_concurrent_streams)
{
	not_silent(h2_conn_user(h2));
}

static const struct h2_events events = {.on_message = on_message,
	.on_refused = on_refused,
	.on_data = proxy_forward_request_data,
	.on_sent = proxy_forward_response_sent,
	.on_closed = on_stream_closed,
	.on_settings = on_settings,
	.round_trip_ns = proxy_window_round_trip_ns,
	.on_window = proxy_window_of_client};

// Out of the books, before its HTTP/2 ends.
static void leave(struct proxy_client *c)
{
	if (!LIST_EMPTY(&c->backends))
		proxy_client_backends_leave(c);
	unlink_client(c);
	proxy_client_header_end(c);
	proxy_client_tlvs_end(c);
	proxy_client_hello_end(c);
	twheel_cancel(c->conn.proxy->wheel, &c->buffer.timer);
	twheel_cancel(c->conn.proxy->wheel, &c->window_timer);
	twheel_cancel(c->conn.proxy->wheel, &c->block_timer);
	twheel_cancel(c->conn.proxy->wheel, &c->progress_timer);
	proxy_leave_forget(c);
}

static void over(struct proxy_client *c, enum h2_error code)
{
	leave(c);
	if (h2_conn_must_abort(c->conn.h2))
		proxy_conn_gone(&c->conn, code, true);
	else
		proxy_conn_over(&c->conn, code);
}

void proxy_client_close(struct proxy_client *c, enum h2_error code)
{
	h2_conn_drain_end(c->conn.h2, code);
	proxy_conn_pump(&c->conn);
	over(c, code);
}

void proxy_client_abort(struct proxy_client *c)
{
	if (c->conn.h2)
		leave(c);
	proxy_conn_gone(&c->conn, H2_CANCEL, true);
}

// The rest of an upload whose answer is out isn't wanted any more (RFC 9113 8.1). It is out when
// nothing of the stream is queued and the connection had room for all there was.
static void reset_answered(struct proxy_client *c)
{
	for (struct list_link *l = c->answered.next, *next; l != &c->answered; l = next) {
		const struct proxy_request *r = CONTAINER_OF(l, struct proxy_request, link);
		next = l->next;
		if (!h2_stream_queued(r->client)) {
			h2_stream_reset(r->client, H2_NO_ERROR);
			proxy_conn_touch(&c->conn);
		}
	}
}

static void stall_fire(struct twheel_timer *t)
{
	struct proxy_client *c = CONTAINER_OF(proxy_conn_of_timer(t), struct proxy_client, conn);
	if (proxy_conn_stalls(&c->conn)) {
		proxy_count(c->conn.proxy, PROXY_clients_stalled);
		proxy_client_abort(c);
	} else if (proxy_conn_left(&c->conn)) {
		proxy_conn_arm(&c->conn, stall_fire, PROXY_PATIENCE_NS);
	}
}

static void block_fire(struct twheel_timer *t)
{
	struct proxy_client *c = CONTAINER_OF(t, struct proxy_client, block_timer);
	proxy_count(c->conn.proxy, PROXY_clients_in_header);
	c->broke_protocol = true;
	proxy_client_close(c, H2_ENHANCE_YOUR_CALM);
}

static void watch_block(struct proxy_client *c)
{
	struct twheel *w = c->conn.proxy->wheel;
	uint32_t id = h2_conn_in_block(c->conn.h2);
	if (id == c->block_id)
		return;
	c->block_id = id;
	twheel_cancel(w, &c->block_timer);
	c->block_timer.fire = block_fire;
	if (id)
		twheel_arm(w, &c->block_timer, twheel_now(w) + BLOCK_TIMEOUT_NS);
}

// What it waited for may have happened.
static __attribute__((cold)) void resume_held(struct proxy_client *c)
{
	if (h2_conn_holds(c->conn.h2))
		return;
	c->held = false;
	proxy_conn_resume(&c->conn);
}

static void on_flushed(struct proxy_conn *conn)
{
	struct proxy_client *c = CONTAINER_OF(conn, struct proxy_client, conn);
	enum h2_error code;
	if (h2_conn_failed(c->conn.h2, &code)) {
		c->broke_protocol = code != H2_NO_ERROR;
		over(c, code);
		return;
	}
	if (!list_empty(&c->answered) && !c->conn.more)
		reset_answered(c);
	if (!twheel_armed(&c->window_timer) && h2_conn_waits(c->conn.h2))
		proxy_client_windows_watch(c);
	watch_block(c);
	size_t left = proxy_conn_left(&c->conn);
	if (left + h2_conn_queued(c->conn.h2) > proxy_client_buffer_little(&c->buffer) &&
		!twheel_armed(&c->buffer.timer))
		proxy_client_cut_watch(c);
	if (left && !twheel_armed(&c->conn.timer)) {
		proxy_conn_stalls(&c->conn);
		proxy_conn_arm(&c->conn, stall_fire, PROXY_PATIENCE_NS);
	}
	// A head that has begun is waited for, as at any time (H1-35); with HTTP/2 it is refused.
	if (c->drained && h2_conn_idle(c->conn.h2) && !h2_conn_in_block(c->conn.h2))
		over(c, H2_NO_ERROR);
	else if (!list_linked(&c->idle) && !h2_conn_n_streams(c->conn.h2))
		proxy_idle_begin(c);
	if (c->held && c->conn.h2)
		resume_held(c);
}

// The last of it may be gone.
static void on_send_room(struct proxy_conn *conn)
{
	if (CONTAINER_OF(conn, struct proxy_client, conn)->drained)
		proxy_conn_touch(conn);
}

static bool on_fed_short(struct proxy_conn *conn)
{
	struct proxy_client *c = CONTAINER_OF(conn, struct proxy_client, conn);
	if (proxy_work_put_off(c))
		return true;
	c->held = h2_conn_holds(conn->h2);
	return c->held;
}

// Its time is over: what runs still hears why, then it ends as any other. Who has said nothing yet,
// or shakes hands, has nothing that runs.
static void cut(struct proxy_client *c)
{
	const struct proxy_reply reply = proxy_reply_for(
		LB_CAUSE_DRAINED, STR("the time that was left to this connection is over"));
	for (struct h2_stream *s = h2_conn_newest(c->conn.h2); s; s = h2_stream_older(s)) {
		const struct proxy_request *r = h2_stream_user(s);
		if (r && !r->ended)
			proxy_drain_count_cut(c->conn.proxy);
	}
	proxy_request_cut_all(c->conn.h2, &reply, H2_CANCEL);
	if (!c->drained) // else it has heard the last GOAWAY
		h2_conn_drain_end(c->conn.h2, H2_NO_ERROR);
	proxy_conn_pump(&c->conn);
	over(c, H2_NO_ERROR);
}

static void on_expired(struct proxy_conn *conn)
{
	struct proxy_client *c = CONTAINER_OF(conn, struct proxy_client, conn);
	if (c->cut)
		cut(c);
	else
		proxy_client_abort(c);
}

// A client that has agreed upon no protocol says by its first bytes what it speaks. So does one of
// HTTP/1.1 for which there is no memory yet.
static void on_secured(struct proxy_conn *conn)
{
	bool is_h2 = conn->secure->protocol == PROXY_HTTP2;
	h2_carrier_set_scheme(conn->h2, is_h2 ? STR("") : STR("https"));
	if (conn->secure->protocol == PROXY_HTTP1)
		(void)!h2_carrier_begin(conn->h2);
	proxy_conn_arm(conn, silent_fire, SETTINGS_TIMEOUT_NS);
}

static void on_broken(struct proxy_conn *conn, const char *why, bool by_peer)
{
	struct proxy_client *c = CONTAINER_OF(conn, struct proxy_client, conn);
	c->broke_protocol = !by_peer;
	over(c, H2_PROTOCOL_ERROR);
}

// Half-closed HTTP/2 is of no use to anybody: what is left of its streams is cancelled.
static void on_eof(struct proxy_conn *conn)
{
	struct proxy_client *c = CONTAINER_OF(conn, struct proxy_client, conn);
	if (h2_conn_n_streams(c->conn.h2)) {
		proxy_client_close(c, H2_NO_ERROR);
		return;
	}
	// It has all answers, so that a GOAWAY would tell it nothing. Those of this turn are yet to
	// be reported as such.
	proxy_conn_pump(&c->conn);
	over(c, H2_NO_ERROR);
}

static void on_worn(struct proxy_conn *conn)
{
	proxy_leave_now(CONTAINER_OF(conn, struct proxy_client, conn));
}

static const struct proxy_conn_ops conn_ops = {.on_send_room = on_send_room,
	.on_expired = on_expired,
	.on_flushed = on_flushed,
	.on_fed_short = on_fed_short,
	.on_secured = on_secured,
	.on_broken = on_broken,
	.on_eof = on_eof,
	.on_worn = on_worn,
	.is_client = true};

static __attribute__((cold)) size_t on_data_when_short(
	struct proxy_client *c, struct tcp_conn *tcp, const uint8_t *data, size_t len)
{
	struct proxy_work *w = &c->conn.proxy->work;
	int64_t left = w->allowance, granted = proxy_work_grant(w, c->source);
	w->allowance = granted;
	size_t n = proxy_conn_on_data(tcp, &c->conn, data, len);
	c->source->allowance -= granted - w->allowance; // also of who stands in line
	w->allowance = left;
	return n;
}

static size_t on_data(struct tcp_conn *tcp, void *user, const uint8_t *data, size_t len)
{
	struct proxy_client *c = user;
	if (c->conn.h2 && proxy_work_is_short(&c->conn.proxy->work, c->source))
		return on_data_when_short(c, tcp, data, len);
	return proxy_conn_on_data(tcp, &c->conn, data, len);
}

static void on_tcp_closed(struct tcp_conn *tcp, void *user, enum tcp_close_reason reason)
{
	struct proxy_client *c = user;
	if (c->conn.h2)
		leave(c);
	proxy_conn_gone(&c->conn, H2_CANCEL, false);
}

static const struct tcp_conn_ops tcp_ops = {.on_data = on_data,
	.on_send_room = proxy_conn_on_send_room,
	.on_eof = proxy_conn_on_eof,
	.on_closed = on_tcp_closed};

static size_t on_first_data(struct tcp_conn *tcp, void *user, const uint8_t *data, size_t len)
{
	struct proxy_client *c = user;
	return c->hello ? proxy_client_hello_feed(c, tcp, data, len) : on_data(tcp, c, data, len);
}

// Of one that was asked for its hello.
static const struct tcp_conn_ops asked_ops = {.on_data = on_first_data,
	.on_send_room = proxy_conn_on_send_room,
	.on_eof = proxy_conn_on_eof,
	.on_closed = on_tcp_closed};

static void silent_fire(struct twheel_timer *t)
{
	struct proxy_client *c = CONTAINER_OF(proxy_conn_of_timer(t), struct proxy_client, conn);
	proxy_count(c->conn.proxy, PROXY_clients_silent);
	proxy_client_close(c, H2_SETTINGS_TIMEOUT);
}

// With TLS if its chain has a credential, ready or not. False = the pool is exhausted.
static bool secure(struct proxy_client *c, uint64_t source_hash)
{
	const struct proxy *p = c->conn.proxy;
	uint32_t id = lb_snapshot_frontend(p->snapshot, c->chain)->credential;
	return id == LB_PLAIN_TEXT ||
	       proxy_conn_secure(&c->conn, TLS_SERVER, id, NULL, source_hash);
}

// It was asked for its hello.
static bool settle(struct proxy_client *c, uint32_t place)
{
	const struct proxy *p = c->conn.proxy;
	c->chain = (uint16_t)place;
	c->generation = p->drain.generations[place];
	const struct ip_addr *from = &tcp_conn_flow(c->conn.tcp)->remote;
	bool ok = secure(c, proxy_source_hash(&p->sources, from));
	if (c->conn.secure) {
		not_silent(c);
		proxy_conn_begin_secure(&c->conn);
	}
	return ok;
}
static const struct proxy_client_hello_ops hello_ops = {.tcp = &tcp_ops, .settle = settle};

const struct tcp_conn_ops *proxy_client_accept(void *arg, struct tcp_conn *tcp, void **ret_user)
{
	struct proxy_listener *l = arg;
	struct proxy *p = l->proxy;
	const struct ip_addr *from = &tcp_conn_flow(tcp)->remote;
	uint64_t hash = proxy_source_hash(&p->sources, from);
	struct proxy_source *source = proxy_source_find(&p->sources, from, hash);
	const struct lb_inspector *asks;
	uint32_t chain = proxy_admit(l, tcp, source, &asks);
	if (chain == LB_NO_PLACE)
		return NULL;
	if (proxy_admit_is_short(p))
		proxy_idle_make_room(p);
	bool is_left = p->drain.step != PROXY_DRAIN_NONE || p->listeners[l->frontend].gone_by_ns;
	struct proxy_client *c = is_left ? NULL : pool_take(&p->clients);
	if (!c) {
		proxy_count(p, PROXY_clients_refused);
		return NULL;
	}
	*c = (struct proxy_client){.frontend = (uint16_t)l->frontend,
		.vip = l->is_vip ? (uint16_t)(l->vip + 1) : 0,
		.chain = (uint16_t)chain,
		.generation = asks ? 0 : p->drain.generations[chain],
		.random = rand_u64(&p->rand),
		.address = *from,
		.port = tcp_conn_flow(tcp)->remote_port,
		.buffer.bound = p->conf.terms.client_buffer};
	list_init(&c->answered);
	proxy_conn_init(&c->conn, p, &conn_ops, &p->clients);
	if ((!asks && !secure(c, hash)) || !proxy_conn_start(&c->conn, tcp, H2_SERVER, &events,
						   &p->conf.terms.client_silence)) {
		proxy_conn_drop(&c->conn);
		proxy_count(p, PROXY_clients_refused);
		pool_put(&p->clients, c);
		return NULL;
	}
	link_client(c, source);
	proxy_leave_at_age(c);
	if (p->drain.farewell_until_ns)
		proxy_leave_farewell(c, p->drain.farewell_until_ns);
	tcp_conn_set_user_timeout(tcp, p->conf.terms.client_silence.user_timeout_ns);
	tcp_conn_set_keepalive(tcp, p->conf.terms.client_silence.tcp_keepalive_ns);
	counter_add(&p->link->counters.frontend_connections[l->frontend], 1);
	if (!c->conn.secure)
		proxy_conn_arm(&c->conn, silent_fire, SETTINGS_TIMEOUT_NS);
	*ret_user = c;
	if (asks)
		proxy_client_hello_begin(c, l, asks, &hello_ops);
	const struct tcp_conn_ops *ops = asks ? &asked_ops : &tcp_ops;
	return l->wants_header ? proxy_client_header_begin(c, proxy_admit_passed(l, tcp), ops)
	                       : ops;
}
