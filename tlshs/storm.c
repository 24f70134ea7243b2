// SPDX-License-Identifier: Apache-2.0
#include "tlshs/storm.h"

#include "lb/base/min.h"
#include "lb/base/time.h"

#define STORM 128 // at a time
#define INTERVAL_NS (10 * NS_PER_SECOND)

void tlshs_storm_see(struct tlshs_storm *s, uint32_t n_open)
{
	s->peak = max_u32(s->peak, n_open);
}

bool tlshs_storm_is_over(struct tlshs_storm *s, uint32_t n_open, uint64_t now_ns)
{
	tlshs_storm_see(s, n_open);
	uint32_t of = s->peak >= STORM ? s->peak : s->n_left;
	if (!of || n_open > of / 4 || now_ns < s->next_ns)
		return false;
	s->peak = s->n_left = n_open;
	s->next_ns = now_ns + INTERVAL_NS;
	return true;
}
