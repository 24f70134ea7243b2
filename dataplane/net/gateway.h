// SPDX-License-Identifier: Apache-2.0
// Gateways: which one a flow takes where a port has several of one family, and the watch that tells
// which of them answer. One worker asks each of them at an interval, whether or not there is
// traffic: by unicast (RFC 4861 7.3.3), and from the last question that it may miss on by
// broadcast, at most once a second, since a router that was replaced has another MAC address. What
// it finds stands in struct lb_gateways, which every worker follows. Private to this folder.
// Thread: the owning worker.
#pragma once

#include "dataplane/net/inside.h"

// How many neighbors gateways keep for themselves.
uint32_t gateways_kept(const struct net *);
// Takes them. The neighbor table is empty and has room.
void gateways_init(struct net *);
void gateways_fini(struct net *);
// This worker watches the gateways of that port from now on, and asks them now.
void gateways_watch(struct net *, uint32_t port);

// The neighbor to which a route leads on the way to dst. *ret_way: where the same is found again,
// see struct net_dst. Returns NULL, counted, if there is no room for it.
struct neigh *gateway_next_hop(struct net *, const struct net_route *, const struct ip_addr *dst,
	const struct tcp_flow *, uint32_t *ret_way);
