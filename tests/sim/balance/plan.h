// SPDX-License-Identifier: Apache-2.0
// A leaf's configuration as text: "a*2: 0 1, b: 2+3; c: 4d" is two localities in the first
// priority, "a" with weight 2, and one in the second; numbers are addresses, + joins those of one
// endpoint, d says that it drains, and wN its weight.
// Thread: the test's.
#pragma once

#include "lb/pick/leaf_endpoints.h"

#define PLAN_PRIORITIES 8
#define PLAN_LOCALITIES 32
#define PLAN_ENDPOINTS 128
#define PLAN_IP6 192 // from this number on they are of IPv6
#define PLAN_ADDRESSES 256 // numbers are less than this

struct plan {
	struct lb_leaf_priority priorities[PLAN_PRIORITIES];
	struct lb_leaf_locality localities[PLAN_LOCALITIES];
	struct lb_leaf_endpoint endpoints[PLAN_ENDPOINTS];
	struct ip_port addresses[PLAN_ADDRESSES];
	char names[PLAN_LOCALITIES][16];
	uint32_t n_priorities, n_localities, n_endpoints, n_addresses;
};

void plan_read(struct plan *, const char *text); // "" = no priorities
struct ip_port plan_address(uint32_t number);
uint32_t plan_number(const struct ip_port *);
// Of the first endpoint that has the address; UINT32_MAX = none.
uint32_t plan_priority_of(const struct plan *, uint32_t number);
