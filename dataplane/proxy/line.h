// SPDX-License-Identifier: Apache-2.0
// Requests that wait for the same thing, one line for each source: the first of each line in turn
// is next, so that whoever sends most waits longest, and nobody else does for it (TH-79).
// A room is a list of lines; it is empty if no request waits there.
// Thread: the owning worker.
#pragma once

#include "lb/base/list.h"
#include "lb/base/pool.h"

#include <stdint.h>

struct proxy_line;
struct proxy_request;

// All lines of a worker.
struct proxy_lines {
	struct pool pool;
	struct proxy_line **buckets; // owned; [mask + 1]
	uint32_t mask;
};

// For up to n_requests waiting at a time. 0 or -ENOMEM; call fini() in either case.
[[nodiscard]] int proxy_lines_init(struct proxy_lines *, uint32_t n_requests);
void proxy_lines_fini(struct proxy_lines *); // all zero is fine

// At the end of its source's line.
void proxy_line_append(struct proxy_lines *, struct list_link *room, struct proxy_request *);
void proxy_line_remove(struct proxy_lines *, struct proxy_request *);
// The one whose turn it is; the one behind all others. NULL = the room is empty.
struct proxy_request *proxy_line_first(const struct list_link *room);
struct proxy_request *proxy_line_last(const struct list_link *room);
// It is the next line's turn. The room is not empty.
void proxy_line_turn(struct list_link *room);
