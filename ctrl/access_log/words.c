// SPDX-License-Identifier: Apache-2.0
#include "ctrl/access_log/words.h"

#include <stddef.h>
#include <stdio.h>

const char *access_details(enum lb_cause cause)
{
	// Those of Envoy that mean the same; the rest are the causes' own names.
	static const char *const envoys[LB_N_CAUSES] = {
		[LB_CAUSE_OK] = "via_upstream",
		[LB_CAUSE_NO_ROUTE] = "route_not_found",
		[LB_CAUSE_NO_HEALTHY] = "no_healthy_upstream",
		[LB_CAUSE_UPSTREAM_RESET] = "upstream_reset_before_response_started{remote_reset}",
		[LB_CAUSE_UPSTREAM_LOST] =
			"upstream_reset_before_response_started{connection_termination}",
		[LB_CAUSE_UPSTREAM_PROTOCOL] =
			"upstream_reset_before_response_started{protocol_error}",
		[LB_CAUSE_OVERFLOW] = "upstream_reset_before_response_started{overflow}",
		[LB_CAUSE_TIMEOUT] = "response_timeout",
		[LB_CAUSE_STREAM_IDLE] = "stream_idle_timeout",
		[LB_CAUSE_CLIENT_RESET] = "http2.remote_reset",
		[LB_CAUSE_CLIENT_LOST] = "downstream_remote_disconnect",
		[LB_CAUSE_FAULT] = "fault_filter_abort",
	};
	return envoys[cause] ? envoys[cause] : lb_cause_info(cause)->name;
}

static const char *flag_long(enum lb_cause cause)
{
	static const char *const envoys[LB_N_CAUSES] = {
		[LB_CAUSE_NO_ROUTE] = "NoRouteFound",
		[LB_CAUSE_NO_CONFIG] = "NoClusterFound",
		[LB_CAUSE_NO_HEALTHY] = "NoHealthyUpstream",
		[LB_CAUSE_UPSTREAM_RESET] = "UpstreamRemoteReset",
		[LB_CAUSE_UPSTREAM_LOST] = "UpstreamConnectionTermination",
		[LB_CAUSE_UPSTREAM_PROTOCOL] = "UpstreamProtocolError",
		[LB_CAUSE_OVERFLOW] = "UpstreamOverflow",
		[LB_CAUSE_DROPPED] = "DropOverload",
		[LB_CAUSE_TIMEOUT] = "UpstreamRequestTimeout",
		[LB_CAUSE_STREAM_IDLE] = "StreamIdleTimeout",
		[LB_CAUSE_OVERLOAD] = "OverloadManagerTerminated",
		[LB_CAUSE_CLIENT_RESET] = "DownstreamRemoteReset",
		[LB_CAUSE_CLIENT_LOST] = "DownstreamConnectionTermination",
		[LB_CAUSE_CLIENT_PROTOCOL] = "DownstreamProtocolError",
		[LB_CAUSE_FAULT] = "FaultInjected",
	};
	return envoys[cause] ? envoys[cause] : lb_cause_info(cause)->name;
}

const char *access_flags(
	const struct lb_access_brief *a, bool is_long, char room[static ACCESS_FLAGS_MAX])
{
	// Envoy tells its flags in an order: these before that of a delay.
	static const uint32_t before =
		1u << LB_CAUSE_NO_HEALTHY | 1u << LB_CAUSE_TIMEOUT | 1u << LB_CAUSE_UPSTREAM_RESET |
		1u << LB_CAUSE_UPSTREAM_LOST | 1u << LB_CAUSE_OVERFLOW | 1u << LB_CAUSE_NO_ROUTE;
	enum lb_cause cause = (enum lb_cause)a->cause;
	const char *delay = is_long ? "DelayInjected" : LB_ACCESS_DELAYED_FLAG;
	if (cause == LB_CAUSE_OK)
		return a->delayed ? delay : "-";
	const char *own = is_long ? flag_long(cause) : lb_cause_info(cause)->flag;
	bool is_first = before >> cause & 1;
	if (!a->delayed)
		return own;
	snprintf(room, ACCESS_FLAGS_MAX, "%s,%s", is_first ? own : delay, is_first ? delay : own);
	return room;
}

const char *access_grpc_name(unsigned status, bool is_snake)
{
	static const char *const names[][2] = {
		{"OK", "OK"},
		{"Canceled", "CANCELLED"},
		{"Unknown", "UNKNOWN"},
		{"InvalidArgument", "INVALID_ARGUMENT"},
		{"DeadlineExceeded", "DEADLINE_EXCEEDED"},
		{"NotFound", "NOT_FOUND"},
		{"AlreadyExists", "ALREADY_EXISTS"},
		{"PermissionDenied", "PERMISSION_DENIED"},
		{"ResourceExhausted", "RESOURCE_EXHAUSTED"},
		{"FailedPrecondition", "FAILED_PRECONDITION"},
		{"Aborted", "ABORTED"},
		{"OutOfRange", "OUT_OF_RANGE"},
		{"Unimplemented", "UNIMPLEMENTED"},
		{"Internal", "INTERNAL"},
		{"Unavailable", "UNAVAILABLE"},
		{"DataLoss", "DATA_LOSS"},
		{"Unauthenticated", "UNAUTHENTICATED"},
	};
	return status < sizeof(names) / sizeof(names[0]) ? names[status][is_snake] : NULL;
}
