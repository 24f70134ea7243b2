// SPDX-License-Identifier: Apache-2.0
// Immutable map from byte strings to numbers: open addressing, built once, keys copied. Of equal
// keys the smallest number stays, since earlier routes and virtual hosts win.
// Thread: new/free on ctrl; find anywhere. Pure.
#pragma once

#include "lb/base/str.h"

#include <stdint.h>

#define LB_STRMAP_NONE UINT32_MAX

struct lb_strmap;
struct lb_strmap_entry {
	struct str key; // borrowed for the call
	uint32_t value; // < LB_STRMAP_NONE
};

// NULL = no memory.
struct lb_strmap *lb_strmap_new(const struct lb_strmap_entry *, uint32_t n);
void lb_strmap_free(struct lb_strmap *); // NULL is fine
bool lb_strmap_is_empty(const struct lb_strmap *);
// LB_STRMAP_NONE = absent.
uint32_t lb_strmap_find(const struct lb_strmap *, struct str key);
