// SPDX-License-Identifier: Apache-2.0
// The numbers that HAProxy's tools know a row of `show stat` by (`iid`, `sid`): given when a row is
// told first, and never to another one. With each row goes what it counted when it was told last,
// so that a listing has rates and means since then.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct haproxy_ids;

// Something that grows, as it stood when it was read last, and what it did between the last two
// readings that lay a second or more apart.
struct haproxy_reading {
	uint64_t count, sum, at_ns; // at_ns 0 = it was never read
	uint64_t per_s, mean;
	bool has_rate; // it was read twice
	bool has_mean; // something was counted before the last reading
};

struct haproxy_id { // borrowed until the listing ends
	uint32_t number;
	struct haproxy_reading events, requests, attempts;
};

// More rows than this are told without a number.
#define HAPROXY_IDS_MAX (1u << 20)

struct haproxy_ids *haproxy_ids_new(void); // NULL = out of memory
void haproxy_ids_free(struct haproxy_ids *); // NULL is fine

// A listing begins; returns its number. Several may be under way.
uint64_t haproxy_ids_begin(struct haproxy_ids *);
// Each ends once. n: it took all rows that there are, so many; UINT32_MAX = not all. Once those
// that went are many more, they are forgotten, and have another number if they come back.
void haproxy_ids_end(struct haproxy_ids *, uint64_t listing, uint32_t n);
// The row with this name in the group. NULL = the listing has told of it already. Of one that there
// is no room for the number is 0.
struct haproxy_id *haproxy_ids_take(
	struct haproxy_ids *, uint64_t listing, const char *group, const char *name);

// Tells the reading what has been counted by now, and what that sums up to (0 = nothing has a sum).
void haproxy_reading_take(struct haproxy_reading *, uint64_t count, uint64_t sum, uint64_t now_ns);
