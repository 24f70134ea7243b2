// SPDX-License-Identifier: Apache-2.0
// A node of the balancing tree over members in a world of virtual time, and a parent that keeps
// what it publishes.
// Thread: the test's.
#pragma once

#include "lb/member/member.h"
#include "lb/pick/orca.h"
#include "lb/pick/picker.h"
#include "lb/policy/node_ops.h"
#include "tests/unit/lb/world.h"

#define NODE_MEMBERS 64 // numbers of members are addresses too
#define NODE_OWN 100 // id of a member that a node made for itself

struct node_world {
	struct world world;
	struct lb_member_env member_env;
	struct lb_node_env env;
	struct lb_policy_spec spec;
	struct lb_node *node;
	struct lb_member *members[NODE_MEMBERS]; // counted; made when first listed
	uint32_t weights[NODE_MEMBERS]; // 0 = 1
	struct lb_member *own; // the newest of the node's own; borrowed
	enum lb_state state;
	struct lb_picker *picker; // NULL = nothing was published
	uint32_t n_published;
	uint32_t n_resolutions; // asked for
	uint32_t n_slots; // taken and not given back
	bool out_of_memory; // of the parent
	struct rand rand; // of the picking worker
	uint32_t positions[4];
	uint32_t active[NODE_MEMBERS + 64];
	uint64_t ready[WORLD_MAX_ENDPOINTS / 64]; // what the picking worker is connected to
	struct lb_pick_hash hash;
};

void node_world_init(struct node_world *, const struct lb_node_ops *, uint64_t seed);
void node_world_fini(struct node_world *);
// The members first .. first + n - 1 in one locality.
int node_world_update(struct node_world *, uint32_t first, uint32_t n, const char *note);
// By number of the address, as world_id().
uint32_t node_world_id(struct node_world *, uint32_t number);
uint32_t node_world_connects(struct node_world *, uint32_t number);
void node_world_event(struct node_world *, enum lb_event_kind, uint32_t number);
void node_world_connected(struct node_world *, uint32_t first, uint32_t n);
// As a worker would. Connect requests are not fulfilled.
struct lb_pick node_world_pick(struct node_world *);
// The same, and it must be an endpoint: its number.
uint32_t node_world_number(struct node_world *);
// Answers what workers were told to release.
void node_world_release(struct node_world *);
