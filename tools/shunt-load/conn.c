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
	conn_touch(c);
}

void conn_abort(struct conn *c, const char *why)
{
	tcp_conn_abort(c->tcp);
	lose(c, why);
}

static bool start_h2(struct conn *c)
{
	c->h2 = h2_conn_new(c->side->h2, c->ops->role, c->ops->h2, tcp_conn_sendq(c->tcp), c);
	return c->h2;
}

static void on_established(struct tcp_conn *tcp, void *user)
{
	struct conn *c = user;
	if (!start_h2(c)) {
		conn_abort(c, "out of memory");
		return;
	}
	conn_touch(c);
	c->ops->up(c);
}

static size_t on_data(struct tcp_conn *tcp, void *user, const uint8_t *data, size_t len)
{
	struct conn *c = user;
	enum h2_error code;
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
	if (!start_h2(c))
		return NULL;
	conn_touch(c);
	return &tcp_ops;
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
	h2_conn_pump(c->h2, tcp_conn_send_room(c->tcp));
	tcp_conn_push(c->tcp);
	if (h2_conn_failed(c->h2, &code))
		conn_close(c, "HTTP/2 error");
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
