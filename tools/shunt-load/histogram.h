// SPDX-License-Identifier: Apache-2.0
// A histogram on a scale that is linear within each power of two (like HdrHistogram): every
// quantile is exact to one part in 128, for any range, and recording takes a few instructions.
// Thread: one owner.
#pragma once

#include <stdint.h>

#define HISTOGRAM_STEPS 128 // within a power of two
#define HISTOGRAM_MAX ((UINT64_C(1) << 41) - 1) // larger values count as this one (36 min in ns)
#define HISTOGRAM_BUCKETS (34 * HISTOGRAM_STEPS + HISTOGRAM_STEPS)

// All zero = empty.
struct histogram {
	uint64_t n;
	uint64_t sum; // of the exact values
	uint64_t min, max; // exact values; 0 while empty
	uint64_t counts[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *, uint64_t value);
// Returns the upper bound of the bucket in which the q-quantile lies (q in 0..1), but at most max;
// 0 while empty.
uint64_t histogram_quantile(const struct histogram *, double q);
double histogram_mean(const struct histogram *);
