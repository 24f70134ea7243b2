// SPDX-License-Identifier: Apache-2.0
// What a page shows, for all who look at the same one: looks follow each other while somebody
// does, and what the last one found is kept for a minute more, for the rates of who comes back.
// Thread: ctrl.
#pragma once

#include "ctrl/base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct show;
struct twheel;
struct view;

#define VIEW_ROUND_NS UINT64_C(2000000000) // from the end of a look to the next one
#define VIEW_MOST_ROUND_NS UINT64_C(10000000000)
#define VIEW_SHARE 20 // of the thread's time looks take one part in so many, until that is reached
#define VIEW_KEPT_NS UINT64_C(60000000000) // without anybody who looks

struct view_conf { // all borrowed, outlives it
	struct event_base *base;
	struct twheel *wheel;
	const struct show *show;
	struct slice slice;
	// A look has ended. False: it failed for lack of memory, and what was there before stays.
	void (*looked)(void *ctx, struct view *, bool is_new);
	// Nobody has looked for a long time: it may be freed.
	void (*left)(void *ctx, struct view *);
	void *ctx;
};

// Of all, or of one cluster (copied). NULL = out of memory.
struct view *view_new(const struct view_conf *, const char *cluster);
void view_free(struct view *); // NULL is fine
bool view_is_of(const struct view *, const char *cluster); // NULL = all
// Begins a look, unless one is under way. Its end is told later, never from here.
void view_look(struct view *);
// Whether somebody goes on looking. Without anybody it is kept for a while.
void view_follow(struct view *, bool is_followed);
// What the last look found, borrowed until the next one ends: `<main>`, and the page's title. NULL
// = there was none yet.
const char *view_text(const struct view *, size_t *ret_len);
const char *view_title(const struct view *);
uint64_t view_age_ns(const struct view *); // of the text; UINT64_MAX = there is none
