// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/too_big.h"

#include "dataplane/net/ip6.h"
#include "lb/base/min.h"

#define ICMP_HEADER 8
// What everybody takes (RFC 791 3.2; RFC 8200 5), and so the longest error (RFC 1812 4.3.2.3; RFC
// 4443 2.4 (c)).
#define IP4_SURE 576
#define IP6_SURE 1280

// The message, without its checksum, around as much of the packet as there is room for.
static void write_message(
	uint8_t *message, uint8_t type, uint8_t code, uint32_t mtu, const uint8_t *ip, size_t len)
{
	memset(message, 0, 4);
	message[0] = type;
	message[1] = code;
	store32(message + 4, mtu);
	memcpy(message + ICMP_HEADER, ip, len - ICMP_HEADER);
}

static bool tell_ip4(
	struct net *net, const struct tcp_flow *flow, const struct tunnel_inner *in, uint32_t mtu)
{
	uint32_t client = ip_to_v4(&flow->remote);
	size_t len = min_size(ICMP_HEADER + in->len, IP4_SURE - IP4_HEADER);
	uint8_t *message = ip4_reserve(net, client, flow, len);
	if (!message)
		return false;
	write_message(message, 3, 4, mtu, in->ip, len);
	uint16_t sum = csum(message, len);
	memcpy(message + 2, &sum, sizeof(sum));
	ip4_emit(net, ip_to_v4(&flow->local), client, IP_PROTO_ICMP, IP_NOT_ECT, len);
	return true;
}

static bool tell_ip6(
	struct net *net, const struct tcp_flow *flow, const struct tunnel_inner *in, uint32_t mtu)
{
	const struct ip6_fields fields = {.src = flow->local,
		.dst = flow->remote,
		.protocol = IP_PROTO_ICMP6,
		.hop_limit = IP6_HOP_LIMIT};
	size_t len = min_size(ICMP_HEADER + in->len, IP6_SURE - IP6_HEADER);
	uint8_t *message = ip6_reserve(net, ip6_next_hop(net, &flow->remote, flow), len);
	if (!message)
		return false;
	write_message(message, 2, 0, max_u32(mtu, IP6_SURE), in->ip, len);
	icmp6_fill_checksum(&fields, message, len);
	ip6_emit(net, &fields, len);
	return true;
}

void too_big_tell(struct net *net, const struct tunnel_inner *in, uint32_t mtu)
{
	struct tcp_flow flow = {0};
	if (in->v4) {
		flow.remote = ip_from_v4(load32(in->ip + 12));
		flow.local = ip_from_v4(load32(in->ip + 16));
	} else {
		memcpy(flow.remote.b, in->ip + 8, sizeof(flow.remote.b));
		memcpy(flow.local.b, in->ip + 24, sizeof(flow.local.b));
	}
	if (net_is_martian(net, &flow.remote) || !icmp_allowed(net, &net->errors))
		return;
	if (in->v4 ? tell_ip4(net, &flow, in, mtu) : tell_ip6(net, &flow, in, mtu))
		net_count(net, NET_tunnel_hop_told);
}
