// SPDX-License-Identifier: Apache-2.0
// Dense numbers below a bound. One that is given back rests behind the others that were: what still
// carries it (snapshots, requests) has time to end.
// Thread: ctrl.
#pragma once

#include <stdint.h>

#define IDS_NONE UINT32_MAX

struct ids {
	uint32_t *resting; // owned; ring of n_max, oldest first
	uint32_t n_max;
	uint32_t n_rest; // while fewer rest, a number that was never given is taken instead
	uint32_t head, n_resting;
	uint32_t next; // never given so far
};

// 0 or -ENOMEM.
[[nodiscard]] int ids_init(struct ids *, uint32_t n_max, uint32_t n_rest);
void ids_fini(struct ids *); // all zero is fine
uint32_t ids_take(struct ids *); // IDS_NONE = all are in use
void ids_give(struct ids *, uint32_t id);
