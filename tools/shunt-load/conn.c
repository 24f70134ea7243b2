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

// Out of c before the streams hear of it: they must find no connection to write to.
static void end_h2(struct conn *c, enum h2_error code, const char *why)
{
	struct h2_conn *h2 = c->h2;
	c->h2 = NULL;
	if (h2)
		h2_conn_free(h2, code);
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
	end_h2(c, H2_CANCEL, why);
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
	end_h2(c, H2_INTERNAL_ERROR, why);
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

static bool start_h2(struct conn *c)
{
	struct buf *out = is_secure(c) ? &c->secure.plain : tcp_conn_sendq(c->tcp);
	c->h2 = h2_conn_new(c->side->h2, c->ops->role, c->ops->h2, out, c);
	return c->h2;
}

// HTTP/2, or the handshake that goes before it.
static bool begin(struct conn *c)
{
	return is_secure(c) ? secure_begin(&c->secure, &c->side->secure, c->tcp) : start_h2(c);
}

static void on_established(struct tcp_conn *tcp, void *user)
{
	struct conn *c = user;
	if (!begin(c)) {
		conn_abort(c, "out of memory");
		return;
	}
	conn_touch(c);
	if (c->h2)
		c->ops->up(c);
}

static size_t on_plain(struct tls_conn *tls, void *user, const uint8_t *data, size_t len)
{
	struct conn *c = user;
	enum h2_error code;
	return !c->h2 || h2_conn_failed(c->h2, &code) ? len : h2_conn_feed(c->h2, data, len);
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
	if (is == SECURE_BROKEN || !start_h2(c)) {
		conn_close(c, why);
		return;
	}
	if (c->ops->role == H2_CLIENT)
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
	enum h2_error code;
	if (is_secure(c))
		return feed_secure(c, data, len);
	if (!c->h2 || h2_conn_failed(c->h2, &code))
		return len;
	size_t n = h2_conn_feed(c->h2, data, len);
	c->fed_short = n < len;
	conn_touch(c);
	return n;
}

static void on_send_room(struct tcp_conn *tcp, void *user)
{
	struct conn *c = user;
	if (!c->h2)
		return;
	conn_touch(c);
	if (c->fed_short) {
		c->fed_short = false;
		tcp_conn_resume(tcp);
	}
}

static void on_eof(struct tcp_conn *tcp, void *user)
{
	conn_close(user, "closed by the peer");
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
		more = h2_conn_pump(c->h2, secure_plain_room(&c->secure, c->tcp));
	} while (secure_seal(&c->secure, c->tcp) && more && tcp_conn_send_room(c->tcp));
}

void conn_pump(struct conn *c)
{
	if (is_secure(c))
		pump_secure(c);
	else
		h2_conn_pump(c->h2, tcp_conn_send_room(c->tcp));
	tcp_conn_push(c->tcp);
}

static void pump(struct conn *c)
{
	enum h2_error code;
	if (!c->tcp) {
		c->ops->gone(c);
		return;
	}
	if (!c->h2)
		return;
	conn_pump(c);
	if (h2_conn_failed(c->h2, &code))
		conn_close(c, "HTTP/2 error");
	else if (c->secure.tls && tls_conn_failed(c->secure.tls, NULL, NULL))
		conn_close(c, "TLS error");
}

void side_init(struct side *s)
{
	STAILQ_INIT(&s->dirty);
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
