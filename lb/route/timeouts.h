// SPDX-License-Identifier: Apache-2.0
// The timeouts of a request (gRFC A31; A31-T01..A31-T06), and Envoy's idle timeout (TH-98).
// Thread: any. Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LB_NO_TIMEOUT UINT64_MAX

struct lb_timeouts { // of a route
	bool has_max, has_header_max;
	uint64_t max_ns; // max_stream_duration; 0 = none, and the listener's is ignored
	uint64_t header_max_ns; // grpc_timeout_header_max; 0 = the client's deadline is not limited
	uint64_t idle_ns; // idle_timeout; 0 = the listener's, LB_NO_TIMEOUT = none
};

struct lb_listener_timeouts {
	// common_http_protocol_options.max_stream_duration; LB_NO_TIMEOUT = none (A31-T01)
	uint64_t max_ns;
	// How long plain HTTP [0] and gRPC requests [1] may go without progress: the listener's
	// stream_idle_timeout. 0 = the default (lb_terms.stream_idle_ns), LB_NO_TIMEOUT = without
	// limit.
	uint64_t idle_ns[2];
};
extern const struct lb_listener_timeouts lb_no_listener_timeouts;

// The effective timeout from the client's deadline, the route's limits and the listener's
// max_stream_duration; LB_NO_TIMEOUT = none, for each. Never more than the client's (A31-T05).
uint64_t lb_timeouts_effective(
	const struct lb_timeouts *, uint64_t listener_max_ns, uint64_t client_ns);
// How long a request may go without progress; LB_NO_TIMEOUT = without limit.
static inline uint64_t lb_timeouts_idle(const struct lb_timeouts *t,
	const struct lb_listener_timeouts *l, uint64_t default_ns, bool is_grpc)
{
	uint64_t ns = t->idle_ns ? t->idle_ns : l->idle_ns[is_grpc];
	return ns ? ns : default_ns;
}
