// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/ping.h"

#include "dataplane/net/ip6.h"
#include "dataplane/net/packet_out.h"
#include "lb/pick/ping.h"

#define HEADER 8
#define LEN (HEADER + NET_PING_COOKIE)
#define TYPE_ECHO4 8
#define TYPE_ECHO6 128

static const struct net_route *find_route(const struct net *net, const struct lb_ping *p)
{
	for (uint32_t i = 0; i < net->n_routes; i++) {
		const struct net_route *r = &net->routes[i];
		bool by_port = p->port == LB_PING_ANY_PORT || p->port == r->port;
		if (by_port && ip_in_prefix(&p->address, &r->prefix, r->bits))
			return r;
	}
	return NULL;
}

// A link-local address is on the link of the port that is named.
static bool find_way(const struct net *net, struct lb_ping *p)
{
	if (ip_is_link_local(&p->address) && !ip_is_v4(&p->address)) {
		p->out_port = p->port;
		if (p->port >= net->n_ports || !net_port_has_ip6(&net->ports[p->port]))
			return false;
		p->source = net->ports[p->port].link_local;
		p->hop = p->address;
		return !ip_eq(&p->address, &p->source);
	}
	const struct net_route *r = find_route(net, p);
	if (!r || net_is_martian(net, &p->address))
		return false;
	p->out_port = (uint8_t)r->port;
	p->source = net_route_source(net, r, &p->address);
	const struct neigh *chosen = net_route_choose(net, r, &p->address, NULL);
	p->hop = chosen ? chosen->ip : *net_route_hop(r, &p->address);
	return true;
}

static void write_request(const struct net_ping *t, uint16_t number, bool v4, uint8_t *to)
{
	memset(to, 0, HEADER);
	to[0] = v4 ? TYPE_ECHO4 : TYPE_ECHO6;
	store16(to + 4, t->id);
	store16(to + 6, number);
	memcpy(to + HEADER, t->cookie, NET_PING_COOKIE);
}

static void send4(struct net *net, struct neigh *n, uint16_t number)
{
	const struct lb_ping *p = net->ping.to;
	uint8_t *ip = packet_out_reserve(net, n, IP4_HEADER + LEN);
	if (!ip)
		return;
	uint8_t *message = ip + IP4_HEADER;
	write_request(&net->ping, number, true, message);
	uint16_t sum = csum(message, LEN);
	memcpy(message + 2, &sum, sizeof(sum));
	ip4_emit(net, ip_to_v4(&p->source), ip_to_v4(&p->address), IP_PROTO_ICMP, IP_NOT_ECT, LEN);
}

static void send6(struct net *net, struct neigh *n, uint16_t number)
{
	const struct lb_ping *p = net->ping.to;
	uint8_t *message = ip6_reserve(net, n, LEN);
	if (!message)
		return;
	struct ip6_fields fields = {.src = p->source,
		.dst = p->address,
		.protocol = IP_PROTO_ICMP6,
		.hop_limit = IP6_HOP_LIMIT};
	write_request(&net->ping, number, false, message);
	icmp6_fill_checksum(&fields, message, LEN);
	ip6_emit(net, &fields, LEN);
}

// What cannot wait for its neighbor is lost, and seen by its silence.
static void send_next(struct net *net)
{
	struct net_ping *t = &net->ping;
	struct lb_ping *p = t->to;
	uint16_t number = (uint16_t)t->n_sent++;
	struct lb_ping_reply *r = &p->replies[number];
	struct neigh *n = neigh_get(net, p->out_port, &p->hop);
	*r = (struct lb_ping_reply){
		.sent_ns = twheel_now(net->wheel), .result = n ? LB_PING_WAITS : LB_PING_NO_ROOM};
	if (!n)
		return;
	net_count(net, NET_pings_sent);
	if (ip_is_v4(&p->address))
		send4(net, n, number);
	else
		send6(net, n, number);
}

static void end(struct net_ping *t)
{
	struct lb_ping *p = t->to;
	twheel_cancel(t->net->wheel, &t->timer);
	t->to = NULL;
	lb_ping_done(p);
}

// Those that have waited for long enough. True = none waits any more.
static bool settle(struct net *net)
{
	struct lb_ping *p = net->ping.to;
	uint64_t now = twheel_now(net->wheel);
	bool is_all = net->ping.n_sent == p->count;
	for (uint32_t i = 0; i < net->ping.n_sent; i++) {
		struct lb_ping_reply *r = &p->replies[i];
		if (r->result == LB_PING_WAITS && now - r->sent_ns >= LB_PING_PATIENCE_NS) {
			const struct neigh *n = neigh_find(net, p->out_port, &p->hop);
			r->result = n && neigh_has_mac(n) ? LB_PING_TIMEOUT : LB_PING_NO_NEIGHBOR;
		}
		is_all &= r->result != LB_PING_WAITS;
	}
	return is_all;
}

static void fire(struct twheel_timer *timer)
{
	struct net_ping *t = CONTAINER_OF(timer, struct net_ping, timer);
	if (t->n_sent < t->to->count)
		send_next(t->net);
	if (settle(t->net))
		end(t);
	else
		twheel_arm(t->net->wheel, timer, twheel_now(t->net->wheel) + LB_PING_INTERVAL_NS);
}

// The request with this identifier and number that waits; NULL = it is none of ours.
static struct lb_ping_reply *find(struct net *net, const struct ip_addr *dst, const uint8_t *rest)
{
	const struct net_ping *t = &net->ping;
	uint32_t number = load16(rest + 2);
	if (!t->to || load16(rest) != t->id || number >= t->n_sent || !ip_eq(dst, &t->to->address))
		return NULL;
	struct lb_ping_reply *r = &t->to->replies[number];
	return r->result == LB_PING_WAITS ? r : NULL;
}

static bool on_reply(struct net *net, const struct ip_addr *from, const uint8_t *rest, size_t len)
{
	struct lb_ping_reply *r = len == LEN - 4 ? find(net, from, rest) : NULL;
	if (!r || memcmp(rest + 4, net->ping.cookie, NET_PING_COOKIE) != 0)
		return false;
	net_count(net, NET_pings_answered);
	r->result = LB_PING_ANSWERED;
	r->rtt_ns = twheel_now(net->wheel) - r->sent_ns;
	return true;
}

// Routers quote the first eight bytes of what IP carries at least (RFC 792).
static bool on_error(
	struct net *net, const struct net_ping_error *e, const uint8_t *rest, size_t len)
{
	struct lb_ping_reply *r = len >= 4 ? find(net, &e->dst, rest) : NULL;
	if (!r)
		return false;
	r->result = e->expired ? LB_PING_EXPIRED : LB_PING_UNREACHABLE;
	r->code = e->code;
	r->from = e->from;
	return true;
}

void net_ping_begin(struct net *net, struct lb_ping *p)
{
	static const struct net_ping_events events = {on_reply, on_error};
	struct net_ping *t = &net->ping;
	DCHECK(!t->to && p->count >= 1 && p->count <= LB_PING_MOST);
	uint64_t cookie = rand_u64(&net->rand);
	*t = (struct net_ping){.timer.fire = fire,
		.events = &events,
		.net = net,
		.to = p,
		.id = (uint16_t)rand_u64(&net->rand)};
	memcpy(t->cookie, &cookie, sizeof(t->cookie));
	p->source = p->hop = (struct ip_addr){0};
	if (find_way(net, p)) {
		fire(&t->timer);
		return;
	}
	p->source = p->hop = (struct ip_addr){0};
	for (uint32_t i = 0; i < p->count; i++)
		p->replies[i] = (struct lb_ping_reply){.result = LB_PING_NO_ROUTE};
	end(t);
}

void net_ping_fini(struct net *net)
{
	if (net->ping.to)
		end(&net->ping);
}
