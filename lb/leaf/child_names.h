// SPDX-License-Identifier: Apache-2.0
// Which child of the priority policy serves which priority of a leaf, by number (gRFC A74;
// A74-C03 to A74-C05): a number follows its localities when these move between
// priorities, so that no connection closes for it. Immutable; each update makes the next one from
// the one before.
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
// The child of this number has been made; ctx is the caller's.
typedef bool lb_child_exists(void *ctx, uint32_t number);

// `before` may be NULL: nobody has a number yet; else list_before is what it was made for. Both
// lists are borrowed for the call. NULL = out of memory.
struct lb_child_names *lb_child_names_new(const struct lb_child_names *before,
	const struct lb_child_names_priority *list_before,
	const struct lb_child_names_priority *list, uint32_t n, lb_child_exists *, void *ctx);
void lb_child_names_free(struct lb_child_names *); // NULL is fine
// The number of this priority; never one that another priority had before.
uint32_t lb_child_names_at(const struct lb_child_names *, uint32_t priority);
