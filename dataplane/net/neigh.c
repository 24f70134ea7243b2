// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/neigh.h"

#include "dataplane/net/ip6_header.h"
#include "lb/base/cacheline.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void on_timer(struct twheel_timer *);

int neigh_init(struct net *net, uint32_t max, size_t max_frame)
{
	struct neigh_table *t = &net->neigh;
	t->entries = cacheline_alloc(max, sizeof(*t->entries));
	t->buckets = cacheline_alloc(max, sizeof(struct neigh *));
	if (!t->entries || !t->buckets)
		return -ENOMEM;
	t->max = t->n_fresh = max;
	size_t small = sizeof(struct neigh_held) + NEIGH_SMALL_FRAME;
	int rc = pool_init(&t->held_small, small, NEIGH_MAX_HELD_ALL);
	return rc ? rc
	          : pool_init(&t->held, sizeof(struct neigh_held) + max_frame, NEIGH_MAX_HELD_ALL);
}

void neigh_fini(struct net *net)
{
	struct neigh_table *t = &net->neigh;
	if (t->entries)
		for (uint32_t i = 0; i < t->max - t->n_fresh; i++)
			twheel_cancel(net->wheel, &t->entries[i].timer);
	cacheline_free(t->entries);
	cacheline_free(t->buckets);
	pool_fini(&t->held);
	pool_fini(&t->held_small);
}

static struct pool *pool_for(struct net *net, size_t len)
{
	return len <= NEIGH_SMALL_FRAME ? &net->neigh.held_small : &net->neigh.held;
}

static void put_held(struct net *net, struct neigh_held *held)
{
	pool_put(pool_for(net, held->len), held);
}

static struct neigh **bucket_of(struct net *net, uint32_t port, const struct ip_addr *ip)
{
	return &net->neigh.buckets[net_hash(net, ip, port, net->neigh.max)];
}

struct neigh *neigh_find(struct net *net, uint32_t port, const struct ip_addr *ip)
{
	for (struct neigh *n = *bucket_of(net, port, ip); n; n = n->next)
		if (n->port == port && ip_eq(&n->ip, ip))
			return n;
	return NULL;
}

static void leave(struct neigh *n)
{
	struct neigh_list *list = n->list;
	if (!list)
		return;
	*(n->older ? &n->older->newer : &list->first) = n->newer;
	*(n->newer ? &n->newer->older : &list->last) = n->older;
	n->older = n->newer = NULL;
	n->list = NULL;
}

static void enter(struct neigh *n, struct neigh_list *list)
{
	leave(n);
	if (n->kept)
		return;
	n->list = list;
	n->listed_ns = twheel_now(n->net->wheel);
	n->older = list->last;
	*(list->last ? &list->last->newer : &list->first) = n;
	list->last = n;
}

static void drop_held(struct neigh *n)
{
	while (n->head) {
		struct neigh_held *held = n->head;
		n->head = held->next;
		net_count(n->net, NET_hold_dropped);
		put_held(n->net, held);
	}
	n->tail = NULL;
	n->n_held = 0;
}

static void release(struct neigh *n)
{
	struct net *net = n->net;
	struct neigh **at = bucket_of(net, n->port, &n->ip);
	while (*at != n)
		at = &(*at)->next;
	*at = n->next;
	leave(n);
	twheel_cancel(net->wheel, &n->timer);
	drop_held(n);
	n->state = NEIGH_FREE;
	n->next = net->neigh.free;
	net->neigh.free = n;
	net_forget_paths(net);
}

// The one that has stood in the list for the longest, if that is long enough.
static struct neigh *oldest(const struct net *net, const struct neigh_list *list, uint64_t for_ns)
{
	struct neigh *n = list->first;
	return n && twheel_now(net->wheel) - n->listed_ns >= for_ns ? n : NULL;
}

// Askers of a flood of forged requests are never confirmed, so they push out one another. To be
// sent to takes a neighbor off these lists.
static bool evict(struct net *net)
{
	const struct neigh_table *t = &net->neigh;
	struct neigh *n = oldest(net, &t->heard, 0);
	if (!n)
		n = oldest(net, &t->stale, NEIGH_IN_USE_NS);
	if (!n)
		n = oldest(net, &t->unanswered, NEIGH_ASK_INTERVAL_NS);
	if (!n)
		return false;
	net_count(net, NET_neigh_evicted);
	release(n);
	return true;
}

struct neigh *neigh_get(struct net *net, uint32_t port, const struct ip_addr *ip)
{
	struct neigh *n = neigh_find(net, port, ip);
	if (n)
		return n;
	struct neigh_table *t = &net->neigh;
	if (!t->free && t->n_fresh > 0) {
		n = &t->entries[t->max - t->n_fresh--];
	} else {
		if (!t->free && !evict(net)) {
			net_count(net, NET_neigh_full);
			return NULL;
		}
		n = t->free;
		t->free = n->next;
	}
	struct neigh **bucket = bucket_of(net, port, ip);
	*n = (struct neigh){
		.timer = {.fire = on_timer},
		.net = net,
		.ip = *ip,
		.port = (uint8_t)port,
		.state = NEIGH_INCOMPLETE,
		.next = *bucket,
	};
	eth_fill(&net->ports[port], n->eth, (const uint8_t[ETH_ADDRESS]){0},
		ip_is_v4(ip) ? ETH_TYPE_IP4 : ETH_TYPE_IP6);
	*bucket = n;
	return n;
}

static void send_question(struct neigh *n, bool broadcast)
{
	if (ip_is_v4(&n->ip))
		arp_ask(n->net, n, broadcast);
	else
		nd_ask(n->net, n, broadcast);
}

static void ask(struct neigh *n)
{
	bool broadcast = n->state == NEIGH_INCOMPLETE || n->n_asks >= NEIGH_N_ASKS;
	if (n->state == NEIGH_INCOMPLETE && n->n_asks == 0)
		enter(n, &n->net->neigh.unanswered);
	n->n_asks++;
	send_question(n, broadcast);
	twheel_arm(n->net->wheel, &n->timer, twheel_now(n->net->wheel) + NEIGH_ASK_INTERVAL_NS);
}

void neigh_want(struct neigh *n)
{
	struct neigh_table *t = &n->net->neigh;
	if (n->state != NEIGH_INCOMPLETE || twheel_armed(&n->timer))
		return;
	// Only the first question takes a turn: the others follow at its pace.
	uint64_t now = twheel_now(n->net->wheel);
	uint64_t turn = t->turn_ns > now ? t->turn_ns : now;
	uint64_t last = now + t->max * NEIGH_TURN_NS; // some that took a turn have gone
	if (turn > last)
		turn = last;
	t->turn_ns = turn + NEIGH_TURN_NS;
	uint64_t early = NEIGH_TURN_BURST * NEIGH_TURN_NS;
	if (turn - now < early)
		ask(n);
	else
		twheel_arm(n->net->wheel, &n->timer, turn - early);
}

void neigh_check(struct neigh *n, bool broadcast)
{
	DCHECK(n->kept);
	if (neigh_has_mac(n))
		send_question(n, broadcast);
	else
		neigh_want(n);
}

struct neigh_held *neigh_reserve(struct neigh *n, size_t len)
{
	struct pool *pool = pool_for(n->net, len);
	DCHECK(sizeof(struct neigh_held) + len <= pool->size);
	struct neigh_held *held = n->n_held < NEIGH_MAX_HELD ? pool_take(pool) : NULL;
	if (!held) {
		net_count(n->net, NET_hold_full);
		neigh_want(n);
		return NULL;
	}
	held->next = NULL;
	held->len = len;
	return held;
}

void neigh_hold(struct neigh *n, struct neigh_held *held)
{
	if (n->tail)
		n->tail->next = held;
	else
		n->head = held;
	n->tail = held;
	n->n_held++;
	neigh_want(n);
}

void neigh_probe(struct neigh *n)
{
	DCHECK(n->state == NEIGH_STALE);
	leave(n);
	n->state = NEIGH_PROBE;
	n->n_asks = n->doubted ? NEIGH_N_ASKS : 0;
	n->doubted = false;
	ask(n);
}

static void send_held(struct neigh *n)
{
	struct net *net = n->net;
	const struct net_device *device = &net->ports[n->port].device;
	while (n->head) {
		struct neigh_held *held = n->head;
		n->head = held->next;
		memcpy(held->frame, n->eth, (size_t)2 * ETH_ADDRESS);
		uint8_t *frame = device->reserve(device->ctx, held->len);
		if (frame) {
			memcpy(frame, held->frame, held->len);
			eth_send(net, n->port, held->len);
		} else {
			net_count(net, NET_tx_no_buffer);
		}
		put_held(net, held);
	}
	n->tail = NULL;
	n->n_held = 0;
}

static void become(struct neigh *n, enum neigh_state state, uint64_t for_ns)
{
	struct neigh_table *t = &n->net->neigh;
	n->state = state;
	n->n_asks = 0;
	if (state == NEIGH_STALE)
		enter(n, n->confirmed ? &t->stale : &t->heard);
	else
		leave(n);
	twheel_arm(n->net->wheel, &n->timer, twheel_now(n->net->wheel) + for_ns);
}

void neigh_renew(struct net *net, uint32_t port)
{
	struct neigh_table *t = &net->neigh;
	net->ports[port].settled_ns = twheel_now(net->wheel) + NEIGH_SETTLE_NS;
	for (uint32_t i = 0; i < t->max - t->n_fresh; i++) {
		struct neigh *n = &t->entries[i];
		if (n->state == NEIGH_FREE || n->port != port)
			continue;
		memcpy(n->eth + ETH_ADDRESS, net->ports[port].mac, ETH_ADDRESS);
		if (n->state == NEIGH_REACHABLE || n->state == NEIGH_PROBE)
			become(n, NEIGH_STALE, NEIGH_STALE_NS);
		n->doubted = n->state == NEIGH_STALE;
	}
}

void neigh_tell(struct net *net, uint32_t port, const struct ip_addr *ip, const uint8_t mac[6],
	bool announced)
{
	const struct neigh *n = neigh_find(net, port, ip);
	bool is_known = n && neigh_has_mac(n) && memcmp(n->eth, mac, ETH_ADDRESS) == 0;
	if (net->on_neighbor && (!is_known || announced))
		net->on_neighbor(net->on_neighbor_ctx, ip);
}

bool neigh_may_defend(struct net *net)
{
	uint64_t now = twheel_now(net->wheel);
	if (net->defended_ns && now - net->defended_ns < NEIGH_DEFEND_NS)
		return false;
	net->defended_ns = now;
	return true;
}

// Of a gateway, whether it answers counts for all that is behind it.
static void note_gateway(const struct neigh *n, bool silent)
{
	struct net *net = n->net;
	struct net_port *port = &net->ports[n->port];
	struct net_gateway *g = net_gateway_find(port->gateways, port->n_gateways, &n->ip);
	if (!g || g->silent == silent)
		return;
	g->silent = silent;
	if (silent)
		counter_add(&net->counters[NET_gateways_silent], 1);
	else
		counter_sub(&net->counters[NET_gateways_silent], 1);
}

void neigh_hear(struct neigh *n, const uint8_t mac[6], bool asked)
{
	uint64_t now = twheel_now(n->net->wheel);
	bool asking = n->state == NEIGH_INCOMPLETE || n->state == NEIGH_PROBE;
	note_gateway(n, false);
	if ((asked && asking && n->n_asks > 0) || n->state == NEIGH_INCOMPLETE) {
		memcpy(n->eth, mac, ETH_ADDRESS);
		n->changed_ns = now;
		n->n_heard += asked;
		if (asked) {
			net_count(n->net, ip_is_v4(&n->ip) ? NET_arp_learned : NET_nd_learned);
			n->confirmed = true;
			become(n, NEIGH_REACHABLE, NEIGH_REACHABLE_NS);
		} else {
			become(n, NEIGH_STALE, NEIGH_STALE_NS);
		}
		bool used = n->head != NULL;
		send_held(n);
		if (used && !asked)
			neigh_probe(n);
		return;
	}
	if (memcmp(n->eth, mac, ETH_ADDRESS) == 0) {
		if (asked && n->kept) { // somebody watches it
			n->n_heard++;
			n->confirmed = true;
			n->heard_ns = now;
			become(n, NEIGH_REACHABLE, NEIGH_REACHABLE_NS);
		}
		return;
	}
	// Two hosts that both claim the address must not make us ask at the speed they answer.
	bool settled = now - n->changed_ns >= NEIGH_ASK_INTERVAL_NS;
	if (n->state == NEIGH_PROBE) {
		if (n->n_asks < NEIGH_N_ASKS)
			n->n_asks = NEIGH_N_ASKS; // the next question goes to the whole link
	} else if (settled) {
		n->changed_ns = now;
		leave(n);
		n->state = NEIGH_PROBE;
		n->n_asks = NEIGH_N_ASKS;
		ask(n);
	}
}

// False = no segment.
static bool flow_of(const uint8_t *frame, struct tcp_flow *ret, uint32_t *ret_seq)
{
	const uint8_t *ip = frame + ETH_HEADER, *segment;
	bool v4 = ip[0] >> 4 == 4;
	if (ip[v4 ? 9 : 6] != IP_PROTO_TCP)
		return false;
	if (v4) {
		ret->local = ip_from_v4(load32(ip + 12));
		ret->remote = ip_from_v4(load32(ip + 16));
		segment = ip + IP4_HEADER;
	} else {
		memcpy(ret->local.b, ip + 8, sizeof(ret->local.b));
		memcpy(ret->remote.b, ip + 24, sizeof(ret->remote.b));
		segment = ip + IP6_HEADER;
	}
	ret->local_port = load16(segment);
	ret->remote_port = load16(segment + 2);
	*ret_seq = load32(segment + 4);
	return true;
}

static void tell_unreachable(struct net *net, const uint8_t *frame)
{
	struct tcp_flow flow;
	uint32_t seq;
	if (net->tcp.unreachable && flow_of(frame, &flow, &seq))
		net->tcp.unreachable(net->tcp.ctx, &flow, seq);
}

// What a kept one was found to be last is better than nothing: there may be no other way.
static void rest(struct neigh *n)
{
	drop_held(n);
	n->n_asks = 0;
	if (!neigh_has_mac(n))
		return;
	become(n, NEIGH_STALE, NEIGH_STALE_NS);
	n->doubted = true;
}

// Nobody answered: the frames are dropped and their flows hear of it, here, outside of all calls
// of TCP. The neighbor goes first, since a flow's owner may try again at once.
static void give_up(struct neigh *n)
{
	struct net *net = n->net;
	struct neigh_held *held = n->head;
	n->head = NULL;
	net_count(net, NET_neigh_failed);
	note_gateway(n, true);
	if (n->kept)
		rest(n);
	else
		release(n);
	while (held) {
		struct neigh_held *next = held->next;
		net_count(net, NET_hold_dropped);
		tell_unreachable(net, held->frame);
		put_held(net, held);
		held = next;
	}
}

// n_asks: of so many questions in a row.
static bool is_silent(const struct neigh *n, unsigned n_asks)
{
	return n->n_asks >= n_asks &&
	       twheel_now(n->net->wheel) >= n->net->ports[n->port].settled_ns;
}

static void on_timer(struct twheel_timer *timer)
{
	struct neigh *n = CONTAINER_OF(timer, struct neigh, timer);
	switch ((enum neigh_state)n->state) {
	case NEIGH_REACHABLE:
		become(n, NEIGH_STALE, NEIGH_STALE_NS);
		break;
	case NEIGH_STALE: // nothing was sent there for a long time
		if (!n->kept)
			release(n);
		break;
	case NEIGH_INCOMPLETE:
		if (is_silent(n, NEIGH_N_ASKS))
			give_up(n);
		else
			ask(n);
		break;
	case NEIGH_PROBE:
		if (is_silent(n, 2 * NEIGH_N_ASKS))
			give_up(n);
		else
			ask(n);
		break;
	case NEIGH_FREE:
		break;
	}
}
