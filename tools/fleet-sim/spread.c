// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet-sim/spread.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

// The least of the counts that so many of a hundred do not exceed.
static uint32_t percentile(const uint32_t *sorted, uint32_t n, uint32_t percent)
{
	uint64_t rank = ((uint64_t)n * percent + 99) / 100;
	return sorted[rank ? rank - 1 : 0];
}

struct spread spread_of(uint32_t *counts, uint32_t n)
{
	double sum = 0;
	for (uint32_t i = 0; i < n; i++)
		sum += counts[i];
	qsort(counts, n, sizeof(*counts), compare);
	return (struct spread){
		.mean = sum / n,
		.least = counts[0],
		.p1 = percentile(counts, n, 1),
		.median = percentile(counts, n, 50),
		.p99 = percentile(counts, n, 99),
		.most = counts[n - 1],
	};
}
