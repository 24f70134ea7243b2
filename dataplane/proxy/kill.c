// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/kill.h"

#include "dataplane/proxy/backend.h"
#include "dataplane/proxy/client.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "dataplane/proxy/upstream.h"

static struct proxy_reply reply(void)
{
	return proxy_reply_for(LB_CAUSE_KILLED, STR("an operator ended the request"));
}

void proxy_kill_request(struct proxy_request *r)
{
	const struct proxy_reply why = reply();
	proxy_request_cut_short(r, &why, H2_CANCEL);
}

static void kill_streams(struct h2_conn *h2)
{
	const struct proxy_reply why = reply();
	proxy_request_cut_all(h2, &why, H2_CANCEL);
}

static bool is_begun(const struct proxy_client *c)
{
	bool is_shaking = c->conn.secure && proxy_secure_is_shaking(c->conn.secure);
	return c->conn.h2 && !c->header && !is_shaking;
}

void proxy_kill_client(struct proxy_client *c)
{
	proxy_count(c->conn.proxy, PROXY_clients_killed);
	if (!is_begun(c)) {
		proxy_client_abort(c);
		return;
	}
	kill_streams(c->conn.h2);
	proxy_client_close(c, H2_NO_ERROR);
}

void proxy_kill_upstream(struct proxy_upstream *u)
{
	struct proxy_backend *b = u->backend;
	bool was_ready = u->state == PROXY_UPSTREAM_READY;
	proxy_count(u->conn.proxy, PROXY_upstreams_killed);
	if (!b) {
		proxy_upstream_abort(u);
		return;
	}
	u->spent = true; // its backend is not to blame
	// Out of use first: none of what waits may take the streams that become free.
	proxy_upstream_retire(u, "ended by an operator");
	if (was_ready)
		proxy_backend_replace(b);
	if (u->conn.h2)
		kill_streams(u->conn.h2);
}
