// SPDX-License-Identifier: Apache-2.0
#include "lb/route/timeouts.h"

const struct lb_listener_timeouts lb_no_listener_timeouts = {
	LB_NO_TIMEOUT, {LB_NO_TIMEOUT, LB_NO_TIMEOUT}};

// 0 switches a limit off (A31-T02, A31-T03).
static uint64_t limit(uint64_t ns)
{
	return ns ? ns : LB_NO_TIMEOUT;
}

uint64_t lb_timeouts_effective(
	const struct lb_timeouts *t, uint64_t listener_max_ns, uint64_t client_ns)
{
	uint64_t max = t->has_header_max ? limit(t->header_max_ns)
	               : t->has_max      ? limit(t->max_ns)
	                                 : limit(listener_max_ns);
	return client_ns < max ? client_ns : max;
}
