// SPDX-License-Identifier: Apache-2.0
// The simulated server's resources: plain choices (which routes a listener names, which clusters a
// route, …) that can be changed at random, and the bytes that say them.
// Thread: the simulation's.
#pragma once

#include "lb/base/rand.h"
#include "tests/support/variant.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define N_LISTENERS 2
#define N_ROUTES 3
#define N_CLUSTERS 20 // more than an aggregate may be deep
#define N_ENDPOINTS 6
#define N_VHOSTS 2
#define N_HOSTS 4
#define N_ADDRESSES 6 // that a host may have
#define MAX_CHILDREN 4
#define WORLD_NAME_SIZE 80

struct xds_type;

enum world_kind { WORLD_EDS, WORLD_NAME, WORLD_AGGREGATE };

struct world_cluster {
	enum world_kind kind;
	int endpoints; // WORLD_EDS
	int host; // WORLD_NAME
	int children[MAX_CHILDREN], n_children; // WORLD_AGGREGATE
};

// What does not change.
struct world_shape {
	bool deep; // aggregates tend to be chains
	// Resources of odd numbers have names of the authority "a", which others refer to.
	bool federated;
	// The client has the dynamic parameter env=prod for old-style names, for the authority's;
	// then a resource may be there in a variant.
	bool has_params[2];
};

struct world {
	struct world_shape shape;
	int listener_routes[N_LISTENERS]; // which route configuration; -1 = a socket listener
	bool listener_inline[N_LISTENERS];
	// The clusters of each virtual host's routes, as bits.
	uint32_t vhost_clusters[N_ROUTES][N_VHOSTS];
	uint32_t inline_clusters[N_LISTENERS][N_VHOSTS]; // where the listener brings them
	struct world_cluster clusters[N_CLUSTERS];
	int endpoints_port[N_ENDPOINTS];
	uint32_t addresses[N_HOSTS]; // 10.9.<host>.<bit>; 0 = the name does not exist
	// By res_types index and number: it is not there.
	bool gone[4][N_CLUSTERS];
	enum variant variants[4][N_CLUSTERS]; // one that matches the client's parameters
};

void world_init(struct world *, struct rand *, struct world_shape);
void world_change(struct world *, struct rand *); // one thing
void world_heal(struct world *); // whatever is named is there
// What the other one has of an authority's resources.
void world_take(struct world *, const struct world *from, int authority);

int world_count(unsigned type); // how many of a type there may be
int world_authority(const struct world_shape *, int i); // 0 = old-style names, 1 = "a"
// "l0", "r1", "c2", "e3", or "xdstp://a/…/l1"
void world_name(const struct world_shape *, unsigned type, int i, char ret_name[WORLD_NAME_SIZE]);
int world_find(unsigned type, const char *name); // -1 = none
void world_host(int host, char ret_name[16]); // "h0"
// What name servers say of it, "10.9.0.1 10.9.0.4"; "" = nothing.
void world_addresses(const struct world *, int host, char ret_list[128]);
// The resource's bytes (free). bad: it decodes to its name, but must be refused.
uint8_t *world_bytes(const struct world *, unsigned type, int i, bool bad, size_t *ret_len);
