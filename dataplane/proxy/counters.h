// SPDX-License-Identifier: Apache-2.0
// Counters of one worker's proxy, in addition to those in lb/pick/link.h that the control thread
// reads.
// Thread: written by the owning worker, read by any.
#pragma once

enum proxy_counter {
	PROXY_CLIENTS_REFUSED, // no room for another client connection
	PROXY_CLIENTS_SILENT, // sent no SETTINGS in time
	PROXY_CLIENTS_IN_HEADER, // did not finish a header block in time
	PROXY_CLIENTS_DRAINED, // sent away because their listener was replaced
	PROXY_CLIENTS_STALLED, // did not take a byte of output in time
	PROXY_STREAMS_STALLED, // got no window from the client in time
	PROXY_REPLIES, // local replies
	PROXY_TRANSPARENT_RETRIES, // the backend surely did nothing with the request
	PROXY_TRANSPARENT_EXHAUSTED, // likewise, not retried: it was the last attempt
	PROXY_IDEMPOTENT_RETRIES, // lost with its connection, and safe to repeat
	PROXY_RETRIES, // by the route's policy
	// Retries that the policy wanted but that were not made:
	PROXY_RETRIES_EXHAUSTED, // it was the last attempt
	PROXY_RETRIES_FORBIDDEN, // the backend forbade it
	PROXY_RETRIES_ABANDONED, // too much of the request's body was already sent
	PROXY_RETRIES_OVERFLOW, // too many requests are waiting
	// Deadlines that passed, by the request's state:
	PROXY_DEADLINES_PAUSED, // waiting for a delay or a backoff
	PROXY_DEADLINES_QUEUED, // waiting for a backend
	PROXY_DEADLINES_SENT, // waiting for the backend's answer
	PROXY_DEADLINES_ANSWERED, // being answered
	PROXY_FAULT_DELAYS,
	PROXY_FAULT_ABORTS,
	PROXY_FAULTS_OVER_LIMIT, // drawn but not made: too many requests are under a fault
	PROXY_SESSIONS_KEPT, // attempts that went where the client's cookie said
	PROXY_SESSIONS_SET, // attempts whose answer sets a cookie
	PROXY_QUEUED_PICK, // requests that waited for a picker to choose
	PROXY_QUEUED_ROOM, // requests that waited for a stream of a chosen backend
	PROXY_QUEUE_OVERFLOWS,
	PROXY_CONNECTS, // attempts to connect to backends
	PROXY_CONNECT_FAILURES,
	PROXY_UPSTREAM_GOAWAYS,
	PROXY_UPSTREAMS_IDLED, // spare connections closed
	PROXY_EVENTS_DELAYED, // the ring to the control thread was full
	PROXY_REPORTS_BAD, // load reports of backends that cannot be parsed
	PROXY_METRICS_LOST, // values for load reports: too many, or a name too long
	// Gauges, at the end of the last turn.
	PROXY_LIVE_REQUESTS,
	PROXY_WAITING_REQUESTS, // for a backend
	PROXY_PAUSED_REQUESTS, // for a delay or a backoff
	PROXY_LIVE_CLIENTS,
	PROXY_LIVE_UPSTREAMS,
	PROXY_SPARE_PLACES, // of breakers, kept for requests to come (lb/pick/quota_cache.h)
	PROXY_N_COUNTERS,
};

extern const char *const proxy_counter_names[PROXY_N_COUNTERS]; // as operators see them
