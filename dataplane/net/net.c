// SPDX-License-Identifier: Apache-2.0
// How a worker's network layer is made and freed, what TCP sees of it, and the first look at each
// frame that arrives: whether it is for us, and what it carries.
#include "dataplane/net/gateway.h"
#include "dataplane/net/ip6.h"
#include "dataplane/net/vip.h"
#include "lb/base/cacheline.h"
#include "lb/base/check.h"

#include <stdlib.h>

static void copy_gateways(struct net_port *port, uint32_t index, const struct net_port_conf *conf)
{
	port->first_gateway = conf->first_gateway;
	port->watch = conf->watch;
	for (uint32_t i = 0; i < NET_MAX_GATEWAYS; i++)
		if (!ip_is_none(&conf->gateways[i]))
			port->gateways[port->n_gateways++] =
				(struct net_gateway){.ip = conf->gateways[i],
					.port = (uint8_t)index,
					.index = (uint8_t)i};
}

static void copy_port(struct net *net, struct net_port *port, const struct net_port_conf *conf)
{
	DCHECK(conf->n_addresses <= NET_MAX_ADDRESSES);
	port->device = conf->device;
	memcpy(port->mac, conf->mac, sizeof(port->mac));
	port->mtu = conf->mtu;
	port->n_addresses = conf->n_addresses;
	bool has_ip6 = false;
	for (uint32_t i = 0; i < conf->n_addresses; i++) {
		const struct net_prefix *a = &conf->addresses[i];
		bool v4 = ip_is_v4(&a->ip);
		has_ip6 |= !v4;
		DCHECK(a->len <= (v4 ? 32 : 128));
		port->addresses[i] =
			(struct net_address){.ip = a->ip, .bits = a->len + (v4 ? IP_V4_BITS : 0u)};
	}
	copy_gateways(port, (uint32_t)(port - net->ports), conf);
	port->is_shared = conf->is_shared;
	mld_init(net, port);
	ra_init(net, port, has_ip6 && conf->accept_ra);
	if (has_ip6)
		port->link_local = nd_link_local(port->mac);
}

struct net *net_new(const struct net_port_conf *ports, uint32_t n_ports, uint32_t max_neighbors,
	struct twheel *wheel, uint64_t seed)
{
	DCHECK(n_ports >= 1 && n_ports <= NET_MAX_PORTS && max_neighbors >= 1);
	struct net *net = cacheline_alloc(1, sizeof(*net));
	if (!net)
		return NULL;
	rand_init(&net->rand, seed);
	net->wheel = wheel;
	net->hash_key = rand_u64(&net->rand) | 1;
	for (unsigned i = 0; i < sizeof(net->hash_keys) / sizeof(net->hash_keys[0]); i++)
		net->hash_keys[i] = rand_u64(&net->rand);
	net->generation = 1;
	net->board = &net->own_board;
	net->dropped = &net->own_dropped;
	net->n_ports = n_ports;
	net->echoes.last_ns = twheel_now(wheel);
	net->echoes.tokens_ns = NET_ICMP_BURST * NET_ICMP_INTERVAL_NS;
	net->errors = net->echoes;
	uint16_t mtu = 0;
	for (uint32_t i = 0; i < n_ports; i++) {
		copy_port(net, &net->ports[i], &ports[i]);
		mtu = ports[i].mtu > mtu ? ports[i].mtu : mtu;
	}
	net_build_routes(net);
	net->max_frame = ETH_HEADER + (size_t)mtu;
	net->lost = cacheline_alloc(1, net->max_frame);
	if (!net->lost ||
		neigh_init(net, max_neighbors + gateways_kept(net), net->max_frame) != 0) {
		net_free(net);
		return NULL;
	}
	gateways_init(net);
	return net;
}

void net_free(struct net *net)
{
	if (!net)
		return;
	net_ping_fini(net);
	net_tell_fini(net);
	net_vip_fini(net);
	mld_fini(net);
	ra_fini(net);
	gateways_fini(net);
	neigh_fini(net);
	cacheline_free(net->lost);
	cacheline_free(net);
}

void net_set_tcp(struct net *net, const struct net_tcp *tcp)
{
	net->tcp = *tcp;
}

void net_set_on_neighbor(
	struct net *net, void (*on_neighbor)(void *ctx, const struct ip_addr *), void *ctx)
{
	net->on_neighbor = on_neighbor;
	net->on_neighbor_ctx = ctx;
}

static void *io_reserve(void *ctx, const struct tcp_flow *flow, size_t len)
{
	struct net *net = ctx;
	if (ip_is_v4(&flow->remote))
		return ip4_reserve(net, ip_to_v4(&flow->remote), flow, len);
	return ip6_reserve(net, ip6_next_hop(net, &flow->remote, flow), len);
}

static APART void emit_ip6(
	struct net *net, const struct tcp_flow *flow, enum ip_ecn ecn, size_t len)
{
	uint32_t ports = (uint32_t)flow->local_port << 16 | flow->remote_port;
	struct ip6_fields fields = {.src = flow->local,
		.dst = flow->remote,
		.flow_label = net_hash(net, &flow->remote, ports, 1 << 20), // RFC 6437 3
		.protocol = IP_PROTO_TCP,
		.hop_limit = IP6_HOP_LIMIT,
		.ecn = ecn};
	ip6_emit(net, &fields, len);
}

static inline void emit(
	struct net *net, const struct tcp_flow *flow, enum ip_ecn ecn, void *segment, size_t len)
{
	bool v4 = ip_is_v4(&flow->remote);
	DCHECK(net->open.frame &&
		segment == net->open.frame + ETH_HEADER + (v4 ? IP4_HEADER : IP6_HEADER));
	if (v4)
		ip4_emit(net, ip_to_v4(&flow->local), ip_to_v4(&flow->remote), IP_PROTO_TCP, ecn,
			len);
	else
		emit_ip6(net, flow, ecn, len);
}

static void io_emit(void *ctx, const struct tcp_flow *flow, void *segment, size_t len)
{
	emit(ctx, flow, IP_NOT_ECT, segment, len);
}

static void io_emit_ect(void *ctx, const struct tcp_flow *flow, void *segment, size_t len)
{
	emit(ctx, flow, IP_ECT0, segment, len);
}

static uint16_t io_mtu(void *ctx, const struct tcp_flow *flow)
{
	struct net *net = ctx;
	return ip_is_v4(&flow->remote) ? ip4_mtu(net, ip_to_v4(&flow->remote), flow)
	                               : ip6_mtu(net, &flow->remote, flow);
}

struct tcp_io net_tcp_io(struct net *net)
{
	return (struct tcp_io){.reserve = io_reserve,
		.emit = io_emit,
		.mtu = io_mtu,
		.ctx = net,
		.emit_ect = io_emit_ect};
}

static bool mac_eq(const uint8_t *a, const uint8_t *b)
{
	return memcmp(a, b, ETH_ADDRESS) == 0;
}

static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static bool is_ip6_group(const uint8_t *frame) // RFC 2464 7
{
	return frame[0] == 0x33 && frame[1] == 0x33;
}

// Of Ethernet, with a tag that is to be passed over.
static size_t header_of(const uint8_t *frame, size_t len)
{
	return eth_is_priority_tagged(frame, len) ? ETH_HEADER + ETH_TAG : ETH_HEADER;
}

void net_hear(struct net *net, uint32_t port, const uint8_t *frame, size_t len)
{
	if (len < ETH_HEADER || frame[6] & 1)
		return;
	bool in_group = is_ip6_group(frame), ours = mac_eq(frame, net->ports[port].mac);
	size_t header = header_of(frame, len);
	uint16_t type = load16(frame + header - 2);
	struct ip6_origin from = {port, in_group, frame + ETH_ADDRESS};
	if (type == ETH_TYPE_ARP && (ours || mac_eq(frame, everybody)))
		arp_hear(net, port, frame + header, len - header);
	else if (type == ETH_TYPE_IP4 && ours)
		ip4_hear(net, frame + header, len - header);
	else if (type == ETH_TYPE_IP6 && (ours || in_group) && net_port_has_ip6(&net->ports[port]))
		ip6_hear(net, &from, frame + header, len - header);
}

// Whatever is not a packet for this station alone.
static APART void input_other(struct net *net, uint32_t port, const uint8_t *frame, size_t len)
{
	if (len < ETH_HEADER) {
		net_drop(net, NET_eth_short);
		return;
	}
	size_t header = header_of(frame, len);
	uint16_t type = load16(frame + header - 2);
	bool broadcast = mac_eq(frame, everybody);
	bool in_group = type == ETH_TYPE_IP6 && is_ip6_group(frame);
	if (!broadcast && !in_group && !mac_eq(frame, net->ports[port].mac)) {
		net_drop(net, NET_eth_not_ours);
		return;
	}
	if (frame[ETH_ADDRESS] & 1) { // a group can't send
		net_drop(net, NET_eth_bad_source);
		return;
	}
	const uint8_t *packet = frame + header;
	len -= header;
	struct ip6_origin from = {port, in_group || broadcast, frame + ETH_ADDRESS};
	switch (type) {
	case ETH_TYPE_IP4:
		ip4_input(net, packet, len, broadcast);
		break;
	case ETH_TYPE_ARP:
		if (net->silent)
			arp_hear(net, port, packet, len);
		else
			arp_input(net, port, packet, len);
		break;
	case ETH_TYPE_VLAN:
	case ETH_TYPE_VLANS:
		net_drop(net, NET_eth_vlan);
		break;
	case ETH_TYPE_IP6:
		if (net_port_has_ip6(&net->ports[port]))
			ip6_input(net, &from, packet, len);
		else
			net_drop(net, NET_eth_ip6);
		break;
	default:
		net_drop(net, NET_eth_unknown_type);
	}
}

void net_input(struct net *net, uint32_t port, const uint8_t *frame, size_t len)
{
	net_count(net, NET_rx_frames);
	if (len >= ETH_HEADER && mac_eq(frame, net->ports[port].mac) && !(frame[ETH_ADDRESS] & 1) &&
		load16(frame + 12) == ETH_TYPE_IP4)
		ip4_input(net, frame + ETH_HEADER, len - ETH_HEADER, false);
	else
		input_other(net, port, frame, len);
}

void net_set_drop_mark(struct net *net, uint8_t *mark)
{
	net->dropped = mark;
}

int net_take_drop(struct net *net)
{
	uint8_t why = *net->dropped;
	*net->dropped = 0;
	return why ? why : -1;
}

static void announce(struct net *net, uint32_t port, const struct ip_addr *ip)
{
	if (ip_is_v4(ip))
		arp_announce(net, port, ip);
	else
		nd_announce(net, port, ip);
}

// Once we are the one to say where they are.
static void announce_addresses(struct net *net, uint32_t port)
{
	struct net_port *p = &net->ports[port];
	p->is_unannounced = net->silent;
	if (net->silent)
		return;
	for (uint32_t i = 0; i < p->n_addresses; i++)
		announce(net, port, &p->addresses[i].ip);
	if (net_port_has_ip6(p))
		announce(net, port, &p->link_local);
}

void net_set_silent(struct net *net, bool silent)
{
	net->silent = silent;
	for (uint32_t p = 0; p < net->n_ports; p++)
		if (net->ports[p].is_unannounced)
			announce_addresses(net, p);
	net_vip_set_silent(net, silent);
}

void net_renew_port(struct net *net, uint32_t port, const uint8_t mac[6])
{
	DCHECK(port < net->n_ports);
	memcpy(net->ports[port].mac, mac, ETH_ADDRESS);
	if (net_port_has_ip6(&net->ports[port]))
		net->ports[port].link_local = nd_link_local(mac);
	neigh_renew(net, port);
	if (net->ports[port].ra.accepts)
		ra_forget(&net->ports[port]);
}

void net_announce(struct net *net, uint32_t port)
{
	struct net_port *p = &net->ports[port];
	if (net_port_has_ip6(p))
		mld_join(p); // RFC 4862 5.4.2: before it asks
	if (p->ra.accepts)
		ra_ask(p);
	announce_addresses(net, port);
	net_vip_announce_all(net);
	gateways_watch(net, port);
}

bool net_source_for(const struct net *net, const struct ip_addr *dst, struct ip_addr *ret)
{
	const struct net_route *route = net_route_find(net, dst);
	if (!route || net_is_martian(net, dst))
		return false;
	*ret = net_route_source(net, route, dst);
	return true;
}

bool net_prepare(struct net *net, const struct ip_addr *dst)
{
	struct neigh *n = ip_is_v4(dst) ? ip4_next_hop(net, ip_to_v4(dst), NULL)
	                                : ip6_next_hop(net, dst, NULL);
	if (n)
		neigh_want(n);
	return n;
}

struct counter_set net_counters(const struct net *net)
{
	static const char *const names[] = {NET_COUNTERS(COUNTER_NAME)};
	return (struct counter_set){.names = names, .values = net->counters, .n = NET_N_COUNTERS};
}

void net_list_pools(struct net *net, struct pool_list *l)
{
	pool_list_add(l, "arp_held", &net->neigh.held);
	pool_list_add(l, "arp_held_small", &net->neigh.held_small);
}
