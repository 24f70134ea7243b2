// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/gateway.h"

#include "lb/base/check.h"

#define RETRY_NS (200 * NS_PER_MS) // so long an answer is waited for: RFC 4861's is a second

static struct lb_gateway *board_of(const struct net_gateway *g)
{
	return &g->net->board->list[g->port][g->index];
}

static enum lb_gateway_state state_of(const struct net_gateway *g)
{
	return lb_gateway_read(board_of(g)).state;
}

static uint32_t n_of_family(const struct net_port *p, bool v4)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < p->n_gateways; i++)
		n += ip_is_v4(&p->gateways[i].ip) == v4;
	return n;
}

static bool is_kept(const struct net_port *p, const struct net_gateway *g)
{
	return p->watch.interval_ns || n_of_family(p, ip_is_v4(&g->ip)) > 1;
}

// The table.

// The kth choice of a slot among n: each has its own order, so that what one of them leaves is
// shared by all others, and nothing else moves.
static uint32_t choice(const struct net_port *p, uint32_t slot, uint32_t k, uint32_t n)
{
	if (p->first_gateway || k == 0)
		return p->first_gateway ? k : slot % n;
	return (slot % n + 1 + (slot / n + k) % (n - 1)) % n;
}

static void fill(struct net *net, uint32_t port, bool v4)
{
	const struct net_port *p = &net->ports[port];
	struct net_hops *hops = &net->hops[net_hops_of(port, v4)];
	const struct net_gateway *list[NET_MAX_GATEWAYS];
	bool up[NET_MAX_GATEWAYS], any = false;
	uint32_t n = 0;
	for (uint32_t i = 0; i < p->n_gateways; i++) {
		const struct net_gateway *g = &p->gateways[i];
		if (ip_is_v4(&g->ip) != v4)
			continue;
		list[n] = g;
		up[n] = state_of(g) == LB_GATEWAY_UP;
		any |= up[n++];
	}
	if (n < 2 || (!any && hops->slots[0])) // without any, the last ones stay
		return;
	for (uint32_t s = 0; s < NET_HOP_SLOTS; s++) {
		uint32_t k = 0;
		while (any && !up[choice(p, s, k, n)])
			k++;
		hops->slots[s] = list[choice(p, s, k, n)]->neigh;
	}
}

void net_follow_gateways(struct net *net)
{
	uint32_t n_changes = lb_gateways_changes(net->board);
	if (n_changes == net->n_gateway_changes)
		return;
	net->n_gateway_changes = n_changes;
	for (uint32_t p = 0; p < net->n_ports; p++) {
		fill(net, p, true);
		fill(net, p, false);
	}
}

struct neigh *gateway_next_hop(struct net *net, const struct net_route *route,
	const struct ip_addr *dst, const struct tcp_flow *flow, uint32_t *ret_way)
{
	struct neigh *n = net_route_choose(net, route, dst, flow);
	if (n) {
		*ret_way = NET_BY_HOPS + net_hops_of(route->port, ip_is_v4(dst));
		return n;
	}
	n = neigh_get(net, route->port, net_route_hop(route, dst));
	if (n)
		*ret_way = (uint32_t)(n - net->neigh.entries);
	return n;
}

// The watch.

static void set_state(struct net_gateway *g, enum lb_gateway_state state)
{
	lb_gateway_set(g->net->board, board_of(g), state, twheel_now(g->net->wheel));
	if (state == LB_GATEWAY_DOWN)
		net_count(g->net, NET_gateway_downs);
	net_follow_gateways(g->net);
}

static const struct net_watch *watch_of(const struct net_gateway *g)
{
	return &g->net->ports[g->port].watch;
}

static void arm(struct net_gateway *g, uint64_t after_ns)
{
	twheel_arm(g->net->wheel, &g->timer, g->asked_ns + after_ns);
}

static void ask(struct net_gateway *g)
{
	const struct net_watch *w = watch_of(g);
	bool is_last = g->n_missed > 0 && g->n_missed + 1u >= w->n_missed;
	bool is_gone = state_of(g) == LB_GATEWAY_DOWN && !g->n_answered;
	g->asked = true;
	g->asked_ns = twheel_now(g->net->wheel);
	g->n_heard = g->neigh->n_heard;
	net_count(g->net, NET_gateway_asks);
	neigh_check(g->neigh, is_last || is_gone);
	arm(g, w->interval_ns < RETRY_NS ? w->interval_ns : RETRY_NS);
}

static void heard(struct net_gateway *g)
{
	const struct net_watch *w = watch_of(g);
	enum lb_gateway_state state = state_of(g);
	g->asked = false;
	g->n_missed = 0;
	if (g->n_answered < UINT8_MAX)
		g->n_answered++;
	if (state == LB_GATEWAY_UNKNOWN ||
		(state == LB_GATEWAY_DOWN && g->n_answered >= w->n_answered))
		set_state(g, LB_GATEWAY_UP);
	arm(g, w->interval_ns);
}

static void missed(struct net_gateway *g)
{
	const struct net_watch *w = watch_of(g);
	g->n_answered = 0;
	if (g->n_missed < UINT8_MAX)
		g->n_missed++;
	net_count(g->net, NET_gateway_misses);
	if (state_of(g) != LB_GATEWAY_DOWN && g->n_missed >= w->n_missed)
		set_state(g, LB_GATEWAY_DOWN);
	if (state_of(g) == LB_GATEWAY_UP) {
		ask(g);
		return;
	}
	// The whole link hears the next question (RFC 1122 2.3.2.1).
	g->asked = false;
	arm(g, w->interval_ns > NEIGH_ASK_INTERVAL_NS ? w->interval_ns : NEIGH_ASK_INTERVAL_NS);
}

static void fire(struct twheel_timer *timer)
{
	struct net_gateway *g = CONTAINER_OF(timer, struct net_gateway, timer);
	if (!g->asked)
		ask(g);
	else if (g->neigh->n_heard != g->n_heard)
		heard(g);
	else
		missed(g);
}

void gateways_watch(struct net *net, uint32_t port)
{
	struct net_port *p = &net->ports[port];
	for (uint32_t i = 0; i < p->n_gateways && p->watch.interval_ns; i++)
		ask(&p->gateways[i]);
}

// Of a worker's life.

uint32_t gateways_kept(const struct net *net)
{
	uint32_t n = 0;
	for (uint32_t p = 0; p < net->n_ports; p++)
		for (uint32_t i = 0; i < net->ports[p].n_gateways; i++)
			n += is_kept(&net->ports[p], &net->ports[p].gateways[i]);
	return n;
}

void gateways_init(struct net *net)
{
	for (uint32_t p = 0; p < net->n_ports; p++) {
		struct net_port *port = &net->ports[p];
		for (uint32_t i = 0; i < port->n_gateways; i++) {
			struct net_gateway *g = &port->gateways[i];
			g->timer.fire = fire;
			g->net = net;
			if (!is_kept(port, g))
				continue;
			g->neigh = neigh_get(net, p, &g->ip);
			CHECK(g->neigh);
			g->neigh->kept = true;
		}
		fill(net, p, true);
		fill(net, p, false);
	}
}

void gateways_fini(struct net *net)
{
	for (uint32_t p = 0; p < net->n_ports; p++)
		for (uint32_t i = 0; i < net->ports[p].n_gateways; i++)
			twheel_cancel(net->wheel, &net->ports[p].gateways[i].timer);
}

void net_share_gateways(struct net *net, struct lb_gateways *board)
{
	net->board = board;
}
