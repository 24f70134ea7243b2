// SPDX-License-Identifier: Apache-2.0
// Sets of ASCII characters.
// Thread: any. Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lb_regex_chars {
	uint64_t bits[2];
};

static inline void lb_regex_chars_add(struct lb_regex_chars *s, unsigned low, unsigned high)
{
	for (unsigned c = low; c <= high && c < 128; c++)
		s->bits[c >> 6] |= UINT64_C(1) << (c & 63);
}

static inline void lb_regex_chars_add_all(struct lb_regex_chars *s, struct lb_regex_chars other)
{
	s->bits[0] |= other.bits[0];
	s->bits[1] |= other.bits[1];
}

static inline bool lb_regex_chars_has(const struct lb_regex_chars *s, unsigned c)
{
	return s->bits[c >> 6 & 1] >> (c & 63) & 1;
}

static inline struct lb_regex_chars lb_regex_chars_others(struct lb_regex_chars s)
{
	return (struct lb_regex_chars){{~s.bits[0], ~s.bits[1]}};
}

static inline bool lb_regex_chars_meet(struct lb_regex_chars a, struct lb_regex_chars b)
{
	return (a.bits[0] & b.bits[0]) || (a.bits[1] & b.bits[1]);
}

static inline unsigned lb_regex_chars_count(struct lb_regex_chars s)
{
	return (unsigned)(__builtin_popcountll(s.bits[0]) + __builtin_popcountll(s.bits[1]));
}

// The set must not be empty.
static inline unsigned lb_regex_chars_first(struct lb_regex_chars s)
{
	return (unsigned)(s.bits[0] ? __builtin_ctzll(s.bits[0]) : 64 + __builtin_ctzll(s.bits[1]));
}

// Adds the other case of each letter.
static inline struct lb_regex_chars lb_regex_chars_fold(struct lb_regex_chars s)
{
	// the letters' positions in either half of the second word
	uint64_t letters = UINT64_C(0x07fffffe);
	uint64_t either = (s.bits[1] | s.bits[1] >> 32) & letters;
	s.bits[1] |= either | either << 32;
	return s;
}
