// SPDX-License-Identifier: Apache-2.0
#include "lb/route/retry.h"

bool lb_retry_covers(const struct lb_retry *r, int grpc_status)
{
	return grpc_status >= 0 && grpc_status < 32 && r->statuses >> grpc_status & 1;
}

uint64_t lb_retry_delay_ns(const struct lb_retry *r, uint32_t n, struct rand *rand)
{
	uint64_t wait = r->base_ns < r->max_ns ? r->base_ns : r->max_ns;
	for (; n > 1 && wait < r->max_ns; n--)
		wait = wait > r->max_ns / 2 ? r->max_ns : 2 * wait;
	uint64_t fifth = wait / 5;
	return wait - fifth + rand_below(rand, 2 * fifth + 1);
}
