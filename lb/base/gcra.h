// SPDX-License-Identifier: Apache-2.0
// A budget of events that refills with time: so many at once, and so many a second. Kept as one
// number, the time at which all that was taken is refilled (the generic cell rate algorithm, ITU-T
// I.371). All zero = a full budget. Time comes in as an argument and never falls.
// Thread: one owner. Pure.
#pragma once

#include "lb/base/time.h"

#include <stdbool.h>
#include <stdint.h>

struct gcra {
	uint64_t full_at_ns;
};

struct gcra_limit {
	uint64_t price_ns; // in which one event is refilled
	uint64_t burst_ns; // in which all are
};

#define GCRA_PRICE_NS(per_second) (NS_PER_SECOND / (per_second))
#define GCRA_LIMIT(burst, per_second)                                                              \
	{                                                                                          \
		GCRA_PRICE_NS(per_second), (burst)*GCRA_PRICE_NS(per_second)                       \
	}

// How much time it takes to refill what was taken.
static inline uint64_t gcra_debt_ns(const struct gcra *g, uint64_t now_ns)
{
	return g->full_at_ns > now_ns ? g->full_at_ns - now_ns : 0;
}

// More was taken than there was.
static inline bool gcra_is_over(const struct gcra *g, const struct gcra_limit *l, uint64_t now_ns)
{
	return gcra_debt_ns(g, now_ns) > l->burst_ns;
}

// Nothing is left for another event.
static inline bool gcra_is_spent(const struct gcra *g, const struct gcra_limit *l, uint64_t now_ns)
{
	return gcra_debt_ns(g, now_ns) + l->price_ns > l->burst_ns;
}

// So many events, all of which the budget had. What is beyond it counts up to as much again.
static inline bool gcra_charge_many(
	struct gcra *g, const struct gcra_limit *l, uint64_t n, uint64_t now_ns)
{
	uint64_t debt_ns = gcra_debt_ns(g, now_ns);
	if (debt_ns <= 2 * l->burst_ns) {
		debt_ns += n * l->price_ns;
		g->full_at_ns = now_ns + debt_ns;
	}
	return debt_ns <= l->burst_ns;
}

// The same of one event.
static inline bool gcra_charge(struct gcra *g, const struct gcra_limit *l, uint64_t now_ns)
{
	return gcra_charge_many(g, l, 1, now_ns);
}

// Gives one event back. The budget never becomes more than full.
static inline void gcra_refund(struct gcra *g, const struct gcra_limit *l)
{
	g->full_at_ns -= g->full_at_ns < l->price_ns ? g->full_at_ns : l->price_ns;
}
