// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/client_windows.h"

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/base/container_of.h"

#define LOOKS 10 // in PROXY_PATIENCE_NS, at streams that wait for windows

static void window_fire(struct twheel_timer *);

void proxy_client_windows_watch(struct proxy_client *c)
{
	struct twheel *w = c->conn.proxy->wheel;
	if (!h2_conn_look(c->conn.h2, PROXY_PATIENCE_NS, PROXY_LEAST_RATE))
		return;
	c->window_timer.fire = window_fire;
	twheel_arm(w, &c->window_timer, twheel_now(w) + PROXY_PATIENCE_NS / LOOKS);
}

static void reset_stalled(struct h2_stream *s)
{
	struct proxy_request *r = h2_stream_user(s);
	struct proxy_reply reply = proxy_reply_for(
		LB_CAUSE_TIMEOUT, STR("the client does not take what waits for it"));
	if (r)
		proxy_request_fail(r, &reply, H2_CANCEL);
	else
		h2_stream_reset(s, H2_CANCEL);
}

static void window_fire(struct twheel_timer *t)
{
	struct proxy_client *c = CONTAINER_OF(t, struct proxy_client, window_timer);
	struct proxy *p = c->conn.proxy;
	struct h2_stream *s;
	proxy_client_windows_watch(c);
	while ((s = h2_conn_stalled(c->conn.h2))) {
		proxy_count(p, PROXY_streams_stalled);
		reset_stalled(s);
		proxy_conn_touch(&c->conn);
	}
}
