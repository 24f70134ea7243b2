// SPDX-License-Identifier: Apache-2.0
// A fleet's backends as the policies of its hosts see them: each a member that is connected to.
// Hosts do nothing that changes a member, so that one mesh is that of each of them in turn.
// Thread: one.
#pragma once

#include "lb/base/rand.h"
#include "lb/member/member.h"

#include <stdint.h>

struct lb_endpoint;
struct lb_leaf_endpoints;
struct lb_orca_table;

struct mesh {
	struct twheel *wheel; // owned, as the next five; its time stands still
	struct lb_connectivity *connectivity;
	struct lb_leaf_endpoints *endpoints;
	struct lb_orca_table *orca; // what backends report, by member
	struct lb_member **members; // [n]; their ids are the numbers of backends
	uint64_t *ready; // lb_pick_ctx.ready: to all of them
	uint32_t n;
	struct rand rand;
	struct lb_member_env member_env;
	const struct lb_endpoint *connecting; // private to mesh.c
};

// n: up to LB_MAX_ENDPOINTS. Returns NULL if out of memory.
struct mesh *mesh_new(uint64_t seed, uint32_t n, uint32_t n_localities);
void mesh_free(struct mesh *); // NULL is fine
