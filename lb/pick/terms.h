// SPDX-License-Identifier: Apache-2.0
// What workers hold connections and requests to, and a reload of shunt.yaml may change. Workers
// have those that they were started with; later ones come with a snapshot, each of which has all of
// them. Who reads them, and when, stands at each.
// Thread: ctrl makes them; in a snapshot they are constant. A worker copies them in the first turn
// that sees their number (proxy_begin_turn()).
#pragma once

#include <stdbool.h>
#include <stdint.h>

// What silence is borne of peers of one side. Of a connection when it begins, for its life.
struct lb_silence {
	uint64_t user_timeout_ns; // of outstanding bytes without an answer; 0 = TCP's default
	uint64_t tcp_keepalive_ns; // TCP asks who was silent for this long; 0 = never
	// HTTP/2 asks so often by PING, 0 = never, and so long an answer may take (Envoy's
	// connection_keepalive, gRFC A8).
	uint64_t ping_interval_ns, ping_timeout_ns;
};

struct lb_terms {
	// 0 = those that workers were started with, whatever the other fields say; grows with each
	// change.
	uint64_t number;
	struct lb_silence client_silence;
	struct lb_silence backend_silence; // where no cluster says otherwise (lb/pick/timers.h)
	// Of clients without an open stream (TH-80), connected ones, too; 0 = none.
	uint64_t idle_timeout_ns;
	// Of a client's connection when it begins; then it is sent away (OPS-150). 0 = none.
	uint64_t max_age_ns;
	// For the streams that it has then, when that time comes; 0 = as long as they take.
	uint64_t max_age_grace_ns;
	// Of plain HTTP requests without progress, when one begins, where the listener doesn't say
	// (TH-98); LB_NO_TIMEOUT = without limit.
	uint64_t stream_idle_ns;
	// That clients of a changed listener get (FLT-11), when it changes.
	uint64_t listener_drain_ns;
	// Of a client's connection when it begins: open requests, which HTTP/2 tells it, and bytes
	// that are kept for it (dataplane/proxy/client_buffer.h), 0 = no bound.
	uint32_t max_streams, client_buffer;
	// Per request on the wire, without retries of a route's policy (dataplane/proxy/retry.h),
	// at each attempt.
	uint32_t max_attempts;
	bool retry_idempotent; // resend idempotent requests whose connection was lost; likewise
};
