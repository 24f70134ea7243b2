// SPDX-License-Identifier: Apache-2.0
#include "lb/route/fault.h"

#include "lb/base/grpc_status.h"
#include "lb/base/time.h"

// What a client may ask for; the configuration itself may want more.
#define MAX_DELAY_MS UINT64_C(3600000)

// The first field of this name that holds a number up to max; junk counts as absent (FI-07).
static bool number(const struct lb_req *req, struct str name, uint64_t max, uint64_t *ret)
{
	for (size_t i = 0; i < req->n_fields; i++)
		if (str_eq(req->fields[i].name, name) && str_number(req->fields[i].value, max, ret))
			return true;
	return false;
}

// A header may lower the share of requests that are hit (FI-07).
static uint32_t lowered(const struct lb_req *req, struct str name, uint32_t numerator)
{
	uint64_t n;
	return number(req, name, numerator, &n) ? (uint32_t)n : numerator;
}

static bool hits(struct rand *rand, uint32_t numerator, uint32_t denominator)
{
	return rand_below(rand, denominator) < numerator; // FI-03
}

static uint64_t draw_delay(const struct lb_fault *f, const struct lb_req *req, struct rand *rand)
{
	uint64_t delay_ns = f->delay_ns, ms;
	uint32_t numerator = f->delay_numerator;
	if (f->delay == LB_DELAY_NONE)
		return 0;
	if (f->delay == LB_DELAY_HEADER) {
		if (!number(req, STR("x-envoy-fault-delay-request"), UINT64_MAX, &ms))
			return 0;
		delay_ns = (ms < MAX_DELAY_MS ? ms : MAX_DELAY_MS) * NS_PER_MS;
		numerator = lowered(req, STR("x-envoy-fault-delay-request-percentage"), numerator);
	}
	return hits(rand, numerator, f->delay_denominator) ? delay_ns : 0;
}

// The kind and status of the abort that headers ask for (FI-06).
static enum lb_fault_abort abort_of_headers(const struct lb_req *req, uint32_t *ret_status)
{
	uint64_t status;
	if (number(req, STR("x-envoy-fault-abort-request"), 599, &status) && status >= 200) {
		*ret_status = (uint32_t)status;
		return LB_ABORT_HTTP;
	}
	if (!number(req, STR("x-envoy-fault-abort-grpc-request"), UINT32_MAX, &status))
		return LB_ABORT_NONE;
	*ret_status = (uint32_t)status;
	return LB_ABORT_GRPC;
}

static void draw_abort(const struct lb_fault *f, const struct lb_req *req, struct rand *rand,
	struct lb_fault_draw *d)
{
	enum lb_fault_abort kind = f->abort;
	uint32_t numerator = f->abort_numerator, status = f->abort_status;
	if (kind == LB_ABORT_HEADER) {
		kind = abort_of_headers(req, &status);
		numerator = lowered(req, STR("x-envoy-fault-abort-request-percentage"), numerator);
	}
	if (kind == LB_ABORT_NONE || !hits(rand, numerator, f->abort_denominator))
		return;
	if (kind == LB_ABORT_GRPC && status > GRPC_UNAUTHENTICATED)
		status = GRPC_UNKNOWN; // FI-05
	d->abort = kind;
	d->status = status;
}

struct lb_fault_draw lb_fault_draw(
	const struct lb_fault *f, const struct lb_req *req, struct rand *rand)
{
	struct lb_fault_draw d = {0};
	if (f->max_active == 0) // FI-08
		return d;
	d.delay_ns = draw_delay(f, req, rand);
	draw_abort(f, req, rand, &d);
	return d;
}

// Relaxed: the count alone is shared and orders nothing else. Adding first and taking back may
// refuse one that would just have fit, never admit one too many.
bool lb_fault_begin(uint32_t *active, uint32_t max_active)
{
	if (__atomic_fetch_add(active, 1, __ATOMIC_RELAXED) < max_active)
		return true;
	lb_fault_end(active);
	return false;
}

void lb_fault_end(uint32_t *active)
{
	__atomic_fetch_sub(active, 1, __ATOMIC_RELAXED);
}
