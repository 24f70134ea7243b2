// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/filter_fault.h"

#include "envoy/extensions/filters/http/fault/v3/fault.pb-c.h"

#include <errno.h>

#define MAX_GRPC_STATUS 16
#define UNKNOWN_GRPC_STATUS 2

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Extensions__Filters__Http__Fault__V3__HTTPFault Fault;
typedef Envoy__Extensions__Filters__Http__Fault__V3__FaultAbort Abort;
typedef Envoy__Extensions__Filters__Common__Fault__V3__FaultDelay Delay;
typedef Envoy__Type__V3__FractionalPercent Percent;
#define ABORT_CASE(x) ENVOY__EXTENSIONS__FILTERS__HTTP__FAULT__V3__FAULT_ABORT__ERROR_TYPE_##x
#define DELAY_CASE(x)                                                                              \
	ENVOY__EXTENSIONS__FILTERS__COMMON__FAULT__V3__FAULT_DELAY__FAULT_DELAY_SECIFIER_##x

// No percentage is 0 %.
static int read_percentage(
	const Percent *p, uint32_t *numerator, uint32_t *denominator, struct lb_err *err)
{
	*numerator = p ? p->numerator : 0;
	*denominator = 100;
	return p && res_denominator(p, denominator, err) ? lb_err_within(err, "percentage") : 0;
}

static int read_delay(const Delay *m, struct lb_fault *f, struct lb_err *err)
{
	if (m->fault_delay_secifier_case == DELAY_CASE(FIXED_DELAY)) {
		if (res_check_duration(m->fixed_delay, "fixed_delay", err))
			return -EINVAL;
		f->delay = LB_DELAY_FIXED;
		f->delay_ns = res_duration_ns(m->fixed_delay);
	} else if (m->fault_delay_secifier_case == DELAY_CASE(HEADER_DELAY)) {
		f->delay = LB_DELAY_HEADER;
	}
	return read_percentage(m->percentage, &f->delay_numerator, &f->delay_denominator, err);
}

static int read_abort(const Abort *m, struct lb_fault *f, struct lb_err *err)
{
	switch (m->error_type_case) {
	case ABORT_CASE(HTTP_STATUS):
		if (m->http_status < 200 || m->http_status >= 600) // FI-09
			return lb_err_set(
				err, "http_status: %u is not in [200, 600)", m->http_status);
		f->abort = LB_ABORT_HTTP;
		f->abort_status = m->http_status;
		break;
	case ABORT_CASE(GRPC_STATUS): // FI-05
		f->abort = LB_ABORT_GRPC;
		f->abort_status =
			m->grpc_status > MAX_GRPC_STATUS ? UNKNOWN_GRPC_STATUS : m->grpc_status;
		break;
	case ABORT_CASE(HEADER_ABORT):
		f->abort = LB_ABORT_HEADER;
		break;
	default: // nothing to abort with
		break;
	}
	return read_percentage(m->percentage, &f->abort_numerator, &f->abort_denominator, err);
}

int res_fault_read(struct res_reader *rd, const void *message, struct lb_filter *ret)
{
	const Fault *m = message;
	struct lb_fault *f = &ret->fault;
	ret->kind = LB_FILTER_FAULT;
	*f = (struct lb_fault){
		.delay_denominator = 100,
		.abort_denominator = 100,
		.max_active = m->max_active_faults ? m->max_active_faults->value : UINT32_MAX,
	};
	if (m->delay && read_delay(m->delay, f, rd->err))
		return lb_err_within(rd->err, "delay");
	if (m->abort && read_abort(m->abort, f, rd->err))
		return lb_err_within(rd->err, "abort");
	// FI-09. They narrow down who is hit: without them faults hit more than was meant.
	if (*m->upstream_cluster || m->n_headers || m->n_downstream_nodes)
		res_warn(rd, "fault: upstream_cluster, headers and downstream_nodes are ignored");
	return 0;
}
