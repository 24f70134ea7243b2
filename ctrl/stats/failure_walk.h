// SPDX-License-Identifier: Apache-2.0
// The last failures of all workers (lb/pick/failures.h) as one list, the newest first.
// Thread: ctrl.
#pragma once

#include "lb/pick/failures.h"

#include <stdbool.h>
#include <stdint.h>

struct failure_walk;
struct workers;

struct failure_walk *failure_walk_new(const struct workers *); // NULL = out of memory
void failure_walk_free(struct failure_walk *); // NULL is fine
// The next older one, valid until the next call; NULL = there is none.
const struct lb_failure *failure_walk_next(struct failure_walk *, uint32_t *ret_worker);
