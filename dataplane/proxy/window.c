// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/window.h"

#include "dataplane/proxy/client_buffer.h"
#include "dataplane/proxy/conn.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"

uint64_t proxy_window_round_trip_ns(const struct h2_conn *h2)
{
	const struct proxy_conn *c = h2_conn_user(h2);
	return tcp_conn_round_trip_ns(c->tcp);
}

// What a window becomes that has this many bytes now.
static uint32_t next(const struct proxy *p, uint32_t now, uint32_t first, bool is_short)
{
	return buf_allowed(p->chunks, is_short ? 2 * now : now, first, p->conf.window_max);
}

static void set_conn(struct h2_conn *h2, bool is_short)
{
	const struct proxy_conn *c = h2_conn_user(h2);
	uint32_t now = h2_conn_window(h2);
	uint32_t wanted = next(c->proxy, now, h2_conn_first_window(h2), is_short);
	if (wanted > now)
		proxy_count(c->proxy, PROXY_windows_grown);
	h2_conn_set_window(h2, wanted);
}

// No stream needs more than the connection has.
void proxy_window_of_client(struct h2_conn *h2, struct h2_stream *s, bool is_short)
{
	const struct proxy_conn *c = h2_conn_user(h2);
	const struct proxy *p = c->proxy;
	if (!s) {
		set_conn(h2, is_short);
		return;
	}
	uint32_t now = h2_stream_window(s), most = h2_conn_window(h2);
	uint32_t wanted = next(p, now, p->client_stream_window, is_short);
	wanted = wanted < most ? wanted : most;
	if (wanted > now)
		proxy_count(c->proxy, PROXY_windows_grown);
	uint32_t first = p->client_stream_window;
	h2_stream_set_ahead(s, wanted > first ? wanted - first : 0);
}

void proxy_window_of_upstream(struct h2_conn *h2, struct h2_stream *s, bool is_short)
{
	struct proxy_request *r = s ? h2_stream_user(s) : NULL;
	if (!s)
		set_conn(h2, is_short);
	else if (r)
		proxy_client_buffer_earn(r, is_short);
}
