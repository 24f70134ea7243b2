// SPDX-License-Identifier: Apache-2.0
// Neighbor discovery (RFC 4861) for IPv6 on Ethernet: answers for our addresses, asks for others',
// announces and defends ours. Learns only from answers to us and from questions for us. What
// routers advertise is ra.c's; redirects are ignored.
#include "dataplane/net/ip6.h"

#define TYPE_SOLICITATION 135
#define TYPE_ADVERTISEMENT 136
#define MESSAGE 24 // without options
#define OPTION 8 // with a MAC address
#define OPTION_SOURCE_MAC 1
#define OPTION_TARGET_MAC 2
#define FLAG_SOLICITED 0x40
#define FLAG_OVERRIDE 0x20

static const struct ip_addr all_nodes = {{0xff, 0x02, [15] = 1}};
static const uint8_t all_nodes_mac[ETH_ADDRESS] = {0x33, 0x33, 0, 0, 0, 1};

struct nd {
	bool asks; // a solicitation
	bool solicited, override; // of an advertisement
	struct ip_addr target;
	const uint8_t *mac; // of who sent it; NULL = not said
};

// The last option of that kind. False = malformed (RFC 4861 4.6).
static bool find_mac(const uint8_t *p, size_t len, uint8_t kind, const uint8_t **ret)
{
	*ret = NULL;
	for (size_t size; len > 0; p += size, len -= size) {
		size = len >= 2 ? (size_t)p[1] * 8 : 0;
		if (size == 0 || size > len)
			return false;
		if (p[0] == kind && size == OPTION)
			*ret = p + 2;
	}
	return !*ret || !(**ret & 1); // no group has an address
}

// RFC 4861 7.1.1 and 7.1.2.
static bool parse(const struct ip6_packet *p, struct nd *ret)
{
	const uint8_t *m = p->payload;
	if (!p->from_link || m[1] != 0 || p->len < MESSAGE)
		return false;
	*ret = (struct nd){.asks = m[0] == TYPE_SOLICITATION,
		.solicited = m[4] & FLAG_SOLICITED,
		.override = m[4] & FLAG_OVERRIDE};
	memcpy(ret->target.b, m + 8, sizeof(ret->target.b));
	uint8_t kind = ret->asks ? OPTION_SOURCE_MAC : OPTION_TARGET_MAC;
	if (ip6_is_group(&ret->target) || ip_is_v4(&ret->target) ||
		!find_mac(m + MESSAGE, p->len - MESSAGE, kind, &ret->mac))
		return false;
	if (ip_is_none(&p->src))
		return ret->asks && ip6_is_group(&p->dst) && !ret->mac;
	return ret->asks || !ret->solicited || !ip6_is_group(&p->dst);
}

struct ip_addr nd_group_of(const struct ip_addr *ip)
{
	struct ip_addr group = {{0xff, 0x02, [11] = 1, [12] = 0xff}};
	memcpy(group.b + 13, ip->b + 13, 3);
	return group;
}

void nd_mac_of_group(const struct ip_addr *group, uint8_t ret[ETH_ADDRESS])
{
	ret[0] = ret[1] = 0x33;
	memcpy(ret + 2, group->b + 12, 4);
}

// The message with our MAC address in its option, unless src is none: then we have none to tell.
static void send(struct net *net, uint32_t port, const uint8_t mac[ETH_ADDRESS],
	const struct ip6_fields *f, uint8_t type, uint8_t flags, const struct ip_addr *target)
{
	uint8_t message[MESSAGE + OPTION] = {[0] = type, [4] = flags};
	memcpy(message + 8, target->b, sizeof(target->b));
	message[MESSAGE] = type == TYPE_SOLICITATION ? OPTION_SOURCE_MAC : OPTION_TARGET_MAC;
	message[MESSAGE + 1] = 1;
	memcpy(message + MESSAGE + 2, net->ports[port].mac, ETH_ADDRESS);
	icmp6_send_on_link(
		net, port, mac, f, message, ip_is_none(&f->src) ? MESSAGE : sizeof(message));
}

static struct ip6_fields fields(const struct ip_addr *src, const struct ip_addr *dst)
{
	return (struct ip6_fields){.src = *src,
		.dst = *dst,
		.protocol = IP_PROTO_ICMP6,
		.hop_limit = IP6_HOP_LIMIT_ON_LINK};
}

void nd_ask(struct net *net, const struct neigh *n, bool multicast)
{
	uint8_t mac[ETH_ADDRESS];
	struct ip_addr dst = n->ip;
	memcpy(mac, n->eth, sizeof(mac));
	if (multicast) {
		dst = nd_group_of(&n->ip);
		nd_mac_of_group(&dst, mac);
	}
	struct ip_addr source = ip_is_link_local(&n->ip) ? net->ports[n->port].link_local
	                                                 : net_source_on(net, n->port, &n->ip);
	struct ip6_fields f = fields(&source, &dst);
	net_count(net, NET_nd_asked);
	send(net, n->port, mac, &f, TYPE_SOLICITATION, 0, &n->ip);
}

static void advertise_to_all(struct net *net, uint32_t port, const struct ip_addr *ip)
{
	struct ip6_fields f = fields(ip, &all_nodes);
	send(net, port, all_nodes_mac, &f, TYPE_ADVERTISEMENT, FLAG_OVERRIDE, ip);
}

// Asks whether somebody has the address (RFC 4862 5.4), and tells everybody that it is here (RFC
// 4861 7.2.6). The answer is not waited for, as with ARP: the address serves at once, and who else
// has it is counted.
void nd_announce(struct net *net, uint32_t port, const struct ip_addr *ip)
{
	static const struct ip_addr none;
	uint8_t mac[ETH_ADDRESS];
	struct ip_addr group = nd_group_of(ip);
	struct ip6_fields f = fields(&none, &group);
	nd_mac_of_group(&group, mac);
	send(net, port, mac, &f, TYPE_SOLICITATION, 0, ip);
	advertise_to_all(net, port, ip);
}

// Somebody has or wants an address of ours. We keep it, and say so, but not at their pace.
static void defend(struct net *net, const struct ip6_packet *p, const struct ip_addr *ip)
{
	net_count(net, NET_nd_conflict);
	net_note_rival(net, p->port, ip, p->src_mac);
	if (!neigh_may_defend(net))
		return;
	advertise_to_all(net, p->port, ip);
}

static bool is_on_link(const struct net *net, const struct ip_addr *ip, uint32_t port)
{
	return ip_is_link_local(ip) || (net_is_on_link(net, ip, port) && !net_is_martian(net, ip));
}

static bool is_ours(const struct net *net, const struct ip_addr *ip, uint32_t port)
{
	return net_is_own_of_port(net, ip, port) || ip_eq(ip, &net->ports[port].link_local);
}

// Who asks for us wants our packets soon: a new entry. False = nobody on the port's link.
static bool learn_asker(
	struct net *net, const struct ip6_packet *p, const struct nd *nd, bool for_us)
{
	if (!is_on_link(net, &p->src, p->port))
		return false;
	if (!nd->mac)
		return true;
	neigh_tell(net, p->port, &p->src, nd->mac, false);
	struct neigh *n =
		for_us ? neigh_get(net, p->port, &p->src) : neigh_find(net, p->port, &p->src);
	if (n)
		neigh_hear(n, nd->mac, false);
	return true;
}

// RFC 4861 7.2.5. An answer that does not override is a claim where it differs from what we know.
static bool learn_answer(struct net *net, const struct ip6_packet *p, const struct nd *nd)
{
	if (!is_on_link(net, &nd->target, p->port))
		return false;
	struct neigh *n = neigh_find(net, p->port, &nd->target);
	const uint8_t *mac = nd->mac ? nd->mac : n && neigh_has_mac(n) ? n->eth : NULL;
	if (!mac)
		return true;
	neigh_tell(net, p->port, &nd->target, mac, !nd->solicited);
	bool differs = n && neigh_has_mac(n) && memcmp(mac, n->eth, ETH_ADDRESS) != 0;
	if (n)
		neigh_hear(n, mac, nd->solicited && (nd->override || !differs));
	return true;
}

static void answer(struct net *net, const struct ip6_packet *p, const struct nd *nd)
{
	if (ip_is_none(&p->src)) { // who asks wants this address
		defend(net, p, &nd->target);
		return;
	}
	struct ip6_fields f = fields(&nd->target, &p->src);
	net_count(net, NET_nd_answered);
	send(net, p->port, nd->mac ? nd->mac : p->src_mac, &f, TYPE_ADVERTISEMENT,
		FLAG_SOLICITED | FLAG_OVERRIDE, &nd->target);
}

static void solicitation(struct net *net, const struct ip6_packet *p, const struct nd *nd)
{
	bool for_us = is_ours(net, &nd->target, p->port);
	if (is_ours(net, &p->src, p->port))
		net_count(net, NET_nd_conflict);
	else if (!ip_is_none(&p->src) && !learn_asker(net, p, nd, for_us))
		net_drop(net, NET_nd_off_link);
	else if (for_us)
		answer(net, p, nd);
	else
		net_drop(net, NET_nd_not_ours);
}

static void advertisement(struct net *net, const struct ip6_packet *p, const struct nd *nd)
{
	if (is_ours(net, &nd->target, p->port)) {
		if (!nd->mac || memcmp(nd->mac, net->ports[p->port].mac, ETH_ADDRESS) != 0)
			defend(net, p, &nd->target);
	} else if (!learn_answer(net, p, nd)) {
		net_drop(net, NET_nd_off_link);
	}
}

static bool is_known_type(const struct ip6_packet *p)
{
	return p->payload[0] == TYPE_SOLICITATION || p->payload[0] == TYPE_ADVERTISEMENT;
}

void nd_hear(struct net *net, const struct ip6_packet *p)
{
	struct nd nd;
	if (!is_known_type(p) || !parse(p, &nd) || is_ours(net, &p->src, p->port))
		return;
	bool for_us = is_ours(net, &nd.target, p->port);
	if (nd.asks && !ip_is_none(&p->src))
		learn_asker(net, p, &nd, for_us);
	else if (!nd.asks && !for_us)
		learn_answer(net, p, &nd);
}

// Frames may be sent in our name; whoever takes our address names another MAC address within.
static bool is_own(const struct net *net, const struct ip6_packet *p, const struct nd *nd)
{
	const uint8_t *mac = net->ports[p->port].mac;
	return memcmp(p->src_mac, mac, ETH_ADDRESS) == 0 &&
	       (!nd->mac || memcmp(nd->mac, mac, ETH_ADDRESS) == 0);
}

void nd_input(struct net *net, const struct ip6_packet *p)
{
	struct nd nd;
	if (!is_known_type(p))
		net_drop(net, NET_icmp6_ignored);
	else if (!parse(p, &nd))
		net_drop(net, NET_nd_malformed);
	else if (is_own(net, p, &nd))
		net_drop(net, NET_nd_own); // RFC 4862 5.4.3
	else if (nd.asks)
		solicitation(net, p, &nd);
	else
		advertisement(net, p, &nd);
}

struct ip_addr nd_link_local(const uint8_t mac[ETH_ADDRESS])
{
	return (struct ip_addr){
		{0xfe, 0x80, [8] = mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]}};
}
