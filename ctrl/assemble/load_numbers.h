// SPDX-License-Identifier: Apache-2.0
// The numbers of the workers' counters for load reports (lb_link.loads): which are in use, and the
// sum over all workers for each. A number that is returned rests, and is reused only when no
// request of its last use is in flight.
// Thread: ctrl.
#pragma once

#include "ctrl/assemble/ids.h"
#include "lb/pick/link.h"

#include <stdbool.h>
#include <stdint.h>

struct twheel;
struct workers;

struct load_number {
	void *owner; // NULL = resting, or never used
	uint64_t idle; // apparent number of requests in flight when there are none
	bool had_drops; // its last use counted drops, as issued alone
};

struct load_numbers {
	const struct workers *workers; // borrowed
	const struct twheel *wheel; // borrowed
	uint32_t n; // including 0, which is unused
	struct load_number *list;
	struct ids ids; // number - 1
};

// n: limit, including 0, at most LB_MAX_LOADS. Returns 0 or -ENOMEM; call fini() either way.
[[nodiscard]] int load_numbers_init(
	struct load_numbers *, const struct workers *, const struct twheel *, uint32_t n);
void load_numbers_fini(struct load_numbers *);

// Returns 0 if none is left.
uint32_t load_numbers_take(struct load_numbers *, void *owner);
void load_numbers_give(struct load_numbers *, uint32_t number, bool had_drops);
void *load_numbers_owner(const struct load_numbers *, uint32_t number); // NULL = none
// The sum over all workers.
struct lb_load_counters load_numbers_sum(const struct load_numbers *, uint32_t number);
// Requests in flight under it, from such a sum.
int64_t load_numbers_in_flight(
	const struct load_numbers *, uint32_t number, const struct lb_load_counters *);
