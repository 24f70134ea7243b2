// SPDX-License-Identifier: Apache-2.0
// How much of something long one turn of the control thread's loop does, so that others get theirs:
// whoever works asks after each small step, and goes on in the next turn. Zeroed = all at once.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slice {
	uint64_t (*clock_ns)(void); // the loop's, monotonic; NULL = time does not count
	uint64_t len_ns; // by that clock
	uint64_t most; // steps; 0 = any number
	// Of this turn:
	uint64_t until_ns, n_left;
};

static inline void slice_begin(struct slice *s)
{
	s->until_ns = s->clock_ns ? s->clock_ns() + s->len_ns : UINT64_MAX;
	s->n_left = s->most ? s->most : UINT64_MAX;
}

// Everything is done at once.
static inline bool slice_is_whole(const struct slice *s)
{
	return !s->clock_ns && !s->most;
}

// A step is done. True = it was the last of this turn.
static inline bool slice_over(struct slice *s)
{
	if (s->n_left-- <= 1)
		return true;
	return s->clock_ns && s->clock_ns() >= s->until_ns;
}
