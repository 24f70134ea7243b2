// SPDX-License-Identifier: Apache-2.0
// Which child of the priority policy serves which priority of a leaf, by number (gRFC A74; A74-C03
// to A74-C05): a number follows its localities when they move between priorities, so that no
// connection is closed because of it. Immutable; each update derives the next object from the last.
// Thread: ctrl. Pure.
#pragma once

#include "lb/base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_child_names;

struct lb_child_names_priority {
	const struct str *localities; // their names
	uint32_t n_localities;
};
// True if the child of this number has been made; ctx is the caller's.
typedef bool lb_child_exists(void *ctx, uint32_t number);

// `before` may be NULL: no numbers exist yet; otherwise list_before is what it was made for. Both
// lists are borrowed for the call. Returns NULL if out of memory.
struct lb_child_names *lb_child_names_new(const struct lb_child_names *before,
	const struct lb_child_names_priority *list_before,
	const struct lb_child_names_priority *list, uint32_t n, lb_child_exists *, void *ctx);
void lb_child_names_free(struct lb_child_names *); // NULL is fine
// The number of this priority's child; numbers are never reused for other localities.
uint32_t lb_child_names_at(const struct lb_child_names *, uint32_t priority);
