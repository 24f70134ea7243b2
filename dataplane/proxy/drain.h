// SPDX-License-Identifier: Apache-2.0
// Leaving, in the manner of HX-22: GOAWAY in two steps, streams finish, a deadline cuts
// the rest. Either all of the proxy leaves, and takes no new clients, or those go who came by a
// listener that is another one now (FLT-11).
// Thread: the owning worker.
#pragma once

#include <stdint.h>

struct proxy;

void proxy_drain_begin(struct proxy *, uint64_t deadline_ns);
// A new snapshot: have its listeners changed?
void proxy_drain_see_generations(struct proxy *);
// Once per turn.
void proxy_drain_step(struct proxy *);
// A client connection leaves the proxy's list.
struct proxy_client;
void proxy_drain_forget(struct proxy *, const struct proxy_client *);
