// SPDX-License-Identifier: Apache-2.0
// The way of a flow whose destination several ports reach by routes of one prefix, as two default
// routes, or one subnet in two VLANs: it leaves by the port that has its local address, to which
// its peer has sent, so that each link's gateway, firewall and neighbors see both directions.
// Without such an address, as of VIPs, and where connections begin here, the first port's is taken.
// Private to this folder.
// Thread: the owning worker.
#pragma once

#include "dataplane/net/inside.h"

// The neighbor towards dst, found by the routes; without a flow by the first port's. *ret: what may
// be remembered of it. Returns NULL, counted, if there is none.
struct neigh *way_find(
	struct net *, const struct ip_addr *dst, const struct tcp_flow *, struct net_dst6 *ret);
// The same where struct net_dst has NET_BY_SOURCE.
struct neigh *way_by_source(struct net *, const struct ip_addr *dst, const struct tcp_flow *);
// The MTU of the port by which the flow leaves towards dst; of port 0 where there is no route.
uint16_t way_mtu(const struct net *, const struct ip_addr *dst, const struct tcp_flow *);
