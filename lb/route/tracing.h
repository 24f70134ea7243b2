// SPDX-License-Identifier: Apache-2.0
// Which requests of a listener are traced (OPS-160 to OPS-163), as Envoy's HttpConnectionManager
// says it in `tracing`. Chances are so many of 2^32.
// Thread: any; a plain value.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LB_TRACE_ALL ((uint64_t)1 << 32)
#define LB_TRACE_PATH_MAX 256 // bytes, if nobody says otherwise: Envoy's

struct lb_tracing {
	bool on; // false = none is, and the rest is empty
	bool upstream_spans; // each attempt has a span of its own
	uint16_t path_max; // bytes of a path in spans
	uint64_t client; // of those with x-client-trace-id
	uint64_t random; // of those that nobody has decided on
	uint64_t overall; // of those that are to be traced
};
