// SPDX-License-Identifier: Apache-2.0
// What one worker's proxy counts beside what the control thread reads in lb/pick/link.h.
// Thread: the owning worker writes, all may read.
#pragma once

enum proxy_counter {
	PROXY_CLIENTS_REFUSED, // no room for another client connection
	PROXY_CLIENTS_SILENT, // no SETTINGS within the time for it
	PROXY_CLIENTS_IN_HEADER, // no end of a header block within the time for it
	PROXY_CLIENTS_DRAINED, // told to go, since their listener became another one
	PROXY_CLIENTS_STALLED, // took no byte of its output within the time for it
	PROXY_STREAMS_STALLED, // the client gave them no window within the time for it
	PROXY_REPLIES, // made here, for want of a backend's
	PROXY_TRANSPARENT_RETRIES, // the backend surely did nothing with the request
	PROXY_TRANSPARENT_EXHAUSTED, // likewise, and not made: it was the last attempt
	PROXY_IDEMPOTENT_RETRIES, // lost with its connection, and may be done twice
	PROXY_RETRIES, // the route's policy wanted them
	// Retries that the policy wanted and that were not made:
	PROXY_RETRIES_EXHAUSTED, // it was the last attempt
	PROXY_RETRIES_FORBIDDEN, // the backend said so
	PROXY_RETRIES_ABANDONED, // too much of the request's body was sent already
	PROXY_RETRIES_OVERFLOW, // as many requests wait as may
	// Deadlines that passed, by what the request did then:
	PROXY_DEADLINES_PAUSED, // waited for a delay or a backoff to end
	PROXY_DEADLINES_QUEUED, // waited for a backend
	PROXY_DEADLINES_SENT, // waited for the backend's answer
	PROXY_DEADLINES_ANSWERED, // was being answered
	PROXY_FAULT_DELAYS,
	PROXY_FAULT_ABORTS,
	PROXY_FAULTS_OVER_LIMIT, // drawn, and not made: enough requests are under one
	PROXY_SESSIONS_KEPT, // attempts that went where the client's cookie says
	PROXY_SESSIONS_SET, // attempts whose answer sets a cookie
	PROXY_QUEUED_PICK, // requests that waited for a picker to choose
	PROXY_QUEUED_ROOM, // requests that waited for a stream of a chosen backend
	PROXY_QUEUE_OVERFLOWS,
	PROXY_CONNECTS, // attempts to connect to backends
	PROXY_CONNECT_FAILURES,
	PROXY_UPSTREAM_GOAWAYS,
	PROXY_UPSTREAMS_IDLED, // spare connections closed
	PROXY_EVENTS_DELAYED, // the ring to the control thread was full
	PROXY_REPORTS_BAD, // of backends' load, that nobody can read
	PROXY_METRICS_LOST, // values for load reports: too many, or a name too long
	// Gauges, as of the end of the last turn.
	PROXY_LIVE_REQUESTS,
	PROXY_WAITING_REQUESTS, // for a backend
	PROXY_PAUSED_REQUESTS, // for a time
	PROXY_LIVE_CLIENTS,
	PROXY_LIVE_UPSTREAMS,
	PROXY_SPARE_PLACES, // of breakers, kept for requests to come (lb/pick/quota_cache.h)
	PROXY_N_COUNTERS,
};

extern const char *const proxy_counter_names[PROXY_N_COUNTERS]; // as operators see them
