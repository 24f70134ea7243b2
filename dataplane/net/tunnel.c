// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/tunnel.h"

#include "dataplane/net/ip6.h"

#define GUE_HEADER 4
#define GUE_WORDS 0x1f // the optional part's length
#define CHAIN_HEADER 4 // of GLB's private data: its type, the next hop's number, how many

static bool is_in(const struct ip_addr *ip, const struct ip_prefix *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (ip_in_prefix(ip, &list[i].ip, list[i].bits))
			return true;
	return false;
}

// NET_N_COUNTERS = *ret is the first tunnel of that kind (and port) with that source.
static enum net_counter find_tunnel(const struct net_tunnels *all, enum net_tunnel_kind kind,
	uint16_t port, const struct ip_addr *src, const struct net_tunnel **ret)
{
	enum net_counter drop = NET_ip_unknown_protocol;
	for (uint32_t i = 0; i < all->n; i++) {
		const struct net_tunnel *t = &all->list[i];
		if (t->kind != kind || t->port != port)
			continue;
		*ret = t;
		if (is_in(src, t->from, t->n_from))
			return NET_N_COUNTERS;
		drop = NET_tunnel_forged;
	}
	return drop;
}

// The optional part of a header without flags is private data, which whoever does not know it
// passes over. GLB's names hosts: a word, and a word for each.
static void find_hop(const uint8_t *gue, size_t words, struct tunnel_inner *ret)
{
	const uint8_t *chain = gue + GUE_HEADER;
	if (words == 0 || load16(chain) != 0 || words != chain[3] + 1u || chain[2] >= chain[3])
		return;
	ret->next_at = GUE_HEADER + 2;
	ret->next_hop = load32(chain + CHAIN_HEADER + (size_t)4 * chain[2]);
}

// The GUE header of a packet, with len bytes from there on. False = malformed, a control message,
// or with fields that say what we don't know.
static bool read_gue(const uint8_t *gue, size_t len, struct tunnel_inner *ret)
{
	if (len < GUE_HEADER)
		return false;
	size_t header = 0;
	switch (gue[0] >> 4) {
	case 4: // variant 1: an IP packet begins here
	case 6:
		ret->v4 = gue[0] >> 4 == 4;
		break;
	case 0: // variant 0, and no control message
	case 1:
		header = GUE_HEADER + (size_t)(gue[0] & GUE_WORDS) * 4;
		if (load16(gue + 2) != 0 || header > len ||
			(gue[1] != IP_PROTO_IP4 && gue[1] != IP_PROTO_IP6))
			return false;
		ret->v4 = gue[1] == IP_PROTO_IP4;
		find_hop(gue, gue[0] & GUE_WORDS, ret);
		break;
	default:
		return false;
	}
	ret->ip = gue + header;
	ret->len = len - header;
	return true;
}

static enum net_counter find_in_udp(
	const struct net_tunnels *all, const struct tunnel_packet *p, struct tunnel_inner *ret)
{
	if (p->len < UDP_HEADER)
		return NET_ip_unknown_protocol;
	enum net_counter drop =
		find_tunnel(all, NET_TUNNEL_GUE, load16(p->payload + 2), &p->src, &ret->tunnel);
	if (drop != NET_N_COUNTERS)
		return drop;
	size_t len = load16(p->payload + 4);
	if (len < UDP_HEADER || len > p->len ||
		!read_gue(p->payload + UDP_HEADER, len - UDP_HEADER, ret))
		return NET_tunnel_malformed;
	return NET_N_COUNTERS;
}

enum net_counter tunnel_find(
	const struct net_tunnels *all, const struct tunnel_packet *p, struct tunnel_inner *ret)
{
	enum net_counter drop = NET_ip_unknown_protocol;
	*ret = (struct tunnel_inner){0};
	if (p->protocol == IP_PROTO_UDP) {
		drop = find_in_udp(all, p, ret);
	} else if (p->protocol == IP_PROTO_IP4 || p->protocol == IP_PROTO_IP6) {
		drop = find_tunnel(all, NET_TUNNEL_IPIP, 0, &p->src, &ret->tunnel);
		ret->ip = p->payload;
		ret->len = p->len;
		ret->v4 = p->protocol == IP_PROTO_IP4;
	}
	if (drop == NET_N_COUNTERS)
		ret->overhead = p->header_len + (size_t)(ret->ip - p->payload);
	return drop;
}

static bool look_at_ip4(const uint8_t *ip, size_t len, struct tunnel_packet *ret)
{
	size_t header = (size_t)(ip[0] & 0xf) * 4;
	if (header < IP4_HEADER || header > len || load16(ip + 6) & MORE_OR_OFFSET)
		return false;
	*ret = (struct tunnel_packet){.src = ip_from_v4(load32(ip + 12)),
		.protocol = ip[9],
		.payload = ip + header,
		.len = len - header};
	return true;
}

static bool look_at_ip6(const uint8_t *ip, size_t len, struct tunnel_packet *ret)
{
	struct ip6_payload p;
	if (ip6_find_payload(ip, len, &p) != NET_N_COUNTERS)
		return false;
	*ret = (struct tunnel_packet){
		.protocol = p.protocol, .payload = ip + p.at, .len = len - p.at};
	memcpy(ret->src.b, ip + 8, sizeof(ret->src.b));
	return true;
}

bool tunnel_look(
	const struct net_tunnels *all, const uint8_t *ip, size_t len, struct tunnel_inner *ret)
{
	struct tunnel_packet p;
	bool sound = false;
	if (len >= IP4_HEADER && ip[0] >> 4 == 4)
		sound = look_at_ip4(ip, len, &p);
	else if (len >= IP6_HEADER && ip[0] >> 4 == 6)
		sound = look_at_ip6(ip, len, &p);
	return sound && tunnel_find(all, &p, ret) == NET_N_COUNTERS;
}
