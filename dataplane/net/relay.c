// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/relay.h"

#include "dataplane/net/ip6.h"
#include "dataplane/net/relay_hop.h"
#include "dataplane/net/too_big.h"
#include "lb/base/min.h"

#define LEAST4 552 // Linux's least MTU of a path; hosts must take 576
#define LEAST6 1280 // RFC 8201 4

// The segment in a packet that has one to speak of, and its flow's addresses. NULL = there is none.
static const uint8_t *find_segment(
	const struct tunnel_inner *in, struct tcp_flow *ret_flow, size_t *ret_len)
{
	size_t at = IP6_HEADER;
	if (in->v4) {
		at = (size_t)(in->ip[0] & 0xf) * 4;
		if (at < IP4_HEADER || in->ip[9] != IP_PROTO_TCP ||
			load16(in->ip + 6) & MORE_OR_OFFSET)
			return NULL;
		ret_flow->remote = ip_from_v4(load32(in->ip + 12));
		ret_flow->local = ip_from_v4(load32(in->ip + 16));
	} else {
		struct ip6_payload p;
		if (ip6_find_payload(in->ip, in->len, &p) != NET_N_COUNTERS ||
			p.protocol != IP_PROTO_TCP)
			return NULL;
		at = p.at;
		memcpy(ret_flow->remote.b, in->ip + 8, sizeof(ret_flow->remote.b));
		memcpy(ret_flow->local.b, in->ip + 24, sizeof(ret_flow->local.b));
	}
	if (at > in->len)
		return NULL;
	*ret_len = in->len - at;
	return in->ip + at;
}

static bool is_known(const struct net *net, const struct tunnel_inner *in)
{
	struct tcp_flow flow = {0};
	size_t len;
	const uint8_t *segment = find_segment(in, &flow, &len);
	return !segment || !net->tcp.knows || net->tcp.knows(net->tcp.ctx, &flow, segment, len);
}

// How long the outer packet may be. Any host in the network may forge what routers say, and clients
// send no packets shorter than these: they go on as far as the link lets them.
static uint32_t outer_mtu(struct net *net, const struct tunnel_inner *in, uint32_t overhead)
{
	uint32_t least = overhead + (in->v4 ? LEAST4 : LEAST6);
	uint32_t told = max_u32(relay_hop_mtu(net, in->next_hop), least);
	return min_u32(ip4_mtu(net, in->next_hop, NULL), told);
}

// The datagram as it came, but for the number of the next hop, and without a checksum.
static void send(struct net *net, const struct tunnel_packet *p, const struct tunnel_inner *in)
{
	size_t len = load16(p->payload + 4);
	uint32_t overhead = IP4_HEADER + (uint32_t)(in->ip - p->payload);
	uint32_t mtu = outer_mtu(net, in, overhead);
	if (IP4_HEADER + len > mtu) {
		too_big_tell(net, in, mtu - overhead);
		net_drop(net, NET_tunnel_hop_too_long);
		return;
	}
	uint8_t *udp = ip4_reserve(net, in->next_hop, NULL, len);
	if (!udp)
		return;
	memcpy(udp, p->payload, len);
	store16(udp + 6, 0);
	udp[UDP_HEADER + in->next_at]++;
	ip4_emit(net, ip_to_v4(&p->dst), in->next_hop, IP_PROTO_UDP, p->ecn, len);
	net_count(net, NET_tunnel_relayed);
}

bool relay_input(struct net *net, const struct tunnel_packet *p, const struct tunnel_inner *in)
{
	struct ip_addr hop = ip_from_v4(in->next_hop);
	if (!in->tunnel->n_hops || !ip_is_v4(&p->dst) || is_known(net, in))
		return false;
	if (!relay_hop_allowed(in->tunnel, &hop) || net_is_martian(net, &hop)) {
		net_count(net, NET_tunnel_hop_refused);
		return false;
	}
	send(net, p, in);
	return true;
}
