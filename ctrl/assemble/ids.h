// SPDX-License-Identifier: Apache-2.0
// Dense numbers below a bound. One that is given back rests for a while: what still carries it
// (snapshots, requests) has time to end.
// Thread: ctrl.
#pragma once

#include <stdint.h>

#define IDS_NONE UINT32_MAX

struct ids {
	struct ids_resting *resting; // owned; ring of n_max, oldest first
	uint32_t n_max;
	uint64_t rest_ns; // at least
	uint32_t head, n_resting;
	uint32_t next; // never given so far
};

// 0 or -ENOMEM.
[[nodiscard]] int ids_init(struct ids *, uint32_t n_max, uint64_t rest_ns);
void ids_fini(struct ids *); // all zero is fine
// IDS_NONE = all are in use, or rest.
uint32_t ids_take(struct ids *, uint64_t now_ns);
void ids_give(struct ids *, uint32_t id, uint64_t now_ns);
