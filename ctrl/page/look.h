// SPDX-License-Identifier: Apache-2.0
// One look at the daemon for the status page (docs/status-page.md), in small steps, so that no turn
// of the loop is long: what is worst is noted, and then written as the page's content. Between
// steps clusters and endpoints may come and go. Rates are those since the look before.
// Thread: ctrl.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct look;
struct look_past; // what a look leaves to the next one
struct show;

// Rows of a table (OPS-171); the worst come first, and how many are left out is told.
#define LOOK_MAX_FRONTENDS 30
#define LOOK_MAX_CLUSTERS 50
#define LOOK_MAX_ENDPOINTS 50
#define LOOK_MAX_ENDPOINTS_OF_ONE 200 // on the page of one cluster
#define LOOK_MAX_RESOURCES 30
#define LOOK_MAX_WORKERS 64
#define LOOK_MAX_POOLS 20
#define LOOK_MAX_CERTIFICATES 10
#define LOOK_FAILURES 20
#define LOOK_EVENTS 15

// Of all, or of one cluster (copied). The past is borrowed, NULL = there is none. NULL = out of
// memory.
struct look *look_new(const struct show *, const char *cluster, struct look_past *);
void look_free(struct look *); // NULL is fine
// 1: there is more to do; 0: it is done; -ENOMEM.
[[nodiscard]] int look_step(struct look *);
// Once it is done: `<main>`, one line; from malloc, the caller's. The title of the page, likewise,
// is escaped.
char *look_take_text(struct look *, size_t *ret_len);
char *look_take_title(struct look *);
struct look_past *look_take_past(struct look *); // the caller's
void look_past_free(struct look_past *); // NULL is fine
