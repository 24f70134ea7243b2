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
	// The highest bit is the octave, and the one below tells its halves apart. There are two,
	// whatever the time; what is too short wraps, and is found as what is too long is.
	uint64_t x = (ns - 1) | 2;
	uint32_t octave = (uint32_t)__builtin_clzll(x) ^ 63; // 63 - clz, in one instruction
	uint32_t index =
		2 * octave + (uint32_t)(x >> (octave - 1)) - (2 * HISTOGRAM_LEAST_BITS + 1);
	if (__builtin_expect(index >= HISTOGRAM_N, 0))
		return ns <= UINT64_C(1) << HISTOGRAM_LEAST_BITS ? 0 : HISTOGRAM_N - 1;
	return index;
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
