// SPDX-License-Identifier: Apache-2.0
// Which requests of a listener are traced (OPS-160 to OPS-163), as Envoy's HttpConnectionManager
// says it in `tracing`. Chances are so many of 2^32.
// Thread: any; a plain value.
#pragma once

#include "lb/base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define LB_TRACE_ALL ((uint64_t)1 << 32)
#define LB_TRACE_PATH_MAX 256 // bytes, if nobody says otherwise: Envoy's

#define LB_TRACE_TAGS 8 // of a listener
#define LB_TRACE_TAG_KEY 46 // bytes of a key, and of a value
#define LB_TRACE_TAG_VALUE 80

// An attribute of all spans of a request (OPS-220).
struct lb_trace_tag {
	struct str key; // 1 to LB_TRACE_TAG_KEY bytes
	struct str header; // of the request, in lower case, pseudo-headers too; empty = none
	struct str value; // where there is no such header, or none is asked for
};

struct lb_tracing {
	bool on; // false = none is, and the rest is empty
	bool upstream_spans; // each attempt has a span of its own
	uint16_t path_max; // bytes of a path in spans
	uint64_t client; // of those with x-client-trace-id
	uint64_t random; // of those that nobody has decided on
	uint64_t overall; // of those that are to be traced
	const struct lb_trace_tag *tags; // borrowed
	uint32_t n_tags; // LB_TRACE_TAGS at most
};

struct lb_arena;

// With tags of its own, in the arena. 0 or -ENOMEM.
[[nodiscard]] int lb_tracing_copy(
	struct lb_arena *, const struct lb_tracing *, struct lb_tracing *ret);
