// SPDX-License-Identifier: Apache-2.0
// The last records that the access log has told, for operators who ask. A ring: new ones go over
// the oldest, and who reads on is told how many it has missed.
// Thread: the log's adds, ctrl reads; a lock keeps them apart.
#pragma once

#include "lb/pick/access.h"

#include <stdbool.h>
#include <stdint.h>

#define ACCESS_RECENT 1024 // that are kept

struct access_log_frontend;

struct access_recent_entry {
	const struct access_log_frontend *frontend; // as it was then; valid for the log's life
	uint64_t began_wall_ns; // since 1970
	uint32_t worker;
	struct lb_access_record record;
};
struct access_recent;

struct access_recent *access_recent_new(void); // NULL = out of memory
void access_recent_free(struct access_recent *); // NULL is fine
// Their frontends are borrowed for the log's life. Began that much before the wall's clock.
void access_recent_add(struct access_recent *, const struct lb_access_record *,
	const struct access_log_frontend *const *frontends, uint32_t n, uint32_t worker,
	uint64_t wall_offset_ns);
// How many there ever were.
uint64_t access_recent_count(struct access_recent *);
// Reads the one with this number, from 0 on, or the oldest if that is gone, and sets *number behind
// it. ret_lost grows by those that are gone. False = there is none so far.
bool access_recent_read(struct access_recent *, uint64_t *number, struct access_recent_entry *ret,
	uint64_t *ret_lost);
