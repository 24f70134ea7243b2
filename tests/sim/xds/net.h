// SPDX-License-Identifier: Apache-2.0
// The simulated servers, and which of them serves what, as a bootstrap says it: "s0" serves
// old-style names, with "s1" behind it in some runs (gRFC A71); authority "a" (gRFC A47) is served
// by "s2", by it before "s0", or by "s0" alone.
// Thread: the simulation's.
#pragma once

#include "ctrl/xds/transport.h"
#include "tests/sim/xds/server.h"
#include "tests/sim/xds/world.h"

#define N_SERVERS 3

struct xds_bootstrap;

struct net {
	struct world world; // of s0 and s2
	struct world other; // of s1
	struct server servers[N_SERVERS];
	bool has_fallback;
	// Of each authority, in order of preference.
	struct server *lists[2][2];
	struct xds_bootstrap *bootstrap;
};

// All that differs from seed to seed and is fixed for a run is drawn here.
void net_init(struct net *, struct rand *, uint64_t seed);
void net_fini(struct net *);
struct xds_transport_factory net_transport(struct net *);
void net_change_world(struct net *, struct rand *);
struct server *net_pick(struct net *, struct rand *);
// Whatever is named is there, and every server is up but the one (NULL = none).
void net_calm(struct net *, const struct server *but);
// What is true for the client when it has learnt all: each authority by the first of its servers
// that is up. *ret_known: somebody is.
void net_truth(const struct net *, struct world *ret, bool ret_known[2]);
