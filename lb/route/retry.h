// SPDX-License-Identifier: Apache-2.0
// A route's retry policy (gRFC A44, A6; RT-01..RT-05).
// Thread: any. Pure.
#pragma once

#include "lb/base/rand.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_retry {
	uint32_t statuses; // bit set: 1 << each gRPC status that is retried; 0 = no retries
	uint8_t max_attempts; // including the first one, 1 to 5
	uint64_t base_ns, max_ns; // of the backoff
};

bool lb_retry_covers(const struct lb_retry *, int grpc_status);
// The delay before retry n = 1, 2, … : min(base * 2^(n-1), max) * random(0.8, 1.2).
uint64_t lb_retry_delay_ns(const struct lb_retry *, uint32_t n, struct rand *);
