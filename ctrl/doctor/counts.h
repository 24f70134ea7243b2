// SPDX-License-Identifier: Apache-2.0
// How often things had been asked for when they were last looked at, and how that ended, for rates
// and what came since. Both lists are walked in one order: by name, or a fixed one.
// Thread: ctrl.
#pragma once

#include <stdint.h>

struct counts_row {
	char *name; // owned
	uint64_t at_ns, requests;
	uint64_t ok, failed; // by their ending: LB_CAUSE_OK, and all others
	uint64_t bad; // of ok: a backend answered with a status that blames it
};
struct counts { // zero = empty
	struct counts_row *rows; // owned
	uint32_t n, room;
	uint32_t at; // where counts_find() looks next
};

// The name is copied. 0 or -ENOMEM.
[[nodiscard]] int counts_add(struct counts *, const struct counts_row *);
// What the row was before; names come in the order of the list. NULL = it was not there, or has
// been made anew since, or no time has passed. Good until the list changes.
const struct counts_row *counts_find(struct counts *before, const struct counts_row *now);
// What came a second since: requests, and those that failed or are bad (OPS-278); -1 both = as NULL
// above.
void counts_since(struct counts *before, const struct counts_row *now, double *ret_requests,
	double *ret_failed);
void counts_fini(struct counts *); // it is empty then
