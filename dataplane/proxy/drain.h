// SPDX-License-Identifier: Apache-2.0
// Leaving, in the manner of HX-22: GOAWAY in two steps, streams finish, a deadline cuts
// the rest. Either all of the proxy leaves, and takes no new clients, or those go who came by a
// listener that is another one now (FLT-11).
// Thread: the owning worker.
#pragma once

#include "lb/base/twheel.h"
#include "lb/pick/limits.h"

#include <stdbool.h>
#include <stdint.h>

struct proxy;
struct proxy_client;

enum proxy_drain_step {
	PROXY_DRAIN_NONE,
	PROXY_DRAIN_BEGUN, // clients hear GOAWAY 2^31-1
	PROXY_DRAIN_ENDING, // … and then the real last stream
	PROXY_DRAIN_DONE,
};

struct proxy_drain {
	enum proxy_drain_step step;
	bool answered;
	struct proxy_client *next; // to hear of this step; NULL = all have
	struct twheel_timer timer;
	uint64_t deadline_ns;
	// Of listeners that became others (FLT-11).
	uint64_t n_generations; // of the snapshot that they are of
	uint64_t generations[LB_MAX_FRONTENDS]; // of the snapshot's frontends
	struct proxy_client *look_at; // perhaps of an earlier one; NULL = no walk going on
};

void proxy_drain_begin(struct proxy *, uint64_t deadline_ns);
// A new snapshot: have its listeners changed?
void proxy_drain_see_generations(struct proxy *);
// Once per turn.
void proxy_drain_step(struct proxy *);
// A client connection leaves the proxy's list, on which walks may stand; next is behind it.
static inline void proxy_drain_forget(
	struct proxy_drain *d, const struct proxy_client *c, struct proxy_client *next)
{
	if (d->next == c)
		d->next = next;
	if (d->look_at == c)
		d->look_at = next;
}
