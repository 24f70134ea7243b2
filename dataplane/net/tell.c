// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/tell.h"

#include "dataplane/net/inside.h"
#include "lb/pick/inflight.h"

// Of a millisecond, in entries.
#define BUDGET 512

static bool is_wanted(const struct lb_inflight_query *q, const struct ip_addr *ip)
{
	return !q->has_source || ip_in_prefix(ip, &q->source.ip, q->source.bits);
}

// Neighbors.

static enum lb_neighbor_state state_of(const struct neigh *n)
{
	switch ((enum neigh_state)n->state) {
	case NEIGH_STALE:
		return LB_NEIGHBOR_stale;
	case NEIGH_PROBE:
		return LB_NEIGHBOR_probe;
	case NEIGH_REACHABLE:
		return LB_NEIGHBOR_reachable;
	case NEIGH_FREE:
	case NEIGH_INCOMPLETE:
		break;
	}
	return LB_NEIGHBOR_incomplete;
}

static bool is_gateway(struct net_port *p, const struct ip_addr *ip)
{
	const struct ip_addr *advertised = ra_gateway(&p->ra);
	return net_gateway_find(p->gateways, p->n_gateways, ip) ||
	       (advertised && ip_eq(ip, advertised));
}

static void tell_neighbor(struct lb_inflight *f, const struct neigh *n)
{
	struct lb_inflight_row *row = NULL;
	if (n->state == NEIGH_FREE)
		return;
	f->n_all++;
	if (is_wanted(&f->query, &n->ip))
		row = lb_inflight_find_place(
			f, n->heard_ns > n->changed_ns ? n->heard_ns : n->changed_ns);
	if (!row)
		return;
	row->peer = (struct ip_port){.ip = n->ip};
	row->state = (uint8_t)state_of(n);
	row->neighbor = (struct lb_inflight_neighbor){.port = n->port,
		.has_mac = neigh_has_mac(n),
		.is_gateway = is_gateway(&n->net->ports[n->port], &n->ip),
		.n_held = n->n_held,
		.n_asks = n->n_asks};
	memcpy(row->neighbor.mac, n->eth, ETH_ADDRESS);
}

// Addresses.

static struct lb_inflight_address *place(struct lb_inflight *f, const struct ip_addr *ip)
{
	f->n_all++;
	struct lb_inflight_row *row =
		is_wanted(&f->query, ip) ? lb_inflight_find_place(f, 0) : NULL;
	if (!row)
		return NULL;
	row->peer = (struct ip_port){.ip = *ip};
	row->state = 0;
	row->address = (struct lb_inflight_address){.port = LB_ADDRESS_ALL_PORTS};
	return &row->address;
}

static void add_rival(
	const struct net *net, const struct ip_addr *ip, struct lb_inflight_address *a)
{
	for (uint32_t i = 0; i < NET_MAX_RIVALS; i++) {
		const struct net_rival *r = &net->rivals[i];
		bool is_here = a->port == LB_ADDRESS_ALL_PORTS || a->port == r->port;
		if (!r->at_ns || !is_here || !ip_eq(&r->ip, ip) || r->at_ns < a->rival_ns)
			continue;
		a->rival_ns = r->at_ns;
		memcpy(a->rival, r->mac, ETH_ADDRESS);
	}
}

static void tell_of_port(struct lb_inflight *f, const struct net *net, uint8_t port)
{
	const struct net_port *p = &net->ports[port];
	for (uint32_t i = 0; i <= p->n_addresses; i++) {
		bool is_own = i < p->n_addresses;
		const struct ip_addr *ip = is_own ? &p->addresses[i].ip : &p->link_local;
		struct lb_inflight_address *a = ip_is_none(ip) ? NULL : place(f, ip);
		if (!a)
			continue;
		a->port = port;
		a->kind = is_own ? LB_ADDRESS_port : LB_ADDRESS_link_local;
		a->bits = is_own ? (uint8_t)p->addresses[i].bits : 64;
		a->answers = true;
		add_rival(net, ip, a);
	}
}

static void tell_vip(struct lb_inflight *f, const struct net_vip *v)
{
	struct lb_inflight_address *a = place(f, &v->prefix.ip);
	if (!a)
		return;
	a->kind = LB_ADDRESS_vips;
	a->bits = v->prefix.bits;
	a->answers = v->answers;
}

static void tell_served(struct lb_inflight *f, const struct net *net, const struct ip_addr *ip)
{
	const struct net_vip *v = ip_is_none(ip) ? NULL : net_vip_find(&net->vips, ip);
	struct lb_inflight_address *a = v ? place(f, ip) : NULL;
	if (!a)
		return;
	a->kind = LB_ADDRESS_vip;
	a->bits = 128;
	a->answers = v->answers;
	add_rival(net, ip, a);
}

// The nth of all that there may be: ports, then prefixes, then places. False = there are no more.
static bool tell_address(struct lb_inflight *f, const struct net *net, uint32_t n)
{
	if (n < net->n_ports) {
		tell_of_port(f, net, (uint8_t)n);
		return true;
	}
	n -= net->n_ports;
	if (n < net->vips.n) {
		tell_vip(f, &net->vips.list[n]);
		return true;
	}
	n -= net->vips.n;
	if (n >= net->vips.n_places)
		return false;
	tell_served(f, net, &net->vips.served[n]);
	return true;
}

// The walk.

static bool tell_one(struct net_tell *t)
{
	const struct net *net = t->net;
	if (t->to->query.kind == LB_INFLIGHT_ADDRESSES)
		return tell_address(t->to, net, t->at++);
	if (t->at >= net->neigh.max - net->neigh.n_fresh)
		return false;
	tell_neighbor(t->to, &net->neigh.entries[t->at++]);
	return true;
}

static void end(struct net_tell *t)
{
	struct lb_inflight *f = t->to;
	t->to = NULL;
	lb_inflight_done(f);
}

static void fire(struct twheel_timer *timer)
{
	struct net_tell *t = CONTAINER_OF(timer, struct net_tell, timer);
	for (int left = BUDGET; left > 0; left--)
		if (!tell_one(t)) {
			end(t);
			return;
		}
	twheel_arm(t->net->wheel, timer, twheel_now(t->net->wheel) + TWHEEL_NS_PER_TICK);
}

void net_tell_begin(struct net *net, struct lb_inflight *f)
{
	net->tell = (struct net_tell){.timer.fire = fire, .net = net, .to = f};
	twheel_arm(net->wheel, &net->tell.timer, twheel_now(net->wheel));
}

void net_tell_fini(struct net *net)
{
	if (!net->tell.to)
		return;
	twheel_cancel(net->wheel, &net->tell.timer);
	end(&net->tell);
}
