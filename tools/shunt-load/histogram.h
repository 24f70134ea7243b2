// SPDX-License-Identifier: Apache-2.0
// Counts of values on a scale that is linear within each power of two (as HdrHistogram's): every
// quantile is right to one part in 128, whatever the range, and recording is a few instructions.
// Thread: one owner.
#pragma once

#include <stdint.h>

#define HISTOGRAM_STEPS 128 // within a power of two
#define HISTOGRAM_MAX ((UINT64_C(1) << 41) - 1) // larger values count as this one (36 min in ns)
#define HISTOGRAM_BUCKETS (34 * HISTOGRAM_STEPS + HISTOGRAM_STEPS)

// All zero = empty.
struct histogram {
	uint64_t n;
	uint64_t sum; // of the values as they were
	uint64_t min, max; // as they were; 0 while empty
	uint64_t counts[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *, uint64_t value);
// The largest value that counts as equal to the smallest one that at least q (0..1) of all are not
// above, but never more than max. 0 while empty.
uint64_t histogram_quantile(const struct histogram *, double q);
double histogram_mean(const struct histogram *);
