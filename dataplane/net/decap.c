// SPDX-License-Identifier: Apache-2.0
// The end of tunnels: an L4 tier in front of us sends us clients' packets within its own. What is
// within comes from a configured source, is for an address of `vips`, and is then as any packet:
// checked as one, and answered from there by our own routes. A tunnel within a tunnel is dropped,
// and so are fragments of either (docs/l4-tier.md).
#include "dataplane/net/ip6.h"
#include "dataplane/net/relay.h"
#include "dataplane/net/tunnel.h"
#include "lb/base/check.h"

// What stays on a link, multicast listener and neighbor discovery, comes through no tunnel. Not
// even in a packet that claims to come from the next station: any client may send it.
#define LINK_FIRST 130
#define LINK_LAST 137

// A checksum of zero is none, with IPv6 as well (RFC 6935): what is within has its own.
static bool is_udp_intact(const struct tunnel_packet *p)
{
	if (!load16(p->payload + 6))
		return true;
	size_t len = load16(p->payload + 4), at = ip_is_v4(&p->src) ? 12 : 0;
	const uint8_t rest[4] = {[1] = IP_PROTO_UDP, (uint8_t)(len >> 8), (uint8_t)len};
	uint64_t sum = csum_add(0, p->src.b + at, sizeof(p->src.b) - at);
	sum = csum_add(sum, p->dst.b + at, sizeof(p->dst.b) - at);
	return csum_fold(csum_add(csum_add(sum, rest, sizeof(rest)), p->payload, len)) == 0;
}

static bool is_of_a_link(const uint8_t *ip, size_t len)
{
	struct ip6_payload p;
	return ip[6] != IP_PROTO_TCP && ip6_find_payload(ip, len, &p) == NET_N_COUNTERS &&
	       p.protocol == IP_PROTO_ICMP6 && p.at < len && ip[p.at] >= LINK_FIRST &&
	       ip[p.at] <= LINK_LAST;
}

// NET_N_COUNTERS = IPv4 and IPv6 may look at it.
static enum net_counter check_inner(const struct net *net, const struct tunnel_inner *in)
{
	struct ip_addr dst, src;
	if (in->len < (in->v4 ? IP4_HEADER : IP6_HEADER))
		return in->v4 ? NET_ip_short : NET_ip6_short;
	if (in->v4) {
		dst = ip_from_v4(load32(in->ip + 16));
	} else {
		memcpy(src.b, in->ip + 8, sizeof(src.b));
		memcpy(dst.b, in->ip + 24, sizeof(dst.b));
		if (ip_is_link_local(&src))
			return NET_ip6_martian;
		if (is_of_a_link(in->ip, in->len))
			return NET_icmp6_ignored;
	}
	return net_vip_find(&net->vips, &dst) ? NET_N_COUNTERS : NET_tunnel_not_vip;
}

static enum ip_ecn ecn_of(const struct tunnel_inner *in)
{
	return (in->v4 ? in->ip[1] : in->ip[1] >> 4) & 3;
}

static enum net_counter check(
	const struct net *net, const struct tunnel_packet *p, struct tunnel_inner *ret)
{
	enum net_counter drop = tunnel_find(net->decap.tunnels, p, ret);
	if (drop == NET_ip_unknown_protocol && !ip_is_v4(&p->src))
		return NET_ip6_unknown_protocol;
	if (drop != NET_N_COUNTERS)
		return drop;
	if (net->decap.within)
		return NET_tunnel_nested;
	if (p->protocol == IP_PROTO_UDP && !is_udp_intact(p))
		return NET_tunnel_checksum;
	drop = check_inner(net, ret);
	// RFC 6040 4.2: its sender does not hear of marks, so that a loss has to tell.
	if (drop == NET_N_COUNTERS && p->ecn == IP_CE && ecn_of(ret) == IP_NOT_ECT)
		return NET_tunnel_congested;
	return drop;
}

static void tell_overhead(struct net *net, size_t overhead)
{
	if (net->tcp.through)
		net->tcp.through(net->tcp.ctx, (uint32_t)overhead);
}

static void input_inner(struct net *net, const struct tunnel_inner *in)
{
	static const uint8_t nobody[ETH_ADDRESS];
	if (in->v4)
		ip4_input(net, in->ip, in->len, false);
	else
		ip6_input(net, &(struct ip6_origin){.mac = nobody}, in->ip, in->len);
}

// Takes out what a packet carries, and processes it.
static void input(struct net *net, const struct tunnel_packet *p)
{
	struct tunnel_inner in;
	enum net_counter drop = check(net, p, &in);
	if (drop != NET_N_COUNTERS) {
		net_drop(net, drop);
		return;
	}
	if (in.next_hop && relay_input(net, p, &in))
		return;
	const struct net_tcp tcp = net->tcp;
	net_count(net, NET_tunnel_packets);
	net->decap.within = net->decap.taken = true;
	tell_overhead(net, in.overhead);
	// RFC 6040 4.2: a mark on the outer packet is one on the inner one.
	if (p->ecn == IP_CE && tcp.input_marked)
		net->tcp.input = tcp.input_marked;
	input_inner(net, &in);
	net->tcp.input = tcp.input;
	tell_overhead(net, 0);
	net->decap.within = false;
}

bool net_take_tunnelled(struct net *net)
{
	bool taken = net->decap.taken;
	net->decap.taken = false;
	return taken;
}

void net_set_tunnels(struct net *net, const struct net_tunnels *tunnels)
{
	DCHECK(!net->decap.tunnels);
	net->decap.tunnels = tunnels;
	net->decap.input = input;
}
