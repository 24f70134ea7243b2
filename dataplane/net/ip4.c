// SPDX-License-Identifier: Apache-2.0
// IPv4 (RFC 791, RFC 1122 3.2) of a host that never forwards: checks what comes in, finds the way
// for what goes out. Fragments are not reassembled: TCP sends none (DF, MSS), and reassembly is
// memory that others can fill.
#include "dataplane/net/inside.h"
#include "lb/base/check.h"

#define DF 0x4000
#define MORE_OR_OFFSET 0x3fff

// Loose and strict source routes let a stranger choose where our answers go (RFC 7126 4.3, 4.4);
// all other options are skipped, as RFC 1122 3.2.1.8 asks. False = must not be accepted.
static bool options_fine(const uint8_t *option, const uint8_t *end)
{
	while (option < end) {
		if (option[0] == 0)
			return true;
		if (option[0] == 1) {
			option++;
			continue;
		}
		bool source_route = option[0] == 131 || option[0] == 137;
		if (source_route || end - option < 2 || option[1] < 2 || option[1] > end - option)
			return false;
		option += option[1];
	}
	return true;
}

// What we send to is no martian; most packets come from where we answer to.
static const struct net_dst *known_dst(const struct net *net, uint32_t dst)
{
	const struct net_dst *known = &net->dst[net_hash(net, dst, 0, NET_DST_SLOTS)];
	return known->ip == dst && known->generation == net->generation ? known : NULL;
}

// NET_N_COUNTERS = fine. RFC 1122 3.2.1.7: a small TTL is no reason to drop.
static enum net_counter check(const struct net *net, const uint8_t *ip, size_t len)
{
	if (len < IP4_HEADER)
		return NET_ip_short;
	if (ip[0] >> 4 != 4)
		return NET_ip_version;
	size_t header = (size_t)(ip[0] & 0xf) * 4;
	if (header < IP4_HEADER || header > len)
		return NET_ip_header_length;
	// Without options the length is known and the loop is none.
	if ((header == IP4_HEADER ? csum(ip, IP4_HEADER) : csum(ip, header)) != 0)
		return NET_ip_checksum;
	size_t total = load16(ip + 2);
	if (total < header || total > len)
		return NET_ip_total_length;
	if (header > IP4_HEADER && !options_fine(ip + IP4_HEADER, ip + header))
		return NET_ip_options;
	if (!net_is_own(net, load32(ip + 16)))
		return NET_ip_not_ours;
	if (load16(ip + 6) & MORE_OR_OFFSET)
		return NET_ip_fragment;
	uint32_t src = load32(ip + 12);
	if (!known_dst(net, src) && net_is_martian(net, src))
		return NET_ip_martian;
	return NET_N_COUNTERS;
}

void ip4_input(struct net *net, const uint8_t *ip, size_t len, bool broadcast)
{
	enum net_counter drop = check(net, ip, len);
	if (drop == NET_N_COUNTERS && broadcast)
		drop = NET_ip_broadcast; // RFC 1122 3.3.6
	if (drop != NET_N_COUNTERS) {
		net_count(net, drop);
		return;
	}
	size_t header = (size_t)(ip[0] & 0xf) * 4;
	size_t payload = load16(ip + 2) - header; // the frame's padding ends here
	uint32_t remote = load32(ip + 12);
	uint32_t local = load32(ip + 16);
	if (ip[9] == IP_PROTO_TCP) {
		net_count(net, net->tcp.input ? NET_tcp_segments : NET_tcp_absent);
		struct ip_addr l = ip_from_v4(local);
		struct ip_addr r = ip_from_v4(remote);
		if (net->tcp.input)
			net->tcp.input(net->tcp.ctx, &l, &r, ip + header, payload);
	} else if (ip[9] == IP_PROTO_ICMP) {
		icmp_input(net, local, remote, ip + header, payload);
	} else {
		net_count(net, NET_ip_unknown_protocol);
	}
}

struct neigh *ip4_next_hop(struct net *net, uint32_t dst)
{
	const struct net_dst *known = known_dst(net, dst);
	if (known)
		return known->neigh;
	const struct net_route *route = net_route_find(net, dst);
	if (!route || net_is_martian(net, dst)) {
		net_count(net, NET_tx_no_route);
		return NULL;
	}
	struct neigh *n = neigh_get(net, route->port, route->gateway ? route->gateway : dst);
	if (n)
		net->dst[net_hash(net, dst, 0, NET_DST_SLOTS)] =
			(struct net_dst){dst, net->generation, n};
	return n;
}

static uint8_t *lose(struct net *net, size_t frame_len)
{
	DCHECK(frame_len <= net->max_frame);
	net->open = (struct net_open){.frame = net->lost};
	return net->lost + ETH_HEADER + IP4_HEADER;
}

uint8_t *ip4_reserve(struct net *net, uint32_t dst, size_t len)
{
	DCHECK(!net->open.frame);
	size_t frame_len = ETH_HEADER + IP4_HEADER + len;
	struct neigh *n = ip4_next_hop(net, dst);
	if (!n)
		return lose(net, frame_len);
	const struct net_port *port = &net->ports[n->port];
	DCHECK(IP4_HEADER + len <= port->mtu);
	struct neigh_held *held = NULL;
	uint8_t *frame;
	if (neigh_has_mac(n)) {
		frame = port->device.reserve(port->device.ctx, frame_len);
		if (!frame) {
			net_count(net, NET_tx_no_buffer);
			return NULL;
		}
	} else {
		held = neigh_reserve(n, frame_len);
		if (!held)
			return lose(net, frame_len);
		frame = held->frame;
	}
	net->open = (struct net_open){.neigh = n, .frame = frame, .held = held};
	return frame + ETH_HEADER + IP4_HEADER;
}

// In words, summed up as they are written: reading them back would wait for the stores.
static void write_header(uint8_t *ip, uint32_t src, uint32_t dst, uint8_t protocol, size_t len)
{
	uint32_t words[5] = {
		0x45u << 24 | (uint32_t)len,
		DF, // RFC 6864 4.1: with DF the identification says nothing
		64u << 24 | (uint32_t)protocol << 16,
		src,
		dst,
	};
	uint64_t sum = 0;
	for (size_t i = 0; i < 5; i++)
		sum += words[i];
	words[2] |= csum_fold(sum);
	for (size_t i = 0; i < 5; i++)
		store32(ip + 4 * i, words[i]);
}

void ip4_emit(struct net *net, uint32_t src, uint32_t dst, uint8_t protocol, size_t len)
{
	struct net_open open = net->open;
	DCHECK(open.frame);
	net->open.frame = NULL;
	struct neigh *n = open.neigh;
	if (!n)
		return;
	eth_fill(&net->ports[n->port], open.frame, n->mac, ETH_TYPE_IP4);
	write_header(open.frame + ETH_HEADER, src, dst, protocol, IP4_HEADER + len);
	if (open.held) {
		neigh_hold(n, open.held);
		return;
	}
	eth_send(net, n->port, ETH_HEADER + IP4_HEADER + len);
	if (n->state == NEIGH_STALE)
		neigh_probe(n);
}

uint16_t ip4_mtu(struct net *net, uint32_t dst)
{
	const struct net_dst *known = known_dst(net, dst);
	if (known)
		return net->ports[known->neigh->port].mtu;
	const struct net_route *route = net_route_find(net, dst);
	return net->ports[route ? route->port : 0].mtu;
}
