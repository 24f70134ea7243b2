// SPDX-License-Identifier: Apache-2.0
// Where a worker listens for clients: shunt.yaml's frontends, for life, and the addresses that a
// snapshot's vips have.
// Thread: the owning worker.
#pragma once

#include "dataplane/tcp/tcp.h"

struct lb_vips;
struct proxy;

// accept gets a struct proxy_listener. Returns 0, or -1: an address is taken.
[[nodiscard]] int proxy_listen_begin(struct proxy *, tcp_accept_fn accept);
// The turn has a new snapshot: listens where its vips say. NULL = there are none.
void proxy_listen_follow(struct proxy *, const struct lb_vips *);
void proxy_listen_end(struct proxy *); // what is accepted already stays
// One frontend is left in the same way, and taken up again where it was. Its clients are to be gone
// by then (drain.h); a second call changes nothing but that. No effect once the proxy drains.
void proxy_listen_leave(struct proxy *, uint32_t frontend, uint64_t gone_by_ns);
void proxy_listen_return(struct proxy *, uint32_t frontend);
