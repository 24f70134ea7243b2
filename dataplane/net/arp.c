// SPDX-License-Identifier: Apache-2.0
// ARP (RFC 826) for IPv4 on Ethernet: answers for our addresses, asks for others', announces and
// defends ours (RFC 5227). Learns only from answers to us and from requests for us.
#include "dataplane/net/inside.h"

#define ARP_LEN 28
#define OP_REQUEST 1
#define OP_REPLY 2

static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t nobody[6];

struct arp {
	uint16_t op;
	const uint8_t *sender_mac;
	struct ip_addr sender_ip, target_ip;
};

static bool parse(const uint8_t *p, size_t len, struct arp *ret)
{
	static const uint8_t ethernet_ip4[6] = {0, 1, 0x08, 0, 6, 4};
	if (len < ARP_LEN || memcmp(p, ethernet_ip4, sizeof(ethernet_ip4)) != 0)
		return false;
	*ret = (struct arp){
		.op = load16(p + 6),
		.sender_mac = p + 8,
		.sender_ip = ip_from_v4(load32(p + 14)),
		.target_ip = ip_from_v4(load32(p + 24)),
	};
	if (ret->op != OP_REQUEST && ret->op != OP_REPLY)
		return false;
	return !(ret->sender_mac[0] & 1) && memcmp(ret->sender_mac, nobody, 6) != 0;
}

static void send(struct net *net, uint32_t port, uint16_t op, const uint8_t eth_dst[6],
	const struct ip_addr *sender_ip, const uint8_t target_mac[6],
	const struct ip_addr *target_ip)
{
	const struct net_port *p = &net->ports[port];
	uint8_t *frame = p->device.reserve(p->device.ctx, ETH_HEADER + ARP_LEN);
	if (!frame) {
		net_count(net, NET_tx_no_buffer);
		return;
	}
	eth_fill(p, frame, eth_dst, ETH_TYPE_ARP);
	uint8_t *arp = frame + ETH_HEADER;
	store16(arp, 1);
	store16(arp + 2, ETH_TYPE_IP4);
	arp[4] = 6;
	arp[5] = 4;
	store16(arp + 6, op);
	memcpy(arp + 8, p->mac, 6);
	memcpy(arp + 14, sender_ip->b + 12, 4);
	memcpy(arp + 18, target_mac, 6);
	memcpy(arp + 24, target_ip->b + 12, 4);
	eth_send(net, port, ETH_HEADER + ARP_LEN);
}

void arp_ask(struct net *net, const struct neigh *n, bool broadcast)
{
	struct ip_addr source = net_source_on(net, n->port, &n->ip);
	net_count(net, NET_arp_asked);
	send(net, n->port, OP_REQUEST, broadcast ? everybody : n->eth, &source, nobody, &n->ip);
}

void arp_announce(struct net *net, uint32_t port, const struct ip_addr *ip)
{
	send(net, port, OP_REQUEST, everybody, ip, nobody, ip);
}

// Somebody has or wants an address of ours. We keep it, and say so, but not at their pace.
static void defend(struct net *net, uint32_t port, const struct ip_addr *ip, const uint8_t mac[6])
{
	net_count(net, NET_arp_conflict);
	net_note_rival(net, port, ip, mac);
	if (!neigh_may_defend(net))
		return;
	arp_announce(net, port, ip);
}

static void answer(struct net *net, uint32_t port, const struct arp *arp)
{
	net_count(net, NET_arp_answered);
	send(net, port, OP_REPLY, arp->sender_mac, &arp->target_ip, arp->sender_mac,
		&arp->sender_ip);
}

// False = nobody on the port's link.
static bool learn(struct net *net, uint32_t port, const struct arp *arp, bool for_us)
{
	if (!net_is_on_link(net, &arp->sender_ip, port) || net_is_martian(net, &arp->sender_ip))
		return false;
	bool announced = ip_eq(&arp->sender_ip, &arp->target_ip);
	neigh_tell(net, port, &arp->sender_ip, arp->sender_mac, announced);
	struct neigh *n = for_us && arp->op == OP_REQUEST ? neigh_get(net, port, &arp->sender_ip)
	                                                  : neigh_find(net, port, &arp->sender_ip);
	if (n)
		neigh_hear(n, arp->sender_mac, for_us && arp->op == OP_REPLY);
	return true;
}

// A probe (RFC 5227 2.1.1) has no sender address: there is nothing to learn from it.
static bool has_sender(const struct arp *arp)
{
	return ip_to_v4(&arp->sender_ip) != 0;
}

void arp_hear(struct net *net, uint32_t port, const uint8_t *p, size_t len)
{
	struct arp arp;
	if (parse(p, len, &arp) && has_sender(&arp))
		learn(net, port, &arp, net_is_own_of_port(net, &arp.target_ip, port));
}

void arp_input(struct net *net, uint32_t port, const uint8_t *p, size_t len)
{
	struct arp arp;
	if (!parse(p, len, &arp)) {
		net_drop(net, NET_arp_malformed);
		return;
	}
	if (net_is_own(net, &arp.sender_ip)) {
		// Other hosts may have a VIP that does not answer, and say so among themselves.
		bool is_silent = net_vip_find(&net->vips, &arp.sender_ip) &&
		                 !net_is_own_of_port(net, &arp.sender_ip, port);
		if (memcmp(arp.sender_mac, net->ports[port].mac, 6) == 0)
			net_drop(net, NET_arp_own);
		else if (!is_silent)
			defend(net, port, &arp.sender_ip, arp.sender_mac);
		return;
	}
	bool for_us = net_is_own_of_port(net, &arp.target_ip, port);
	if (has_sender(&arp) && !learn(net, port, &arp, for_us)) {
		net_drop(net, NET_arp_off_link);
		return;
	}
	if (for_us && arp.op == OP_REQUEST)
		answer(net, port, &arp);
	else if (!for_us)
		net_drop(net, NET_arp_not_ours);
}
