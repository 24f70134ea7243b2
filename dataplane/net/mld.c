// SPDX-License-Identifier: Apache-2.0
// Multicast listener discovery of a host (RFC 3810, and RFC 2710 where a router asks so): switches
// that snoop bring neighbor discovery's questions only to who has reported the groups of its
// addresses. Reports name them all, when the addresses are announced and when a router asks.
#include "dataplane/net/ip6.h"

#define MESSAGE 8 // of a report, without records
#define RECORD 20
#define V1_MESSAGE 24 // of a query or report, with its group
#define V2_QUERY 28
#define TYPE_V1_REPORT 131
#define TYPE_REPORT 143
#define MODE_IS_EXCLUDE 2 // listens to all sources
#define CHANGE_TO_EXCLUDE 4
#define ROUTER_ALERT 8 // the hop-by-hop header with that option (RFC 2711)
#define HOP_LIMIT 1
#define REPEAT_NS NS_PER_SECOND // RFC 3810 9.11
#define N_REPORTS 2 // of a change: robustness, 9.1
#define LEAST_DELAY_NS (10 * NS_PER_MS) // whoever asks, and how often
#define MAX_GROUPS (NET_MAX_ADDRESSES + 1)

// The groups of a port's addresses, each once.
static uint32_t list_groups(const struct net_port *port, struct ip_addr groups[MAX_GROUPS])
{
	uint32_t n = 0;
	groups[n++] = nd_group_of(&port->link_local);
	for (uint32_t i = 0; i < port->n_addresses; i++) {
		if (ip_is_v4(&port->addresses[i].ip))
			continue;
		uint32_t at = 0;
		groups[n] = nd_group_of(&port->addresses[i].ip);
		while (!ip_eq(&groups[at], &groups[n]))
			at++;
		n += at == n;
	}
	return n;
}

// The checksum of message is still zero.
static void send(struct net *net, const struct net_port *port, const struct ip_addr *dst,
	const uint8_t *message, size_t len)
{
	static const uint8_t alert[ROUTER_ALERT] = {IP_PROTO_ICMP6, 0, 5, 2, 0, 0, 1, 0};
	struct ip6_fields f = {.src = port->link_local, .dst = *dst, .hop_limit = HOP_LIMIT};
	size_t at = ETH_HEADER + IP6_HEADER + ROUTER_ALERT;
	uint8_t mac[ETH_ADDRESS];
	uint8_t *frame = port->device.reserve(port->device.ctx, at + len);
	if (!frame) {
		net_count(net, NET_tx_no_buffer);
		return;
	}
	nd_mac_of_group(dst, mac);
	eth_fill(port, frame, mac, ETH_TYPE_IP6);
	ip6_write_header(frame + ETH_HEADER, &f, ROUTER_ALERT + len); // next: hop-by-hop, 0
	memcpy(frame + ETH_HEADER + IP6_HEADER, alert, sizeof(alert));
	memcpy(frame + at, message, len);
	icmp6_fill_checksum(&f, frame + at, len);
	eth_send(net, (uint32_t)(port - net->ports), at + len);
	net_count(net, NET_mld_reported);
}

// The groups of the next few VIPs that are served, which may come twice: from place *at on.
static uint32_t list_vip_groups(const struct net *net, const struct net_port *port, uint32_t *at,
	struct ip_addr groups[MAX_GROUPS])
{
	const struct net_vips *v = &net->vips;
	uint32_t n = 0, index = (uint32_t)(port - net->ports);
	for (; n < MAX_GROUPS && *at < v->n_places; (*at)++) {
		const struct ip_addr *ip = &v->served[*at];
		if (!ip_is_v4(ip) && net_is_own_of_port(net, ip, index))
			groups[n++] = nd_group_of(ip);
	}
	return n;
}

static void report_some(struct net *net, const struct net_port *port, uint8_t kind,
	const struct ip_addr *groups, uint32_t n)
{
	static const struct ip_addr routers = {{0xff, 0x02, [15] = 0x16}}; // RFC 3810 5.2.14
	uint8_t message[MESSAGE + MAX_GROUPS * RECORD] = {[0] = TYPE_REPORT, [7] = (uint8_t)n};
	for (uint32_t i = 0; i < n; i++) {
		uint8_t *record = message + MESSAGE + i * RECORD;
		record[0] = kind;
		memcpy(record + 4, groups[i].b, sizeof(groups[i].b));
	}
	send(net, port, &routers, message, MESSAGE + n * RECORD);
}

static void report(struct net *net, const struct net_port *port, uint8_t kind)
{
	struct ip_addr groups[MAX_GROUPS];
	uint32_t at = 0, n = list_groups(port, groups);
	do
		report_some(net, port, kind, groups, n);
	while ((n = list_vip_groups(net, port, &at, groups)));
}

// RFC 2710: each group in a message of its own, to the group.
static void report_v1(struct net *net, const struct net_port *port)
{
	struct ip_addr groups[MAX_GROUPS];
	uint32_t at = 0, n = list_groups(port, groups);
	do {
		for (uint32_t i = 0; i < n; i++) {
			uint8_t message[V1_MESSAGE] = {[0] = TYPE_V1_REPORT};
			memcpy(message + 8, groups[i].b, sizeof(groups[i].b));
			send(net, port, &groups[i], message, sizeof(message));
		}
	} while ((n = list_vip_groups(net, port, &at, groups)));
}

static void fire(struct twheel_timer *timer)
{
	struct net_mld *m = CONTAINER_OF(timer, struct net_mld, timer);
	struct net_port *port = CONTAINER_OF(m, struct net_port, mld);
	if (m->asked_v1)
		report_v1(m->net, port);
	else
		report(m->net, port, m->n_left ? CHANGE_TO_EXCLUDE : MODE_IS_EXCLUDE);
	m->asked_v1 = false;
	if (m->n_left && --m->n_left)
		twheel_arm(m->net->wheel, timer, twheel_now(m->net->wheel) + REPEAT_NS);
}

void mld_init(struct net *net, struct net_port *port)
{
	port->mld = (struct net_mld){.net = net, .timer = {.fire = fire}};
}

void mld_fini(struct net *net)
{
	for (uint32_t i = 0; i < net->n_ports; i++)
		twheel_cancel(net->wheel, &net->ports[i].mld.timer);
}

void mld_join(struct net_port *port)
{
	twheel_cancel(port->mld.net->wheel, &port->mld.timer);
	port->mld.n_left = N_REPORTS;
	fire(&port->mld.timer);
}

// RFC 3810 5.1.3; a query of 24 bytes is of the first version, which has milliseconds there.
static uint64_t most_delay_ns(const struct ip6_packet *p)
{
	uint64_t code = load16(p->payload + 4);
	if (p->len > V1_MESSAGE && code >= 0x8000)
		code = ((code & 0xfff) | 0x1000) << ((code >> 12 & 7) + 3);
	return code * NS_PER_MS;
}

static bool is_for_us(const struct net_port *port, const struct ip6_packet *p)
{
	struct ip_addr asked, groups[MAX_GROUPS];
	memcpy(asked.b, p->payload + 8, sizeof(asked.b));
	if (ip_is_none(&asked))
		return true;
	uint32_t at = 0, n = list_groups(port, groups);
	do {
		for (uint32_t i = 0; i < n; i++)
			if (ip_eq(&asked, &groups[i]))
				return true;
	} while ((n = list_vip_groups(port->mld.net, port, &at, groups)));
	return false;
}

void mld_query(struct net *net, const struct ip6_packet *p)
{
	struct net_port *port = &net->ports[p->port];
	// RFC 3810 6.2, but for the router alert: who forges a query can forge that.
	bool sound = p->len == V1_MESSAGE || p->len >= V2_QUERY;
	if (!sound || p->payload[1] != 0 || p->hop_limit != HOP_LIMIT ||
		!ip_is_link_local(&p->src)) {
		net_drop(net, NET_mld_malformed);
		return;
	}
	if (!is_for_us(port, p))
		return;
	net_count(net, NET_mld_asked);
	uint64_t delay = rand_u64(&net->rand) % (most_delay_ns(p) + 1);
	uint64_t at = twheel_now(net->wheel) + (delay > LEAST_DELAY_NS ? delay : LEAST_DELAY_NS);
	port->mld.asked_v1 = p->len == V1_MESSAGE;
	if (!twheel_armed(&port->mld.timer) || at < twheel_expires_ns(&port->mld.timer))
		twheel_arm(net->wheel, &port->mld.timer, at);
}
