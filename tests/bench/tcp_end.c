// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/tcp_end.h"

#include "lb/base/check.h"

static const uint8_t message[TCP_END_MAX_MESSAGE];

void tcp_end_send(struct tcp_end *e, struct tcp_conn *c, size_t len)
{
	CHECK(len <= sizeof(message) && buf_append(tcp_conn_sendq(c), e->chunks, message, len));
	tcp_conn_push(c);
}

static void on_established(struct tcp_conn *c, void *user)
{
	struct tcp_end *e = user;
	CHECK(e->n_conns < TCP_END_MAX_CONNS);
	e->conns[e->n_conns++] = c;
}

static size_t on_data(struct tcp_conn *c, void *user, const uint8_t *p, size_t len)
{
	struct tcp_end *e = user;
	e->n_received += len;
	if (!e->only_takes)
		tcp_end_send(e, c, len);
	return len;
}

static void on_send_room(struct tcp_conn *c, void *user)
{
}

static void on_eof(struct tcp_conn *c, void *user)
{
	tcp_conn_shutdown(c);
}

static void on_closed(struct tcp_conn *c, void *user, enum tcp_close_reason reason)
{
	struct tcp_end *e = user;
	CHECK(reason == TCP_CLOSE_DONE);
	e->n_closed++;
}

const struct tcp_conn_ops tcp_end_ops = {.on_established = on_established,
	.on_data = on_data,
	.on_send_room = on_send_room,
	.on_eof = on_eof,
	.on_closed = on_closed};

const struct tcp_conn_ops *tcp_end_accept(void *end, struct tcp_conn *c, void **ret_user)
{
	*ret_user = end;
	return &tcp_end_ops;
}
