// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/conn.h"

#include "dataplane/proxy/state.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"

#define LINGER_NS NS_PER_SECOND // for the peer's FIN
// HEADERS, RST_STREAM and the like are written whatever the room: beyond TCP's limit and this, the
// peer must read before we go on.
#define OUT_SLACK (32u << 10)

void proxy_conn_init(
	struct proxy_conn *c, struct proxy *p, const struct proxy_conn_ops *ops, struct pool *home)
{
	*c = (struct proxy_conn){.proxy = p, .ops = ops, .home = home, .began_ns = p->now_ns};
}

static size_t on_plain(void *user, const uint8_t *p, size_t len)
{
	const struct proxy_conn *c = user;
	enum h2_error code;
	return !c->h2 || h2_conn_failed(c->h2, &code) ? len : h2_conn_feed(c->h2, p, len);
}

static void on_change(void *user)
{
	struct proxy_conn *c = user;
	proxy_conn_touch(c);
	if (!c->h2)
		return;
	if (c->secure->fresh)
		c->ops->on_secured(c); // before its first bytes
	c->secure->fresh = false;
	proxy_conn_resume(c);
}

static const struct proxy_secure_events secure_events = {
	.on_plain = on_plain, .on_change = on_change};

bool proxy_conn_secure(struct proxy_conn *c, enum tls_role role, uint32_t credential,
	const char *server_name, uint64_t source)
{
	struct proxy_secure_conf conf = {.role = role,
		.credential = credential,
		.server_name = server_name,
		.source = source,
		.events = &secure_events,
		.user = c};
	c->secure = proxy_secure_new(c->proxy, &conf);
	return c->secure != NULL;
}

void proxy_conn_drop(struct proxy_conn *c)
{
	if (c->secure)
		proxy_secure_free(c->secure);
	c->secure = NULL;
}

// Inline where it is called: each connection comes by here, and knows its role.
inline bool proxy_conn_start(struct proxy_conn *c, struct tcp_conn *tcp, enum h2_role role,
	const struct h2_events *events, const struct lb_silence *silence)
{
	struct buf *out = tcp_conn_sendq(tcp);
	c->out_limit = UINT32_MAX;
	if (c->ops->is_client)
		c->out_limit = (uint32_t)(out->len + tcp_conn_send_room(tcp)) + OUT_SLACK;
	if (c->secure)
		out = &c->secure->plain;
	c->h2 = h2_conn_new(c->proxy->h2, role, events, out, c);
	if (!c->h2)
		return false;
	c->tcp = tcp;
	if (c->secure)
		proxy_secure_begin(c->secure, tcp);
	proxy_keepalive_start(c, silence);
	proxy_conn_touch(c);
	return true;
}

void proxy_conn_begin_secure(struct proxy_conn *c)
{
	h2_conn_set_out(c->h2, &c->secure->plain);
	proxy_secure_begin(c->secure, c->tcp);
}

const struct gcra_limit proxy_conn_reset_limit = GCRA_LIMIT(100, 3);

void proxy_conn_charge_reset(struct proxy_conn *c)
{
	gcra_charge(&c->resets, &proxy_conn_reset_limit, c->proxy->now_ns);
}

void proxy_conn_touch(struct proxy_conn *c)
{
	struct proxy *p = c->proxy;
	if (c->dirty)
		return;
	c->dirty = true;
	STAILQ_INSERT_TAIL(&p->dirty, c, dirty_next);
}

void proxy_conn_arm(struct proxy_conn *c, void (*fire)(struct twheel_timer *), uint64_t delay_ns)
{
	struct twheel *w = c->proxy->wheel;
	twheel_cancel(w, &c->timer);
	c->timer.fire = fire;
	twheel_arm(w, &c->timer, twheel_now(w) + delay_ns);
}

struct proxy_conn *proxy_conn_of_timer(struct twheel_timer *t)
{
	return CONTAINER_OF(t, struct proxy_conn, timer);
}

static bool waits_for_its_turn(struct proxy_conn *c)
{
	return c->ops->on_fed_short && c->ops->on_fed_short(c);
}

// Nothing is on its way out whose acknowledgement would wake us: the next turn does.
static void wait_for_room(struct proxy_conn *c)
{
	if (waits_for_its_turn(c) || tcp_conn_sendq(c->tcp)->len)
		return;
	if (c->secure)
		proxy_secure_again(c->secure);
	else
		tcp_conn_resume(c->tcp);
}

void proxy_conn_resume(struct proxy_conn *c)
{
	if (c->secure) // what is fed may have answers, or an end
		proxy_conn_touch(c);
	c->fed_short = c->secure && c->h2 && !proxy_secure_feed_back(c->secure);
	if (c->fed_short)
		wait_for_room(c);
	else
		tcp_conn_resume(c->tcp);
}

// Of a handshake, and of records whose chunks run short, it is TLS that says when to resume.
static __attribute__((noinline)) size_t feed_secure(
	struct proxy_conn *c, const uint8_t *data, size_t len)
{
	struct proxy_secure *s = c->secure;
	size_t n = 0;
	if (proxy_conn_left(c) <= c->out_limit || proxy_conn_unsent(c) <= c->out_limit)
		n = proxy_secure_feed(s, data, len);
	c->fed_short = n < len;
	if (c->fed_short && s->tls && !s->owed)
		wait_for_room(c);
	if (!proxy_secure_is_shaking(s)) // else there is nothing to write before its thread answers
		proxy_conn_touch(c);
	return n;
}

size_t proxy_conn_on_data(struct tcp_conn *tcp, void *user, const uint8_t *data, size_t len)
{
	struct proxy_conn *c = user;
	enum h2_error code;
	if (!c->h2 || h2_conn_failed(c->h2, &code))
		return len;
	if (c->secure)
		return feed_secure(c, data, len);
	size_t n = 0;
	if (tcp_conn_sendq(tcp)->len <= c->out_limit || tcp_conn_unsent(tcp) <= c->out_limit)
		n = h2_conn_feed(c->h2, data, len);
	c->fed_short = n < len;
	if (c->fed_short)
		wait_for_room(c);
	proxy_conn_touch(c);
	return n;
}

bool proxy_conn_stalls(struct proxy_conn *c)
{
	const uint64_t least = PROXY_PATIENCE_NS / NS_PER_SECOND * PROXY_LEAST_RATE;
	size_t left = proxy_conn_left(c);
	uint64_t now_taken = proxy_conn_taken(c), taken = now_taken - c->taken_mark;
	bool stalls = now_taken < c->written_mark && taken < least && taken < left;
	c->written_mark = now_taken + left;
	c->taken_mark = now_taken;
	return stalls;
}

// Reset is only who has not taken all that was said.
static void let_go(struct proxy_conn *c)
{
	bool ends = c->proxy->freeing;
	bool took_all = ends ? tcp_conn_forget(c->tcp) : tcp_conn_let_go(c->tcp);
	proxy_count(c->proxy, took_all ? PROXY_ends_unanswered : PROXY_ends_untaken);
	proxy_conn_gone(c, H2_NO_ERROR, false);
}

static void linger_fire(struct twheel_timer *t)
{
	struct proxy_conn *c = proxy_conn_of_timer(t);
	bool look = ++c->n_lingered == PROXY_PATIENCE_NS / LINGER_NS;
	if (look)
		c->n_lingered = 0;
	if (!proxy_conn_left(c) || (look && proxy_conn_stalls(c)))
		let_go(c);
	else
		proxy_conn_arm(c, linger_fire, LINGER_NS);
}

void proxy_conn_on_send_room(struct tcp_conn *tcp, void *user)
{
	struct proxy_conn *c = user;
	if (!c->h2) {
		if (c->secure)
			proxy_conn_touch(c); // what waits before close_notify
		return;
	}
	// Whoever had room for all there was has nothing to write now.
	if (c->more || c->fed_short)
		proxy_conn_touch(c);
	c->ops->on_send_room(c);
	if (c->fed_short)
		proxy_conn_resume(c);
}

// Whether the streams are whole HTTP/2 knows by itself: a FIN without close_notify is counted.
void proxy_conn_on_eof(struct tcp_conn *tcp, void *user)
{
	struct proxy_conn *c = user;
	if (!c->h2 || (c->secure && proxy_secure_fin(c->secure)))
		return;
	if (c->secure && c->secure->tls)
		tls_conn_ended(c->secure->tls);
	c->ops->on_eof(c);
}

// Out of c before the streams hear of it: they must find no connection to write to.
static void end_h2(struct proxy_conn *c, enum h2_error code)
{
	struct h2_conn *h2 = c->h2;
	c->h2 = NULL;
	if (!h2)
		return;
	proxy_keepalive_stop(c);
	c->written = h2_conn_written(h2);
	h2_conn_free(h2, code);
}

static void send_fin(struct proxy_conn *c)
{
	bool is_all = !c->secure || proxy_secure_close(c->secure);
	tcp_conn_push(c->tcp);
	if (is_all)
		tcp_conn_shutdown(c->tcp);
}

void proxy_conn_over(struct proxy_conn *c, enum h2_error code)
{
	DCHECK(c->tcp);
	end_h2(c, code);
	send_fin(c);
	list_insert(c->ops->is_client ? &c->proxy->lingering_clients : &c->proxy->lingering,
		&c->lingering);
	proxy_conn_stalls(c);
	proxy_conn_arm(c, linger_fire, LINGER_NS);
	if (c->fed_short)
		proxy_conn_resume(c); // dropped, so that the peer's FIN is reached
}

void proxy_conn_gone(struct proxy_conn *c, enum h2_error code, bool abort)
{
	struct tcp_conn *tcp = c->tcp;
	end_h2(c, code);
	if (abort && tcp)
		tcp_conn_abort(tcp);
	proxy_conn_drop(c);
	c->tcp = NULL;
	list_remove(&c->lingering);
	twheel_cancel(c->proxy->wheel, &c->timer);
	proxy_conn_touch(c);
}

static void let_go_all(struct list_link *lingering)
{
	for (struct list_link *l; (l = list_first(lingering));)
		let_go(CONTAINER_OF(l, struct proxy_conn, lingering));
}

void proxy_conn_end_lingering(struct proxy *p)
{
	let_go_all(&p->lingering_clients);
	let_go_all(&p->lingering);
}

void proxy_conn_pump(struct proxy_conn *c)
{
	c->more = c->secure ? proxy_secure_pump(c->secure, c->h2)
	                    : h2_conn_pump(c->h2, tcp_conn_send_room(c->tcp));
	tcp_conn_push(c->tcp);
}

bool proxy_conn_never_sent(const struct proxy_conn *c, uint32_t nth)
{
	if (!c->secure)
		return (int32_t)(nth + c->n_before - tcp_conn_n_sent(c->tcp)) >= 0;
	uint64_t written = c->h2 ? h2_conn_written(c->h2) : c->written;
	return (int32_t)(nth - (uint32_t)(written - c->secure->plain.len)) >= 0;
}

// The peer sends no more: its close_notify came, or the FIN that waited for what it said before.
static bool has_ended(const struct proxy_conn *c)
{
	const struct proxy_secure *s = c->secure;
	enum h2_error code;
	return (s->eof || proxy_secure_is_cut(s)) && !s->broken && !h2_conn_failed(c->h2, &code);
}

static __attribute__((noinline)) void flush_secure(struct proxy_conn *c)
{
	struct proxy_secure *s = c->secure;
	if (!c->h2) {
		send_fin(c);
		return;
	}
	if (has_ended(c)) { // nothing is sealed any more that nobody answers (RT-11)
		tls_conn_ended(s->tls);
		c->ops->on_eof(c);
		return;
	}
	proxy_conn_pump(c);
	if (s->broken) {
		c->ops->on_broken(c, proxy_secure_why(s), s->by_peer);
		return;
	}
	if (s->tls && tls_conn_is_worn(s->tls))
		c->ops->on_worn(c);
	c->ops->on_flushed(c);
}

// One that is over, or has TLS.
static __attribute__((noinline)) void flush_other(struct proxy_conn *c)
{
	if (!c->tcp)
		pool_put(c->home, c);
	else if (c->secure)
		flush_secure(c);
}

// proxy_conn_pump() without its choice: each request comes by here.
static void flush(struct proxy_conn *c)
{
	if (!c->h2 || c->secure) {
		flush_other(c);
		return;
	}
	c->more = h2_conn_pump(c->h2, tcp_conn_send_room(c->tcp));
	tcp_conn_push(c->tcp);
	c->ops->on_flushed(c);
}

bool proxy_conn_flush_all(struct proxy *p)
{
	struct proxy_conn *c;
	if (STAILQ_EMPTY(&p->dirty))
		return false;
	while ((c = STAILQ_FIRST(&p->dirty))) {
		STAILQ_REMOVE_HEAD(&p->dirty, dirty_next);
		c->dirty = false;
		flush(c);
	}
	return true;
}
