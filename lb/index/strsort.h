// SPDX-License-Identifier: Apache-2.0
// Sorts byte strings in byte order, a string before those that it is a prefix of. For many strings
// with long common prefixes: compares eight bytes at a time, and none twice (multikey quicksort,
// Bentley and Sedgewick). Why not qsort(): docs/decisions/strsort.md.
// Thread: any. Pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lb_strsort_item {
	const uint8_t *p; // borrowed
	size_t len;
	uint64_t chunk; // private
	uint32_t index; // the user's
};

// Equal strings end up in any order. Returns false if out of memory.
[[nodiscard]] bool lb_strsort(struct lb_strsort_item *, uint32_t n);
// Compares strings that share their first `from` bytes: < 0, 0, > 0.
int lb_strsort_order(const struct lb_strsort_item *, const struct lb_strsort_item *, size_t from);
