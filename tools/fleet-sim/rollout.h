// SPDX-License-Identifier: Apache-2.0
// An upgrade of all hosts in waves: each wave drains (GOAWAY to all its clients), leaves, and comes
// back; and what that does to connections.
// Thread: one.
#pragma once

#include "tools/fleet-sim/fleet.h"

struct aging;

struct rollout {
	uint64_t n_moved; // reconnects after a GOAWAY
	uint64_t n_cut; // reset as hosts left or came: of hosts that stayed
	uint64_t n_lost; // still open when their host left; none, as all are sent away
	double most_share; // of a host, over the mean of those that were up, while it lasted
	double last_share; // of the wave that came back last, at the end, likewise
};

// A wave begins every wave_s; meanwhile connections may reach their age (NULL = none does). False =
// out of memory.
bool rollout_run(
	struct fleet *, uint32_t n_waves, struct aging *, uint32_t wave_s, struct rollout *ret);
