// SPDX-License-Identifier: Apache-2.0
// Leaf clusters as the control thread balances them, over a network in which every attempt to
// connect succeeds, published into a slot: what the benches of picks and of updates measure.
// Thread: one.
#pragma once

#include "lb/base/rand.h"
#include "lb/leaf/leaf.h"
#include "lb/member/member.h"

#include <stddef.h>
#include <stdint.h>

struct lb_connectivity;
struct lb_slot;
struct lb_snapshot;
struct res_endpoints;
struct twheel;
struct xds_res;

struct leaf_world {
	struct twheel *wheel;
	struct rand rand;
	struct lb_connectivity *connectivity;
	struct lb_member_env member_env;
	struct lb_leaf_env env;
	struct lb_breakers *breakers;
	struct lb_slot *slot;
	struct lb_snapshot *draft; // what was published since; NULL = nothing
	uint32_t n_members, n_slots; // given out
	uint32_t connecting[1 << 17]; // ids of endpoints that were asked for
	uint32_t n_connecting;
	uint32_t n_drafts;
};

struct leaf_cluster {
	struct leaf_world *world;
	struct lb_leaf *leaf;
	uint32_t id;
	struct lb_policy_spec spec; // as leaf_cluster_init() has it, or with a subset_size
	char name[16];
};

void leaf_world_init(struct leaf_world *);
void leaf_world_fini(struct leaf_world *);
void leaf_cluster_init(struct leaf_cluster *, struct leaf_world *, uint32_t id);
void leaf_cluster_fini(struct leaf_cluster *);
// wrr_locality over round_robin, as the control thread configures it, of a decoded resource.
void leaf_cluster_update(struct leaf_cluster *, const struct res_endpoints *);
// All that was asked for comes to be.
void leaf_world_connect(struct leaf_world *);
void leaf_world_forget(struct leaf_world *); // what was asked for
// What happened since becomes the current snapshot.
void leaf_world_publish(struct leaf_world *);
unsigned leaf_world_reclaim(struct leaf_world *); // how many snapshots are still alive
void leaf_world_pass(struct leaf_world *, uint32_t seconds);
const struct lb_picker *leaf_cluster_picker(const struct leaf_cluster *);
void leaf_world_event(struct leaf_world *, uint32_t endpoint, bool is_connected);

// A ClusterLoadAssignment of n endpoints: a hundredth of them in the second priority, the others in
// four localities of the first, which weigh 1 to 4. `round` changes all weights of endpoints. To be
// freed.
uint8_t *leaf_assignment(uint32_t first_address, uint32_t n, uint32_t round, size_t *ret_len);
// With so many localities in the first priority, 4 at most.
uint8_t *leaf_assignment_in(
	uint32_t n_first, uint32_t first_address, uint32_t n, uint32_t round, size_t *ret_len);
struct ip_port leaf_address(uint32_t number);

size_t bench_heap(void); // bytes in use, malloc's own included
