// SPDX-License-Identifier: Apache-2.0
// The last failures of all workers (lb/pick/failures.h), their own and those of backends, as one
// list, the newest first.
// Thread: ctrl.
#pragma once

#include "lb/pick/failures.h"

#include <stdbool.h>
#include <stdint.h>

struct config;
struct failure_walk;
struct workers;

enum failure_whose { FAILURE_ALL, FAILURE_OURS, FAILURE_BACKENDS };

struct failure_walk *failure_walk_new(
	const struct workers *, enum failure_whose); // NULL = out of memory
void failure_walk_free(struct failure_walk *); // NULL is fine
// The next older one, valid until the next call; NULL = there is none.
const struct lb_failure *failure_walk_next(struct failure_walk *, uint32_t *ret_worker);

// The name of the frontend that had it; "" = it is gone, and its place is another one's. Borrowed.
const char *failure_frontend(const struct config *, const struct lb_failure *);

// Its cause's name; FAILURE_ANSWERED for one that is a backend's. Static.
#define FAILURE_ANSWERED "answered"
const char *failure_cause(const struct lb_failure *);
