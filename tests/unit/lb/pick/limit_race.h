// SPDX-License-Identifier: Apache-2.0
// Workers that use up the limit of one breaker at once, counted beside it: whether there were ever
// more than it lets in.
// Thread: limit_race_run() any; the rest its workers.
#pragma once

#include "lb/pick/breaker.h"

#include <stdint.h>

#define LIMIT_RACE_WORKERS 4

struct limit_race {
	struct lb_breakers *breakers;
	struct lb_breaker *breaker;
	uint32_t held, most; // by our own count
	uint64_t n_entered;
};

// worker(race) in so many threads, until all are through: the breaker holds nothing then.
void limit_race_run(struct limit_race *, void *(*worker)(void *race));
void limit_race_free(struct limit_race *);

void limit_race_entered(struct limit_race *); // after it was let in
void limit_race_leaves(struct limit_race *); // before it says so
