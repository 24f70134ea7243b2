// SPDX-License-Identifier: Apache-2.0
#include "lb/base/backoff.h"

#include "lb/base/rand.h"
#include "lb/base/time.h"

#define FIRST_NS NS_PER_SECOND
#define MAX_NS (120 * FIRST_NS)

uint64_t backoff_next_ns(struct backoff *b, struct rand *rand)
{
	uint64_t wait = b->wait_ns ? b->wait_ns / 10 * 16 : FIRST_NS;
	b->wait_ns = wait < MAX_NS ? wait : MAX_NS;
	uint64_t fifth = b->wait_ns / 5;
	return b->wait_ns - fifth + rand_below(rand, 2 * fifth + 1);
}

void backoff_reset(struct backoff *b)
{
	b->wait_ns = 0;
}
