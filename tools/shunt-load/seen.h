// SPDX-License-Identifier: Apache-2.0
// Detects repeated numbers of a growing sequence. Remembers a window below the highest one; older
// numbers count as new, to report no false duplicates.
// Thread: one owner.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SEEN_WINDOW (UINT64_C(1) << 20)

// All zero = empty.
struct seen {
	uint64_t end; // highest number received + 1
	uint64_t bits[SEEN_WINDOW / 64]; // by number modulo the window
};

// Records n; true = it had come before.
static inline bool seen_before(struct seen *s, uint64_t n)
{
	if (n >= s->end) {
		uint64_t first = n - s->end >= SEEN_WINDOW ? n - SEEN_WINDOW + 1 : s->end;
		for (uint64_t i = first; i <= n; i++)
			s->bits[i % SEEN_WINDOW / 64] &= ~(UINT64_C(1) << i % 64);
		s->end = n + 1;
	} else if (s->end - n > SEEN_WINDOW) {
		return false;
	}
	uint64_t bit = UINT64_C(1) << n % 64, *word = &s->bits[n % SEEN_WINDOW / 64];
	bool was = *word & bit;
	*word |= bit;
	return was;
}
