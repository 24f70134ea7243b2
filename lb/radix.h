// SPDX-License-Identifier: Apache-2.0
// Immutable compressed radix tree over byte strings: one walk along a text finds the longest key
// that the text starts with; the shorter ones follow from it, key by key. For prefix routes and,
// read backwards, for suffix domains.
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
// Numbers of keys; LB_RADIX_NONE where there is none.
struct lb_radix_hit {
	uint32_t longest; // of the keys that the text starts with
	uint32_t whole; // the key that is the text
};

// Distinct keys are numbered from 0 in byte order, so that a key comes after those it starts with.
// ret_numbers[i] is the number of keys[i], ret_up[number] the longest other key that key `number`
// starts with, LB_RADIX_NONE = none; each has room for n. Keys are borrowed for the call. NULL = no
// memory.
struct lb_radix *lb_radix_new(
	const struct str *keys, uint32_t n, int flags, uint32_t *ret_numbers, uint32_t *ret_up);
void lb_radix_free(struct lb_radix *); // NULL is fine
uint32_t lb_radix_count(const struct lb_radix *); // of distinct keys
size_t lb_radix_size(const struct lb_radix *); // bytes
struct lb_radix_hit lb_radix_find(const struct lb_radix *, struct str text);
