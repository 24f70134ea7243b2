// SPDX-License-Identifier: Apache-2.0
// Numbers distinct byte strings from 0 in the order in which they come: open addressing, keys
// copied. What belongs to a key lives in the user's arrays, by its number.
// Thread: new/add/seal/free on ctrl; find anywhere once nothing is added any more. Pure.
#pragma once

#include "lb/base/str.h"

#include <stdint.h>

#define LB_STRMAP_NONE UINT32_MAX

struct lb_strmap;

struct lb_strmap *lb_strmap_new(uint32_t n_expected); // NULL = no memory
void lb_strmap_free(struct lb_strmap *); // NULL is fine
// The key's number, new or not. LB_STRMAP_NONE = no memory, or more than 4 GiB of keys.
uint32_t lb_strmap_add(struct lb_strmap *, struct str key);
// Gives spare memory back, after the last add. False = no memory.
[[nodiscard]] bool lb_strmap_seal(struct lb_strmap *);

uint32_t lb_strmap_count(const struct lb_strmap *);
size_t lb_strmap_size(const struct lb_strmap *); // bytes
struct str lb_strmap_key(const struct lb_strmap *, uint32_t number); // borrowed until the next add
uint32_t lb_strmap_find(const struct lb_strmap *, struct str key); // LB_STRMAP_NONE = absent
