// SPDX-License-Identifier: Apache-2.0
// Draining (HX-22): GOAWAY in two steps, streams finish, a deadline cuts the rest, which is told so
// (FL-176) and closed as all are; who does not take that in a second is reset. Either the whole
// proxy drains and accepts no new clients, or only the clients of a listener that has been replaced
// (FLT-11) or has lost their address (A36-72), or of a frontend that operators have left (OPS-73):
// leave.h has one client's.
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
	PROXY_DRAIN_BEGUN, // clients get GOAWAY with last stream 2^31-1
	PROXY_DRAIN_ENDING, // clients get GOAWAY with the real last stream
	PROXY_DRAIN_CUTTING, // the deadline is over
	PROXY_DRAIN_DONE,
};

struct proxy_drain {
	enum proxy_drain_step step;
	bool answered;
	uint32_t n_cut; // requests that a deadline ended since the drain began
	struct proxy_client *next; // next client to take this step; NULL = all have
	struct twheel_timer timer;
	uint64_t deadline_ns;
	// For replaced listeners (FLT-11).
	uint64_t n_generations; // size of generations[], from the current snapshot
	uint64_t generations[LB_MAX_FRONTENDS]; // one per frontend of the snapshot
	uint64_t vips_version; // of the last table by which clients were looked at (A36-72)
	// next client to check for an old generation, for its address, and for its frontend; NULL =
	// no walk in progress
	struct proxy_client *look_at;
	bool looks_again; // behind the walk that is on its way
	// Until then newcomers are accepted, and told to leave as all are; 0 = there is no
	// farewell.
	uint64_t farewell_until_ns;
	struct twheel_timer hush_timer;
};

void proxy_drain_begin(struct proxy *, uint64_t deadline_ns);
// What goes before it where a route that is withdrawn moves connections (FL-41): clients are to go
// while the host can still be reached. Once begun it is not taken back.
void proxy_drain_say_farewell(struct proxy *, uint64_t until_ns);
// Checks whether listeners changed in a new snapshot, or have other addresses.
void proxy_drain_see_listeners(struct proxy *);
// Checks which frontends are left, and which are taken up again (listen.h).
void proxy_drain_see_frontends(struct proxy *);
// Called for a request that a drain's deadline ends.
void proxy_drain_count_cut(struct proxy *);
// Called once per turn.
void proxy_drain_step(struct proxy *);
static inline bool proxy_drain_looks(const struct proxy_drain *d)
{
	return d->look_at || d->looks_again;
}
// Called when a client connection leaves the proxy's list: moves a walk that stands on it to
// next.
static inline void proxy_drain_forget(
	struct proxy_drain *d, const struct proxy_client *c, struct proxy_client *next)
{
	if (d->next == c)
		d->next = next;
	if (d->look_at == c)
		d->look_at = next;
}
