// SPDX-License-Identifier: Apache-2.0
// The last resort when a worker's chunks run short (TH-85): from half of them in use, the client
// connection for which most is kept and that takes too little of it loses its streams, the newest
// first, until less than half is in use. While there are chunks enough this costs nothing: nobody
// is looked at.
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/client.h"

#include <stdint.h>

struct proxy;

// All zero at the start.
struct proxy_pressure {
	struct proxy_client *next; // to be looked at; NULL = the first of the list
	struct proxy_client *worst; // of those looked at; NULL = none
	uint64_t worst_held;
	uint64_t look_ns; // when to look again
};

// Once a turn, before output is pumped: a bounded number of clients is looked at.
void proxy_pressure_relieve(struct proxy *);

// The client is about to leave the proxy's list, in which `next` stands after it.
static inline void proxy_pressure_forget(
	struct proxy_pressure *s, const struct proxy_client *c, struct proxy_client *next)
{
	if (s->next == c)
		s->next = next;
	if (s->worst == c)
		s->worst = NULL;
}
