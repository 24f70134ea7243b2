// SPDX-License-Identifier: Apache-2.0
// Leaving: no new clients, GOAWAY in two steps (routing.md HX-22), streams finish, the deadline
// cuts the rest.
// Thread: the owning worker.
#pragma once

#include <stdint.h>

struct proxy;

void proxy_drain_begin(struct proxy *, uint64_t deadline_ns);
// Once per turn.
void proxy_drain_step(struct proxy *);
// A client connection leaves the proxy's list.
struct proxy_client;
void proxy_drain_forget(struct proxy *, const struct proxy_client *);
