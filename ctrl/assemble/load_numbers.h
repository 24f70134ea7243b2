// SPDX-License-Identifier: Apache-2.0
// The numbers of the workers' counters for load reports (lb_link.loads): which are in use, and what
// all workers have counted under one. A number that is given back rests, and is given away again
// once no request of its last use is in flight.
// Thread: ctrl.
#pragma once

#include "ctrl/assemble/ids.h"
#include "lb/pick/link.h"

#include <stdbool.h>
#include <stdint.h>

struct twheel;
struct workers;

struct load_number {
	void *owner; // NULL = at rest, or never used
	uint64_t idle; // how many requests seem to be in flight when nobody is
	bool had_drops; // its last use: they are counted as issued alone
};

struct load_numbers {
	const struct workers *workers; // borrowed
	const struct twheel *wheel; // borrowed
	uint32_t n; // with 0, which is nobody's
	struct load_number *list;
	struct ids ids; // number - 1
};

// n: how many at most, of LB_MAX_LOADS; with 0. 0 or -ENOMEM; then fini() is due nevertheless.
[[nodiscard]] int load_numbers_init(
	struct load_numbers *, const struct workers *, const struct twheel *, uint32_t n);
void load_numbers_fini(struct load_numbers *);

// 0 = none is left.
uint32_t load_numbers_take(struct load_numbers *, void *owner);
void load_numbers_give(struct load_numbers *, uint32_t number, bool had_drops);
void *load_numbers_owner(const struct load_numbers *, uint32_t number); // NULL = nobody's
// Of all workers.
struct lb_load_counters load_numbers_sum(const struct load_numbers *, uint32_t number);
// Requests that have begun under it, by such a sum, and have not ended.
int64_t load_numbers_in_flight(
	const struct load_numbers *, uint32_t number, const struct lb_load_counters *);
