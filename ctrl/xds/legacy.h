// SPDX-License-Identifier: Apache-2.0
// What xDS servers have sent a process, for the newer one that takes over from it and to which they
// may be silent: what state_dir's file would have, in memory, and used as that is
// (docs/decisions/cold-start.md).
// Thread: ctrl.
#pragma once

#include "ctrl/xds/gather.h"
#include "ctrl/xds/settled.h"

#include <stdint.h>

struct xds_bootstrap;
struct xds_legacy;
struct xds_state;

// All that serves now; of servers that have not spoken what `before` has of them, which may be
// empty. Returns a descriptor (ctrl/base/sealed_file.h), the caller's; -1 = nothing (of a failure
// the log says why).
[[nodiscard]] int xds_legacy_make(xds_each_client_fn, void *of, const struct xds_bootstrap *,
	const struct xds_state *before, uint64_t wall_s);

// Takes the descriptor. NULL = nothing of use came, which is logged unless the descriptor is
// negative.
struct xds_legacy *xds_legacy_take(int fd, const struct xds_bootstrap *);
// For the clients' conf. Lasts until xds_legacy_free(), and is empty once all servers have spoken.
const struct xds_state *xds_legacy_state(const struct xds_legacy *);
// The clients that use it, and the hook to be added to them (settled.h).
struct xds_settled *xds_legacy_follow(struct xds_legacy *, xds_each_client_fn, void *of);
void xds_legacy_free(struct xds_legacy *); // after the clients; NULL is fine
