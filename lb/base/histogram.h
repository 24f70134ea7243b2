// SPDX-License-Identifier: Apache-2.0
// How long something took, in buckets whose width grows with the time: two an octave from a
// microsecond to a minute (log-linear). What falls into one bucket touches two cache lines of the
// seven. Counts and sum only grow; a reader may see one of them before the other.
// Thread: one writes; any may read slightly outdated values (lb/base/counter.h).
#pragma once

#include "lb/base/counter.h"

#include <stdint.h>

#define HISTOGRAM_N 54 // the last one has no upper bound
#define HISTOGRAM_LEAST_BITS 10 // the first one holds up to 1.024 us

struct histogram {
	uint64_t sum_ns;
	uint64_t counts[HISTOGRAM_N];
};

// The bucket of a time.
static inline uint32_t histogram_index(uint64_t ns)
{
	if (ns <= UINT64_C(1) << HISTOGRAM_LEAST_BITS)
		return 0;
	// In halves of the first bucket, so that the bit below the highest one tells both halves of
	// an octave apart.
	uint64_t halves = (ns - 1) >> (HISTOGRAM_LEAST_BITS - 1);
	uint32_t octave = 63 - (uint32_t)__builtin_clzll(halves);
	uint32_t index = 2 * octave + (uint32_t)(halves >> (octave - 1)) - 3;
	return index < HISTOGRAM_N - 1 ? index : HISTOGRAM_N - 1;
}

// The longest time of a bucket; index < HISTOGRAM_N - 1.
static inline uint64_t histogram_bound_ns(uint32_t index)
{
	if (index == 0)
		return UINT64_C(1) << HISTOGRAM_LEAST_BITS;
	return (3 + (uint64_t)(index - 1) % 2) << (HISTOGRAM_LEAST_BITS - 1 + (index - 1) / 2);
}

// index: histogram_index(ns), which several histograms may share.
static inline void histogram_add(struct histogram *h, uint32_t index, uint64_t ns)
{
	counter_add(&h->sum_ns, ns);
	counter_add(&h->counts[index], 1);
}

// Adds another one's values, as they stand, to a reader's own.
static inline void histogram_gather(struct histogram *to, const struct histogram *from)
{
	to->sum_ns += counter_read(&from->sum_ns);
	for (uint32_t i = 0; i < HISTOGRAM_N; i++)
		to->counts[i] += counter_read(&from->counts[i]);
}

// Of a reader's own: takes back what was there before.
static inline void histogram_since(struct histogram *h, const struct histogram *before)
{
	h->sum_ns -= before->sum_ns;
	for (uint32_t i = 0; i < HISTOGRAM_N; i++)
		h->counts[i] -= before->counts[i];
}
