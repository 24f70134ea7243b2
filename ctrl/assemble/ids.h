// SPDX-License-Identifier: Apache-2.0
// Dense numbers below a bound. A number that is returned rests for a while before it is reused, so
// that snapshots and requests that still carry it can end.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define IDS_NONE UINT32_MAX

struct ids {
	struct ids_resting *resting; // owned; ring of n_max, oldest first
	uint32_t n_max;
	uint64_t rest_ns; // minimum rest
	uint32_t head, n_resting;
	uint32_t next; // the lowest number never used
};

// Returns 0 or -ENOMEM.
[[nodiscard]] int ids_init(struct ids *, uint32_t n_max, uint64_t rest_ns);
void ids_fini(struct ids *); // all zero is fine
// Returns IDS_NONE if all are in use or resting.
uint32_t ids_take(struct ids *, uint64_t now_ns);
// One that is_idle(), or was never used, likewise. At most max_tries of those that have rested are
// looked at; what is not idle rests anew.
uint32_t ids_take_idle(struct ids *, uint64_t now_ns, uint32_t max_tries,
	bool (*is_idle)(void *ctx, uint32_t id), void *ctx);
void ids_give(struct ids *, uint32_t id, uint64_t now_ns);
