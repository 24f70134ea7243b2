// SPDX-License-Identifier: Apache-2.0
// The access logs that a listener asks for (OPS-40), as workers see them: for each the bit by which
// its writer knows it, and the conditions under which a request is told of. Immutable.
// Thread: built, counted and freed on ctrl; workers read.
#pragma once

#include "lb/pick/access.h"

#include <stdbool.h>
#include <stdint.h>

// Conditions, as those of Envoy's AccessLogFilter.
enum lb_access_kind {
	LB_ACCESS_ALL, // of those within; of none: true
	LB_ACCESS_ANY, // of those within; of none: false
	LB_ACCESS_STATUS, // HTTP's; 0 = the client was told none
	LB_ACCESS_DURATION, // whole milliseconds
	LB_ACCESS_CHANCE,
	LB_ACCESS_CAUSES, // or delayed
	LB_ACCESS_GRPC, // its status, or what HTTP's stands for
};
enum lb_access_op { LB_ACCESS_EQ, LB_ACCESS_GE, LB_ACCESS_LE, LB_ACCESS_NE };

// Tests stand in a row, each before those that are within it.
struct lb_access_test {
	uint8_t kind; // enum lb_access_kind
	uint8_t op; // STATUS, DURATION: enum lb_access_op
	uint16_t n; // ALL, ANY: how many of those behind it are within, at any depth
	uint32_t salt; // CHANCE: 0 = by the request's own draw, else by another one
	uint64_t value; // STATUS, DURATION; CHANCE: so many of 2^32; CAUSES, GRPC: bits
};

#define LB_ACCESS_TESTS 64 // of one log
#define LB_ACCESS_DEPTH 8 // of tests within tests

// Recurses no deeper than the tests do.
bool lb_access_holds(const struct lb_access_test *, const struct lb_access_brief *);

struct lb_access_log { // of a set, or to be copied into one
	uint64_t bit;
	const struct lb_access_test *test; // with those within it; NULL = all requests
};

struct lb_access_set {
	uint32_t n_refs; // ctrl only
	uint32_t n;
	struct lb_access_log logs[];
};

// Copies everything. Count 1. NULL = out of memory.
struct lb_access_set *lb_access_set_new(const struct lb_access_log *, uint32_t n);
struct lb_access_set *lb_access_set_get(struct lb_access_set *); // NULL stays NULL
void lb_access_set_put(struct lb_access_set *); // NULL is fine
// The bits of the logs that want the request. NULL = there are none.
uint64_t lb_access_set_want(const struct lb_access_set *, const struct lb_access_brief *);
