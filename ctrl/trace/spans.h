// SPDX-License-Identifier: Apache-2.0
// Traced requests as spans of OpenTelemetry's protocol, OTLP: a server's span each, and a client's
// for each of its attempts, with the attributes that OpenTelemetry's conventions for HTTP and RPC
// name, and ours (OPS-165, OPS-166; docs/tracing.md has the table).
// Thread: any. Pure.
#pragma once

#include "lb/pick/trace.h"

#include <stddef.h>
#include <stdint.h>

struct span_source { // borrowed
	const struct lb_trace_record *record;
	const char *frontend; // its name
	uint32_t worker;
	uint64_t began_wall_ns; // since 1970
};

// Whom spans come from; borrowed.
struct span_service {
	const char *name, *version, *host;
};

// How many spans the record makes.
uint32_t spans_count(const struct lb_trace_record *);
// An ExportTraceServiceRequest; *ret is the caller's (free). 0 or -ENOMEM.
[[nodiscard]] int spans_pack(const struct span_service *, const struct span_source *, uint32_t n,
	uint8_t **ret, size_t *ret_len);
