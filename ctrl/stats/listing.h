// SPDX-License-Identifier: Apache-2.0
// An answer of as many rows as there may be: they are asked for, chosen, sorted and printed in
// slices, so that the control thread's loop is never held up (OPS-122). Between slices things come
// and go: it is no picture of one instant.
// Thread: ctrl.
#pragma once

#include "ctrl/stats/show_inside.h"

#include <jansson.h>

#include <stdbool.h>

struct listing;

// Where rows come from.
struct listing_source {
	// Tells a few, by listing_add(). False = those were the last.
	bool (*step)(struct listing_source *, struct listing *);
	void (*free)(struct listing_source *);
};

// Takes the row; NULL = out of memory, and so the answer will be.
void listing_add(struct listing *, json_t *row);

// Answers with the source's rows: what the first slice has of them, and in args->follow the rest,
// if there is any. Takes source and args->query. From malloc; NULL = out of memory.
char *listing_answer(const struct show *, struct show_args *, struct listing_source *);
