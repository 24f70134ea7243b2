// SPDX-License-Identifier: Apache-2.0
// Numbers distinct byte strings from 0 in order of insertion: open addressing, keys copied. Each
// key has a user-defined value beside it.
// Thread: new/add/seal/free on ctrl; find anywhere after the last add. Pure.
#pragma once

#include "lb/base/str.h"

#include <stdint.h>

#define LB_STRING_INDEX_NONE UINT32_MAX

struct lb_string_index;

// value_size: a multiple of 4. Returns NULL if out of memory.
struct lb_string_index *lb_string_index_new(uint32_t n_expected, size_t value_size);
void lb_string_index_free(struct lb_string_index *); // NULL is fine
// Returns the key's number, adding it if new, with a zeroed value. LB_STRING_INDEX_NONE = out of
// memory, or more than 8 GiB.
uint32_t lb_string_index_add(struct lb_string_index *, struct str key);
// Frees spare memory, after the last add. Returns false if out of memory.
[[nodiscard]] bool lb_string_index_seal(struct lb_string_index *);

uint32_t lb_string_index_count(const struct lb_string_index *);
size_t lb_string_index_size(const struct lb_string_index *); // bytes
void *lb_string_index_value(
	const struct lb_string_index *, uint32_t number); // borrowed until the next add
uint32_t lb_string_index_find(
	const struct lb_string_index *, struct str key); // LB_STRING_INDEX_NONE = absent
const void *lb_string_index_find_value(
	const struct lb_string_index *, struct str key); // NULL = absent
