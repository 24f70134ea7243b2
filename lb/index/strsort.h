// SPDX-License-Identifier: Apache-2.0
// Sorts byte strings, in byte order, a string before those that start with it. Made for many that
// share long beginnings: eight bytes are looked at at a time, and none twice (multikey quicksort,
// Bentley and Sedgewick). Why not qsort(): docs/decisions/strsort.md.
// Thread: any. Pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lb_strsort_item {
	const uint8_t *p; // borrowed
	size_t len;
	uint64_t chunk; // the sort's own
	uint32_t index; // the user's
};

// Order among equals is any. False = out of memory.
[[nodiscard]] bool lb_strsort(struct lb_strsort_item *, uint32_t n);
// < 0, 0, > 0. They share their first `from` bytes.
int lb_strsort_order(const struct lb_strsort_item *, const struct lb_strsort_item *, size_t from);
