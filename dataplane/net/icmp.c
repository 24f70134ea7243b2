// SPDX-License-Identifier: Apache-2.0
// ICMP (RFC 792): answers echo requests, within a rate, and tells TCP of unreachable destinations
// and of paths with a smaller MTU, after the checks of RFC 5927, and an operator of what becomes of
// echo requests of ours (ping.h). What it hears of packets that went on to another host (relay.h)
// is for these. The one error that is sent is too_big.h's.
#include "dataplane/net/relay_hop.h"

#define ICMP_HEADER 8
#define TYPE_ECHO_REPLY 0
#define TYPE_UNREACHABLE 3
#define TYPE_ECHO 8
#define TYPE_TIME_EXCEEDED 11
#define CODE_FRAGMENTATION_NEEDED 4

bool icmp_allowed(const struct net *net, struct net_rate *r)
{
	uint64_t now = twheel_now(net->wheel);
	uint64_t full = NET_ICMP_BURST * NET_ICMP_INTERVAL_NS;
	uint64_t passed = now - r->last_ns;
	r->last_ns = now;
	r->tokens_ns = passed >= full - r->tokens_ns ? full : r->tokens_ns + passed;
	if (r->tokens_ns < NET_ICMP_INTERVAL_NS)
		return false;
	r->tokens_ns -= NET_ICMP_INTERVAL_NS;
	return true;
}

static void echo(
	struct net *net, uint32_t local, uint32_t remote, const uint8_t *message, size_t len)
{
	// It leaves as what TCP sends from that address.
	struct tcp_flow flow = {.local = ip_from_v4(local), .remote = ip_from_v4(remote)};
	if (!icmp_allowed(net, &net->echoes) || IP4_HEADER + len > ip4_mtu(net, remote, &flow)) {
		net_drop(net, NET_icmp_echo_limited);
		return;
	}
	uint8_t *reply = ip4_reserve(net, remote, &flow, len);
	if (!reply)
		return;
	net_count(net, NET_icmp_echo);
	memcpy(reply, message, len);
	reply[0] = TYPE_ECHO_REPLY;
	memset(reply + 2, 0, 2);
	uint16_t sum = csum(reply, len);
	memcpy(reply + 2, &sum, sizeof(sum));
	ip4_emit(net, local, remote, IP_PROTO_ICMP, IP_NOT_ECT, len);
}

// RFC 5927 4: what is quoted must be a segment that we could have sent. That the flow exists, and
// the segment with it, is TCP's to check. False = forged, which is counted.
static bool quoted_flow(
	struct net *net, uint32_t local, const uint8_t *quoted, size_t len, struct tcp_flow *ret)
{
	size_t header = len >= IP4_HEADER ? (size_t)(quoted[0] & 0xf) * 4 : 0;
	struct ip_addr remote = ip_from_v4(len >= IP4_HEADER ? load32(quoted + 16) : 0);
	// Our packets have no options and are no fragments.
	if (header != IP4_HEADER || quoted[0] >> 4 != 4 || len < header + 8 ||
		quoted[9] != IP_PROTO_TCP || (load16(quoted + 6) & 0x3fff) != 0 ||
		load16(quoted + 2) < header + 20 || load32(quoted + 12) != local ||
		net_is_martian(net, &remote)) {
		net_drop(net, NET_icmp_forged);
		return false;
	}
	*ret = (struct tcp_flow){
		.local = ip_from_v4(local),
		.remote = remote,
		.local_port = load16(quoted + header),
		.remote_port = load16(quoted + header + 2),
	};
	return true;
}

static void unreachable(struct net *net, uint32_t local, const uint8_t *quoted, size_t len)
{
	struct tcp_flow flow;
	if (relay_hop_quoted(net, local, quoted, len)) {
		net_count(net, NET_tunnel_hop_unreachable);
		return;
	}
	if (!quoted_flow(net, local, quoted, len, &flow))
		return;
	net_count(net, NET_icmp_unreachable);
	if (net->tcp.unreachable)
		net->tcp.unreachable(net->tcp.ctx, &flow, load32(quoted + IP4_HEADER + 4));
}

// RFC 1191 4. A router that names no MTU is older than that; one that names no smaller one than the
// packet had is none.
static void fragmentation_needed(
	struct net *net, uint32_t local, const uint8_t *message, size_t len)
{
	const uint8_t *quoted = message + ICMP_HEADER;
	uint32_t hop = relay_hop_quoted(net, local, quoted, len - ICMP_HEADER);
	struct tcp_flow flow;
	if (!hop && !quoted_flow(net, local, quoted, len - ICMP_HEADER, &flow))
		return;
	uint32_t mtu = load16(message + 6);
	if (mtu >= load16(quoted + 2)) {
		net_drop(net, NET_icmp_forged);
		return;
	}
	if (hop) {
		net_count(net, NET_tunnel_hop_mtu);
		relay_hop_learn(net, hop, mtu);
		return;
	}
	net_count(net, NET_icmp_fragmentation_needed);
	if (net->tcp.too_big)
		net->tcp.too_big(net->tcp.ctx, &flow, load32(quoted + IP4_HEADER + 4), mtu);
}

static bool is_echo_of(const uint8_t *quoted, size_t len, uint32_t local)
{
	return len >= IP4_HEADER + ICMP_HEADER && quoted[0] == (4 << 4 | IP4_HEADER / 4) &&
	       quoted[9] == IP_PROTO_ICMP && load32(quoted + 12) == local &&
	       quoted[IP4_HEADER] == TYPE_ECHO;
}

static bool is_for_ping(
	struct net *net, uint32_t local, uint32_t remote, const uint8_t *message, size_t len)
{
	const struct ip_addr from = ip_from_v4(remote);
	const uint8_t *quoted = message + ICMP_HEADER;
	if (message[0] == TYPE_ECHO_REPLY)
		return net->ping.events->on_reply(net, &from, message + 4, len - 4);
	bool expired = message[0] == TYPE_TIME_EXCEEDED;
	if ((!expired && message[0] != TYPE_UNREACHABLE) ||
		!is_echo_of(quoted, len - ICMP_HEADER, local))
		return false;
	const struct net_ping_error e = {.from = from,
		.dst = ip_from_v4(load32(quoted + 16)),
		.expired = expired,
		.code = message[1]};
	return net->ping.events->on_error(net, &e, quoted + IP4_HEADER + 4, ICMP_HEADER - 4);
}

void icmp_input(
	struct net *net, uint32_t local, uint32_t remote, const uint8_t *message, size_t len)
{
	if (len < ICMP_HEADER)
		net_drop(net, NET_icmp_malformed);
	else if (csum(message, len) != 0)
		net_drop(net, NET_icmp_checksum);
	else if (message[0] == TYPE_ECHO && message[1] == 0 && !net->silent)
		echo(net, local, remote, message, len);
	else if (net->ping.to && is_for_ping(net, local, remote, message, len))
		return;
	else if (message[0] == TYPE_UNREACHABLE && message[1] == CODE_FRAGMENTATION_NEEDED)
		fragmentation_needed(net, local, message, len);
	else if (message[0] == TYPE_UNREACHABLE)
		unreachable(net, local, message + ICMP_HEADER, len - ICMP_HEADER);
	else if (message[0] == TYPE_TIME_EXCEEDED &&
		 relay_hop_quoted(net, local, message + ICMP_HEADER, len - ICMP_HEADER))
		net_count(net, NET_tunnel_hop_unreachable);
	else
		net_drop(net, NET_icmp_ignored);
}

void icmp_hear(struct net *net, uint32_t local, const uint8_t *message, size_t len)
{
	if (len < ICMP_HEADER || message[0] != TYPE_UNREACHABLE ||
		message[1] != CODE_FRAGMENTATION_NEEDED || csum(message, len) != 0)
		return;
	const uint8_t *quoted = message + ICMP_HEADER;
	uint32_t hop = relay_hop_quoted(net, local, quoted, len - ICMP_HEADER);
	uint32_t mtu = load16(message + 6);
	if (hop && mtu < load16(quoted + 2))
		relay_hop_learn(net, hop, mtu);
}
