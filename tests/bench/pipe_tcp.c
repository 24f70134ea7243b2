// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/pipe_tcp.h"

#include "lb/base/check.h"

static struct tcp_conn *new_conn(struct tcp_stack *s)
{
	CHECK(s->n_conns < PIPE_MAX_CONNS);
	struct tcp_conn *c = &s->conns[s->n_conns++];
	c->open = true;
	return c;
}

struct tcp_conn *pipe_connect(struct tcp_stack *s)
{
	struct tcp_conn *c = new_conn(s);
	c->ops = s->accept(s->accept_arg, c, &c->user);
	CHECK(c->ops);
	return c;
}

void pipe_reconnect(struct tcp_stack *s, struct tcp_conn *c)
{
	CHECK(!c->open);
	*c = (struct tcp_conn){.open = true};
	c->ops = s->accept(s->accept_arg, c, &c->user);
	CHECK(c->ops);
}

void pipe_close(struct tcp_stack *s, struct tcp_conn *c)
{
	CHECK(c->open);
	c->ops->on_eof(c, c->user);
	if (c->open) {
		CHECK(c->shut);
		c->open = false;
		c->ops->on_closed(c, c->user, TCP_CLOSE_DONE);
	}
	buf_clear(&c->sendq, s->chunks);
}

void pipe_establish(struct tcp_stack *s)
{
	for (uint32_t i = 0; i < s->n_conns; i++) {
		struct tcp_conn *c = &s->conns[i];
		if (!c->open || !c->connecting)
			continue;
		c->connecting = false;
		c->ops->on_established(c, c->user);
	}
}

void pipe_give(struct tcp_conn *c, const uint8_t *p, size_t len)
{
	CHECK(c->open && c->ops->on_data(c, c->user, p, len) == len);
}

size_t pipe_take(struct tcp_stack *s, struct tcp_conn *c, uint8_t *out, size_t size)
{
	size_t len = c->sendq.len;
	CHECK(len <= size);
	if (!len)
		return 0;
	buf_copy_out(&c->sendq, 0, out, len);
	buf_consume(&c->sendq, s->chunks, len);
	c->n_sent += (uint32_t)len;
	if (c->ops->on_send_room)
		c->ops->on_send_room(c, c->user);
	return len;
}

int tcp_listen(struct tcp_stack *s, const struct ip_addr *address, uint16_t port,
	tcp_accept_fn accept, void *arg)
{
	s->accept = accept;
	s->accept_arg = arg;
	return 0;
}

void tcp_unlisten(struct tcp_stack *s, const struct ip_addr *address, uint16_t port)
{
	s->accept = NULL;
}

struct tcp_conn *tcp_connect(struct tcp_stack *s, const struct tcp_flow *flow, uint64_t timeout_ns,
	const struct tcp_conn_ops *ops, void *user)
{
	struct tcp_conn *c = new_conn(s);
	c->flow = *flow;
	c->ops = ops;
	c->user = user;
	c->connecting = true;
	return c;
}

const struct tcp_flow *tcp_conn_flow(const struct tcp_conn *c)
{
	return &c->flow;
}

struct buf *tcp_conn_sendq(struct tcp_conn *c)
{
	return &c->sendq;
}

size_t tcp_conn_send_limit(const struct tcp_conn *c)
{
	return PIPE_SEND_LIMIT;
}

size_t tcp_conn_send_room(const struct tcp_conn *c)
{
	return c->sendq.len < PIPE_SEND_LIMIT ? PIPE_SEND_LIMIT - c->sendq.len : 0;
}

size_t tcp_conn_unsent(const struct tcp_conn *c)
{
	return c->sendq.len;
}

uint64_t tcp_conn_round_trip_ns(const struct tcp_conn *c)
{
	return NS_PER_MS;
}

uint32_t tcp_conn_n_sent(const struct tcp_conn *c)
{
	return c->n_sent;
}

void tcp_conn_push(struct tcp_conn *c)
{
}

size_t tcp_conn_unread(const struct tcp_conn *c)
{
	return 0;
}

void tcp_conn_resume(struct tcp_conn *c)
{
	// Whatever comes is taken whole: pipe_give() sees to it.
}

void tcp_conn_will_answer(struct tcp_conn *c)
{
}

void tcp_conn_shutdown(struct tcp_conn *c)
{
	c->shut = true;
}

void tcp_conn_abort(struct tcp_conn *c)
{
	c->open = false;
}

bool tcp_conn_let_go(struct tcp_conn *c)
{
	c->open = false;
	return true;
}

bool tcp_conn_forget(struct tcp_conn *c)
{
	return tcp_conn_let_go(c);
}

void tcp_stack_flush(struct tcp_stack *s)
{
}

void tcp_conn_set_user_timeout(struct tcp_conn *c, uint64_t timeout_ns)
{
}

uint32_t tcp_conn_n_received(const struct tcp_conn *c)
{
	return 0;
}

void tcp_conn_set_keepalive(struct tcp_conn *c, uint64_t idle_ns)
{
}

void tcp_stack_hush(struct tcp_stack *s)
{
	(void)s; // nobody says farewell
}
