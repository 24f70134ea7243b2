// SPDX-License-Identifier: Apache-2.0
// A fleet's open connections: which host each is at, as hosts come and go and clients connect
// again. No packets, and no time: callers have it.
// Thread: one.
#pragma once

#include "lb/base/rand.h"
#include "tools/fleet-sim/tier.h"

#include <stdbool.h>
#include <stdint.h>

struct fleet_conf {
	uint64_t seed;
	uint32_t n_hosts; // places for hosts
	uint32_t n_connections;
	enum tier_kind tier;
};

struct fleet {
	struct fleet_conf conf;
	struct tier *tier; // owned
	bool *is_up; // [n_hosts], owned: what the tier goes by; of fleet_change()
	// Of connections, owned:
	uint32_t *hashes, *hosts;
	uint32_t *attempts; // how often its client has connected again
};

// What a change of hosts did to connections.
struct fleet_cut {
	uint32_t n_lost; // their host is gone
	uint32_t
		n_cut; // their host is there, and their segments come to another, which resets them
};

// is_up: [n_hosts], at least one; NULL = all are. Returns NULL if out of memory.
struct fleet *fleet_new(const struct fleet_conf *, const bool *is_up);
void fleet_free(struct fleet *); // NULL is fine
// After changes of is_up: whoever is lost or cut connects again. False = out of memory.
bool fleet_change(struct fleet *, struct fleet_cut *ret);
// The client connects again, wherever that leads: every tier has a host that drains in its table
// until it is gone. One that tracks connections could leave it out sooner; that is not modelled.
void fleet_reconnect(struct fleet *, uint32_t connection);
void fleet_count(const struct fleet *, uint32_t *counts); // [n_hosts]: connections of each
