// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/frame_filter.h"

#include "dataplane/net/ip6.h"
#include "dataplane/net/tunnel.h"

#define MAX_TAGS 2 // IEEE 802.1ad
#define OFFSET 0x1fff
#define PORTS 4 // bytes of a segment or datagram that hold them
#define ARP_LEN 28
#define ARP_SENDER 14
#define ARP_TARGET 24

static bool is_ip4(const struct lb_capture_ask *a, const uint8_t *at)
{
	struct ip_addr ip = ip_from_v4(load32(at));
	return ip_eq(&a->host, &ip);
}

static bool is_ip6(const struct lb_capture_ask *a, const uint8_t *at)
{
	return memcmp(a->host.b, at, sizeof(a->host.b)) == 0;
}

static bool has_port(
	const struct lb_capture_ask *a, uint8_t protocol, const uint8_t *payload, size_t len)
{
	if (!a->port)
		return true;
	if ((protocol != IP_PROTO_TCP && protocol != IP_PROTO_UDP) || len < PORTS)
		return false;
	return load16(payload) == a->port || load16(payload + 2) == a->port;
}

static bool matches_ip4(
	const struct lb_capture_ask *a, bool any_host, const uint8_t *ip, size_t len)
{
	if (len < IP4_HEADER || ip[0] >> 4 != 4)
		return false;
	if (!any_host && !is_ip4(a, ip + 12) && !is_ip4(a, ip + 16))
		return false;
	size_t header = (size_t)(ip[0] & 0xf) * 4;
	bool begins = header >= IP4_HEADER && header <= len && !(load16(ip + 6) & OFFSET);
	return begins ? has_port(a, ip[9], ip + header, len - header) : !a->port;
}

static bool matches_ip6(
	const struct lb_capture_ask *a, bool any_host, const uint8_t *ip, size_t len)
{
	if (len < IP6_HEADER || ip[0] >> 4 != 6)
		return false;
	if (!any_host && !is_ip6(a, ip + 8) && !is_ip6(a, ip + 24))
		return false;
	struct ip6_payload p;
	if (!a->port)
		return true;
	return ip6_find_payload(ip, len, &p) == NET_N_COUNTERS &&
	       has_port(a, p.protocol, ip + p.at, len - p.at);
}

static bool matches_arp(
	const struct lb_capture_ask *a, bool any_host, const uint8_t *arp, size_t len)
{
	if (a->port)
		return false;
	return any_host ||
	       (len >= ARP_LEN && (is_ip4(a, arp + ARP_SENDER) || is_ip4(a, arp + ARP_TARGET)));
}

static bool matches_inner(const struct lb_capture_ask *a, const struct net_tunnels *tunnels,
	bool any_host, const uint8_t *ip, size_t len)
{
	struct tunnel_inner in;
	if (!tunnels || !tunnel_look(tunnels, ip, len, &in))
		return false;
	return in.v4 ? matches_ip4(a, any_host, in.ip, in.len)
	             : matches_ip6(a, any_host, in.ip, in.len);
}

bool frame_filter_matches(const struct lb_capture_ask *a, const struct net_tunnels *tunnels,
	const uint8_t *frame, size_t len)
{
	bool any_host = ip_is_none(&a->host);
	if (any_host && !a->port)
		return true;
	if (len < ETH_HEADER)
		return false;
	size_t at = ETH_HEADER;
	uint16_t type = load16(frame + at - 2);
	for (int n = 0; n < MAX_TAGS && (type == ETH_TYPE_VLAN || type == ETH_TYPE_VLANS); n++) {
		at += ETH_TAG;
		if (len < at)
			return false;
		type = load16(frame + at - 2);
	}
	switch (type) {
	case ETH_TYPE_IP4:
		return matches_ip4(a, any_host, frame + at, len - at) ||
		       matches_inner(a, tunnels, any_host, frame + at, len - at);
	case ETH_TYPE_IP6:
		return matches_ip6(a, any_host, frame + at, len - at) ||
		       matches_inner(a, tunnels, any_host, frame + at, len - at);
	case ETH_TYPE_ARP:
		return matches_arp(a, any_host, frame + at, len - at);
	default:
		return false;
	}
}
