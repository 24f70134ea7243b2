// SPDX-License-Identifier: Apache-2.0
// Traces of requests (docs/tracing.md, OPS-160 to OPS-164): which are traced, what their backends
// are told, and what is told of them when they are over (lb/pick/trace.h). A traced request is
// noted as for an access log (access_log.h); of all others nothing is kept, and their fields pass
// as they came.
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/trace_context.h"
#include "lb/route/tracing.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct h2_message;
struct proxy_request;
struct rand;

// Of a traced request.
struct proxy_trace {
	struct lb_trace_ids ids;
	uint32_t n_sent; // attempts
	uint32_t n_tries; // of its trail when the newest attempt was sent
	uint16_t path_max;
	bool upstream_spans;
	bool b3, b3_many, keeps_state; // what the client used
	struct lb_trace_tags *tags; // of a pool; NULL = its listener asks for none
};

// Whether a request is traced (OPS-161): who began its trace has decided; else the client may ask
// for it, and then chance decides.
bool proxy_trace_wants(struct rand *, const struct lb_tracing *, const struct proxy_trace_parent *);
// What a listener's tags are of this request.
void proxy_trace_tags(
	const struct lb_tracing *, const struct h2_message *, struct lb_trace_tags *ret);
// The listener traces: decides whether this one is, and if so turns its notes on.
void proxy_trace_begin(
	struct proxy_request *, const struct lb_tracing *, const struct h2_message *);

// The rest of these: it is traced.

// The fields of a new attempt, at most PROXY_TRACE_FIELDS; returns how many.
size_t proxy_trace_fields(const struct proxy_request *, struct field *ret);
// It was sent.
void proxy_trace_sent(struct proxy_request *);
// Tells of it; its access record is complete.
void proxy_trace_over(struct proxy_request *);
