// SPDX-License-Identifier: Apache-2.0
#include "tools/shunt-load/histogram.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#define STEP_BITS 7
_Static_assert(HISTOGRAM_STEPS == 1 << STEP_BITS, "");

// Values below two full rows of steps have a bucket each; above, a row of steps for each power of
// two.
static size_t bucket_of(uint64_t value)
{
	if (value > HISTOGRAM_MAX)
		value = HISTOGRAM_MAX;
	if (value < 2 * HISTOGRAM_STEPS)
		return (size_t)value;
	unsigned shift = 63 - (unsigned)__builtin_clzll(value) - STEP_BITS;
	return shift * HISTOGRAM_STEPS + (size_t)(value >> shift);
}

static uint64_t last_of(size_t bucket)
{
	if (bucket < 2 * HISTOGRAM_STEPS)
		return bucket;
	unsigned shift = (unsigned)(bucket / HISTOGRAM_STEPS) - 1;
	uint64_t step = bucket % HISTOGRAM_STEPS + HISTOGRAM_STEPS;
	return ((step + 1) << shift) - 1;
}

void histogram_add(struct histogram *h, uint64_t value)
{
	if (h->n == 0 || value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
	h->n++;
	h->sum += value;
	h->counts[bucket_of(value)]++;
}

uint64_t histogram_quantile(const struct histogram *h, double q)
{
	double wanted = ceil(q * (double)h->n);
	uint64_t rank = wanted < 1 ? 1 : (uint64_t)wanted;
	if (rank >= h->n)
		return h->max;
	uint64_t below = 0;
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		below += h->counts[i];
		if (below >= rank) {
			uint64_t value = last_of(i);
			return value < h->max ? value : h->max;
		}
	}
	return h->max;
}

double histogram_mean(const struct histogram *h)
{
	return h->n ? (double)h->sum / (double)h->n : 0;
}
