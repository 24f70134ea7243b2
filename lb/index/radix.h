// SPDX-License-Identifier: Apache-2.0
// Compressed radix tree over byte strings: one walk along a text finds the longest key that the
// text starts with; its shorter prefixes follow, key by key. Each key has a user-defined value. For
// prefix routes and, read backwards, for suffix domains.
// Thread: made and filled on ctrl; find anywhere from then on. Pure.
#pragma once

#include "lb/base/str.h"

#include <stdint.h>

enum lb_radix_flags {
	LB_RADIX_FOLD = 1, // ASCII case is ignored
	LB_RADIX_BACKWARDS = 2, // keys and texts are read from their end: keys are suffixes
};

struct lb_radix;
struct lb_radix_hit {
	const void *longest; // value of the longest key that the text starts with; NULL = none
	bool is_whole; // that key is the text
};

// Sets ret_values[i], which has room for n, to the value of keys[i]: value_size bytes, a multiple
// of 4, zeroed. Equal keys share one. Keys are borrowed for the call. Returns NULL if out of
// memory.
struct lb_radix *lb_radix_new(
	const struct str *keys, uint32_t n, int flags, size_t value_size, void **ret_values);
void lb_radix_free(struct lb_radix *); // NULL is fine
uint32_t lb_radix_count(const struct lb_radix *); // of distinct keys
size_t lb_radix_size(const struct lb_radix *); // bytes
struct lb_radix_hit lb_radix_find(const struct lb_radix *, struct str text);
// Returns the value of the longest other key that is a prefix of this value's key; NULL = none.
const void *lb_radix_up(const struct lb_radix *, const void *value);
// Iterates over values in key order, each after its prefixes. NULL begins; returns NULL at the end.
void *lb_radix_next(const struct lb_radix *, const void *value);
