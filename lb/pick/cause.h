// SPDX-License-Identifier: Apache-2.0
// Why a request ended: exactly one cause per stream, the same in counters, logs and statuses. Flags
// are Envoy's response flags (plus DR, the client reset, UTL, DS, RBAC, KL and DT).
// Thread: any. Pure.
#pragma once

#include <stdint.h>

enum lb_cause {
	LB_CAUSE_OK, // the backend's complete answer, whatever its status
	LB_CAUSE_NO_ROUTE, // NR: no virtual host or no route
	LB_CAUSE_NO_ACTION, // NA: the route's action is unsupported (A28-V04)
	LB_CAUSE_NO_CONFIG, // NC: no usable configuration for this frontend, or no such cluster
	LB_CAUSE_NO_HEALTHY, // UH: the cluster has no usable endpoint, or none can be connected to
	LB_CAUSE_UPSTREAM_RESET, // UR: the backend reset the stream
	LB_CAUSE_UPSTREAM_LOST, // UC: the backend's connection was lost
	LB_CAUSE_UPSTREAM_PROTOCOL, // UPE: the backend broke the protocol
	LB_CAUSE_UPSTREAM_TOO_LARGE, // UTL: its response header or trailers are above our limits
	// UO: the limit on queued requests, or the cluster's limit on requests in flight
	LB_CAUSE_OVERFLOW,
	LB_CAUSE_OVER_SHARE, // OS: the client, or its source, has its share of a limit already
	LB_CAUSE_DROPPED, // DO: dropped by the endpoints' configuration (A27-I01)
	LB_CAUSE_TIMEOUT, // UT: a deadline passed
	LB_CAUSE_STREAM_IDLE, // SI: nothing of it moved for too long
	LB_CAUSE_OVERLOAD, // OM: our own pools, that of requests included, were exhausted
	LB_CAUSE_CLIENT_RESET, // DR: the client reset the stream
	LB_CAUSE_CLIENT_LOST, // DC: the client's connection was lost
	LB_CAUSE_CLIENT_SLOW, // DS: the client sent, or took, too little (TH-129, TH-130, TH-137)
	LB_CAUSE_CLIENT_PROTOCOL, // DPE: malformed request
	LB_CAUSE_FAULT, // FI: aborted by a configured fault (FI-02)
	LB_CAUSE_DENIED, // RBAC: refused by access control (A41-14)
	LB_CAUSE_KILLED, // KL: an operator ended it, or its connection (OPS-190)
	LB_CAUSE_DRAINED, // DT: its connection was to end, and the time for that was over (FL-176)
	LB_N_CAUSES,
};

struct lb_cause_info {
	const char *flag; // "NR"; "-" for OK
	const char *name; // "no_route"
	int grpc_status; // of a local reply
	int http_status; // of a local reply to plain HTTP
	const char
		*text; // of a local reply to a stranger: names no address, cluster or node (TH-95)
};
// Static. CHECKs that the cause is in range.
const struct lb_cause_info *lb_cause_info(enum lb_cause);
// How many ended otherwise than with LB_CAUSE_OK.
uint64_t lb_cause_failures(const uint64_t ended[LB_N_CAUSES]);
