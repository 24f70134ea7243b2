// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/probe.h"

#include "dataplane/proxy/announce.h"
#include "dataplane/proxy/close_reason.h"
#include "dataplane/proxy/conn.h"
#include "dataplane/proxy/probe_answer.h"
#include "dataplane/proxy/probe_tell.h"
#include "dataplane/proxy/state.h"
#include "dataplane/proxy/through.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/pick/check.h"

#include <stdio.h>

struct proxy_probe {
	struct proxy_conn conn; // first
	struct lb_probe *of; // NULL = let go of
	struct list_link link; // in proxy_probes.live
	struct h2_stream *stream; // of the check under way; NULL = none yet, or it was answered
	uint64_t until_ns; // of the check under way
	bool is_under_way;
	bool is_settled; // the peer's SETTINGS came
	bool is_kept; // it has served a check before this one
	bool leaves; // serves no further check: closed when its output has been pumped
	struct proxy_probe_answer answer;
	struct proxy_through through;
};

static const struct lb_silence no_questions; // so on_expired() is never called

static struct proxy_probe *probe_of(struct proxy_conn *c)
{
	return CONTAINER_OF(c, struct proxy_probe, conn);
}

// The connection.

// Nothing is done with it any more, but to close it.
static void let_go(struct proxy_probe *c)
{
	if (c->of)
		c->of->worker.conn = NULL;
	c->of = NULL;
	list_remove(&c->link);
}

static void drop_stream(struct proxy_probe *c)
{
	if (c->stream)
		h2_stream_set_user(c->stream, NULL);
	c->stream = NULL;
}

static void cut(struct proxy_probe *c)
{
	let_go(c);
	drop_stream(c);
	c->is_under_way = false;
	proxy_conn_gone(&c->conn, H2_NO_ERROR, true);
}

// Not inside a callback of HTTP/2.
static void close_gracefully(struct proxy_probe *c)
{
	let_go(c);
	drop_stream(c);
	if (!c->conn.tcp) {
		proxy_conn_gone(&c->conn, H2_NO_ERROR, true);
		return;
	}
	if (c->conn.h2) {
		h2_conn_drain_end(c->conn.h2, H2_NO_ERROR);
		proxy_conn_pump(&c->conn);
	}
	proxy_conn_over(&c->conn, H2_NO_ERROR);
}

static bool may_keep(const struct proxy_probe *c)
{
	const struct pool *all = &c->conn.proxy->probes.conns;
	return c->of && c->of->check->keeps_connection && c->conn.h2 && c->is_settled &&
	       !c->leaves && 2 * all->n_used <= all->n_total;
}

// The check is over. The connection is kept, or closed by its owner's next event.
static void settle(struct proxy_probe *c, struct proxy_verdict v)
{
	struct proxy *p = c->conn.proxy;
	if (!c->is_under_way)
		return;
	c->is_under_way = false;
	twheel_cancel(p->wheel, &c->conn.timer);
	proxy_probe_report(p, c->of, v);
	c->is_kept = may_keep(c);
	c->leaves = !c->is_kept;
	proxy_conn_touch(&c->conn);
}

static void connect(struct proxy *, struct lb_probe *, uint64_t until_ns);

// The connection is of no use. A check that it was kept for is not to blame: another one is made.
static void lose(struct proxy_probe *c, struct proxy_verdict v, bool abort)
{
	struct proxy *p = c->conn.proxy;
	struct lb_probe *of = c->of;
	bool again = c->is_under_way && c->is_kept && v.result == LB_PROBE_NETWORK;
	uint64_t until_ns = c->until_ns;
	if (again)
		c->is_under_way = false;
	settle(c, v);
	let_go(c);
	drop_stream(c);
	proxy_conn_gone(&c->conn, H2_INTERNAL_ERROR, abort);
	if (again)
		connect(p, of, until_ns);
}

static const struct proxy_verdict passed = {.result = LB_PROBE_PASSED};
static const struct proxy_verdict no_memory = {LB_PROBE_UNJUDGED, "out of memory"};

static void on_timeout(struct twheel_timer *t)
{
	struct proxy_probe *c = probe_of(proxy_conn_of_timer(t));
	const char *why = proxy_through_time_out(&c->through);
	struct proxy_verdict v = {LB_PROBE_TIMEOUT, ""};
	snprintf(v.why, sizeof(v.why), "%s", why ? why : "timeout");
	lose(c, v, true);
}

// HTTP/2.

static bool send_request(struct proxy_probe *c)
{
	const struct lb_check *k = c->of->check;
	const struct h2_message head = {.kind = H2_REQUEST,
		.method = k->method,
		.scheme = c->conn.secure ? STR("https") : STR("http"),
		.authority = k->authority,
		.path = k->path,
		.fields = k->fields,
		.n_fields = k->n_fields,
		.content_length = -1,
		.end_stream = !k->body.len};
	c->answer = (struct proxy_probe_answer){0};
	c->stream = h2_stream_open(c->conn.h2, &head, c);
	if (!c->stream)
		return false;
	proxy_conn_touch(&c->conn);
	const uint8_t *body = (const uint8_t *)k->body.p;
	if (k->body.len && !h2_stream_send_data(c->stream, body, k->body.len, true))
		drop_stream(c); // it goes with the connection, and means nothing until then
	return c->stream;
}

static void ask(struct proxy_probe *c)
{
	if (c->of->check->kind == LB_CHECK_TCP)
		return; // it is the handshake of TLS that counts
	bool is_full = !h2_conn_stream_room(c->conn.h2);
	if (!is_full && send_request(c))
		return;
	c->leaves = true;
	proxy_conn_touch(&c->conn); // one that was kept and is full: on_flushed()
	if (!is_full || !c->is_kept)
		settle(c, is_full ? proxy_verdict_failed("no stream is allowed") : no_memory);
}

static void judge(struct proxy_probe *c)
{
	struct proxy_verdict v = proxy_probe_judge(c->of->check, &c->answer);
	// A body that nobody takes would hold its stream for as long as the connection is kept.
	c->leaves |= c->stream && h2_stream_queued(c->stream);
	drop_stream(c);
	settle(c, v);
}

static void on_message(struct h2_conn *h2, struct h2_stream *s, const struct h2_message *m)
{
	struct proxy_probe *c = h2_stream_user(s);
	if (!c || m->kind == H2_INFORMATIONAL)
		return;
	proxy_probe_answer_head(&c->answer, m);
	if (m->end_stream)
		judge(c);
}

static void on_data(
	struct h2_conn *h2, struct h2_stream *s, const uint8_t *data, size_t len, bool end_stream)
{
	struct proxy_probe *c = h2_stream_user(s);
	h2_stream_consumed(s, len);
	if (!c)
		return;
	proxy_probe_answer_body(&c->answer, data, len);
	if (end_stream)
		judge(c);
}

// Before the whole answer came. Of a connection that was kept, lose() has another one made.
static void on_closed(
	struct h2_conn *h2, struct h2_stream *s, enum h2_error code, bool by_peer, bool unprocessed)
{
	struct proxy_probe *c = h2_stream_user(s);
	if (!c)
		return;
	c->stream = NULL;
	if (unprocessed && c->is_kept)
		c->leaves = true; // on_flushed()
	else
		settle(c, proxy_verdict_failed(
				  h2_stream_malformed(s) ? "protocol error" : "stream reset"));
	proxy_conn_touch(&c->conn);
}

static void on_settings(struct h2_conn *h2, uint32_t max_concurrent_streams)
{
	struct proxy_probe *c = probe_of(h2_conn_user(h2));
	if (c->is_settled)
		return;
	c->is_settled = true;
	if (c->is_under_way)
		ask(c);
}

static void on_goaway(struct h2_conn *h2, uint32_t last_id, enum h2_error code)
{
	struct proxy_probe *c = probe_of(h2_conn_user(h2));
	c->leaves = true;
	proxy_conn_touch(&c->conn);
}

static const struct h2_events events = {.on_message = on_message,
	.on_data = on_data,
	.on_closed = on_closed,
	.on_settings = on_settings,
	.on_goaway = on_goaway};

static void on_send_room(struct proxy_conn *conn)
{
}

static void on_flushed(struct proxy_conn *conn)
{
	struct proxy_probe *c = probe_of(conn);
	enum h2_error code;
	if (h2_conn_failed(conn->h2, &code))
		lose(c, proxy_verdict_failed("protocol error"), true);
	else if (c->leaves && c->is_under_way && !c->stream && c->is_settled)
		lose(c, proxy_verdict_failed("GOAWAY"), true);
	else if (c->leaves && !c->is_under_way)
		close_gracefully(c);
}

static void on_secured(struct proxy_conn *conn)
{
	struct proxy_probe *c = probe_of(conn);
	if (c->is_under_way && c->of->check->kind == LB_CHECK_TCP)
		settle(c, passed);
}

static void on_broken(struct proxy_conn *conn, const char *why, bool by_peer)
{
	lose(probe_of(conn), proxy_verdict_failed(why), true);
}

static void on_eof(struct proxy_conn *conn)
{
	lose(probe_of(conn), proxy_verdict_failed("closed by peer"), true);
}

static void on_worn(struct proxy_conn *conn)
{
	probe_of(conn)->leaves = true;
}

static const struct proxy_conn_ops conn_ops = {.on_send_room = on_send_room,
	.on_flushed = on_flushed,
	.on_secured = on_secured,
	.on_broken = on_broken,
	.on_eof = on_eof,
	.on_worn = on_worn};

// TCP.

static void on_closed_by_tcp(struct tcp_conn *tcp, void *user, enum tcp_close_reason reason)
{
	struct proxy_probe *c = user;
	lose(c, proxy_verdict_failed(proxy_close_reason(reason)), false);
}

static void on_established(struct tcp_conn *tcp, void *user)
{
	struct proxy_probe *c = user;
	const struct lb_header *header = lb_security_header(c->of->security);
	if (!proxy_announce_and_start(&c->conn, tcp, header, NULL, &events, &no_questions))
		lose(c, no_memory, true);
}

static const struct tcp_conn_ops h2_ops = {.on_established = on_established,
	.on_data = proxy_conn_on_data,
	.on_send_room = proxy_conn_on_send_room,
	.on_eof = proxy_conn_on_eof,
	.on_closed = on_closed_by_tcp};

static void settle_plain(struct proxy_probe *c, struct proxy_verdict v)
{
	settle(c, v);
	close_gracefully(c);
}

static void on_plain_established(struct tcp_conn *tcp, void *user)
{
	struct proxy_probe *c = user;
	const struct lb_check *k = c->of->check;
	struct pool *chunks = c->conn.proxy->chunks;
	if (!proxy_announce(&c->conn, tcp, lb_security_header(c->of->security), NULL) ||
		(k->body.len && !buf_append(tcp_conn_sendq(tcp), chunks, k->body.p, k->body.len))) {
		lose(c, no_memory, true);
		return;
	}
	tcp_conn_push(tcp);
	if (!k->n_receive)
		settle_plain(c, passed);
}

static size_t on_plain_data(struct tcp_conn *tcp, void *user, const uint8_t *data, size_t len)
{
	struct proxy_probe *c = user;
	if (!c->is_under_way)
		return len;
	bool fits = proxy_probe_answer_body(&c->answer, data, len);
	if (lb_check_finds(c->of->check, proxy_probe_answer_bytes(&c->answer)))
		settle_plain(c, passed);
	else if (!fits)
		settle_plain(c, proxy_verdict_failed("unexpected answer"));
	return len;
}

static void on_plain_room(struct tcp_conn *tcp, void *user)
{
}

static void on_plain_eof(struct tcp_conn *tcp, void *user)
{
	struct proxy_probe *c = user;
	if (c->is_under_way)
		settle_plain(c, proxy_verdict_failed("closed by peer"));
}

static const struct tcp_conn_ops plain_ops = {.on_established = on_plain_established,
	.on_data = on_plain_data,
	.on_send_room = on_plain_room,
	.on_eof = on_plain_eof,
	.on_closed = on_closed_by_tcp};

// At least some: its timer may be a tick late.
static uint64_t left_ns(const struct proxy_probe *c)
{
	uint64_t now_ns = twheel_now(c->conn.proxy->wheel);
	return c->until_ns > now_ns ? c->until_ns - now_ns : NS_PER_MS;
}

static void on_refused(struct proxy_conn *conn, const char *why, bool has_tcp)
{
	lose(probe_of(conn), proxy_verdict_failed(why), has_tcp);
}

static struct tcp_conn *connect_tcp(
	struct proxy_probe *c, const struct tcp_flow *flow, const struct tcp_conn_ops *ops)
{
	const struct proxy_through_conf through = {
		.target = &c->of->addr, .behind = ops, .on_refused = on_refused};
	if (lb_security_proxy(c->of->security))
		return proxy_through_connect(&c->through, &c->conn, &through, flow, left_ns(c));
	return tcp_connect(c->conn.proxy->tcp, flow, left_ns(c), ops, c);
}

// False = a pool is exhausted.
static bool open(struct proxy_probe *c, const struct tcp_flow *flow)
{
	const struct lb_security *security = c->of->security;
	uint32_t credential = lb_probe_credential(c->of);
	bool is_plain = credential == LB_PLAIN_TEXT;
	bool is_bare = is_plain && c->of->check->kind == LB_CHECK_TCP;
	if (!is_plain && !proxy_conn_secure(&c->conn, TLS_CLIENT, credential, security->server_name,
				 proxy_secure_source(c->conn.proxy, &c->of->addr)))
		return false;
	c->conn.tcp = connect_tcp(c, flow, is_bare ? &plain_ops : &h2_ops);
	if (!c->conn.tcp)
		proxy_conn_drop(&c->conn);
	return c->conn.tcp;
}

static void watch(struct proxy_probe *c, uint64_t until_ns)
{
	c->is_under_way = true;
	c->until_ns = until_ns;
	proxy_conn_arm(&c->conn, on_timeout, left_ns(c));
}

static void connect(struct proxy *p, struct lb_probe *l, uint64_t until_ns)
{
	const struct ip_port *proxy = lb_security_proxy(l->security),
			     *to = proxy ? proxy : &l->addr;
	struct tcp_flow flow = {.remote = to->ip, .remote_port = to->port};
	const char *why = p->conf.source_for(p->conf.source_ctx, &flow.remote, &flow.local);
	if (why) {
		proxy_probe_report(p, l, proxy_verdict_failed(why));
		return;
	}
	struct proxy_probe *c = pool_take(&p->probes.conns);
	if (!c) {
		proxy_probe_report(p, l, no_memory);
		return;
	}
	*c = (struct proxy_probe){.of = l, .until_ns = until_ns};
	proxy_conn_init(&c->conn, p, &conn_ops, &p->probes.conns);
	if (!open(c, &flow)) {
		pool_put(&p->probes.conns, c);
		proxy_probe_report(p, l, no_memory);
		return;
	}
	l->worker.conn = c;
	list_append(&p->probes.live, &c->link);
	watch(c, until_ns);
}

// Commands.

void proxy_probe_begin(struct proxy *p, struct lb_probe *l)
{
	struct proxy_probe *c = l->worker.conn;
	uint64_t until_ns = twheel_now(p->wheel) + l->check->timeout_ns;
	DCHECK(!c || !c->is_under_way);
	if (!c || c->leaves || l->check->kind == LB_CHECK_TCP) {
		if (c)
			close_gracefully(c);
		connect(p, l, until_ns);
		return;
	}
	watch(c, until_ns);
	ask(c);
}

void proxy_probe_end(struct proxy *p, struct lb_probe *l)
{
	struct proxy_probe *c = l->worker.conn;
	l->worker.owes_result = false;
	l->worker.owes_end = true;
	proxy_probe_list(p, l);
	if (!c)
		return;
	if (c->is_under_way || !c->is_settled)
		cut(c);
	else
		close_gracefully(c);
}

// Life.

int proxy_probes_init(struct proxy *p, uint32_t max_conns)
{
	list_init(&p->probes.live);
	list_init(&p->probes.to_tell);
	uint32_t n = max_conns / PROXY_PROBES_PART + PROXY_PROBES_MIN;
	return pool_init(&p->probes.conns, sizeof(struct proxy_probe), n);
}

// The control thread may have freed its part already.
void proxy_probes_abort(struct proxy *p)
{
	for (struct list_link *l; p->probes.live.next && (l = list_first(&p->probes.live));) {
		struct proxy_probe *c = CONTAINER_OF(l, struct proxy_probe, link);
		c->of = NULL;
		cut(c);
	}
}

void proxy_probes_fini(struct proxy *p)
{
	pool_fini(&p->probes.conns);
}
