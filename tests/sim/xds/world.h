// SPDX-License-Identifier: Apache-2.0
// The simulated server's resources: plain choices (which routes a listener names, which clusters a
// route, …) that can be changed at random, and the bytes that say them.
// Thread: the simulation's.
#pragma once

#include "lb/base/rand.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define N_LISTENERS 2
#define N_ROUTES 3
#define N_CLUSTERS 8
#define N_ENDPOINTS 6
#define N_VHOSTS 2

struct xds_type;

struct world {
	int listener_routes[N_LISTENERS]; // which route configuration; -1 = a socket listener
	bool listener_inline[N_LISTENERS];
	// The clusters of each virtual host's routes, as bits.
	uint32_t vhost_clusters[N_ROUTES][N_VHOSTS];
	int cluster_endpoints[N_CLUSTERS];
	int endpoints_port[N_ENDPOINTS];
	// By res_types index and number: it is not there.
	bool gone[4][N_CLUSTERS];
};

void world_init(struct world *, struct rand *);
// Changes one thing. calm: only into states in which everything that is named is there.
void world_change(struct world *, struct rand *);
void world_heal(struct world *);

int world_count(unsigned type); // how many of a type there may be
void world_name(unsigned type, int i, char ret_name[16]); // "l0", "r1", "c2", "e3"
int world_find(unsigned type, const char *name); // -1 = none
// The resource's bytes (free). bad: it decodes to its name, but must be refused.
uint8_t *world_bytes(const struct world *, unsigned type, int i, bool bad, size_t *ret_len);
