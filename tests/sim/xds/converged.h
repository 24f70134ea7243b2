// SPDX-License-Identifier: Apache-2.0
// What a frontend must have when the servers have said all that is in the world. The leaves of
// aggregates are worked out again from the world, by number.
// Thread: the simulation's.
#pragma once

#include <stdbool.h>

struct world;
struct xds_config;

// How many aggregates were compared: with leaves, without any, too deep.
struct converged_seen {
	unsigned n_flat, n_empty, n_too_deep;
};

// CHECKs. The listener is that of the frontend; pinned: only its second virtual host counts.
void check_converged(const struct world *, int listener, bool pinned, const struct xds_config *,
	struct converged_seen *);
