// SPDX-License-Identifier: Apache-2.0
#include "lb/route/table_scratch.h"

#include <stdlib.h>

#define LINE ((size_t)128) // two cache lines: they are fetched in pairs

static size_t round_up(size_t n)
{
	return (n + LINE - 1) & ~(LINE - 1);
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

struct lb_table_scratch_size lb_table_scratch_size_max(
	struct lb_table_scratch_size a, struct lb_table_scratch_size b)
{
	return (struct lb_table_scratch_size){
		.n_candidates = larger(a.n_candidates, b.n_candidates),
		.n_values = larger(a.n_values, b.n_values),
		.n_hits = larger(a.n_hits, b.n_hits)};
}

struct lb_table_scratch **lb_table_scratches_new(
	uint32_t n, const struct lb_table_scratch_size *size)
{
	size_t values = round_up(sizeof(struct lb_table_scratch));
	size_t hits = values + round_up(size->n_values * sizeof(struct lb_header_value));
	size_t candidates = hits + round_up(size->n_hits * sizeof(struct lb_header_hits));
	size_t stride = candidates + round_up(size->n_candidates * sizeof(uint64_t));
	size_t first = round_up(n * sizeof(struct lb_table_scratch *));
	struct lb_table_scratch **table_scratches = aligned_alloc(LINE, first + n * stride);
	if (!table_scratches)
		return NULL;
	char *base = (char *)table_scratches;
	memset(base, 0, first + n * stride);
	for (uint32_t i = 0; i < n; i++) {
		char *p = base + first + i * stride;
		table_scratches[i] = (void *)p;
		*table_scratches[i] = (struct lb_table_scratch){.values = (void *)(p + values),
			.hits = (void *)(p + hits),
			.candidates = (void *)(p + candidates)};
	}
	return table_scratches;
}
