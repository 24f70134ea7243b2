// SPDX-License-Identifier: Apache-2.0
// The fields in which traces travel: W3C Trace Context's traceparent, and B3 in one field or in
// several (openzipkin/b3-propagation). Read of a client's request, and written for a backend in the
// forms that the client used, traceparent always (OPS-160, OPS-162, OPS-163).
// Thread: any. Pure.
#pragma once

#include "lb/base/field.h"
#include "lb/pick/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Whether whoever began the trace, or passed it on, wants it.
enum proxy_trace_word { PROXY_TRACE_UNSAID, PROXY_TRACE_NO, PROXY_TRACE_YES };

// What a request says of traces.
struct proxy_trace_parent {
	uint64_t high, low; // of the trace; both 0 = the request is in none
	uint64_t span; // the client's; 0 = likewise
	uint8_t word; // enum proxy_trace_word
	bool has_b3, has_b3_many; // its forms
	bool is_w3c; // the trace is traceparent's, and so tracestate belongs to it
	bool is_asked; // x-client-trace-id
	bool is_forced; // x-envoy-force-trace
};

// What is malformed, or comes twice, is as if it were not there.
void proxy_trace_read(const struct field *, size_t n_fields, struct proxy_trace_parent *ret);

// Most fields and bytes that are written.
#define PROXY_TRACE_FIELDS 5
#define PROXY_TRACE_TEXT 106

// The client's own fields of traces, which those that are written replace.
bool proxy_trace_is_replaced(const struct field *, bool keeps_state);
// Writes the fields of a sampled request, and returns how many; they point into text.
size_t proxy_trace_write(const struct lb_trace_ids *, uint64_t span, bool b3, bool b3_many,
	struct field ret[PROXY_TRACE_FIELDS], char text[PROXY_TRACE_TEXT]);
