// SPDX-License-Identifier: Apache-2.0
// How evenly something is spread over many.
// Thread: any. Pure.
#pragma once

#include <stdint.h>

struct spread {
	double mean;
	uint32_t least, p1, median, p99, most;
};

// Sorts the counts, n >= 1.
struct spread spread_of(uint32_t *counts, uint32_t n);
