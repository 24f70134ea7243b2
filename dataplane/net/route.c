// SPDX-License-Identifier: Apache-2.0
// Which link a destination is on: the prefixes of our addresses, longest first,
// then the gateways. Also which addresses are ours. Constant after net_new(),
// but for what routers advertise (ra.c).
#include "dataplane/net/inside.h"

static void add_route(struct net *net, const struct net_route *route)
{
	uint32_t at = net->n_routes++;
	// Equal lengths keep the order of the ports. Families don't meet: lengths
	// decide within one.
	for (; at > 0 && net->routes[at - 1].bits < route->bits; at--)
		net->routes[at] = net->routes[at - 1];
	net->routes[at] = *route;
}

static void add_own(struct net *net, const struct ip_addr *ip, uint32_t port)
{
	uint32_t at = net_hash(net, ip, 0, NET_OWN_SLOTS);
	while (!ip_is_none(&net->own[at].ip) && !ip_eq(&net->own[at].ip, ip))
		at = (at + 1) % NET_OWN_SLOTS;
	net->own[at] = (struct net_own){*ip, port};
}

static const struct net_own *find_own(const struct net *net, const struct ip_addr *ip)
{
	uint32_t at = net_hash(net, ip, 0, NET_OWN_SLOTS);
	while (!ip_is_none(&net->own[at].ip)) {
		if (ip_eq(&net->own[at].ip, ip))
			return &net->own[at];
		at = (at + 1) % NET_OWN_SLOTS;
	}
	return NULL;
}

static const struct net_address *first_of_family(const struct net_port *port, bool v4)
{
	for (uint32_t i = 0; i < port->n_addresses; i++)
		if (ip_is_v4(&port->addresses[i].ip) == v4)
			return &port->addresses[i];
	return NULL;
}

static bool has_default(const struct net *net, uint32_t port, bool v4)
{
	uint32_t bits = v4 ? IP_V4_BITS : 0;
	for (uint32_t i = 0; i < net->n_routes; i++) {
		const struct net_route *r = &net->routes[i];
		if (r->port == port && r->bits == bits && ip_is_v4(&r->source) == v4 &&
			!ip_is_none(&r->gateway))
			return true;
	}
	return false;
}

static void add_gateway(struct net *net, uint32_t index, const struct ip_addr *gateway)
{
	const struct net_port *port = &net->ports[index];
	bool v4 = ip_is_v4(gateway);
	const struct net_address *source = first_of_family(port, v4);
	bool on_link = ip_is_link_local(gateway);
	if (!source || ip_is_none(gateway))
		return;
	for (uint32_t i = 0; i < port->n_addresses && !on_link; i++) {
		const struct net_address *a = &port->addresses[i];
		on_link = ip_in_prefix(gateway, &a->ip, a->bits);
		if (on_link)
			source = a;
	}
	struct net_route route = {.source = source->ip, .port = index};
	if (!on_link) { // a gateway outside of every prefix is still a neighbor
		route.prefix = *gateway;
		route.bits = 128;
		add_route(net, &route);
	}
	route.prefix = v4 ? ip_from_v4(0) : (struct ip_addr){0};
	route.bits = v4 ? IP_V4_BITS : 0;
	route.gateway = *gateway;
	if (!has_default(net, index, v4)) // else they share it (gateway.h)
		add_route(net, &route);
}

// Whoever is on one link must not get what goes to another, nor part of what
// goes to its own.
static bool is_configured(const struct net *net, const struct net_link_prefix *x)
{
	for (uint32_t p = 0; p < net->n_ports; p++)
		for (uint32_t i = 0; i < net->ports[p].n_addresses; i++) {
			const struct net_address *a = &net->ports[p].addresses[i];
			uint32_t shorter = a->bits < x->bits ? a->bits : x->bits;
			if (a->bits != 128 && ip_in_prefix(&a->ip, &x->ip, shorter))
				return true;
		}
	return false;
}

static void add_advertised(struct net *net, uint32_t index)
{
	const struct net_port *port = &net->ports[index];
	const struct net_address *source = first_of_family(port, false);
	const struct ip_addr *gateway = ra_gateway(&port->ra);
	for (uint32_t i = 0; source && i < NET_MAX_LINK_PREFIXES; i++) {
		const struct net_link_prefix *x = &port->ra.prefixes[i];
		if (x->until_ns && !is_configured(net, x))
			add_route(net, &(struct net_route){.prefix = x->ip,
					       .bits = x->bits,
					       .source = source->ip,
					       .port = index});
	}
	if (gateway)
		add_gateway(net, index, gateway);
}

static bool has_same_prefix(const struct net_route *a, const struct net_route *b)
{
	return a->bits == b->bits && ip_is_v4(&a->prefix) == ip_is_v4(&b->prefix) &&
	       (a->bits == 0 || ip_in_prefix(&a->prefix, &b->prefix, b->bits));
}

// Before what is advertised: no router takes flows from a configured one.
static void mark_shared(struct net *net)
{
	for (uint32_t i = 0; i < net->n_routes; i++)
		for (uint32_t k = 0; k < i; k++) {
			struct net_route *a = &net->routes[i], *b = &net->routes[k];
			bool both = a->port != b->port && has_same_prefix(a, b);
			a->is_shared |= both;
			b->is_shared |= both;
		}
}

void net_build_routes(struct net *net)
{
	for (uint32_t p = 0; p < net->n_ports; p++) {
		const struct net_port *port = &net->ports[p];
		for (uint32_t i = 0; i < port->n_addresses; i++) {
			const struct net_address *a = &port->addresses[i];
			add_own(net, &a->ip, p);
			if (a->bits != 128) // a lone address has no link around it
				add_route(net, &(struct net_route){.prefix = a->ip,
						       .bits = a->bits,
						       .source = a->ip,
						       .port = p});
		}
		for (uint32_t i = 0; i < port->n_gateways; i++)
			add_gateway(net, p, &port->gateways[i].ip);
	}
	mark_shared(net);
	for (uint32_t p = 0; p < net->n_ports; p++) // of equal lengths what is configured is first
		add_advertised(net, p);
}

void net_forget_paths(struct net *net)
{
	if (++net->generation == 0) { // wrapped: old entries of the cache would look valid
		memset(net->dst, 0, sizeof(net->dst));
		memset(net->dst6, 0, sizeof(net->dst6));
		memset(net->ways, 0, sizeof(net->ways));
		net->generation = 1;
	}
}

void net_rebuild_routes(struct net *net)
{
	net->n_routes = 0;
	net_build_routes(net);
	net_forget_paths(net);
}

const struct net_route *net_route_find(const struct net *net, const struct ip_addr *dst)
{
	for (uint32_t i = 0; i < net->n_routes; i++)
		if (ip_in_prefix(dst, &net->routes[i].prefix, net->routes[i].bits))
			return &net->routes[i];
	return NULL;
}

// One port's, of those that have the prefix of this one.
static const struct net_route *shared_with(
	const struct net *net, const struct net_route *route, uint32_t port)
{
	for (uint32_t i = 0; i < net->n_routes && route->is_shared; i++) {
		const struct net_route *r = &net->routes[i];
		if (r->is_shared && r->port == port && has_same_prefix(r, route))
			return r;
	}
	return NULL;
}

const struct net_route *net_route_from(
	const struct net *net, const struct ip_addr *src, const struct ip_addr *dst)
{
	const struct net_route *route = net_route_find(net, dst);
	if (!src || !route || !route->is_shared) // most
		return route;
	const struct net_own *own = find_own(net, src);
	const struct net_route *best = own ? shared_with(net, route, own->port) : NULL;
	return best ? best : route;
}

// What a port has of the prefix in which an address is; NULL = it is none of that port's links.
static const struct net_route *route_on(
	const struct net *net, const struct ip_addr *ip, uint32_t port)
{
	const struct net_route *route = net_route_find(net, ip);
	return !route || route->port == port ? route : shared_with(net, route, port);
}

struct ip_addr net_source_on(const struct net *net, uint32_t port, const struct ip_addr *neighbor)
{
	const struct net_route *route = route_on(net, neighbor, port);
	if (route)
		return route->source;
	return first_of_family(&net->ports[port], ip_is_v4(neighbor))->ip;
}

static unsigned common_bits(const struct ip_addr *a, const struct ip_addr *b)
{
	unsigned i = 0;
	while (i < sizeof(a->b) && a->b[i] == b->b[i])
		i++;
	return i == sizeof(a->b) ? 128 : 8 * i + (unsigned)__builtin_clz(a->b[i] ^ b->b[i]) - 24;
}

static bool is_unique_local(const struct ip_addr *ip) // RFC 4193
{
	return (ip->b[0] & 0xfe) == 0xfc;
}

// More is better: the same kind of address first, then the longest prefix in
// common.
static unsigned source_rank(const struct ip_addr *source, const struct ip_addr *dst)
{
	bool same_kind = is_unique_local(source) == is_unique_local(dst);
	return same_kind * 256u + common_bits(source, dst);
}

struct ip_addr net_route_source(
	const struct net *net, const struct net_route *route, const struct ip_addr *dst)
{
	const struct net_port *port = &net->ports[route->port];
	struct ip_addr best = route->source;
	if (ip_is_none(&route->gateway) || ip_is_v4(dst))
		return best;
	for (uint32_t i = 0; i < port->n_addresses; i++) {
		const struct ip_addr *a = &port->addresses[i].ip;
		if (!ip_is_v4(a) && source_rank(a, dst) > source_rank(&best, dst))
			best = *a;
	}
	return best;
}

bool net_is_own(const struct net *net, const struct ip_addr *ip)
{
	return find_own(net, ip) || net_vip_find(&net->vips, ip);
}

// On the link of whose subnet it is, or of no subnet: on all.
static bool answers_vip(const struct net *net, const struct ip_addr *ip, uint32_t port)
{
	const struct net_vip *v = net_vip_find(&net->vips, ip);
	if (!v || !v->answers || (!ip_is_v4(ip) && ip_is_none(&net->ports[port].link_local)))
		return false;
	const struct net_route *route = net_route_find(net, ip);
	return !route || !ip_is_none(&route->gateway) || route_on(net, ip, port);
}

bool net_is_own_of_port(const struct net *net, const struct ip_addr *ip, uint32_t port)
{
	const struct net_own *own = find_own(net, ip);
	return own ? own->port == port : answers_vip(net, ip, port);
}

bool net_is_on_link(const struct net *net, const struct ip_addr *ip, uint32_t port)
{
	const struct net_route *route = route_on(net, ip, port);
	return route && ip_is_none(&route->gateway);
}

static bool is_ip4_martian(const struct net *net, const struct ip_addr *ip)
{
	uint32_t v4 = ip_to_v4(ip), top = v4 >> 24;
	if (top == 0 || top == 127 || top >= 224)
		return true;
	// The all-ones and all-zeros hosts of our links: answers to them would be
	// broadcasts.
	const struct net_route *route = net_route_find(net, ip);
	if (!route || !ip_is_none(&route->gateway) || route->bits >= 127) // RFC 3021: /31 has none
		return false;
	uint32_t hosts = UINT32_MAX >> (route->bits - IP_V4_BITS);
	return (v4 & hosts) == 0 || (v4 & hosts) == hosts;
}

static bool is_ip6_martian(const struct ip_addr *ip)
{
	static const struct ip_addr loopback = {{[15] = 1}};
	return ip->b[0] == 0xff || ip_is_none(ip) || ip_eq(ip, &loopback);
}

bool net_is_martian(const struct net *net, const struct ip_addr *ip)
{
	if (net_is_own(net, ip))
		return true;
	return ip_is_v4(ip) ? is_ip4_martian(net, ip) : is_ip6_martian(ip);
}
