// SPDX-License-Identifier: Apache-2.0
// An upgrade of all hosts in waves: each wave says farewell to its clients, leaves, and comes back
// once it is restarted; and what that does to connections.
// Thread: one.
#pragma once

#include "tools/fleet-sim/farewell.h"
#include "tools/fleet-sim/fleet.h"

struct clients;

struct rollout_conf {
	struct farewell_conf farewell; // its seed is that of all waves
	uint32_t n_waves;
	uint32_t wave_s; // one begins so often; longer than all that follows
	uint32_t lame_duck_s; // of shunt.yaml: how long it is there still once readiness has gone
	uint32_t start_s; // from its end until it is announced again
};

struct rollout {
	uint64_t n_moved; // reconnects after a GOAWAY
	uint64_t n_cut; // reset as hosts left or came: of hosts that stayed
	uint64_t n_unheard; // who connected to a host that answered nobody any more, and waited
	uint64_t n_streams_cut; // of those that were moved
	double most_share; // of a host, over the mean of those that were up, while it lasted
	double last_share; // of the wave that came back last, at the end, likewise
};

// Begins at the clients' time 0. False = out of memory.
bool rollout_run(
	struct fleet *, struct clients *, const struct rollout_conf *, struct rollout *ret);
// Of those that were moved the part whose streams were cut; 0 if none was moved.
double rollout_part_cut(const struct rollout *);
