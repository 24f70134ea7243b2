// SPDX-License-Identifier: Apache-2.0
// One virtual host's routes compiled, as lb/route.c searches them. Nobody else includes this.
// Thread: built on ctrl; read anywhere.
#pragma once

#include "lb/action.h"

struct lb_radix;
struct lb_strmap;

struct lb_vhost_route {
	uint32_t action;
};

struct lb_vhost {
	uint32_t n_refs; // ctrl only
	uint32_t n_routes;
	struct lb_vhost_route *routes; // owned, as all below
	struct lb_strmap *exact;
	struct lb_radix *prefix;
	struct lb_radix *exact_fold, *prefix_fold; // case ignored (A28-P04)
	struct lb_actions actions;
	struct lb_filter_overrides overrides; // in the actions' arena
};
