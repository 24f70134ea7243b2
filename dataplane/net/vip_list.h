// SPDX-License-Identifier: Apache-2.0
// The prefixes that are ours beside the ports' addresses (vip.h), and whether one holds an address.
// Thread: the owning worker.
#pragma once

#include "dataplane/net/net.h"
#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct net_vips {
	struct net_vip list[NET_MAX_VIPS];
	uint32_t n;
	bool announces; // this worker tells the links
	uint32_t n_places;
	struct ip_addr *served; // owned [n_places]; :: = nothing at this place
	bool *due; // owned [n_places]: to be announced
	bool reports; // groups of what was announced are to be reported
	struct twheel_timer timer;
	struct net *net; // borrowed
};

// NULL = in none.
static inline const struct net_vip *net_vip_find(const struct net_vips *v, const struct ip_addr *ip)
{
	for (uint32_t i = 0; i < v->n; i++)
		if (ip_in_prefix(ip, &v->list[i].prefix.ip, v->list[i].prefix.bits))
			return &v->list[i];
	return NULL;
}
