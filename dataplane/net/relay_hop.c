// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/relay_hop.h"

#define KNOWN_NS (600 * NS_PER_SECOND) // RFC 1191 6.3

bool relay_hop_allowed(const struct net_tunnel *t, const struct ip_addr *ip)
{
	for (uint32_t i = 0; i < t->n_hops; i++)
		if (ip_in_prefix(ip, &t->hops[i].ip, t->hops[i].bits))
			return true;
	return false;
}

bool relay_hop_among(const struct net_tunnels *all, uint16_t port, const struct ip_addr *ip)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (all->list[i].kind == NET_TUNNEL_GUE && all->list[i].port == port &&
			relay_hop_allowed(&all->list[i], ip))
			return true;
	return false;
}

// What a tunnel brings any client may have made, and it says nothing of packets of ours but those
// to clients.
uint32_t relay_hop_quoted(const struct net *net, uint32_t local, const uint8_t *quoted, size_t len)
{
	if (!net->decap.tunnels || net->decap.within || len < IP4_HEADER + UDP_HEADER)
		return 0;
	// As relay.c sends it: without options, whole, and without a checksum of UDP.
	const uint8_t *udp = quoted + IP4_HEADER;
	if (quoted[0] != (4 << 4 | IP4_HEADER / 4) || quoted[9] != IP_PROTO_UDP ||
		load16(quoted + 6) & MORE_OR_OFFSET || load32(quoted + 12) != local ||
		load16(udp + 4) != load16(quoted + 2) - IP4_HEADER || load16(udp + 6) != 0)
		return 0;
	uint32_t hop = load32(quoted + 16);
	struct ip_addr ip = ip_from_v4(hop);
	bool is_one = relay_hop_among(net->decap.tunnels, load16(udp + 2), &ip);
	return is_one && !net_is_martian(net, &ip) ? hop : 0;
}

void relay_hop_learn(struct net *net, uint32_t hop, uint16_t mtu)
{
	if (mtu > relay_hop_mtu(net, hop))
		return;
	net->relay_hops[net_hash_ip4(net, hop, NET_RELAY_HOPS)] = (struct net_relay_hop){
		.ip = hop, .mtu = mtu, .until_ns = twheel_now(net->wheel) + KNOWN_NS};
}

uint16_t relay_hop_mtu(const struct net *net, uint32_t hop)
{
	const struct net_relay_hop *h = &net->relay_hops[net_hash_ip4(net, hop, NET_RELAY_HOPS)];
	return h->ip == hop && h->until_ns > twheel_now(net->wheel) ? h->mtu : UINT16_MAX;
}
