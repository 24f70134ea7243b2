// SPDX-License-Identifier: Apache-2.0
// What routers advertise (RFC 4861 6.3), where a port accepts that: which of them is the default
// gateway, by preference (RFC 4191), and which prefixes are on the link. No address is made of a
// prefix: those of a balancer are configured. Bounded, and what is known is never displaced.
#include "dataplane/net/ip6.h"

#define TYPE_SOLICITATION 133
#define MESSAGE 16 // without options
#define OPTION_SOURCE_MAC 1
#define OPTION_PREFIX 3
#define PREFIX_OPTION 32 // bytes
#define FLAG_ON_LINK 0x80
#define ASK_NS (4 * NS_PER_SECOND) // RFC 4861 10
#define N_ASKS 3
#define FOLLOW_NS (10 * NS_PER_MS) // between changes of routes, whoever advertises, and how often
#define FOREVER UINT32_MAX // seconds

static bool is_live(uint64_t until_ns, uint64_t now_ns)
{
	return until_ns > now_ns;
}

static uint64_t end_of(uint64_t now_ns, uint32_t lifetime_s)
{
	if (lifetime_s == FOREVER)
		return UINT64_MAX;
	return lifetime_s ? now_ns + lifetime_s * NS_PER_SECOND : 0;
}

// All that has not ended counts until the timer takes it out.
static void arm(struct net_ra *ra)
{
	uint64_t next = ra->n_asks ? ra->ask_ns : UINT64_MAX;
	if (ra->changed && ra->follow_ns < next)
		next = ra->follow_ns;
	for (uint32_t i = 0; i < NET_MAX_ROUTERS; i++)
		if (ra->routers[i].until_ns && ra->routers[i].until_ns < next)
			next = ra->routers[i].until_ns;
	for (uint32_t i = 0; i < NET_MAX_LINK_PREFIXES; i++)
		if (ra->prefixes[i].until_ns && ra->prefixes[i].until_ns < next)
			next = ra->prefixes[i].until_ns;
	twheel_cancel(ra->net->wheel, &ra->timer);
	if (next != UINT64_MAX)
		twheel_arm(ra->net->wheel, &ra->timer, next);
}

static void ask(struct net_ra *ra)
{
	static const struct ip_addr routers = {{0xff, 0x02, [15] = 2}};
	struct net_port *port = CONTAINER_OF(ra, struct net_port, ra);
	struct ip6_fields f = {.src = port->link_local,
		.dst = routers,
		.protocol = IP_PROTO_ICMP6,
		.hop_limit = IP6_HOP_LIMIT_ON_LINK};
	uint8_t mac[ETH_ADDRESS];
	uint8_t message[8 + 8] = {[0] = TYPE_SOLICITATION, [8] = OPTION_SOURCE_MAC, [9] = 1};
	memcpy(message + 10, port->mac, ETH_ADDRESS);
	nd_mac_of_group(&routers, mac);
	net_count(ra->net, NET_ra_asked);
	icmp6_send_on_link(
		ra->net, (uint32_t)(port - ra->net->ports), mac, &f, message, sizeof(message));
	ra->n_asks--;
	ra->ask_ns = twheel_now(ra->net->wheel) + ASK_NS;
}

// All routes and known paths are looked up anew then, which is much for one packet.
static void follow(struct net_ra *ra)
{
	uint64_t now = twheel_now(ra->net->wheel);
	if (!ra->changed || now < ra->follow_ns)
		return;
	ra->changed = false;
	ra->follow_ns = now + FOLLOW_NS;
	net_rebuild_routes(ra->net);
}

static void fire(struct twheel_timer *timer)
{
	struct net_ra *ra = CONTAINER_OF(timer, struct net_ra, timer);
	uint64_t now = twheel_now(ra->net->wheel);
	for (uint32_t i = 0; i < NET_MAX_ROUTERS; i++)
		if (ra->routers[i].until_ns && !is_live(ra->routers[i].until_ns, now)) {
			ra->routers[i].until_ns = 0;
			ra->changed = true;
		}
	for (uint32_t i = 0; i < NET_MAX_LINK_PREFIXES; i++)
		if (ra->prefixes[i].until_ns && !is_live(ra->prefixes[i].until_ns, now)) {
			ra->prefixes[i].until_ns = 0;
			ra->changed = true;
		}
	follow(ra);
	if (ra->n_asks && ra->ask_ns <= now)
		ask(ra);
	arm(ra);
}

void ra_init(struct net *net, struct net_port *port, bool accepts)
{
	port->ra = (struct net_ra){.net = net, .timer = {.fire = fire}, .accepts = accepts};
}

void ra_fini(struct net *net)
{
	for (uint32_t i = 0; i < net->n_ports; i++)
		twheel_cancel(net->wheel, &net->ports[i].ra.timer);
}

void ra_forget(struct net_port *port)
{
	struct net *net = port->ra.net;
	twheel_cancel(net->wheel, &port->ra.timer);
	ra_init(net, port, port->ra.accepts);
	net_rebuild_routes(net);
}

void ra_ask(struct net_port *port)
{
	port->ra.n_asks = N_ASKS;
	ask(&port->ra);
	arm(&port->ra);
}

// Returns whether routes change. Of a router that is known, or has found a place.
static bool set_router(struct net *net, struct net_ra *ra, const struct ip6_packet *p)
{
	// RFC 4191 2.1: 01 is high, 11 low, and 10 reserved, which counts as 00.
	static const int8_t preferences[4] = {0, 1, 0, -1};
	struct net_router *to = NULL;
	bool known = false;
	for (uint32_t i = 0; i < NET_MAX_ROUTERS && !known; i++) {
		struct net_router *r = &ra->routers[i];
		known = r->until_ns && ip_eq(&r->ip, &p->src);
		if (known || (!r->until_ns && !to))
			to = r;
	}
	uint32_t lifetime = load16(p->payload + 6);
	if (!known && !lifetime)
		return false;
	if (!to) {
		net_count(net, NET_ra_full);
		return false;
	}
	const struct ip_addr *gateway = ra_gateway(ra);
	struct ip_addr before = gateway ? *gateway : (struct ip_addr){0};
	*to = (struct net_router){.ip = p->src,
		.preference = preferences[p->payload[5] >> 3 & 3],
		.until_ns = end_of(twheel_now(net->wheel), lifetime)};
	gateway = ra_gateway(ra);
	return !gateway || !ip_eq(gateway, &before);
}

// The same of a prefix information option (RFC 4861 4.6.2, 6.3.4).
static bool set_prefix(struct net *net, struct net_ra *ra, const uint8_t *option)
{
	struct net_link_prefix said = {.bits = option[2]}, *to = NULL;
	memcpy(said.ip.b, option + 16, sizeof(said.ip.b));
	said.until_ns = end_of(twheel_now(net->wheel), load32(option + 4));
	if (!(option[3] & FLAG_ON_LINK) || said.bits > 128 || ip_is_v4(&said.ip) ||
		ip6_is_group(&said.ip) || ip_is_link_local(&said.ip))
		return false;
	bool known = false;
	for (uint32_t i = 0; i < NET_MAX_LINK_PREFIXES && !known; i++) {
		struct net_link_prefix *x = &ra->prefixes[i];
		known = x->until_ns && x->bits == said.bits && ip_eq(&x->ip, &said.ip);
		if (known || (!x->until_ns && !to))
			to = x;
	}
	if (!known && !said.until_ns)
		return false;
	if (!to) {
		net_count(net, NET_ra_full);
		return false;
	}
	*to = said;
	return !known || !said.until_ns;
}

// RFC 4861 6.1.2.
static bool is_sound(const struct ip6_packet *p)
{
	if (!p->from_link || p->len < MESSAGE || p->payload[1] != 0 || !ip_is_link_local(&p->src))
		return false;
	size_t at = MESSAGE;
	for (size_t size; at < p->len; at += size) {
		size = p->len - at >= 2 ? (size_t)p->payload[at + 1] * 8 : 0;
		if (size == 0 || size > p->len - at)
			return false;
	}
	return true;
}

void ra_input(struct net *net, const struct ip6_packet *p)
{
	struct net_ra *ra = &net->ports[p->port].ra;
	if (!ra->accepts) {
		net_drop(net, NET_icmp6_ignored);
		return;
	}
	if (!is_sound(p)) {
		net_drop(net, NET_ra_malformed);
		return;
	}
	net_count(net, NET_ra_heard);
	if (load16(p->payload + 6)) // of a router's life: RFC 4861 6.3.7
		ra->n_asks = 0;
	ra->changed |= set_router(net, ra, p);
	for (size_t at = MESSAGE; at < p->len; at += (size_t)p->payload[at + 1] * 8)
		if (p->payload[at] == OPTION_PREFIX && p->payload[at + 1] * 8 == PREFIX_OPTION)
			ra->changed |= set_prefix(net, ra, p->payload + at);
	follow(ra);
	arm(ra);
}
