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
	*c = (struct proxy_conn){.proxy = p, .ops = ops, .home = home};
}

bool proxy_conn_start(struct proxy_conn *c, struct tcp_conn *tcp, enum h2_role role,
	const struct h2_events *events)
{
	struct buf *out = tcp_conn_sendq(tcp);
	c->out_limit = UINT32_MAX;
	if (c->ops->stops_reading)
		c->out_limit = (uint32_t)(out->len + tcp_conn_send_room(tcp)) + OUT_SLACK;
	c->h2 = h2_conn_new(c->proxy->h2, role, events, out, c);
	if (!c->h2)
		return false;
	c->tcp = tcp;
	const struct proxy_conf *conf = &c->proxy->conf;
	bool to_backend = role == H2_CLIENT;
	proxy_keepalive_start(c, to_backend ? &conf->backend_silence : &conf->client_silence);
	proxy_conn_touch(c);
	return true;
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

void proxy_conn_resume(struct proxy_conn *c)
{
	c->fed_short = false;
	tcp_conn_resume(c->tcp);
}

static bool waits_for_its_turn(struct proxy_conn *c)
{
	return c->ops->on_fed_short && c->ops->on_fed_short(c);
}

size_t proxy_conn_on_data(struct tcp_conn *tcp, void *user, const uint8_t *data, size_t len)
{
	struct proxy_conn *c = user;
	enum h2_error code;
	if (!c->h2 || h2_conn_failed(c->h2, &code))
		return len;
	size_t n = 0;
	if (tcp_conn_sendq(tcp)->len <= c->out_limit || tcp_conn_unsent(tcp) <= c->out_limit)
		n = h2_conn_feed(c->h2, data, len);
	c->fed_short = n < len;
	// Nothing is on its way out whose acknowledgement would wake us: the next turn does.
	if (c->fed_short && !waits_for_its_turn(c) && !tcp_conn_sendq(tcp)->len)
		tcp_conn_resume(tcp);
	proxy_conn_touch(c);
	return n;
}

bool proxy_conn_stalls(struct proxy_conn *c)
{
	const uint64_t least = PROXY_PATIENCE_NS / NS_PER_SECOND * PROXY_LEAST_RATE;
	size_t left = tcp_conn_sendq(c->tcp)->len;
	uint64_t written = c->h2 ? h2_conn_written(c->h2) : c->written;
	uint64_t now_taken = written - left, taken = now_taken - c->taken_mark;
	bool stalls = now_taken < c->written_mark && taken < least && taken < left;
	c->written_mark = written;
	c->taken_mark = now_taken;
	return stalls;
}

static void linger_fire(struct twheel_timer *t)
{
	struct proxy_conn *c = proxy_conn_of_timer(t);
	bool look = ++c->n_lingered == PROXY_PATIENCE_NS / LINGER_NS;
	if (look)
		c->n_lingered = 0;
	if (!tcp_conn_sendq(c->tcp)->len || (look && proxy_conn_stalls(c)))
		proxy_conn_gone(c, H2_NO_ERROR, true);
	else
		proxy_conn_arm(c, linger_fire, LINGER_NS);
}

void proxy_conn_on_send_room(struct tcp_conn *tcp, void *user)
{
	struct proxy_conn *c = user;
	if (!c->h2)
		return;
	// Whoever had room for all there was has nothing to write now.
	if (c->more || c->fed_short)
		proxy_conn_touch(c);
	c->ops->on_send_room(c);
	if (c->fed_short)
		proxy_conn_resume(c);
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

void proxy_conn_over(struct proxy_conn *c, enum h2_error code)
{
	DCHECK(c->tcp);
	end_h2(c, code);
	tcp_conn_push(c->tcp);
	tcp_conn_shutdown(c->tcp);
	list_insert(&c->proxy->lingering, &c->lingering);
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
	c->tcp = NULL;
	list_remove(&c->lingering);
	twheel_cancel(c->proxy->wheel, &c->timer);
	proxy_conn_touch(c);
}

void proxy_conn_abort_lingering(struct proxy *p)
{
	for (struct list_link *l; (l = list_first(&p->lingering));)
		proxy_conn_gone(CONTAINER_OF(l, struct proxy_conn, lingering), H2_NO_ERROR, true);
}

static void flush(struct proxy_conn *c)
{
	if (!c->tcp) {
		pool_put(c->home, c);
		return;
	}
	if (!c->h2)
		return;
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
