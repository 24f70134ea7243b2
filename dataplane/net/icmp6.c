// SPDX-License-Identifier: Apache-2.0
// ICMPv6 (RFC 4443): answers echo requests, within the rate of ICMP's, and tells TCP of unreachable
// destinations and of paths with
// a smaller MTU, after the checks of RFC 5927. Sends no errors of its own.
#include "dataplane/net/ip6.h"
#include "dataplane/net/packet_out.h"

#define ICMP6_HEADER 8
#define TYPE_UNREACHABLE 1
#define TYPE_TOO_BIG 2
#define TYPE_TIME_EXCEEDED 3
#define TYPE_ECHO 128
#define TYPE_ECHO_REPLY 129
#define TYPE_LISTENER_QUERY 130
#define TYPE_ROUTER_SOLICITATION 133
#define TYPE_ROUTER_ADVERTISEMENT 134
#define TYPE_REDIRECT 137 // the last of neighbor discovery

static void echo(struct net *net, const struct ip6_packet *p)
{
	bool on_link = ip_is_link_local(&p->src);
	struct tcp_flow flow = {.local = p->dst, .remote = p->src};
	uint16_t mtu = on_link ? net->ports[p->port].mtu : ip6_mtu(net, &p->src, &flow);
	if (!icmp_allowed(net, &net->echoes) || IP6_HEADER + p->len > mtu) {
		net_drop(net, NET_icmp6_echo_limited);
		return;
	}
	struct neigh *n =
		on_link ? neigh_get(net, p->port, &p->src) : ip6_next_hop(net, &p->src, &flow);
	uint8_t *reply = ip6_reserve(net, n, p->len);
	if (!reply)
		return;
	struct ip6_fields fields = {.src = p->dst,
		.dst = p->src,
		.protocol = IP_PROTO_ICMP6,
		.hop_limit = IP6_HOP_LIMIT};
	net_count(net, NET_icmp6_echo);
	memcpy(reply, p->payload, p->len);
	reply[0] = TYPE_ECHO_REPLY;
	memset(reply + 2, 0, 2);
	icmp6_fill_checksum(&fields, reply, p->len);
	ip6_emit(net, &fields, p->len);
}

// RFC 5927 4: what is quoted must be a segment that we could have sent. That the flow exists is
// TCP's to check. False = counted as forged.
static bool read_quoted(struct net *net, const struct ip6_packet *p, struct tcp_flow *ret)
{
	const uint8_t *ip = p->payload + ICMP6_HEADER;
	size_t len = p->len - ICMP6_HEADER;
	// Our packets have no extension headers.
	bool ours = len >= IP6_HEADER + 8 && ip[0] >> 4 == 6 && ip[6] == IP_PROTO_TCP &&
	            load16(ip + 4) >= 20 && memcmp(ip + 8, p->dst.b, sizeof(p->dst.b)) == 0;
	if (ours) {
		*ret = (struct tcp_flow){.local = p->dst,
			.local_port = load16(ip + IP6_HEADER),
			.remote_port = load16(ip + IP6_HEADER + 2)};
		memcpy(ret->remote.b, ip + 24, sizeof(ret->remote.b));
		ours = !ip_is_v4(&ret->remote) && !net_is_martian(net, &ret->remote);
	}
	if (!ours)
		net_drop(net, NET_icmp6_forged);
	return ours;
}

static void unreachable(struct net *net, const struct ip6_packet *p)
{
	const uint8_t *quoted = p->payload + ICMP6_HEADER;
	struct tcp_flow flow;
	if (!read_quoted(net, p, &flow))
		return;
	net_count(net, NET_icmp6_unreachable);
	if (net->tcp.unreachable)
		net->tcp.unreachable(net->tcp.ctx, &flow, load32(quoted + IP6_HEADER + 4));
}

// RFC 8201 4. A router that names no smaller MTU than the packet had is none.
static void too_big(struct net *net, const struct ip6_packet *p)
{
	const uint8_t *quoted = p->payload + ICMP6_HEADER;
	struct tcp_flow flow;
	if (!read_quoted(net, p, &flow))
		return;
	uint32_t mtu = load32(p->payload + 4);
	if (mtu >= IP6_HEADER + (uint32_t)load16(quoted + 4)) {
		net_drop(net, NET_icmp6_forged);
		return;
	}
	net_count(net, NET_icmp6_too_big);
	if (net->tcp.too_big)
		net->tcp.too_big(net->tcp.ctx, &flow, load32(quoted + IP6_HEADER + 4), mtu);
}

static bool is_echo_of(const uint8_t *quoted, size_t len, const struct ip_addr *local)
{
	return len >= IP6_HEADER + ICMP6_HEADER && quoted[0] >> 4 == 6 &&
	       quoted[6] == IP_PROTO_ICMP6 && memcmp(quoted + 8, local->b, sizeof(local->b)) == 0 &&
	       quoted[IP6_HEADER] == TYPE_ECHO;
}

static bool is_for_ping(struct net *net, const struct ip6_packet *p)
{
	const uint8_t *quoted = p->payload + ICMP6_HEADER;
	if (p->payload[0] == TYPE_ECHO_REPLY)
		return net->ping.events->on_reply(net, &p->src, p->payload + 4, p->len - 4);
	bool expired = p->payload[0] == TYPE_TIME_EXCEEDED;
	if ((!expired && p->payload[0] != TYPE_UNREACHABLE) ||
		!is_echo_of(quoted, p->len - ICMP6_HEADER, &p->dst))
		return false;
	struct net_ping_error e = {.from = p->src, .expired = expired, .code = p->payload[1]};
	memcpy(e.dst.b, quoted + 24, sizeof(e.dst.b));
	return net->ping.events->on_error(net, &e, quoted + IP6_HEADER + 4, ICMP6_HEADER - 4);
}

static void input_sound(struct net *net, const struct ip6_packet *p)
{
	uint8_t type = p->payload[0];
	if (type == TYPE_ROUTER_ADVERTISEMENT)
		ra_input(net, p);
	else if (net->silent && type >= TYPE_ROUTER_SOLICITATION && type <= TYPE_REDIRECT)
		nd_hear(net, p);
	else if (type >= TYPE_ROUTER_SOLICITATION && type <= TYPE_REDIRECT)
		nd_input(net, p);
	else if (type == TYPE_LISTENER_QUERY && !net->silent)
		mld_query(net, p);
	else if (ip6_is_group(&p->dst) || ip_is_none(&p->src))
		net_drop(net, NET_icmp6_ignored); // RFC 4443 2.4 (e) for all that answers
	else if (type == TYPE_ECHO && p->payload[1] == 0 && !net->silent)
		echo(net, p);
	else if (net->ping.to && is_for_ping(net, p))
		return;
	else if (type == TYPE_TOO_BIG)
		too_big(net, p);
	else if (type == TYPE_UNREACHABLE)
		unreachable(net, p);
	else
		net_drop(net, NET_icmp6_ignored);
}

void icmp6_input(struct net *net, const struct ip6_packet *p)
{
	if (p->len < ICMP6_HEADER)
		net_drop(net, NET_icmp6_malformed);
	else if (icmp6_checksum(&p->src, &p->dst, p->payload, p->len) != 0)
		net_drop(net, NET_icmp6_checksum);
	else
		input_sound(net, p);
}

void icmp6_hear(struct net *net, const struct ip6_packet *p)
{
	if (p->len < ICMP6_HEADER || icmp6_checksum(&p->src, &p->dst, p->payload, p->len) != 0)
		return;
	if (p->payload[0] != TYPE_ROUTER_ADVERTISEMENT)
		nd_hear(net, p);
	else if (net->ports[p->port].ra.accepts)
		ra_input(net, p);
}
