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

// Where the bucket of a time is, which is below 2^62 ns: bytes behind `counts`.
static inline uint32_t histogram_place(uint64_t ns)
{
#define PLACE(i) (i) * sizeof(uint64_t)
#define SIX(i) PLACE(i), PLACE(i + 1), PLACE(i + 2), PLACE(i + 3), PLACE(i + 4), PLACE(i + 5)
	enum { FIRST = 2 * HISTOGRAM_LEAST_BITS + 3 };
	static const uint16_t places[2 * 64 + 2] = {[FIRST] = SIX(0),
		SIX(6),
		SIX(12),
		SIX(18),
		SIX(24),
		SIX(30),
		SIX(36),
		SIX(42),
		SIX(48),
		[FIRST + HISTOGRAM_N... 2 * 64] = PLACE(HISTOGRAM_N - 1)};
#undef SIX
#undef PLACE
	// By the highest bit, which is the octave, and the one below, which tells its halves apart.
	// Bounds belong to the bucket below them; twice the time less one is never 0, and a time of
	// 0 wraps.
	uint64_t x = 2 * ns - 1;
	uint32_t octave = (uint32_t)__builtin_clzll(x) ^ 63; // 63 - clz, in one instruction
	return places[2 * octave + (uint32_t)(x >> ((octave - 1) & 63))];
}

// The number of that bucket.
static inline uint32_t histogram_index(uint64_t ns)
{
	return histogram_place(ns) / (uint32_t)sizeof(uint64_t);
}

// The longest time of a bucket; index < HISTOGRAM_N - 1.
static inline uint64_t histogram_bound_ns(uint32_t index)
{
	if (index == 0)
		return UINT64_C(1) << HISTOGRAM_LEAST_BITS;
	return (3 + (uint64_t)(index - 1) % 2) << (HISTOGRAM_LEAST_BITS - 1 + (index - 1) / 2);
}

// place: histogram_place(ns), which several histograms may share.
static inline void histogram_add(struct histogram *h, uint32_t place, uint64_t ns)
{
	counter_add(&h->sum_ns, ns);
	counter_add((uint64_t *)((char *)h->counts + place), 1);
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
