// SPDX-License-Identifier: Apache-2.0
// The actions of one frontend's routes under the names that gRFC A28 gives them: equal actions are
// one, names are readable and survive updates (A28-N01..A28-N05). For operators; requests
// are routed by lb/route/route.h.
// Thread: ctrl.
#pragma once

#include <stdint.h>

struct actions;
struct res_route_config;

struct action_target {
	const char *cluster;
	uint32_t weight;
};
struct action {
	const char *name; // "cds:blue", "weighted:blue_green_1"
	const struct action_target *targets; // by name, each cluster once
	uint32_t n_targets; // 1 = the cluster alone
};

// Of one virtual host (index) or all (-1). `before`: the ones whose names live on; NULL = none.
// Keeps a reference to the routes. NULL = out of memory.
struct actions *actions_new(struct res_route_config *, int32_t vhost, const struct actions *before);
void actions_free(struct actions *); // NULL is fine

uint32_t actions_count(const struct actions *);
const struct action *actions_at(
	const struct actions *, uint32_t index); // as routes name them first
// Index of a route's action, -1 = it has none that can be carried out. The indices are those of the
// resource; the virtual host is one of those asked for.
int64_t actions_of(const struct actions *, uint32_t vhost, uint32_t route);
