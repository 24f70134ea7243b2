// SPDX-License-Identifier: Apache-2.0
// Numbers distinct byte strings from 0 in the order in which they come: open addressing, keys
// copied. Each key has a value of the user's, which lies beside it.
// Thread: new/add/seal/free on ctrl; find anywhere once nothing is added any more. Pure.
#pragma once

#include "lb/base/str.h"

#include <stdint.h>

#define LB_STRING_INDEX_NONE UINT32_MAX

struct lb_string_index;

// value_size: a multiple of 4. NULL = out of memory.
struct lb_string_index *lb_string_index_new(uint32_t n_expected, size_t value_size);
void lb_string_index_free(struct lb_string_index *); // NULL is fine
// The key's number, new or not; a new one's value is zero. LB_STRING_INDEX_NONE = out of memory, or
// more than 8 GiB.
uint32_t lb_string_index_add(struct lb_string_index *, struct str key);
// Gives spare memory back, after the last add. False = out of memory.
[[nodiscard]] bool lb_string_index_seal(struct lb_string_index *);

uint32_t lb_string_index_count(const struct lb_string_index *);
size_t lb_string_index_size(const struct lb_string_index *); // bytes
void *lb_string_index_value(
	const struct lb_string_index *, uint32_t number); // borrowed until the next add
uint32_t lb_string_index_find(
	const struct lb_string_index *, struct str key); // LB_STRING_INDEX_NONE = absent
const void *lb_string_index_find_value(
	const struct lb_string_index *, struct str key); // NULL = absent
