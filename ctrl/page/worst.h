// SPDX-License-Identifier: Apache-2.0
// The first few of many rows by some order, kept sorted while they come; the others are counted.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct worst {
	size_t size; // of a row
	uint32_t max; // rows that are kept
	bool (*is_before)(const void *a, const void *b); // a strict order
	void (*drop)(void *row); // frees what it has; NULL = nothing
	uint8_t *rows; // owned, [max]
	uint32_t n;
	uint64_t n_seen; // that came
};

// False = out of memory; then it is as empty as worst_fini() leaves it.
[[nodiscard]] bool worst_init(struct worst *, size_t size, uint32_t max,
	bool (*is_before)(const void *a, const void *b), void (*drop)(void *row));
void worst_fini(struct worst *); // zeroed is fine
// A row came. Whether it is among the first for now: then worst_add() it, whose texts need not be
// copied before.
bool worst_wants(struct worst *, const void *row);
void worst_add(struct worst *, const void *row); // takes what the row has
const void *worst_at(const struct worst *, uint32_t i);
uint64_t worst_left_out(const struct worst *);
