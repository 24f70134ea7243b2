// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/way.h"

#include "dataplane/net/gateway.h"

static const struct ip_addr *source_of(const struct tcp_flow *flow)
{
	return flow ? &flow->local : NULL;
}

struct neigh *way_find(struct net *net, const struct ip_addr *dst, const struct tcp_flow *flow,
	struct net_dst6 *ret)
{
	const struct net_route *route = net_route_from(net, source_of(flow), dst);
	if (!route || net_is_martian(net, dst)) {
		net_count(net, NET_tx_no_route);
		return NULL;
	}
	uint32_t way;
	struct neigh *n = gateway_next_hop(net, route, dst, flow, &way);
	if (n)
		*ret = (struct net_dst6){.ip = *dst,
			.own = route->source,
			.generation = net->generation,
			.neigh = route->is_shared ? NET_BY_SOURCE : way};
	return n;
}

// Several addresses of ours may speak with one host at a time: each has a place of its own.
static struct net_way *place_of(
	struct net *net, const struct ip_addr *src, const struct ip_addr *dst)
{
	uint32_t tail;
	memcpy(&tail, src->b + sizeof(src->b) - sizeof(tail), sizeof(tail));
	return &net->ways[net_hash(net, dst, tail, NET_DST_SLOTS)];
}

struct neigh *way_by_source(struct net *net, const struct ip_addr *dst, const struct tcp_flow *flow)
{
	struct net_dst6 unused;
	uint32_t way;
	if (!flow)
		return way_find(net, dst, NULL, &unused);
	struct net_way *w = place_of(net, &flow->local, dst);
	if (w->generation == net->generation && ip_eq(&w->src, &flow->local) && ip_eq(&w->dst, dst))
		return w->neigh < NET_BY_HOPS
		               ? &net->neigh.entries[w->neigh]
		               : net_hops_choose(net, w->neigh - NET_BY_HOPS, dst, flow);
	const struct net_route *route = net_route_from(net, &flow->local, dst);
	struct neigh *n = gateway_next_hop(net, route, dst, flow, &way);
	if (n)
		*w = (struct net_way){flow->local, *dst, net->generation, way};
	return n;
}

uint16_t way_mtu(const struct net *net, const struct ip_addr *dst, const struct tcp_flow *flow)
{
	const struct net_route *route = net_route_from(net, source_of(flow), dst);
	return net->ports[route ? route->port : 0].mtu;
}
