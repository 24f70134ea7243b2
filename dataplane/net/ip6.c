// SPDX-License-Identifier: Apache-2.0
// IPv6 (RFC 8200) of a host that never forwards: checks what comes in, finds the way for what goes
// out. Fragments are not reassembled, as with IPv4; extension headers are walked within bounds.
#include "dataplane/net/ip6.h"

#include "dataplane/net/packet_out.h"
#include "dataplane/net/tunnel.h"
#include "dataplane/net/way.h"

#define HOP_BY_HOP 0
#define ROUTING 43
#define FRAGMENT 44
#define DESTINATION_OPTIONS 60
#define EXTENSIONS_MAX 6 // each that RFC 8200 4.1 knows once, destination options twice
#define EXTENSION_BYTES_MAX 256
#define OPTION_PAD1 0

static inline struct ip_addr address_at(const uint8_t *p)
{
	struct ip_addr a;
	memcpy(a.b, p, sizeof(a.b));
	return a;
}

// RFC 8200 4.2: an option that we don't know says by its first bits what to do with its packet.
static bool options_fine(const uint8_t *option, const uint8_t *end)
{
	while (option < end) {
		if (option[0] == OPTION_PAD1) {
			option++;
			continue;
		}
		if (option[0] >> 6 || end - option < 2 || option[1] > end - option - 2)
			return false;
		option += 2 + option[1];
	}
	return true;
}

// Of one extension header of len bytes. NET_N_COUNTERS = to be passed over.
static enum net_counter check_extension(uint8_t kind, const uint8_t *header, size_t len)
{
	switch (kind) {
	case ROUTING: // RFC 5095: one that still leads somewhere makes us a relay
		return header[3] ? NET_ip6_routing : NET_N_COUNTERS;
	case FRAGMENT: // a whole packet may say that it is its only one (RFC 6946)
		return load16(header + 2) & 0xfff9 ? NET_ip6_fragment : NET_N_COUNTERS;
	default:
		return options_fine(header + 2, header + len) ? NET_N_COUNTERS : NET_ip6_option;
	}
}

static bool is_extension(uint8_t protocol, bool first)
{
	return protocol == DESTINATION_OPTIONS || protocol == ROUTING || protocol == FRAGMENT ||
	       (first && protocol == HOP_BY_HOP);
}

enum net_counter ip6_find_payload(const uint8_t *ip, size_t len, struct ip6_payload *ret)
{
	uint8_t protocol = ip[6];
	bool atomic = false;
	size_t at = IP6_HEADER;
	for (unsigned n = 0; is_extension(protocol, n == 0); n++) {
		if (n == EXTENSIONS_MAX || len - at < 8)
			return NET_ip6_extension;
		size_t size = protocol == FRAGMENT ? 8 : 8 + (size_t)ip[at + 1] * 8;
		if (size > len - at || at + size > IP6_HEADER + EXTENSION_BYTES_MAX)
			return NET_ip6_extension;
		enum net_counter drop = check_extension(protocol, ip + at, size);
		if (drop != NET_N_COUNTERS)
			return drop;
		atomic |= protocol == FRAGMENT;
		protocol = ip[at];
		at += size;
	}
	*ret = (struct ip6_payload){protocol, atomic, at};
	return NET_N_COUNTERS;
}

static inline struct net_dst6 *known_dst(struct net *net, const struct ip_addr *dst)
{
	struct net_dst6 *known = &net->dst6[net_hash(net, dst, 0, NET_DST_SLOTS)];
	return known->generation == net->generation && ip_eq(&known->ip, dst) ? known : NULL;
}

// NET_N_COUNTERS = may have been sent to us on this port.
static enum net_counter check_addresses(struct net *net, const struct ip6_packet *p, bool in_group)
{
	if (ip_is_v4(&p->src) || ip_is_v4(&p->dst)) // never on the wire (RFC 4942 2.2)
		return NET_ip6_martian;
	bool is_icmp = p->protocol == IP_PROTO_ICMP6;
	if (ip6_is_group(&p->dst) ? !is_icmp : in_group)
		return NET_ip6_group;
	if (ip_is_link_local(&p->dst)) {
		if (!is_icmp || !ip_eq(&p->dst, &net->ports[p->port].link_local))
			return NET_ip6_not_ours;
	} else if (!ip6_is_group(&p->dst) && !net_is_own(net, &p->dst)) {
		return NET_ip6_not_ours;
	}
	if (ip_is_none(&p->src)) // a question of one who has no address yet; icmp6.c looks
		return is_icmp ? NET_N_COUNTERS : NET_ip6_martian;
	// RFC 4291 2.5.6: what stays on the link can't be answered by a route.
	if (net_is_martian(net, &p->src) || (ip_is_link_local(&p->src) && !is_icmp))
		return NET_ip6_martian;
	struct net_dst6 *known = known_dst(net, &p->src);
	if (known && !ip6_is_group(&p->dst))
		known->own = p->dst;
	return NET_N_COUNTERS;
}

// NET_N_COUNTERS = sound; *ret is set.
static enum net_counter check(struct net *net, const struct ip6_origin *from, const uint8_t *ip,
	size_t len, struct ip6_packet *ret)
{
	if (len < IP6_HEADER)
		return NET_ip6_short;
	if (ip[0] >> 4 != 6)
		return NET_ip6_version;
	size_t total = IP6_HEADER + (size_t)load16(ip + 4);
	if (total > len)
		return NET_ip6_length;
	struct ip6_payload payload;
	enum net_counter drop = ip6_find_payload(ip, total, &payload);
	if (drop != NET_N_COUNTERS)
		return drop;
	*ret = (struct ip6_packet){.port = from->port,
		.src_mac = from->mac,
		.src = address_at(ip + 8),
		.dst = address_at(ip + 24),
		.hop_limit = ip[7],
		.protocol = payload.protocol,
		.from_link = ip[7] == IP6_HOP_LIMIT_ON_LINK && !payload.atomic,
		.payload = ip + payload.at,
		.len = total - payload.at};
	return check_addresses(net, ret, from->in_group);
}

static void tcp_input(struct net *net, const struct ip_addr *local, const struct ip_addr *remote,
	const uint8_t *ip, const uint8_t *segment, size_t len)
{
	net_count(net, NET_tcp_segments);
	struct tcp_flow flow;
	flow.local = *local;
	flow.remote = *remote;
	net_tcp_input(net, &flow, ip[1] >> 4 & 3, segment, len); // of the traffic class
}

// A packet of another protocol than those of ours may be a tunnel's.
static APART void input_tunnel(struct net *net, const uint8_t *ip, const struct ip6_packet *packet)
{
	struct tunnel_packet p = {.src = packet->src,
		.dst = packet->dst,
		.protocol = packet->protocol,
		.ecn = ip[1] >> 4 & 3,
		.payload = packet->payload,
		.len = packet->len,
		.header_len = (size_t)(packet->payload - ip)};
	net->decap.input(net, &p);
}

static APART void input_other(
	struct net *net, const struct ip6_origin *from, const uint8_t *ip, size_t len)
{
	struct ip6_packet p;
	enum net_counter drop = check(net, from, ip, len, &p);
	if (drop != NET_N_COUNTERS)
		net_drop(net, drop);
	else if (p.protocol == IP_PROTO_ICMP6)
		icmp6_input(net, &p);
	else if (p.protocol != IP_PROTO_TCP && net->decap.tunnels)
		input_tunnel(net, ip, &p);
	else if (p.protocol != IP_PROTO_TCP)
		net_drop(net, NET_ip6_unknown_protocol);
	else if (!net->tcp.input)
		net_drop(net, NET_tcp_absent);
	else
		tcp_input(net, &p.dst, &p.src, ip, p.payload, p.len);
}

void ip6_hear(struct net *net, const struct ip6_origin *from, const uint8_t *ip, size_t len)
{
	struct ip6_packet p;
	if (check(net, from, ip, len, &p) == NET_N_COUNTERS && p.protocol == IP_PROTO_ICMP6)
		icmp6_hear(net, &p);
}

// A segment without extension headers, between two addresses that have spoken before.
static inline bool is_usual(struct net *net, const uint8_t *ip, size_t len)
{
	if (len < IP6_HEADER || ip[0] >> 4 != 6 || ip[6] != IP_PROTO_TCP ||
		load16(ip + 4) > len - IP6_HEADER)
		return false;
	struct ip_addr src = address_at(ip + 8), dst = address_at(ip + 24);
	const struct net_dst6 *known = known_dst(net, &src);
	return known && ip_eq(&known->own, &dst);
}

void ip6_input(struct net *net, const struct ip6_origin *from, const uint8_t *ip, size_t len)
{
	if (from->in_group || !net->tcp.input || !is_usual(net, ip, len)) {
		input_other(net, from, ip, len);
		return;
	}
	struct ip_addr src = address_at(ip + 8), dst = address_at(ip + 24);
	tcp_input(net, &dst, &src, ip, ip + IP6_HEADER, load16(ip + 4));
}

// From the routes; remembered.
static APART struct neigh *find_next_hop(
	struct net *net, const struct ip_addr *dst, const struct tcp_flow *flow)
{
	struct net_dst6 found;
	struct neigh *n = way_find(net, dst, flow, &found);
	if (n)
		net->dst6[net_hash(net, dst, 0, NET_DST_SLOTS)] = found;
	return n;
}

struct neigh *ip6_next_hop(struct net *net, const struct ip_addr *dst, const struct tcp_flow *flow)
{
	const struct net_dst6 *known = known_dst(net, dst);
	if (!known)
		return find_next_hop(net, dst, flow);
	if (known->neigh == NET_BY_SOURCE)
		return way_by_source(net, dst, flow);
	if (known->neigh >= NET_BY_HOPS)
		return net_hops_choose(net, known->neigh - NET_BY_HOPS, dst, flow);
	return &net->neigh.entries[known->neigh];
}

uint8_t *ip6_reserve(struct net *net, struct neigh *n, size_t len)
{
	uint8_t *ip = packet_out_reserve(net, n, IP6_HEADER + len);
	return ip ? ip + IP6_HEADER : NULL;
}

void ip6_emit(struct net *net, const struct ip6_fields *fields, size_t len)
{
	uint8_t *ip = packet_out_begin(net);
	if (!ip)
		return;
	ip6_write_header(ip, fields, len);
	packet_out_send(net, IP6_HEADER + len);
}

uint16_t ip6_mtu(struct net *net, const struct ip_addr *dst, const struct tcp_flow *flow)
{
	const struct net_dst6 *known = known_dst(net, dst);
	if (known && known->neigh != NET_BY_SOURCE)
		return net->ports[net_way_port(net, known->neigh)].mtu;
	return way_mtu(net, dst, flow);
}
