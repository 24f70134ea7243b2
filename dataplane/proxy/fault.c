// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/fault.h"

#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/pick/link.h"
#include "lb/route/fault.h"

// A request counts once, however many filters hit it.
static bool count(struct proxy_request *r, uint32_t max_active)
{
	if (!r->fault.counted)
		r->fault.counted =
			lb_fault_begin(&r->proxy->link->shared->active_faults, max_active);
	return r->fault.counted;
}

bool proxy_fault_draw(struct proxy_request *r, const struct lb_fault *f, const struct lb_req *req)
{
	struct proxy *p = r->proxy;
	struct proxy_fault *to = &r->fault;
	struct lb_fault_draw d = lb_fault_draw(f, req, &p->rand);
	if (!d.delay_ns && d.abort == LB_ABORT_NONE)
		return false;
	if (!count(r, f->max_active)) {
		proxy_count(p, PROXY_faults_over_limit);
		return false;
	}
	if (d.delay_ns)
		proxy_count(p, PROXY_fault_delays);
	if (__builtin_add_overflow(to->delay_ns, d.delay_ns, &to->delay_ns))
		to->delay_ns = UINT64_MAX;
	to->abort = (uint8_t)d.abort;
	to->status = d.status;
	return d.abort != LB_ABORT_NONE;
}

// What the abort says to either kind of client (FI-04, FI-05). Plain HTTP gets a success where a
// gRPC status is configured, as from Envoy.
static struct proxy_reply reply_of(const struct proxy_fault *f)
{
	struct proxy_reply reply = proxy_reply_for(LB_CAUSE_FAULT, STR("fault injected"));
	bool http = f->abort == LB_ABORT_HTTP;
	reply.http_status = http ? (uint16_t)f->status : 200;
	reply.grpc_status = http ? proxy_grpc_of_http((uint16_t)f->status) : (int)f->status;
	return reply;
}

bool proxy_fault_strike(struct proxy_request *r, struct proxy_reply *ret)
{
	if (r->fault.abort == LB_ABORT_NONE) {
		proxy_fault_end(r);
		return false;
	}
	*ret = reply_of(&r->fault);
	proxy_count(r->proxy, PROXY_fault_aborts);
	return true;
}

void proxy_fault_end(struct proxy_request *r)
{
	if (r->fault.counted)
		lb_fault_end(&r->proxy->link->shared->active_faults);
	r->fault.counted = false;
}
