// SPDX-License-Identifier: Apache-2.0
// Where a worker listens for clients: at the addresses of shunt.yaml's frontends, and at those that
// a snapshot's vips have. Frontends come, change and go with snapshots, too (lb/live_frontend.h).
// Thread: the owning worker.
#pragma once

#include "dataplane/tcp/tcp.h"

struct proxy;

// accept gets a struct proxy_listener. Returns 0, or -1: an address is taken, or out of memory.
[[nodiscard]] int proxy_listen_begin(struct proxy *, tcp_accept_fn accept);
// The turn has a new snapshot: listens where it says, and has its frontends as it says. True = some
// are left from now on (drain.h).
[[nodiscard]] bool proxy_listen_follow(struct proxy *);
void proxy_listen_end(struct proxy *); // what is accepted already stays
// One frontend is left in the same way, and taken up again where it was. Its clients are to be gone
// by then (drain.h); a second call changes nothing but that. No effect once the proxy drains.
void proxy_listen_leave(struct proxy *, uint32_t frontend, uint64_t gone_by_ns);
void proxy_listen_return(struct proxy *, uint32_t frontend);
