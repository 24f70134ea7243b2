// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/backoff.h"

#include "lb/base/rand.h"

#define NS_PER_S 1000000000ull
#define INITIAL_NS NS_PER_S
#define MAX_NS (120 * NS_PER_S)

uint64_t xds_backoff_next(struct xds_backoff *b, struct rand *rand)
{
	uint64_t wait = b->next_ns ? b->next_ns : INITIAL_NS;
	uint64_t next = wait / 10 * 16;
	b->next_ns = next < MAX_NS ? next : MAX_NS;

	uint64_t fifth = wait / 5;
	return wait - fifth + rand_below(rand, 2 * fifth + 1);
}

void xds_backoff_reset(struct xds_backoff *b)
{
	b->next_ns = 0;
}
