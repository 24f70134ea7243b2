// SPDX-License-Identifier: Apache-2.0
// Numbers distinct byte strings from 0 in the order in which they come: open addressing, keys
// copied. Each key has a value of the user's, which lies beside it.
// Thread: new/add/seal/free on ctrl; find anywhere once nothing is added any more. Pure.
#pragma once

#include "lb/base/str.h"

#include <stdint.h>

#define LB_STRMAP_NONE UINT32_MAX

struct lb_strmap;

// value_size: a multiple of 4. NULL = out of memory.
struct lb_strmap *lb_strmap_new(uint32_t n_expected, size_t value_size);
void lb_strmap_free(struct lb_strmap *); // NULL is fine
// The key's number, new or not; a new one's value is zero. LB_STRMAP_NONE = out of memory, or more
// than 8 GiB.
uint32_t lb_strmap_add(struct lb_strmap *, struct str key);
// Gives spare memory back, after the last add. False = out of memory.
[[nodiscard]] bool lb_strmap_seal(struct lb_strmap *);

uint32_t lb_strmap_count(const struct lb_strmap *);
size_t lb_strmap_size(const struct lb_strmap *); // bytes
void *lb_strmap_value(const struct lb_strmap *, uint32_t number); // borrowed until the next add
uint32_t lb_strmap_find(const struct lb_strmap *, struct str key); // LB_STRMAP_NONE = absent
const void *lb_strmap_find_value(const struct lb_strmap *, struct str key); // NULL = absent
