// SPDX-License-Identifier: Apache-2.0
// What a tunnel's packet names another host for, and is of no connection here: it goes on, or its
// sender hears why it cannot.
#include "dataplane/net/csum.h"
#include "tests/support/check.h"
#include "tests/unit/net/world_tunnel.h"

#include <string.h>

// A packet of GLB's with two hosts to go on to.
static struct packet chained(uint8_t next, uint32_t hop, uint8_t flags)
{
	uint8_t gue[16] = {3, 4, 0, 0, 0, 0, next, 2};
	store32(gue + 8 + 4 * (size_t)(next & 1), hop);
	struct packet inner = make_segment(CLIENT, VIP, flags);
	return in_gue(TIER, gue, sizeof(gue), &inner);
}

// FL-38
static void a_segment_that_nobody_knows_goes_to_the_next_hop(void **state)
{
	struct world *w = *state;
	struct packet p = chained(0, HOP, ACK);
	world_resolve(w, 0, HOP, peer_mac);
	assert_taken(w, &p, CLIENT, VIP); // while there is a connection
	w->knows_none = true;
	struct packet syn = chained(0, HOP, SYN);
	assert_taken(w, &syn, CLIENT, VIP);
	world_packet_in(w, &p); // asks for the neighbor, whom nobody was sent to before
	world_resolve(w, 0, HOP, peer_mac);
	const uint8_t *f = w->sent[w->n_sent - 1].bytes;
	assert_int_equal(w->sent[w->n_sent - 1].len, 14 + p.len);
	assert_int_equal(load32(f + 26), IP(10, 0, 0, 1));
	assert_int_equal(load32(f + 30), HOP);
	assert_int_equal(csum(f + 14, 20), 0);
	p.bytes[20 + 8 + 6]++;
	assert_memory_equal(f + 34, p.bytes + 20, p.len - 20);
	assert_int_equal(world_count(w, "tunnel_relayed"), 1);
	assert_int_equal(w->n_segments, 2);
}

// FL-38
static void hops_that_are_none_leave_the_segment_here(void **state)
{
	struct world *w = *state;
	w->knows_none = true;
	struct packet p = chained(2, HOP, ACK); // none is left
	assert_taken(w, &p, CLIENT, VIP);
	p = chained(1, IP(10, 0, 0, 1), ACK); // it is us
	assert_taken(w, &p, CLIENT, VIP);
	p = chained(0, IP(10, 0, 0, 64), ACK); // no configured one
	assert_taken(w, &p, CLIENT, VIP);
	assert_int_equal(world_count(w, "tunnel_hop_refused"), 2);
	p = chained(0, HOP, ACK);
	p.bytes[20 + 8 + 5] = 1; // another type of private data
	assert_taken(w, &p, CLIENT, VIP);
	p = chained(0, HOP, ACK);
	p.bytes[20 + 8 + 7] = 1; // and not as long as it says
	assert_taken(w, &p, CLIENT, VIP);
	world_tunnels.list[1].n_hops = 0;
	p = chained(0, HOP, ACK);
	assert_taken(w, &p, CLIENT, VIP);
	assert_int_equal(world_count(w, "tunnel_relayed"), 0);
	assert_int_equal(w->n_sent, 0);
}

#define CHAINED_OVERHEAD (20 + 8 + 16)

// The same of so many bytes in all.
static struct packet chained_long(uint32_t hop, bool v4, size_t len)
{
	uint8_t gue[16] = {3, v4 ? 4 : 41, 0, 0, 0, 0, 0, 2}, tcp[1500] = {0x10, 0, 0, 80};
	tcp[12] = 0x50;
	tcp[13] = ACK;
	store32(gue + 8, hop);
	len -= CHAINED_OVERHEAD + (v4 ? 20 : 40);
	struct packet inner = make_packet(v4 ? CLIENT : CLIENT6, v4 ? VIP : VIP6, 6, tcp, len);
	return in_gue(TIER, gue, sizeof(gue), &inner);
}

static void assert_goes_on(struct world *w, const struct packet *p)
{
	uint64_t before = world_count(w, "tunnel_relayed");
	world_packet_in(w, p);
	assert_int_equal(world_count(w, "tunnel_relayed"), before + 1);
}

static void assert_goes_on_up_to(struct world *w, uint32_t hop, size_t mtu)
{
	struct packet p = chained_long(hop, true, mtu);
	assert_goes_on(w, &p);
	p = chained_long(hop, true, mtu + 1);
	assert_dropped(w, &p, "tunnel_hop_too_long");
}

// FL-140
static void a_segment_too_long_for_the_link_to_the_next_hop_is_lost_and_its_sender_told(
	void **state)
{
	struct world *w = *state;
	w->knows_none = true;
	struct packet p = chained_long(HOP_OF_NARROW_LINK, true, 1401);
	assert_dropped(w, &p, "tunnel_hop_too_long");
	world_resolve(w, 0, IP(10, 0, 0, 254), peer_mac);
	const struct world_frame *sent = &w->sent[w->n_sent - 1];
	const uint8_t *message = sent->bytes + 34;
	assert_int_equal(sent->len, 14 + 576);
	assert_int_equal(sent->bytes[23], 1);
	assert_int_equal(load32(sent->bytes + 26), IP(10, 9, 0, 7)); // the VIP
	assert_int_equal(load32(sent->bytes + 30), IP(192, 0, 2, 1));
	assert_int_equal(load16(message), 0x0304);
	assert_int_equal(load32(message + 4), 1400 - CHAINED_OVERHEAD);
	assert_int_equal(csum(message, 556), 0);
	assert_memory_equal(message + 8, p.bytes + CHAINED_OVERHEAD, 548);
	p = chained_long(HOP_OF_NARROW_LINK, true, 1400);
	assert_goes_on(w, &p);
	p = chained_long(HOP, true, 1401);
	assert_goes_on(w, &p);
	assert_int_equal(world_count(w, "tunnel_hop_told"), 1);
}

// FL-140
static void senders_of_ipv6_are_told_too(void **state)
{
	struct world *w = *state;
	w->knows_none = true;
	struct packet p = chained_long(HOP_OF_NARROW_LINK, false, 1401);
	assert_dropped(w, &p, "tunnel_hop_too_long");
	world6_resolve(w, 0, GATEWAY6, peer_mac);
	const struct world_frame *sent = &w->sent[w->n_sent - 1];
	uint8_t right[WORLD_FRAME_MAX];
	struct ip_addr addresses[2] = {ip6_of(VIP6), ip6_of(CLIENT6)};
	assert_int_equal(sent->len, 14 + 1280);
	assert_memory_equal(sent->bytes + 22, addresses, sizeof(addresses));
	assert_int_equal(sent->bytes[20], 58);
	assert_int_equal(load16(sent->bytes + 54), 0x0200);
	assert_int_equal(load32(sent->bytes + 58), 1400 - CHAINED_OVERHEAD);
	assert_memory_equal(sent->bytes + 62, p.bytes + CHAINED_OVERHEAD, 1232);
	memcpy(right, sent->bytes, sent->len);
	fix_icmp6_checksum(right);
	assert_memory_equal(sent->bytes, right, sent->len);
	assert_int_equal(world_count(w, "tunnel_hop_told"), 1);
}

static void seal_icmp(struct packet *p)
{
	memset(p->bytes + 22, 0, 2);
	uint16_t sum = csum(p->bytes + 20, p->len - 20);
	memcpy(p->bytes + 22, &sum, 2);
}

// FL-140
static void senders_are_told_within_a_rate_that_echoes_have_no_part_in_and_martians_are_not(
	void **state)
{
	struct world *w = *state;
	w->knows_none = true;
	uint8_t message[8] = {8};
	struct packet echo = make_packet(CLIENT, OURS, 1, message, sizeof(message));
	seal_icmp(&echo);
	for (int i = 0; i < 150; i++)
		world_packet_in(w, &echo);
	assert_int_equal(world_count(w, "icmp_echo_limited"), 50);
	struct packet p = chained_long(HOP_OF_NARROW_LINK, true, 1401), forged = p;
	assert_dropped(w, &p, "tunnel_hop_too_long");
	world_resolve(w, 0, IP(10, 0, 0, 254), peer_mac);
	store32(forged.bytes + CHAINED_OVERHEAD + 12, IP(127, 0, 0, 1));
	assert_dropped(w, &forged, "tunnel_hop_too_long");
	assert_int_equal(world_count(w, "tunnel_hop_told"), 1);
	for (int i = 0; i < 150; i++)
		assert_dropped(w, &p, "tunnel_hop_too_long");
	assert_int_equal(world_count(w, "tunnel_hop_told"), 100);
	world_advance(w, NS_PER_SECOND);
	assert_dropped(w, &p, "tunnel_hop_too_long");
	assert_int_equal(world_count(w, "tunnel_hop_told"), 101);
}

// What a router says of a packet of so many bytes that went on to that host.
static struct packet of_a_router(uint8_t type, uint8_t code, uint16_t mtu, uint32_t hop, size_t len)
{
	uint8_t message[36] = {type, code, [6] = (uint8_t)(mtu >> 8), (uint8_t)mtu};
	uint8_t *quoted = message + 8;
	quoted[0] = 0x45;
	store16(quoted + 2, (uint16_t)len);
	store16(quoted + 6, 0x4000);
	quoted[8] = 61;
	quoted[9] = 17;
	store32(quoted + 12, IP(10, 0, 0, 1));
	store32(quoted + 16, hop);
	store16(quoted + 20, 0x1234);
	store16(quoted + 22, GUE_PORT);
	store16(quoted + 24, (uint16_t)(len - 20));
	return make_packet(GATEWAY, OURS, 1, message, sizeof(message));
}

static void router_says_mtu(struct world *w, uint16_t mtu, uint32_t hop)
{
	struct packet p = of_a_router(3, 4, mtu, hop, 1400);
	seal_icmp(&p);
	world_packet_in(w, &p);
}

// FL-141
static void what_a_router_says_of_the_way_to_a_hop_holds_for_ten_minutes(void **state)
{
	struct world *w = *state;
	w->knows_none = true;
	router_says_mtu(w, 1000, HOP);
	assert_goes_on_up_to(w, HOP, 1000);
	struct packet p = chained_long(HOP + 1, true, 1400);
	assert_goes_on(w, &p); // another host
	router_says_mtu(w, 1200, HOP); // no more than before
	assert_goes_on_up_to(w, HOP, 1000);
	assert_int_equal(world_count(w, "tunnel_hop_mtu"), 2);
	assert_int_equal(world_count(w, "icmp_forged"), 0);
	world_advance(w, 599 * NS_PER_SECOND);
	assert_goes_on_up_to(w, HOP, 1000);
	world_advance(w, 2 * NS_PER_SECOND);
	p = chained_long(HOP, true, 1400);
	assert_goes_on(w, &p);
	assert_int_equal(w->n_too_big, 0);
}

// FL-142: one forged message must not take the way from those who cannot send less.
static void nothing_that_a_router_says_stops_what_its_sender_makes_no_shorter(void **state)
{
	struct world *w = *state;
	w->knows_none = true;
	router_says_mtu(w, 0, HOP); // of before RFC 1191
	router_says_mtu(w, 68, HOP);
	assert_goes_on_up_to(w, HOP, CHAINED_OVERHEAD + 552);
	struct packet p = chained_long(HOP, false, CHAINED_OVERHEAD + 1280);
	assert_goes_on(w, &p);
	p = chained_long(HOP, false, CHAINED_OVERHEAD + 1281);
	assert_dropped(w, &p, "tunnel_hop_too_long");
	world6_resolve(w, 0, GATEWAY6, peer_mac);
	assert_int_equal(load32(w->sent[w->n_sent - 1].bytes + 58), 1280);
}

// FL-141: the one that got the message has counted it.
static void the_other_workers_hear_of_it(void **state)
{
	struct world *w = *state;
	w->knows_none = true;
	uint8_t f[128] = {0};
	struct packet p = of_a_router(3, 4, 1000, HOP, 1400), full = chained_long(HOP, true, 1400);
	memcpy(f, world_mac[0], 6);
	memcpy(f + 6, peer_mac, 6);
	store16(f + 12, 0x0800);
	memcpy(f + 14, p.bytes, p.len);
	net_hear(w->net, 0, f, 14 + p.len); // its checksum is wrong
	assert_goes_on(w, &full);
	seal_icmp(&p);
	memcpy(f + 14, p.bytes, p.len);
	for (size_t len = 0; len < 14 + p.len; len++)
		net_hear(w->net, 0, f, len);
	assert_goes_on(w, &full);
	net_hear(w->net, 0, f, 14 + p.len);
	assert_goes_on_up_to(w, HOP, 1000);
	assert_int_equal(world_count(w, "tunnel_hop_mtu"), 0);
}

// FL-141: what has been sent is what it may have been about; TCP hears nothing.
static void a_hop_that_is_not_reached_is_counted(void **state)
{
	struct world *w = *state;
	static const uint8_t types[][2] = {{3, 0}, {3, 1}, {3, 2}, {3, 3}, {3, 13}, {11, 0}};
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct packet p = of_a_router(types[i][0], types[i][1], 0, HOP, 1400);
		seal_icmp(&p);
		world_packet_in(w, &p);
		assert_int_equal(world_count(w, "tunnel_hop_unreachable"), i + 1);
	}
	assert_int_equal(world_count(w, "icmp_forged") + world_count(w, "icmp_ignored"), 0);
	assert_int_equal(w->n_unreachable, 0);
}

// TH-42, FL-141
static void routers_are_believed_of_what_can_have_gone_on_alone(void **state)
{
	struct world *w = *state;
	static const struct {
		size_t at; // in the quoted packet
		uint16_t value;
	} bends[] = {
		{0, 0x6500}, // version
		{0, 0x4600}, // options
		{2, 1000}, // no longer than the MTU
		{6, 0x2000}, // a fragment
		{6, 1}, {8, 61 << 8 | 4}, // another protocol
		{14, 2}, // not from whom the message is for
		{18, 64}, // to no configured host
		{22, GUE_PORT + 1}, {24, 1379}, // UDP that does not fill its packet
		{26, 0x1234}, // with a checksum
	};
	for (size_t i = 0; i < sizeof(bends) / sizeof(bends[0]); i++) {
		struct packet p = of_a_router(3, 4, 1000, HOP, 1400);
		store16(p.bytes + 28 + bends[i].at, bends[i].value);
		seal_icmp(&p);
		assert_dropped(w, &p, "icmp_forged");
	}
	for (size_t len = 28; len < 56; len++) { // quotes less than the headers
		struct packet whole = of_a_router(3, 4, 1000, HOP, 1400);
		struct packet p = make_packet(GATEWAY, OURS, 1, whole.bytes + 20, len - 20);
		seal_icmp(&p);
		assert_dropped(w, &p, "icmp_forged");
	}
	struct packet p = of_a_router(3, 4, 1000, HOP, 1400); // as any client can send it to a VIP
	store32(p.bytes + 28 + 12, IP(10, 9, 0, 7));
	seal_icmp(&p);
	p = make_packet(CLIENT, VIP, 1, p.bytes + 20, p.len - 20);
	p = in_ip(TIER, &p);
	assert_dropped(w, &p, "icmp_forged");
	assert_int_equal(world_count(w, "tunnel_hop_mtu"), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, world_tunnel_setup, world_teardown)

RUN_SUITE("net/relay", CASE(a_segment_that_nobody_knows_goes_to_the_next_hop),
	CASE(hops_that_are_none_leave_the_segment_here),
	CASE(a_segment_too_long_for_the_link_to_the_next_hop_is_lost_and_its_sender_told),
	CASE(senders_of_ipv6_are_told_too),
	CASE(senders_are_told_within_a_rate_that_echoes_have_no_part_in_and_martians_are_not),
	CASE(what_a_router_says_of_the_way_to_a_hop_holds_for_ten_minutes),
	CASE(nothing_that_a_router_says_stops_what_its_sender_makes_no_shorter),
	CASE(the_other_workers_hear_of_it), CASE(a_hop_that_is_not_reached_is_counted),
	CASE(routers_are_believed_of_what_can_have_gone_on_alone))
