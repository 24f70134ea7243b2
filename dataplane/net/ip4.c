// SPDX-License-Identifier: Apache-2.0
// IPv4 (RFC 791, RFC 1122 3.2) of a host that never forwards: checks what comes in, finds the way
// for what goes out. Fragments are not reassembled: TCP sends none (DF, MSS), and reassembly is
// memory that others can fill.
#include "dataplane/net/packet_out.h"
#include "dataplane/net/tunnel.h"
#include "dataplane/net/way.h"

#define NO_OPTIONS 0x45 // the first byte: version and length

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
static inline struct net_dst *known_dst(struct net *net, uint32_t dst)
{
	struct net_dst *known = &net->dst[net_hash_ip4(net, dst, NET_DST_SLOTS)];
	return known->ip == dst && known->generation == net->generation ? known : NULL;
}

// A checksum that is right, a length within the frame, and no options.
static inline bool is_usual_header(const uint8_t *ip, size_t len)
{
	size_t total = load16(ip + 2);
	return ip[0] == NO_OPTIONS && csum(ip, IP4_HEADER) == 0 && total >= IP4_HEADER &&
	       total <= len;
}

// NET_N_COUNTERS = fine; len >= IP4_HEADER. Of any header.
static APART enum net_counter check_header(const uint8_t *ip, size_t len)
{
	size_t header = (size_t)(ip[0] & 0xf) * 4;
	size_t total = load16(ip + 2);
	if (ip[0] >> 4 != 4)
		return NET_ip_version;
	if (header < IP4_HEADER || header > len)
		return NET_ip_header_length;
	if (csum(ip, header) != 0)
		return NET_ip_checksum;
	if (total < header || total > len)
		return NET_ip_total_length;
	return options_fine(ip + IP4_HEADER, ip + header) ? NET_N_COUNTERS : NET_ip_options;
}

// NET_N_COUNTERS = fine. Between the two, once we have answered, check() then asks no more.
static APART enum net_counter check_addresses(struct net *net, const uint8_t *ip)
{
	uint32_t src = load32(ip + 12), dst = load32(ip + 16);
	struct ip_addr remote = ip_from_v4(src), local = ip_from_v4(dst);
	if (!net_is_own(net, &local))
		return NET_ip_not_ours;
	if (load16(ip + 6) & MORE_OR_OFFSET)
		return NET_ip_fragment;
	struct net_dst *known = known_dst(net, src);
	if (known)
		known->own = dst;
	else if (net_is_martian(net, &remote))
		return NET_ip_martian;
	return NET_N_COUNTERS;
}

// NET_N_COUNTERS = fine. RFC 1122 3.2.1.7: a small TTL is no reason to drop.
static inline enum net_counter check(struct net *net, const uint8_t *ip, size_t len)
{
	if (len < IP4_HEADER)
		return NET_ip_short;
	if (!is_usual_header(ip, len)) {
		enum net_counter drop = check_header(ip, len);
		if (drop != NET_N_COUNTERS)
			return drop;
	}
	const struct net_dst *known = known_dst(net, load32(ip + 12));
	if (known && known->own == load32(ip + 16) && !(load16(ip + 6) & MORE_OR_OFFSET))
		return NET_N_COUNTERS;
	return check_addresses(net, ip);
}

// A packet of another protocol than those of ours may be a tunnel's.
static APART void input_tunnel(struct net *net, const uint8_t *ip)
{
	size_t header = (size_t)(ip[0] & 0xf) * 4;
	struct tunnel_packet p = {.src = ip_from_v4(load32(ip + 12)),
		.dst = ip_from_v4(load32(ip + 16)),
		.protocol = ip[9],
		.ecn = ip[1] & 3,
		.payload = ip + header,
		.len = load16(ip + 2) - header,
		.header_len = header};
	net->decap.input(net, &p);
}

// drop: what check() said of it.
static APART void input_other(
	struct net *net, const uint8_t *ip, enum net_counter drop, bool broadcast)
{
	if (drop == NET_N_COUNTERS && broadcast)
		drop = NET_ip_broadcast; // RFC 1122 3.3.6
	if (drop != NET_N_COUNTERS) {
		net_drop(net, drop);
	} else if (ip[9] == IP_PROTO_ICMP) {
		size_t header = (size_t)(ip[0] & 0xf) * 4;
		icmp_input(net, load32(ip + 16), load32(ip + 12), ip + header,
			load16(ip + 2) - header);
	} else if (ip[9] != IP_PROTO_TCP && net->decap.tunnels) {
		input_tunnel(net, ip);
	} else {
		net_drop(net, ip[9] == IP_PROTO_TCP ? NET_tcp_absent : NET_ip_unknown_protocol);
	}
}

void ip4_input(struct net *net, const uint8_t *ip, size_t len, bool broadcast)
{
	enum net_counter drop = check(net, ip, len);
	if (drop != NET_N_COUNTERS || broadcast || ip[9] != IP_PROTO_TCP || !net->tcp.input) {
		input_other(net, ip, drop, broadcast);
		return;
	}
	net_count(net, NET_tcp_segments);
	struct tcp_flow flow;
	flow.local = ip_from_v4(load32(ip + 16));
	flow.remote = ip_from_v4(load32(ip + 12));
	size_t header = (size_t)(ip[0] & 0xf) * 4;
	size_t payload = load16(ip + 2) - header; // the frame's padding ends here
	net_tcp_input(net, &flow, ip[1] & 3, ip + header, payload);
}

void ip4_hear(struct net *net, const uint8_t *ip, size_t len)
{
	if (check(net, ip, len) != NET_N_COUNTERS || ip[9] != IP_PROTO_ICMP)
		return;
	size_t header = (size_t)(ip[0] & 0xf) * 4;
	icmp_hear(net, load32(ip + 16), ip + header, load16(ip + 2) - header);
}

// From the routes; remembered.
static APART struct neigh *find_next_hop(struct net *net, uint32_t dst, const struct tcp_flow *flow)
{
	struct ip_addr ip = ip_from_v4(dst);
	struct net_dst6 found;
	struct neigh *n = way_find(net, &ip, flow, &found);
	if (n)
		net->dst[net_hash_ip4(net, dst, NET_DST_SLOTS)] = (struct net_dst){.ip = dst,
			.generation = found.generation,
			.neigh = found.neigh,
			.own = ip_to_v4(&found.own)};
	return n;
}

static APART struct neigh *choose_hop(
	struct net *net, uint32_t way, uint32_t dst, const struct tcp_flow *flow)
{
	struct ip_addr ip = ip_from_v4(dst);
	if (way == NET_BY_SOURCE)
		return way_by_source(net, &ip, flow);
	return net_hops_choose(net, way - NET_BY_HOPS, &ip, flow);
}

struct neigh *ip4_next_hop(struct net *net, uint32_t dst, const struct tcp_flow *flow)
{
	const struct net_dst *known = known_dst(net, dst);
	if (!known)
		return find_next_hop(net, dst, flow);
	if (known->neigh >= NET_BY_HOPS)
		return choose_hop(net, known->neigh, dst, flow);
	return &net->neigh.entries[known->neigh];
}

uint8_t *ip4_reserve(struct net *net, uint32_t dst, const struct tcp_flow *flow, size_t len)
{
	uint8_t *ip = packet_out_reserve(net, ip4_next_hop(net, dst, flow), IP4_HEADER + len);
	return ip ? ip + IP4_HEADER : NULL;
}

// In words, summed up before they are written: reading them back would wait for the stores. With
// DF the identification says nothing (RFC 6864 4.1).
static inline void write_header(
	uint8_t *ip, uint32_t src, uint32_t dst, uint8_t protocol, enum ip_ecn ecn, size_t len)
{
	static const uint8_t usual[12] = {NO_OPTIONS, [6] = 0x40, [8] = 64}; // DF, TTL
	uint64_t first;
	uint32_t second, addresses[2] = {__builtin_bswap32(src), __builtin_bswap32(dst)};
	memcpy(&first, usual, sizeof(first));
	memcpy(&second, usual + sizeof(first), sizeof(second));
	first |= (uint64_t)__builtin_bswap16((uint16_t)len) << 16 | (uint64_t)ecn << 8;
	second |= (uint32_t)protocol << 8;
	uint64_t sum = (first & UINT32_MAX) + (first >> 32) + second;
	sum += (uint64_t)addresses[0] + addresses[1];
	second |= (uint32_t)csum_fold(sum) << 16;
	memcpy(ip, &first, sizeof(first));
	memcpy(ip + 8, &second, sizeof(second));
	memcpy(ip + 12, addresses, sizeof(addresses));
}

void ip4_emit(
	struct net *net, uint32_t src, uint32_t dst, uint8_t protocol, enum ip_ecn ecn, size_t len)
{
	uint8_t *ip = packet_out_begin(net);
	if (!ip)
		return;
	write_header(ip, src, dst, protocol, ecn, IP4_HEADER + len);
	packet_out_send(net, IP4_HEADER + len);
}

uint16_t ip4_mtu(struct net *net, uint32_t dst, const struct tcp_flow *flow)
{
	const struct net_dst *known = known_dst(net, dst);
	if (known && known->neigh != NET_BY_SOURCE)
		return net->ports[net_way_port(net, known->neigh)].mtu;
	struct ip_addr ip = ip_from_v4(dst);
	return way_mtu(net, &ip, flow);
}
