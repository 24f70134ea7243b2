// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/through.h"

#include "dataplane/proxy/close_reason.h"
#include "dataplane/proxy/conn.h"
#include "dataplane/proxy/state.h"

#include <stdio.h>

#define REQUEST_MAX (2 * IP_PORT_TEXT_MAX + 40)
#define WHY_MAX 48

static void refuse(
	struct proxy_through *t, enum proxy_counter counter, const char *what, bool has_tcp)
{
	char why[WHY_MAX];
	snprintf(why, sizeof(why), "proxy: %s", what);
	proxy_count(t->conn->proxy, counter);
	t->conf.on_refused(t->conn, why, has_tcp);
}

// HC-08: what gRPC sends, but for its version and User-Agent.
static void on_established(struct tcp_conn *tcp, void *user)
{
	struct proxy_through *t = user;
	struct proxy *p = t->conn->proxy;
	char at[IP_PORT_TEXT_MAX], request[REQUEST_MAX];
	ip_port_print(&t->target, at);
	int n = snprintf(
		request, sizeof(request), "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", at, at);
	if (!buf_append(tcp_conn_sendq(tcp), p->chunks, request, (size_t)n)) {
		t->conf.on_refused(t->conn, "out of memory", true);
		return;
	}
	t->is_asked = true;
	t->conn->n_before = (uint16_t)n;
	tcp_conn_push(tcp);
}

static void answered(struct proxy_through *t, struct tcp_conn *tcp)
{
	char what[16];
	switch ((enum proxy_connect_state)t->answer.state) {
	case PROXY_CONNECT_MORE:
		break;
	case PROXY_CONNECT_OPEN:
		t->is_open = true;
		proxy_count(t->conn->proxy, PROXY_through_opened);
		t->conf.behind->on_established(tcp, t->conn);
		break;
	case PROXY_CONNECT_REFUSED:
		snprintf(what, sizeof(what), "status %u", t->answer.status);
		refuse(t, PROXY_through_refused, what, true);
		break;
	case PROXY_CONNECT_MALFORMED:
		refuse(t, PROXY_through_malformed, "malformed answer", true);
		break;
	case PROXY_CONNECT_TOO_LONG:
		refuse(t, PROXY_through_too_long, "answer too long", true);
		break;
	}
}

// HC-12: what follows the answer comes from behind the proxy already. on_established() may have
// given the connection up.
static size_t on_data(struct tcp_conn *tcp, void *user, const uint8_t *data, size_t len)
{
	struct proxy_through *t = user;
	size_t used = 0;
	if (!t->is_open) {
		proxy_connect_answer_feed(&t->answer, data, len, &used);
		answered(t, tcp);
		if (!t->is_open || !t->conn->tcp || used == len)
			return len;
	}
	return used + t->conf.behind->on_data(tcp, t->conn, data + used, len - used);
}

static void on_send_room(struct tcp_conn *tcp, void *user)
{
	const struct proxy_through *t = user;
	if (t->is_open)
		t->conf.behind->on_send_room(tcp, t->conn);
}

static void on_eof(struct tcp_conn *tcp, void *user)
{
	struct proxy_through *t = user;
	if (t->is_open)
		t->conf.behind->on_eof(tcp, t->conn);
	else
		refuse(t, PROXY_through_closed, proxy_close_reason(TCP_CLOSE_DONE), true);
}

static void on_closed(struct tcp_conn *tcp, void *user, enum tcp_close_reason reason)
{
	struct proxy_through *t = user;
	if (t->is_open)
		t->conf.behind->on_closed(tcp, t->conn, reason);
	else
		refuse(t, t->is_asked ? PROXY_through_closed : PROXY_through_unreachable,
			proxy_close_reason(reason), false);
}

static void on_unanswered(struct tcp_conn *tcp, void *user)
{
	const struct proxy_through *t = user;
	if (t->is_open && t->conf.behind->on_unanswered)
		t->conf.behind->on_unanswered(tcp, t->conn);
}

static const struct tcp_conn_ops ops = {.on_established = on_established,
	.on_data = on_data,
	.on_send_room = on_send_room,
	.on_eof = on_eof,
	.on_closed = on_closed,
	.on_unanswered = on_unanswered};

struct tcp_conn *proxy_through_connect(struct proxy_through *t, struct proxy_conn *c,
	const struct proxy_through_conf *conf, const struct tcp_flow *to_proxy, uint64_t timeout_ns)
{
	*t = (struct proxy_through){.conn = c, .conf = *conf, .target = *conf->target};
	return tcp_connect(c->proxy->tcp, to_proxy, timeout_ns, &ops, t);
}

const char *proxy_through_time_out(const struct proxy_through *t)
{
	if (!t->conn || t->is_open)
		return NULL;
	proxy_count(t->conn->proxy, t->is_asked ? PROXY_through_late : PROXY_through_unreachable);
	return t->is_asked ? "proxy: no answer" : "proxy: connect timeout";
}
