// SPDX-License-Identifier: Apache-2.0
// What lookups in one route table write to, a table scratch for each thread: as large as the
// table's largest virtual host needs, so that a lookup allocates nothing and has no limit of its
// own.
// Thread: made on ctrl; a table scratch is its thread's.
#pragma once

#include "lb/base/str.h"

#include <stdint.h>

struct lb_header_value {
	struct str text;
	uint32_t n; // fields of this name; 0 = absent
	uint32_t n_joined; // of them, so far
	size_t joined_len; // of all of them in one
};

struct lb_header_hits { // of one regex set on one header
	uint64_t generation; // of the lookup that asked
	uint64_t bits;
};

#define LB_TABLE_SCRATCH_AUTHORITY_MAX 64

struct lb_table_scratch_size {
	uint32_t n_candidates, n_values, n_hits;
};

struct lb_table_scratch {
	uint64_t generation; // lookups so far that needed more than the path
	// The last authority and its virtual host: requests in a row mostly have the same one.
	char authority[LB_TABLE_SCRATCH_AUTHORITY_MAX];
	size_t authority_len; // 0 = none
	int vhost;
	uint64_t *candidates; // a heap
	struct lb_header_value *values;
	struct lb_header_hits *hits;
};

struct lb_table_scratch_size lb_table_scratch_size_max(
	struct lb_table_scratch_size, struct lb_table_scratch_size);
// n table scratches that share no cache line. free() frees them all. NULL = out of memory.
struct lb_table_scratch **lb_table_scratches_new(uint32_t n, const struct lb_table_scratch_size *);
