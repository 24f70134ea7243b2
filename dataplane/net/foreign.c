// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/foreign.h"

#include "dataplane/net/ip6.h"

#define TCP_CHECKSUM_AT 16
#define UDP_CHECKSUM_AT 6
#define OFFSET 0x1fff
#define HOP_LIMIT_NEAR IP6_HOP_LIMIT_ON_LINK // IPv4's likewise
#define IP4_TTL_AT 8
#define IP6_HOP_LIMIT_AT 7
#define IP4_LINK_GROUPS 0xe00000 // 224.0.0.0/24, which nobody forwards: RFC 5771 4
#define IP6_LINK_SCOPE 2
#define ARP_OP_AT 6
#define ARP_REPLY 2
#define ICMP_UNREACHABLE 3
#define ICMP6_LAST_ERROR 127
#define ICMP6_QUERY 130
#define ICMP6_ROUTER_ADVERTISEMENT 134
#define ICMP6_ADVERTISEMENT 136

// What a drop says of whose a frame is.
enum claim {
	NOBODYS, // malformed, forged or of a VIP
	KERNELS,
	OF_GROUP, // the kernel's if it is for a group
	OF_SHARED, // the kernel's if the packet is for an address that both have
};

static const uint8_t claims[NET_N_COUNTERS] = {
	[NET_eth_not_ours] = OF_GROUP,
	[NET_eth_unknown_type] = KERNELS,
	[NET_eth_ip6] = KERNELS,
	[NET_arp_not_ours] = KERNELS,
	[NET_arp_off_link] = KERNELS,
	[NET_ip_not_ours] = KERNELS,
	[NET_ip_fragment] = OF_SHARED,
	[NET_ip_unknown_protocol] = OF_SHARED,
	[NET_icmp_ignored] = OF_SHARED,
	[NET_icmp_forged] = OF_SHARED, // quotes what we never sent; the kernel may have
	[NET_ip6_not_ours] = KERNELS,
	[NET_ip6_group] = KERNELS,
	[NET_ip6_fragment] = OF_SHARED,
	[NET_ip6_unknown_protocol] = OF_SHARED,
	[NET_icmp6_ignored] = OF_SHARED,
	[NET_icmp6_forged] = OF_SHARED,
	[NET_nd_not_ours] = KERNELS,
	[NET_nd_off_link] = KERNELS,
};

// What a frame carries, as far as it can be told; protocol 0 = no packet with a known payload.
struct look {
	uint16_t type;
	uint8_t protocol;
	bool is_shared; // its destination is an address that both have, or a group
	const uint8_t *payload; // NULL = too short
	size_t len;
};

bool net_is_shared(const struct net *net, const struct ip_addr *ip)
{
	for (uint32_t p = 0; p < net->n_ports; p++) {
		const struct net_port *port = &net->ports[p];
		for (uint32_t i = 0; port->is_shared && i < port->n_addresses; i++)
			if (ip_eq(&port->addresses[i].ip, ip))
				return true;
	}
	return false;
}

// The payload ends where the packet says, if that is within the frame.
static void look_at_ip4(const struct net *net, const uint8_t *ip, size_t len, struct look *ret)
{
	size_t header = len >= IP4_HEADER ? (size_t)(ip[0] & 0xf) * 4 : 0;
	size_t total = header ? load16(ip + 2) : 0;
	if (header < IP4_HEADER || total < header || total > len)
		return;
	struct ip_addr dst = ip_from_v4(load32(ip + 16));
	ret->is_shared = net && net_is_shared(net, &dst);
	if (load16(ip + 6) & (net ? OFFSET : MORE_OR_OFFSET))
		return;
	ret->protocol = ip[9];
	ret->payload = ip + header;
	ret->len = total - header;
}

static void look_at_ip6(const struct net *net, const uint8_t *ip, size_t len, struct look *ret)
{
	if (len < IP6_HEADER || (size_t)load16(ip + 4) > len - IP6_HEADER)
		return;
	struct ip_addr dst;
	struct ip6_payload p;
	memcpy(dst.b, ip + 24, sizeof(dst.b));
	ret->is_shared =
		ip6_is_group(&dst) || ip_is_link_local(&dst) || (net && net_is_shared(net, &dst));
	size_t total = IP6_HEADER + (size_t)load16(ip + 4);
	if (ip6_find_payload(ip, total, &p) != NET_N_COUNTERS)
		return;
	ret->protocol = p.protocol;
	ret->payload = ip + p.at;
	ret->len = total - p.at;
}

// net NULL = addresses say nothing, and a fragment has no payload.
static struct look look_at(const struct net *net, const uint8_t *frame, size_t len)
{
	struct look l = {0};
	if (len < ETH_HEADER)
		return l;
	size_t header = eth_is_priority_tagged(frame, len) ? ETH_HEADER + ETH_TAG : ETH_HEADER;
	l.type = load16(frame + header - 2);
	if (l.type == ETH_TYPE_IP4) {
		look_at_ip4(net, frame + header, len - header, &l);
	} else if (l.type == ETH_TYPE_IP6) {
		look_at_ip6(net, frame + header, len - header, &l);
	} else if (l.type == ETH_TYPE_ARP) {
		l.payload = frame + header;
		l.len = len - header;
	}
	return l;
}

static bool is_about_neighbors(const struct look *l)
{
	return l->type == ETH_TYPE_ARP ||
	       (l->type == ETH_TYPE_IP6 && l->protocol == IP_PROTO_ICMP6 && l->len &&
		       l->payload[0] >= ICMP6_QUERY && l->payload[0] <= ICMP6_ADVERTISEMENT + 1);
}

static bool is_icmp(const struct look *l)
{
	return (l->type == ETH_TYPE_IP4 && l->protocol == IP_PROTO_ICMP) ||
	       (l->type == ETH_TYPE_IP6 && l->protocol == IP_PROTO_ICMP6);
}

// Taken by us, and news for the kernel, too: it may have asked, or sent what an error quotes. What
// asks for us is answered once, by us.
static bool is_for_both(const struct look *l)
{
	if (l->type == ETH_TYPE_ARP)
		return l->len > ARP_OP_AT + 1 && load16(l->payload + ARP_OP_AT) == ARP_REPLY;
	if (!l->len || !l->is_shared || !is_icmp(l))
		return false;
	uint8_t type = l->payload[0];
	if (l->type == ETH_TYPE_IP4)
		return type == ICMP_UNREACHABLE;
	return type <= ICMP6_LAST_ERROR || type == ICMP6_QUERY ||
	       type == ICMP6_ROUTER_ADVERTISEMENT || type == ICMP6_ADVERTISEMENT;
}

// Without a look at the rest: most of what we take is this.
static bool is_plain_tcp(const uint8_t *frame, size_t len)
{
	uint16_t type = load16(frame + ETH_HEADER - 2);
	return (type == ETH_TYPE_IP4 && len > ETH_HEADER + 9 &&
		       frame[ETH_HEADER + 9] == IP_PROTO_TCP) ||
	       (type == ETH_TYPE_IP6 && len > ETH_HEADER + 6 &&
		       frame[ETH_HEADER + 6] == IP_PROTO_TCP);
}

enum net_foreign net_foreign_of(
	const struct net *net, uint32_t port, const uint8_t *frame, size_t len, int dropped)
{
	if (!net->ports[port].is_shared || len < ETH_HEADER ||
		(dropped < 0 && is_plain_tcp(frame, len)))
		return NET_NOT_FOREIGN;
	struct look l = look_at(net, frame, len);
	uint8_t claim = dropped < 0 ? NOBODYS : claims[dropped];
	bool is_group = frame[0] & 1;
	if (claim == KERNELS || (claim == OF_GROUP && is_group) ||
		(claim == OF_SHARED && l.is_shared) || (dropped < 0 && is_for_both(&l))) {
		if (is_about_neighbors(&l))
			return NET_FOREIGN_NEIGHBORS;
		if (is_icmp(&l))
			return NET_FOREIGN_ICMP;
		return is_group ? NET_FOREIGN_GROUP : NET_FOREIGN_OTHER;
	}
	return NET_NOT_FOREIGN;
}

bool net_foreign_is_for_all(const uint8_t *frame, size_t len)
{
	if (len < ETH_HEADER || is_plain_tcp(frame, len))
		return false;
	struct look l = look_at(NULL, frame, len);
	if (is_about_neighbors(&l))
		return true;
	if (!is_icmp(&l) || !l.len)
		return false;
	return l.type == ETH_TYPE_IP4 ? l.payload[0] == ICMP_UNREACHABLE
	                              : l.payload[0] <= ICMP6_LAST_ERROR;
}

bool net_foreign_is_left(uint8_t dropped)
{
	return dropped == NET_icmp_ignored || dropped == NET_icmp6_ignored;
}

bool net_foreign_is_near(const uint8_t *frame, size_t len)
{
	if (len < ETH_HEADER)
		return false;
	size_t header = eth_is_priority_tagged(frame, len) ? ETH_HEADER + ETH_TAG : ETH_HEADER;
	const uint8_t *ip = frame + header;
	switch (load16(ip - 2)) {
	case ETH_TYPE_IP4:
		return len >= header + IP4_HEADER &&
		       (ip[IP4_TTL_AT] == HOP_LIMIT_NEAR ||
			       load32(ip + 16) >> 8 == IP4_LINK_GROUPS);
	case ETH_TYPE_IP6:
		return len >= header + IP6_HEADER &&
		       (ip[IP6_HOP_LIMIT_AT] == HOP_LIMIT_NEAR ||
			       (ip[24] == 0xff && (ip[25] & 0xf) == IP6_LINK_SCOPE));
	default:
		return true;
	}
}

void net_foreign_make_checksum(uint8_t *frame, size_t len)
{
	struct look l = look_at(NULL, frame, len);
	size_t at = l.protocol == IP_PROTO_TCP ? TCP_CHECKSUM_AT : UDP_CHECKSUM_AT;
	if ((l.protocol != IP_PROTO_TCP && l.protocol != IP_PROTO_UDP) || l.len < at + 2)
		return;
	uint16_t sum = csum(l.payload, l.len);
	if (sum == 0 && l.protocol == IP_PROTO_UDP)
		sum = UINT16_MAX; // RFC 768: 0 is none
	memcpy(frame + (l.payload - frame) + at, &sum, sizeof(sum));
}

bool net_foreign_send(struct net *net, uint32_t port, const uint8_t *frame, size_t len)
{
	const struct net_port *p = &net->ports[port];
	uint8_t *room =
		len <= ETH_HEADER + (size_t)p->mtu ? p->device.reserve(p->device.ctx, len) : NULL;
	if (!room)
		return false;
	memcpy(room, frame, len);
	eth_send(net, port, len);
	return true;
}
