// SPDX-License-Identifier: Apache-2.0
// How often things had been asked for when they were last looked at, for rates. Both lists are
// walked in one order: by name, or a fixed one.
// Thread: ctrl.
#pragma once

#include <stdint.h>

struct counts_row {
	char *name; // owned
	uint64_t at_ns, requests, failed;
};
struct counts { // zero = empty
	struct counts_row *rows; // owned
	uint32_t n, room;
	uint32_t at; // where counts_since() looks next
};

[[nodiscard]] int counts_add(
	struct counts *, const char *name, uint64_t now_ns, uint64_t requests, uint64_t failed);
// What came a second since it was in the list, of requests and failures; -1 both = it was not
// there, or has been made anew since. Names come in the order of the list.
void counts_since(struct counts *before, const struct counts_row *now, double *ret_requests,
	double *ret_failed);
void counts_fini(struct counts *); // it is empty then
