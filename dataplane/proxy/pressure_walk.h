// SPDX-License-Identifier: Apache-2.0
// Where the walk over the clients is that looks for the one to be cut (pressure.h).
// Thread: the owning worker.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct proxy_client;

// All zero at the start.
struct proxy_pressure {
	struct proxy_client *next; // to be looked at; NULL = the first of the list
	struct proxy_client *worst; // of those looked at; NULL = none
	uint64_t worst_held;
	uint64_t look_ns; // when to look again
};

// The client is about to leave the proxy's list, in which `next` stands after it.
static inline void proxy_pressure_forget(
	struct proxy_pressure *s, const struct proxy_client *c, struct proxy_client *next)
{
	if (s->next == c)
		s->next = next;
	if (s->worst == c)
		s->worst = NULL;
}
