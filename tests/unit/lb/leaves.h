// SPDX-License-Identifier: Apache-2.0
// A leaf or an aggregate of leaves over pretended workers, with endpoints that are up, down or
// hang.
// Thread: the test's.
#pragma once

#include "lb/leaf/aggregate.h"
#include "lb/member/member.h"
#include "lb/pick/picker.h"
#include "tests/support/leaf_update.h"
#include "tests/unit/lb/world.h"

#define N_IDS 4096
#define NOTHING UINT32_MAX

extern const struct lb_policy_spec leaves_child, leaves_split, leaves_whole;

struct leaves {
	struct world world;
	struct lb_member_env member_env;
	struct lb_breakers *breakers;
	struct lb_leaf_env env;
	struct lb_leaf *leaf;
	struct lb_aggregate *aggregate;
	bool taken[N_IDS];
	uint32_t next_id, n_taken, n_slots, next_slot;
	uint32_t positions[65536]; // by slot
	uint64_t n_ok[N_IDS], n_failed[N_IDS], used_ns[N_IDS];
	enum lb_state state;
	struct lb_picker *picker;
	uint32_t n_published;
	uint32_t n_resolutions; // asked for
	bool out_of_memory;
	// What the configuration says; addresses by number.
	struct lb_leaf_config config;
	struct lb_outlier_conf outlier;
	struct {
		struct lb_leaf_config config;
		const struct lb_leaf_priority *priorities;
		uint32_t n_priorities;
	} parts[3]; // "leaf0", …
	bool is_down[WORLD_MAX_ENDPOINTS]; // by address
	bool is_hung[WORLD_MAX_ENDPOINTS]; // its attempts have no outcome
};

// Endpoints of a leaf: four in each locality, localities "a" to "d" two by two in priorities.
struct leaves_plan {
	struct ip_port addresses[16];
	struct lb_leaf_endpoint endpoints[16];
	struct lb_leaf_locality localities[4];
	struct lb_leaf_priority priorities[4];
};

// Without a leaf: the test makes its own, or an aggregate.
void leaves_init_world(struct leaves *, uint64_t seed);
// With a leaf, not configured yet.
void leaves_init(struct leaves *, lb_node_ops_find *ops_of);
void leaves_fini(struct leaves *); // checks that nothing is left
const struct lb_leaf_env *leaves_env(struct leaves *, lb_node_ops_find *ops_of);
struct lb_leaf_parent leaves_parent(struct leaves *);
void leaves_plan_init(struct leaves_plan *, uint32_t first); // addresses first .. first + 15
void leaves_update(struct leaves *, const struct leaves_plan *, uint32_t n_priorities);
struct lb_pick leaves_pick(struct leaves *);
// Who is asked for, by address; NOTHING = requests wait or fail.
uint32_t leaves_picked(struct leaves *);
// Lets time pass; attempts have their outcome every 50 ms.
void leaves_pass(struct leaves *, uint64_t ns);
void leaves_set_down(struct leaves *, uint32_t address, bool is_down);
