// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/cause.h"

#include "lb/base/check.h"
#include "lb/base/grpc_status.h"

// Local replies (HX-02, HX-03): one status each, whoever fails; D1 for no_route (gRPC's answer).
static const struct lb_cause_info causes[LB_N_CAUSES] = {
	[LB_CAUSE_OK] = {"-", "ok", GRPC_OK, 200, ""},
	[LB_CAUSE_NO_ROUTE] = {"NR", "no_route", GRPC_UNAVAILABLE, 404, "no route matches"},
	[LB_CAUSE_NO_ACTION] = {"NA", "unsupported_action", GRPC_UNAVAILABLE, 503,
		"the route's action is unsupported"},
	[LB_CAUSE_NO_CONFIG] = {"NC", "no_config", GRPC_UNAVAILABLE, 503,
		"no configuration serves this request"},
	[LB_CAUSE_NO_HEALTHY] = {"UH", "no_healthy", GRPC_UNAVAILABLE, 503, "no healthy backend"},
	[LB_CAUSE_UPSTREAM_RESET] = {"UR", "upstream_reset", GRPC_UNAVAILABLE, 503,
		"the backend reset the stream"},
	[LB_CAUSE_UPSTREAM_LOST] = {"UC", "upstream_lost", GRPC_UNAVAILABLE, 503,
		"the backend's connection was lost"},
	[LB_CAUSE_UPSTREAM_PROTOCOL] = {"UPE", "upstream_protocol", GRPC_INTERNAL, 502,
		"the backend broke the protocol"},
	// As gRPC's C-core says it of its own limit.
	[LB_CAUSE_UPSTREAM_TOO_LARGE] = {"UTL", "upstream_too_large", GRPC_RESOURCE_EXHAUSTED, 502,
		"the backend's response header or trailers are too large"},
	[LB_CAUSE_OVERFLOW] = {"UO", "overflow", GRPC_UNAVAILABLE, 503, "too many requests"},
	// The client's own doing, not that of the backend.
	[LB_CAUSE_OVER_SHARE] = {"OS", "over_share", GRPC_RESOURCE_EXHAUSTED, 429,
		"too many requests of this client"},
	[LB_CAUSE_DROPPED] = {"DO", "dropped", GRPC_UNAVAILABLE, 503, "the request was dropped"},
	[LB_CAUSE_TIMEOUT] = {"UT", "timeout", GRPC_DEADLINE_EXCEEDED, 504, "deadline exceeded"},
	// As Envoy: no client asked for an end at this time.
	[LB_CAUSE_STREAM_IDLE] = {"SI", "stream_idle", GRPC_UNAVAILABLE, 504,
		"stream idle timeout"},
	[LB_CAUSE_OVERLOAD] = {"OM", "overload", GRPC_UNAVAILABLE, 503,
		"the load balancer is overloaded"},
	// Nobody is left to read these two replies; the status is for logs and metrics.
	[LB_CAUSE_CLIENT_RESET] = {"DR", "client_reset", GRPC_CANCELLED, 499,
		"the client reset the stream"},
	[LB_CAUSE_CLIENT_LOST] = {"DC", "client_lost", GRPC_CANCELLED, 499,
		"the client's connection was lost"},
	// Plain HTTP's alone; it is the client's to ask again (RFC 9110 15.5.9).
	[LB_CAUSE_CLIENT_SLOW] = {"DS", "client_slow", GRPC_RESOURCE_EXHAUSTED, 408,
		"the client is too slow"},
	[LB_CAUSE_CLIENT_PROTOCOL] = {"DPE", "client_protocol", GRPC_INTERNAL, 400,
		"malformed request, or its header fields are too large"},
	// The filter says the statuses.
	[LB_CAUSE_FAULT] = {"FI", "fault_injected", GRPC_UNAVAILABLE, 503, "fault injected"},
	// As gRPC's C-core says it.
	[LB_CAUSE_DENIED] = {"RBAC", "denied", GRPC_PERMISSION_DENIED, 403,
		"Unauthorized RPC rejected"},
	// Not UNAVAILABLE, which invites clients to ask the same again.
	[LB_CAUSE_KILLED] = {"KL", "killed", GRPC_CANCELLED, 503,
		"the request was ended by an operator"},
	// As a connection that is lost: another host may do better.
	[LB_CAUSE_DRAINED] = {"DT", "drained", GRPC_UNAVAILABLE, 503,
		"the load balancer closes this connection"},
};

const struct lb_cause_info *lb_cause_info(enum lb_cause cause)
{
	CHECK((unsigned)cause < LB_N_CAUSES);
	return &causes[cause];
}

uint64_t lb_cause_failures(const uint64_t ended[LB_N_CAUSES])
{
	uint64_t n = 0;
	for (int i = LB_CAUSE_OK + 1; i < LB_N_CAUSES; i++)
		n += ended[i];
	return n;
}
