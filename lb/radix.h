// SPDX-License-Identifier: Apache-2.0
// Immutable compressed radix tree over byte strings: one walk along a text finds every key that the
// text starts with. For prefix routes and, read backwards, for suffix domains.
// Thread: new/free on ctrl; find anywhere. Pure.
#pragma once

#include "lb/base/str.h"

#include <stdint.h>

#define LB_RADIX_NONE UINT32_MAX

enum lb_radix_flags {
	LB_RADIX_FOLD = 1, // ASCII case is ignored
	LB_RADIX_BACKWARDS = 2, // keys and texts are read from their end: keys are suffixes
};

struct lb_radix;
struct lb_radix_entry {
	struct str key; // borrowed for the call
	uint32_t value; // < LB_RADIX_NONE; the smallest of equal keys stays
};
// LB_RADIX_NONE where there is none.
struct lb_radix_hit {
	uint32_t smallest; // of the values of all keys that the text starts with
	uint32_t longest; // value of the longest of those keys
	uint32_t whole; // value of the key that is the text
};

// NULL = no memory.
struct lb_radix *lb_radix_new(const struct lb_radix_entry *, uint32_t n, int flags);
void lb_radix_free(struct lb_radix *); // NULL is fine
struct lb_radix_hit lb_radix_find(const struct lb_radix *, struct str text);
