// SPDX-License-Identifier: Apache-2.0
// What the exporter of traces (docs/tracing.md) is told of a traced request that is over: its ids,
// its attempts and what access logs know of it, in a ring of its worker.
// Thread: as tagged.
#pragma once

#include "lb/base/counter.h"
#include "lb/base/spsc.h"
#include "lb/pick/access.h"
#include "lb/pick/failures.h"
#include "lb/route/tracing.h"

#include <stdbool.h>
#include <stdint.h>

#define LB_TRACE_RECORDS 2048 // that a ring holds

// W3C Trace Context's ids, as numbers whose most significant byte comes first.
struct lb_trace_ids {
	uint64_t high, low; // of the trace; never both 0
	uint64_t span; // of the request here; never 0
	uint64_t parent; // the client's; 0 = the trace begins here
};

// The span of an attempt: no two of a request are the same, and none has to be kept.
uint64_t lb_trace_attempt_span(const struct lb_trace_ids *, uint32_t attempt);

// Attributes that a listener asks for, one behind the other: two lengths, a key and a value.
struct lb_trace_tags {
	uint16_t n_bytes; // used of bytes[]
	char bytes[LB_TRACE_TAGS * (2 + LB_TRACE_TAG_KEY + LB_TRACE_TAG_VALUE)];
};

// Adds one of LB_TRACE_TAGS; what is longer than a value may be is cut.
void lb_trace_tags_add(struct lb_trace_tags *, struct str key, struct str value);
// The one at *at, which is 0 at first; false = there are no more. Borrows.
bool lb_trace_tags_next(
	const struct lb_trace_tags *, uint16_t *at, struct str *retkey, struct str *retvalue);
void lb_trace_tags_copy(struct lb_trace_tags *to, const struct lb_trace_tags *from);

struct lb_trace_record {
	struct lb_trace_ids ids;
	uint16_t path_max; // bytes of the path that are told
	bool upstream_spans; // attempts are told
	bool is_grpc;
	uint8_t n_attempts; // of attempts[]: the last ones
	uint32_t first; // number of attempts[0] among all that were sent, from 0 on
	struct lb_failure_attempt attempts[LB_FAILURE_ATTEMPTS + 1];
	struct lb_trace_tags tags;
	struct lb_access_record access; // of both only what is used is copied
};

struct lb_trace {
	struct spsc ring; // w: worker, r: ctrl
	uint64_t n_dropped; // w: worker (relaxed), r: any: the ring was full
};

struct lb_trace *lb_trace_new(void); // NULL = out of memory
void lb_trace_free(struct lb_trace *); // NULL is fine
// Where the next record is to be written; NULL = the ring is full, which is counted. told() follows
// at once.
struct lb_trace_record *lb_trace_place(struct lb_trace *);
void lb_trace_told(struct lb_trace *);
