// SPDX-License-Identifier: Apache-2.0
// How much each of any number of holders has, in a table that does not grow: a count-min sketch
// (Cormode and Muthukrishnan, 2005). A holder counts at one place of each row, by another part of
// its hash, and has what the least of them says. So it never seems to have too little, and too much
// only where it meets others in every row: beside 250 holders one in 80,000 does, beside 2000 one
// in 45. By one row it would be one in 17, or in three.
// Thread: any. Counts are relaxed: of several who add one holder at once some may each hear of less
// than there were.
#pragma once

#include "lb/base/min.h"

#include <stdint.h>

#define SKETCH_ROWS 4
#define SKETCH_WIDTH 4096 // places of a row
_Static_assert(SKETCH_WIDTH <= UINT64_C(1) << (64 / SKETCH_ROWS), "a row has bits of its own");

struct sketch {
	uint32_t at[SKETCH_ROWS][SKETCH_WIDTH];
};

// hash: keyed, so that nobody can choose whom he meets.
static inline uint32_t sketch_place(uint64_t hash, uint32_t row)
{
	return (hash >> (64 / SKETCH_ROWS * row)) % SKETCH_WIDTH;
}

static inline uint32_t sketch_count(const struct sketch *s, uint64_t hash)
{
	uint32_t least = UINT32_MAX;
	for (uint32_t i = 0; i < SKETCH_ROWS; i++)
		least = min_u32(
			least, __atomic_load_n(&s->at[i][sketch_place(hash, i)], __ATOMIC_RELAXED));
	return least;
}

// One more. Returns how many there were before.
static inline uint32_t sketch_add(struct sketch *s, uint64_t hash)
{
	uint32_t least = UINT32_MAX;
	for (uint32_t i = 0; i < SKETCH_ROWS; i++)
		least = min_u32(least,
			__atomic_fetch_add(&s->at[i][sketch_place(hash, i)], 1, __ATOMIC_RELAXED));
	return least;
}

// One that was added.
static inline void sketch_remove(struct sketch *s, uint64_t hash)
{
	for (uint32_t i = 0; i < SKETCH_ROWS; i++)
		__atomic_fetch_sub(&s->at[i][sketch_place(hash, i)], 1, __ATOMIC_RELAXED);
}
