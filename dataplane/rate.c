// SPDX-License-Identifier: Apache-2.0
#include "dataplane/rate.h"

#include "lb/base/time.h"

#define DEPTH_NS (NS_PER_SECOND / 10)

void rate_init(struct rate *r, uint32_t per_second)
{
	*r = (struct rate){.frame_ns = NS_PER_SECOND / per_second};
}

bool rate_take(struct rate *r, uint64_t now_ns)
{
	uint64_t passed = now_ns - r->last_ns,
		 full = DEPTH_NS > r->frame_ns ? DEPTH_NS : r->frame_ns;
	r->last_ns = now_ns;
	r->tokens_ns = passed >= full - r->tokens_ns ? full : r->tokens_ns + passed;
	if (r->tokens_ns < r->frame_ns)
		return false;
	r->tokens_ns -= r->frame_ns;
	return true;
}
