// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/plan.h"

#include "dataplane/proxy/deadline.h"
#include "dataplane/proxy/head.h"
#include "dataplane/proxy/progress.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/route/filter.h"
#include "lb/route/hash_policy.h"
#include "lb/route/route.h"
#include "lb/snapshot.h"

static const struct lb_filter_chain *chain_of(const struct proxy_request *r)
{
	return lb_snapshot_frontend(r->proxy->snapshot, r->chain)->filters;
}

static const struct lb_route_table *routes_of(const struct proxy_request *r)
{
	return lb_snapshot_frontend(r->proxy->snapshot, r->chain)->routes;
}

enum proxy_plan_outcome proxy_plan_filter(struct proxy_request *r, const struct lb_req *req,
	struct lb_route_result *to, char why[PROXY_RBAC_TEXT_MAX])
{
	const struct lb_filter_chain *chain = chain_of(r);
	// Overrides are those of the entry that was drawn, whatever a session makes of it.
	const struct lb_route_result drawn = *to;
	for (uint32_t i = 0; chain && i < chain->n; i++) {
		const struct lb_filter *f = lb_filter_effective(chain, i, &drawn);
		if (!f)
			continue;
		switch (f->kind) {
		case LB_FILTER_FAULT:
			if (proxy_fault_draw(r, &f->fault, req))
				return PROXY_PLAN_GOES_ON;
			break;
		case LB_FILTER_RBAC:
			if (!proxy_rbac_admits(r, f, req, why))
				return PROXY_PLAN_DENIED;
			break;
		case LB_FILTER_SESSION:
			if (!proxy_session_begin(r, &f->session, req, to))
				return PROXY_PLAN_NO_MEMORY;
			break;
		case LB_FILTER_SWITCH: // none has an effect of its own
			break;
		}
	}
	return PROXY_PLAN_GOES_ON;
}

bool proxy_plan_make(struct proxy_request *r, const struct h2_message *m, const struct lb_req *req,
	const struct lb_route_policy *policy)
{
	const struct lb_filter_chain *chain = chain_of(r);
	if (r->proxy->frontends[r->frontend]->wait_for_ready == LB_WAIT_HEADER)
		proxy_head_read_wait(r, m);
	const struct lb_listener_timeouts *listener =
		chain ? &chain->timeouts : &lb_no_listener_timeouts;
	uint64_t client_ns = r->is_grpc ? proxy_head_read(r, m) : LB_NO_TIMEOUT;
	r->plan = (struct proxy_plan){.retry = policy->retry,
		.auto_host_rewrite = policy->auto_host_rewrite,
		.recipe = {
			policy->hash, policy->n_hash, lb_route_hides_transport(routes_of(r), req)}};
	uint64_t default_ns = r->proxy->conf.terms.stream_idle_ns;
	proxy_progress_begin(
		r, lb_timeouts_idle(&policy->timeouts, listener, default_ns, m->is_grpc));
	return proxy_deadline_begin(r, &policy->timeouts, listener->max_ns, client_ns);
}

void proxy_plan_end_turn(struct proxy_request *r, const struct lb_req *req)
{
	struct proxy *p = r->proxy;
	struct lb_pick_hash *hash = &r->plan.hash;
	const struct lb_hash_recipe *of = &r->plan.recipe;
	if (of->n && !hash->known && proxy_request_waits(r))
		hash->known = lb_hash_policies_run(of->policies, of->n, req, of->hides_transport,
			(char *)p->scratch.bytes, p->scratch.size, &hash->value);
	r->plan.recipe = (struct lb_hash_recipe){0};
}
