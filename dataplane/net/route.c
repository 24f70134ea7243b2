// SPDX-License-Identifier: Apache-2.0
// Which link a destination is on: the prefixes of our addresses, longest first, then the gateways.
// Also which addresses are ours. All of it is constant after net_new().
#include "dataplane/net/inside.h"

static void add_route(struct net *net, const struct net_route *route)
{
	uint32_t at = net->n_routes++;
	// Contiguous masks compare like prefix lengths; equal ones keep the order of the ports.
	for (; at > 0 && net->routes[at - 1].mask < route->mask; at--)
		net->routes[at] = net->routes[at - 1];
	net->routes[at] = *route;
}

static void add_own(struct net *net, uint32_t ip, uint32_t port)
{
	uint32_t at = net_hash(net, ip, 0, NET_OWN_SLOTS);
	while (net->own[at].ip && net->own[at].ip != ip)
		at = (at + 1) % NET_OWN_SLOTS;
	net->own[at] = (struct net_own){ip, port};
}

static const struct net_own *find_own(const struct net *net, uint32_t ip)
{
	uint32_t at = net_hash(net, ip, 0, NET_OWN_SLOTS);
	while (net->own[at].ip) {
		if (net->own[at].ip == ip)
			return &net->own[at];
		at = (at + 1) % NET_OWN_SLOTS;
	}
	return NULL;
}

static void add_gateway(struct net *net, uint32_t index)
{
	const struct net_port *port = &net->ports[index];
	uint32_t source = port->addresses[0].ip;
	bool on_link = false;
	for (uint32_t i = 0; i < port->n_addresses && !on_link; i++)
		if (((port->addresses[i].ip ^ port->gateway) & port->addresses[i].mask) == 0) {
			source = port->addresses[i].ip;
			on_link = true;
		}
	if (!on_link) // a gateway outside of every prefix is still a neighbor
		add_route(net, &(struct net_route){.prefix = port->gateway,
				       .mask = UINT32_MAX,
				       .source = source,
				       .port = index});
	add_route(net,
		&(struct net_route){.gateway = port->gateway, .source = source, .port = index});
}

void net_build_routes(struct net *net)
{
	for (uint32_t p = 0; p < net->n_ports; p++) {
		const struct net_port *port = &net->ports[p];
		for (uint32_t i = 0; i < port->n_addresses; i++) {
			uint32_t ip = port->addresses[i].ip;
			uint32_t mask = port->addresses[i].mask;
			add_own(net, ip, p);
			if (mask != UINT32_MAX) // a lone address has no link around it
				add_route(net, &(struct net_route){.prefix = ip & mask,
						       .mask = mask,
						       .source = ip,
						       .port = p});
		}
		if (port->gateway && port->n_addresses > 0)
			add_gateway(net, p);
	}
}

const struct net_route *net_route_find(const struct net *net, uint32_t dst)
{
	for (uint32_t i = 0; i < net->n_routes; i++)
		if (((dst ^ net->routes[i].prefix) & net->routes[i].mask) == 0)
			return &net->routes[i];
	return NULL;
}

bool net_is_own(const struct net *net, uint32_t ip)
{
	return find_own(net, ip) != NULL;
}

bool net_is_own_of_port(const struct net *net, uint32_t ip, uint32_t port)
{
	const struct net_own *own = find_own(net, ip);
	return own && own->port == port;
}

bool net_is_on_link(const struct net *net, uint32_t ip, uint32_t port)
{
	const struct net_route *route = net_route_find(net, ip);
	return route && route->port == port && !route->gateway;
}

bool net_is_martian(const struct net *net, uint32_t ip)
{
	uint32_t top = ip >> 24;
	if (top == 0 || top == 127 || top >= 224 || net_is_own(net, ip))
		return true;
	// The all-ones and all-zeros hosts of our links: answers to them would be broadcasts.
	const struct net_route *route = net_route_find(net, ip);
	if (!route || route->gateway || ~route->mask <= 1) // RFC 3021: /31 has none
		return false;
	uint32_t host = ip & ~route->mask;
	return host == 0 || host == ~route->mask;
}
