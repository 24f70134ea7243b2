// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/rbac.h"

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/peer.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/route/peer_info.h"
#include "lb/route/rbac.h"
#include "lb/route/req.h"

#include <stdio.h>

// Who sent it; borrows from its connection.
static struct lb_peer_info peer_of(const struct proxy_request *r)
{
	const struct tcp_flow *flow = tcp_conn_flow(r->owner->conn.tcp);
	const struct proxy_secure *s = r->owner->conn.secure;
	struct lb_peer_info ret = {
		.direct = flow->remote,
		.source = r->owner->address,
		.remote = r->client_ip,
		.destination = {flow->local, flow->local_port},
		.is_tls = s != NULL,
	};
	if (s)
		ret.server_name = proxy_secure_asked(s);
	if (s && s->peer)
		proxy_peer_tell(s->peer, &ret);
	return ret;
}

static void count(struct proxy *p, const struct lb_rbac_verdict *v)
{
	if (v->rules.exists && !v->rules.is_log)
		proxy_count(p, v->rules.denies ? PROXY_rbac_denied : PROXY_rbac_allowed);
	if (v->shadow.exists && !v->shadow.is_log)
		proxy_count(
			p, v->shadow.denies ? PROXY_rbac_shadow_denied : PROXY_rbac_shadow_allowed);
	if ((v->rules.is_log && v->rules.policy.p) || (v->shadow.is_log && v->shadow.policy.p))
		proxy_count(p, PROXY_rbac_logged);
}

bool proxy_rbac_admits(struct proxy_request *r, const struct lb_filter *f, const struct lb_req *req,
	char text[PROXY_RBAC_TEXT_MAX])
{
	struct proxy *p = r->proxy;
	const struct lb_peer_info peer = peer_of(r);
	const struct lb_rbac_verdict v = lb_rbac_check(
		f->rbac.compiled, req, &peer, (char *)p->scratch.bytes, p->scratch.size);
	count(p, &v);
	if (!v.rules.denies)
		return true;
	const struct str policy = v.rules.policy;
	if (policy.p)
		snprintf(text, PROXY_RBAC_TEXT_MAX, "filter %.*s: policy %.*s denies it",
			(int)f->name.len, f->name.p, (int)policy.len, policy.p);
	else
		snprintf(text, PROXY_RBAC_TEXT_MAX, "filter %.*s: no policy allows it",
			(int)f->name.len, f->name.p);
	return false;
}
