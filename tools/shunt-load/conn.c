// SPDX-License-Identifier: Apache-2.0
#include "tools/shunt-load/conn.h"

#include "lb/base/container_of.h"
#include "lb/base/time.h"

#define LINGER_NS NS_PER_SECOND

void conn_touch(struct conn *c)
{
	struct side *s = c->side;
	if (c->dirty)
		return;
	c->dirty = true;
	STAILQ_INSERT_TAIL(&s->dirty, c, dirty_next);
}

// Out of c before its requests hear of it: they must find no session to write to.
static void end_session(struct conn *c, const char *why)
{
	void *session = c->session;
	c->session = NULL;
	if (session)
		c->side->protocol->end(session);
	if (c->is_over)
		return;
	c->is_over = true;
	c->ops->over(c, why);
}

static void linger_fire(struct twheel_timer *t)
{
	struct conn *c = CONTAINER_OF(t, struct conn, linger);
	conn_abort(c, "the peer does not close");
}

void conn_close(struct conn *c, const char *why)
{
	end_session(c, why);
	if (c->secure.tls) {
		tls_conn_shutdown(c->secure.tls);
		secure_seal(&c->secure, c->tcp);
		tcp_conn_push(c->tcp);
	}
	tcp_conn_shutdown(c->tcp);
	if (!twheel_armed(&c->linger)) {
		c->linger.fire = linger_fire;
		twheel_arm(c->side->wheel, &c->linger, twheel_now(c->side->wheel) + LINGER_NS);
	}
	if (c->fed_short) {
		c->fed_short = false;
		tcp_conn_resume(c->tcp); // dropped, so that the peer's FIN is reached
	}
}

static void lose(struct conn *c, const char *why)
{
	c->tcp = NULL;
	twheel_cancel(c->side->wheel, &c->linger);
	end_session(c, why);
	secure_end(&c->secure);
	conn_touch(c);
}

void conn_abort(struct conn *c, const char *why)
{
	tcp_conn_abort(c->tcp);
	lose(c, why);
}

static bool is_secure(const struct conn *c)
{
	return c->side->secure.context != NULL;
}

static bool start_session(struct conn *c)
{
	struct buf *out = is_secure(c) ? &c->secure.plain : tcp_conn_sendq(c->tcp);
	c->session = c->side->protocol->begin(c, out);
	return c->session;
}

// The session, or the handshake that goes before it.
static bool begin(struct conn *c)
{
	return is_secure(c) ? secure_begin(&c->secure, &c->side->secure, c->tcp) : start_session(c);
}

static void on_established(struct tcp_conn *tcp, void *user)
{
	struct conn *c = user;
	if (!begin(c)) {
		conn_abort(c, "out of memory");
		return;
	}
	conn_touch(c);
	if (c->session)
		c->ops->up(c);
}

// What nobody reads any more is dropped.
static size_t feed(struct conn *c, const uint8_t *data, size_t len)
{
	const struct conn_protocol *p = c->side->protocol;
	return !c->session || p->failed(c->session) ? len : p->feed(c->session, data, len);
}

static size_t on_plain(struct tls_conn *tls, void *user, const uint8_t *data, size_t len)
{
	return feed(user, data, len);
}

// FIN follows, which ends the connection.
static void on_tls_eof(struct tls_conn *tls, void *user)
{
}

static const struct tls_events tls_events = {.on_plain = on_plain, .on_eof = on_tls_eof};

static void shake(struct conn *c, const uint8_t *data, size_t len)
{
	const char *why;
	enum secure_state is = secure_shake(&c->secure, c->tcp, data, len, &tls_events, c, &why);
	if (is == SECURE_SHAKING)
		return;
	if (is == SECURE_BROKEN || !start_session(c)) {
		conn_close(c, why);
		return;
	}
	if (c->ops->up)
		c->ops->up(c);
	if (!secure_feed_rest(&c->secure))
		conn_close(c, "out of memory");
	conn_touch(c);
}

static size_t feed_secure(struct conn *c, const uint8_t *data, size_t len)
{
	if (!c->secure.tls) {
		if (!c->is_over)
			shake(c, data, len);
		return len;
	}
	size_t n = tls_conn_feed(c->secure.tls, data, len);
	c->fed_short = n < len;
	conn_touch(c);
	return n;
}

static size_t on_data(struct tcp_conn *tcp, void *user, const uint8_t *data, size_t len)
{
	struct conn *c = user;
	if (is_secure(c))
		return feed_secure(c, data, len);
	size_t n = feed(c, data, len);
	c->fed_short = n < len;
	conn_touch(c);
	return n;
}

static void on_send_room(struct tcp_conn *tcp, void *user)
{
	struct conn *c = user;
	if (!c->session)
		return;
	conn_touch(c);
	if (c->fed_short) {
		c->fed_short = false;
		tcp_conn_resume(tcp);
	}
}

static void on_eof(struct tcp_conn *tcp, void *user)
{
	struct conn *c = user;
	if (c->session && c->side->protocol->eof)
		c->side->protocol->eof(c->session);
	conn_close(c, "closed by the peer");
}

static void on_closed(struct tcp_conn *tcp, void *user, enum tcp_close_reason reason)
{
	lose(user, tcp_close_reason_name(reason));
}

static const struct tcp_conn_ops tcp_ops = {
	on_established, on_data, on_send_room, on_eof, on_closed};

bool conn_connect(struct conn *c, struct side *s, const struct conn_ops *ops,
	const struct tcp_flow *flow, uint64_t timeout_ns)
{
	*c = (struct conn){.side = s, .ops = ops};
	c->tcp = tcp_connect(s->tcp, flow, timeout_ns, &tcp_ops, c);
	return c->tcp;
}

const struct tcp_conn_ops *conn_accept(
	struct conn *c, struct side *s, const struct conn_ops *ops, struct tcp_conn *tcp)
{
	*c = (struct conn){.side = s, .ops = ops, .tcp = tcp};
	if (!begin(c)) {
		secure_end(&c->secure);
		return NULL;
	}
	conn_touch(c);
	return &tcp_ops;
}

static void pump_secure(struct conn *c)
{
	bool more = true;
	do {
		size_t room = secure_plain_room(&c->secure, c->tcp);
		more = c->side->protocol->pump(c->session, room);
	} while (secure_seal(&c->secure, c->tcp) && more && tcp_conn_send_room(c->tcp));
}

void conn_pump(struct conn *c)
{
	if (is_secure(c))
		pump_secure(c);
	else
		c->side->protocol->pump(c->session, tcp_conn_send_room(c->tcp));
	tcp_conn_push(c->tcp);
}

uint32_t conn_n_queued(const struct conn *c)
{
	return tcp_conn_n_sent(c->tcp) + (uint32_t)tcp_conn_unsent(c->tcp);
}

uint32_t conn_n_acked(const struct conn *c)
{
	return conn_n_queued(c) - (uint32_t)tcp_conn_sendq(c->tcp)->len;
}

static void pump(struct conn *c)
{
	if (!c->tcp) {
		c->ops->gone(c);
		return;
	}
	if (!c->session)
		return;
	conn_pump(c);
	const char *why = c->side->protocol->failed(c->session);
	if (why)
		conn_close(c, why);
	else if (c->secure.tls && tls_conn_failed(c->secure.tls, NULL, NULL))
		conn_close(c, "TLS error");
}

bool side_init(
	struct side *s, struct tlshs_context *tls, uint32_t max_conns, const uint64_t *now_ns)
{
	const struct secure_conf conf = {
		.context = tls, .alpn = str_from(s->protocol->alpn), .chunks = s->chunks};
	STAILQ_INIT(&s->dirty);
	s->secure = conf;
	return secure_conf_init(&s->secure, max_conns, now_ns);
}

void side_fini(struct side *s)
{
	side_pump(s);
	secure_conf_fini(&s->secure);
}

bool side_pump(struct side *s)
{
	struct conn *c;
	bool any = !STAILQ_EMPTY(&s->dirty);
	while ((c = STAILQ_FIRST(&s->dirty))) {
		STAILQ_REMOVE_HEAD(&s->dirty, dirty_next);
		c->dirty = false;
		pump(c);
	}
	return any;
}
