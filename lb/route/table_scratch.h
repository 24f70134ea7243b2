// SPDX-License-Identifier: Apache-2.0
// Memory that lookups in one route table write to, one table scratch per thread: large enough for
// the table's largest virtual host, so that a lookup allocates nothing and has no limit of its own.
// Thread: made on ctrl; each is used by one thread.
#pragma once

#include "lb/base/str.h"

#include <stdint.h>

struct lb_header_value {
	struct str text;
	uint32_t n; // fields of this name; 0 = absent
	uint32_t n_joined; // of them, joined so far
	size_t joined_len; // length of all of them joined
};

struct lb_header_hits { // of one regex set on one header
	uint64_t generation; // of the lookup that computed it
	uint64_t bits;
};

#define LB_TABLE_SCRATCH_AUTHORITY_MAX 64

struct lb_table_scratch_size {
	uint32_t n_candidates, n_values, n_hits;
};

struct lb_table_scratch {
	uint64_t generation; // number of lookups so far that needed more than the path
	// The last authority and its virtual host, since consecutive requests mostly have the same
	// one.
	char authority[LB_TABLE_SCRATCH_AUTHORITY_MAX];
	size_t authority_len; // 0 = none
	int vhost;
	uint64_t *candidates; // heap
	struct lb_header_value *values;
	struct lb_header_hits *hits;
};

struct lb_table_scratch_size lb_table_scratch_size_max(
	struct lb_table_scratch_size, struct lb_table_scratch_size);
// n table scratches that share no cache line; free() frees all. Returns NULL if out of memory.
struct lb_table_scratch **lb_table_scratches_new(uint32_t n, const struct lb_table_scratch_size *);
