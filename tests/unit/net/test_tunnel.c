// SPDX-License-Identifier: Apache-2.0
// What an L4 tier brings within its packets, taken out or dropped by its cause.
#include "dataplane/net/csum.h"
#include "dataplane/net/tunnel_list.h"
#include "tests/support/check.h"
#include "tests/unit/net/world.h"
#include "tests/unit/net/world6.h"

#include <stdlib.h>
#include <string.h>

#define TIER "10.0.5.7"
#define TIER6 "fd05::7"
#define STRANGER "10.0.6.7"
#define OURS "10.0.0.1"
#define VIP "10.9.0.7"
#define VIP6 "2001:db8:9::7"
#define CLIENT "192.0.2.1"
#define CLIENT6 "2001:db8:77::1"
#define HOP IP(10, 0, 0, 40)
#define GUE_PORT 6080
#define ACK 0x10
#define SYN 0x02

static struct ip_prefix prefix(const char *text, uint8_t len)
{
	struct ip_addr ip = ip6_of(text);
	return (struct ip_prefix){ip, (uint8_t)(len + (ip_is_v4(&ip) ? IP_V4_BITS : 0))};
}

static struct net_tunnels tunnels;

static int setup(void **state)
{
	const struct net_vip list[] = {
		{prefix("10.9.0.0", 24), true}, {prefix("2001:db8:9::", 64), true}};
	world6_setup(state);
	struct world *w = *state;
	assert_int_equal(net_set_vips(w->net, list, 2, 1), 0);
	tunnels = (struct net_tunnels){.n = 2,
		.list = {{.kind = NET_TUNNEL_IPIP,
				 .from = {prefix("10.0.5.0", 24), prefix("fd05::", 64)},
				 .n_from = 2},
			{.kind = NET_TUNNEL_GUE,
				.port = GUE_PORT,
				.from = {prefix("10.0.5.0", 24), prefix("fd05::", 64)},
				.n_from = 2,
				.hops = {prefix("10.0.0.32", 27)},
				.n_hops = 1}}};
	net_set_tunnels(w->net, &tunnels);
	return 0;
}

// A packet, without a frame around it.
struct packet {
	uint8_t bytes[512];
	size_t len;
};

static bool is_ip4(const struct packet *p)
{
	return p->bytes[0] >> 4 == 4;
}

static struct packet packet(
	const char *src, const char *dst, uint8_t protocol, const void *payload, size_t len)
{
	uint8_t f[1024];
	struct packet p;
	struct ip_addr from = ip6_of(src), to = ip6_of(dst);
	size_t n = ip_is_v4(&from)
	                   ? make_ip(f, ip_to_v4(&from), ip_to_v4(&to), protocol, payload, len)
	                   : make_ip6(f, src, dst, protocol, payload, len);
	p.len = n - 14;
	memcpy(p.bytes, f + 14, p.len);
	return p;
}

static struct packet segment(const char *src, const char *dst, uint8_t flags)
{
	const uint8_t tcp[24] = {0x10, 0, 0, 80, [12] = 0x50, flags, [20] = 'd', 'a', 't', 'a'};
	return packet(src, dst, 6, tcp, sizeof(tcp));
}

static struct packet client_segment(void)
{
	return segment(CLIENT, VIP, ACK);
}

static struct packet client_segment6(void)
{
	return segment(CLIENT6, VIP6, ACK);
}

static void fix(struct packet *p)
{
	uint8_t f[1024];
	memcpy(f + 14, p->bytes, p->len);
	fix_ip_checksum(f);
	memcpy(p->bytes, f + 14, p->len);
}

static void in(struct world *w, const struct packet *p)
{
	uint8_t f[1024] = {0};
	memcpy(f, world_mac[0], 6);
	memcpy(f + 6, peer_mac, 6);
	store16(f + 12, is_ip4(p) ? 0x0800 : 0x86dd);
	memcpy(f + 14, p->bytes, p->len);
	world_in(w, 0, f, 14 + p->len);
}

static struct packet in_ip(const char *src, const struct packet *inner)
{
	return packet(src, strchr(src, ':') ? OURS6 : OURS, is_ip4(inner) ? 4 : 41, inner->bytes,
		inner->len);
}

// gue: the header and its optional part, n bytes; none for variant 1.
static struct packet in_gue(
	const char *src, const uint8_t *gue, size_t n, const struct packet *inner)
{
	uint8_t udp[512] = {0x12, 0x34, GUE_PORT >> 8, GUE_PORT & 0xff};
	size_t len = 8 + n + inner->len;
	store16(udp + 4, (uint16_t)len);
	if (n)
		memcpy(udp + 8, gue, n);
	memcpy(udp + 8 + n, inner->bytes, inner->len);
	return packet(src, strchr(src, ':') ? OURS6 : OURS, 17, udp, len);
}

static void seal_udp(struct packet *p)
{
	size_t header = is_ip4(p) ? 20 : 40, len = p->len - header;
	uint8_t rest[4] = {0, 17, (uint8_t)(len >> 8), (uint8_t)len};
	uint64_t sum = csum_add(0, p->bytes + header - (is_ip4(p) ? 8 : 32), is_ip4(p) ? 8 : 32);
	uint16_t field =
		csum_fold(csum_add(csum_add(sum, rest, sizeof(rest)), p->bytes + header, len));
	memcpy(p->bytes + header + 6, &field, sizeof(field));
}

// Of a packet that is taken: the segment that TCP hears is that of the packet within.
static void assert_taken(struct world *w, const struct packet *p, const char *src, const char *dst)
{
	struct ip_addr remote = ip6_of(src), local = ip6_of(dst);
	uint32_t before = w->n_segments;
	uint64_t taken = world_count(w, "tunnel_packets");
	in(w, p);
	assert_int_equal(w->n_segments, before + 1);
	assert_int_equal(world_count(w, "tunnel_packets"), taken + 1);
	assert_true(ip_eq(&w->segment_remote, &remote) && ip_eq(&w->segment_local, &local));
	assert_int_equal(w->segment_len, 24);
	assert_memory_equal(w->segment + 20, "data", 4);
	assert_int_equal(w->overhead, 0); // told to be over
}

static void assert_dropped(struct world *w, const struct packet *p, const char *counter)
{
	uint64_t before = world_count(w, counter);
	uint32_t heard = w->n_segments;
	in(w, p);
	if (world_count(w, counter) != before + 1)
		fail_msg("not counted as %s", counter);
	assert_int_equal(w->n_segments, heard);
	assert_string_equal(net_counters(w->net).names[net_take_drop(w->net)], counter);
}

// FL-30, FL-34
static void either_family_is_taken_out_of_either(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *tier;
		bool v4;
		uint32_t overhead;
	} rows[] = {{TIER, true, 20}, {TIER, false, 20}, {TIER6, true, 40}, {TIER6, false, 40}};
	for (size_t i = 0; i < 4; i++) {
		struct packet inner = rows[i].v4 ? client_segment() : client_segment6();
		struct packet outer = in_ip(rows[i].tier, &inner);
		assert_taken(w, &outer, rows[i].v4 ? CLIENT : CLIENT6, rows[i].v4 ? VIP : VIP6);
		assert_int_equal(w->segment_overhead, rows[i].overhead);
	}
	struct packet plain = client_segment();
	in(w, &plain);
	assert_int_equal(w->n_segments, 5);
	assert_int_equal(w->segment_overhead, 0);
}

// FL-39: what Linux's ip6tnl puts in front, a limit of encapsulation (RFC 2473 4.1.1), is passed
// over and counts as overhead.
static void an_outer_packet_may_have_extension_headers(void **state)
{
	struct packet inner = client_segment();
	uint8_t payload[512] = {4, 0, 4, 1, 4, 1, 0};
	memcpy(payload + 8, inner.bytes, inner.len);
	struct packet outer = packet(TIER6, OURS6, 60, payload, 8 + inner.len);
	assert_taken(*state, &outer, CLIENT, VIP);
	assert_int_equal(((struct world *)*state)->segment_overhead, 48);
}

// FL-30, FL-39
static void gue_is_taken_in_both_variants(void **state)
{
	struct world *w = *state;
	static const uint8_t plain[] = {0, 4, 0, 0}, six[] = {0, 41, 0, 0};
	static const uint8_t private[] = {2, 4, 0, 0, 0xff, 1, 2, 3, 4, 5, 6, 7};
	struct packet inner = client_segment(), inner6 = client_segment6();
	const struct packet rows[] = {in_gue(TIER, plain, 4, &inner),
		in_gue(TIER6, plain, 4, &inner), in_gue(TIER, private, 12, &inner),
		in_gue(TIER, NULL, 0, &inner)};
	static const uint32_t overheads[] = {32, 52, 40, 28};
	for (size_t i = 0; i < 4; i++) {
		struct packet p = rows[i];
		assert_taken(w, &p, CLIENT, VIP);
		assert_int_equal(w->segment_overhead, overheads[i]);
		seal_udp(&p);
		assert_taken(w, &p, CLIENT, VIP);
		p.bytes[p.len - 1] ^= 1;
		assert_dropped(w, &p, "tunnel_checksum");
	}
	struct packet p = in_gue(TIER, six, 4, &inner6);
	assert_taken(w, &p, CLIENT6, VIP6);
	p = in_gue(TIER6, NULL, 0, &inner6);
	assert_taken(w, &p, CLIENT6, VIP6);
}

// FL-30
static void a_source_that_is_not_configured_is_forged(void **state)
{
	struct world *w = *state;
	static const uint8_t plain[] = {0, 4, 0, 0};
	struct packet inner = client_segment(), p = in_ip(STRANGER, &inner);
	assert_dropped(w, &p, "tunnel_forged");
	p = in_ip("fd06::7", &inner);
	assert_dropped(w, &p, "tunnel_forged");
	p = in_gue(STRANGER, plain, 4, &inner);
	assert_dropped(w, &p, "tunnel_forged");
	store16(p.bytes + 22, GUE_PORT + 1); // no tunnel's port
	assert_dropped(w, &p, "ip_unknown_protocol");
	p = in_gue(TIER6, plain, 4, &inner);
	store16(p.bytes + 42, GUE_PORT + 1);
	assert_dropped(w, &p, "ip6_unknown_protocol");
	tunnels.n = 1; // no GUE any more
	p = in_gue(TIER, plain, 4, &inner);
	assert_dropped(w, &p, "ip_unknown_protocol");
}

// FL-31
static void only_what_is_for_vips_is_taken(void **state)
{
	static const char *const others[][2] = {{CLIENT, OURS}, {CLIENT, "10.9.1.7"},
		{CLIENT, "224.0.0.1"}, {CLIENT6, OURS6}, {CLIENT6, "fd00::1"}, {CLIENT6, "ff02::1"},
		{CLIENT6, "2001:db8:8::7"}};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct packet inner = segment(others[i][0], others[i][1], ACK);
		struct packet p = in_ip(TIER, &inner);
		assert_dropped(*state, &p, "tunnel_not_vip");
	}
}

// FL-33
static void a_tunnel_within_a_tunnel_is_dropped(void **state)
{
	static const uint8_t plain[] = {0, 4, 0, 0};
	struct packet inner = client_segment();
	struct packet once = packet(TIER, VIP, 4, inner.bytes, inner.len);
	struct packet p = in_ip(TIER, &once);
	assert_dropped(*state, &p, "tunnel_nested");
	p = in_gue(TIER6, plain, 4, &once);
	assert_dropped(*state, &p, "tunnel_nested");
	p = in_ip(TIER, &inner);
	assert_taken(*state, &p, CLIENT, VIP); // and the next one is fine
}

// FL-32: the packet within has its own rows in test_ip4.c and test_ip6.c; here one of each kind.
static void what_is_within_is_checked_as_any_packet(void **state)
{
	static const struct {
		const char *counter, *src;
		size_t at;
		uint16_t value;
		bool keep_checksum;
	} rows[] = {
		{"ip_checksum", CLIENT, 10, 0x1234, true},
		{"ip_version", CLIENT, 0, 0x6500, false},
		{"ip_header_length", CLIENT, 0, 0x4f00, true},
		{"ip_total_length", CLIENT, 2, 45, false},
		{"ip_fragment", CLIENT, 6, 0x2000, false},
		{"ip_fragment", CLIENT, 6, 1, false},
		{"ip_unknown_protocol", CLIENT, 8, 0x4084, false},
		{"ip_martian", "127.0.0.1", 0, 0, false},
		{"ip_martian", VIP, 0, 0, false},
		{"ip_martian", OURS, 0, 0, false},
		{"ip6_martian", "fe80::7", 0, 0, false},
		{"ip6_martian", "::1", 0, 0, false},
		{"ip6_length", CLIENT6, 4, 25, false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool v4 = !strchr(rows[i].src, ':');
		struct packet inner = segment(rows[i].src, v4 ? VIP : VIP6, ACK);
		if (rows[i].value)
			store16(inner.bytes + rows[i].at, rows[i].value);
		if (rows[i].value && v4 && !rows[i].keep_checksum)
			fix(&inner);
		uint8_t gue[4] = {0, v4 ? 4 : 41};
		struct packet p = in_gue(TIER, gue, sizeof(gue), &inner);
		assert_dropped(*state, &p, rows[i].counter);
	}
}

// FL-32
static void fragments_of_outer_packets_are_dropped(void **state)
{
	struct packet inner = client_segment();
	static const uint16_t offsets[] = {0x2000, 0x2001, 1};
	for (size_t i = 0; i < 3; i++) {
		struct packet p = in_ip(TIER, &inner);
		store16(p.bytes + 6, offsets[i]);
		fix(&p);
		assert_dropped(*state, &p, "ip_fragment");
	}
}

// FL-39
static void malformed_headers_of_gue_are_dropped(void **state)
{
	static const struct {
		uint8_t gue[8];
		size_t n;
	} rows[] = {
		{{0x20, 1, 0, 0}, 4}, // a control message
		{{0, 4, 0, 1}, 4}, // flags
		{{0, 4, 0x80, 0}, 4},
		{{0, 6, 0, 0}, 4}, // a segment without a packet
		{{0, 59, 0, 0}, 4},
		{{0x1f, 4, 0, 0}, 4}, // an optional part beyond the end
		{{0x80, 4, 0, 0}, 4}, // variants that don't exist
		{{0xc0, 4, 0, 0}, 4},
		{{0x50, 4, 0, 0}, 4}, // variant 1, and no IP
		{{0x70, 4, 0, 0}, 4},
	};
	struct packet inner = client_segment();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct packet p = in_gue(TIER, rows[i].gue, rows[i].n, &inner);
		assert_dropped(*state, &p, "tunnel_malformed");
	}
	static const uint16_t lens[] = {0, 7, 8, 11, 200};
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct packet p = in_gue(TIER, (const uint8_t[]){0, 4, 0, 0}, 4, &inner);
		store16(p.bytes + 24, lens[i]);
		assert_dropped(*state, &p, "tunnel_malformed");
	}
}

// FL-32: cut anywhere, with outer lengths that say so, it is dropped for one cause.
static void a_cut_packet_is_dropped_wherever_it_is_cut(void **state)
{
	struct world *w = *state;
	static const uint8_t chain[] = {2, 4, 0, 0, 0, 0, 0, 1, 10, 0, 0, 40};
	struct packet inner = client_segment(), inner6 = client_segment6();
	const struct packet rows[] = {in_ip(TIER, &inner), in_ip(TIER, &inner6),
		in_ip(TIER6, &inner), in_ip(TIER6, &inner6), in_gue(TIER, chain, 12, &inner),
		in_gue(TIER, NULL, 0, &inner6), in_gue(TIER6, chain, 12, &inner)};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t header = is_ip4(&rows[i]) ? 20 : 40;
		for (size_t len = header; len < rows[i].len; len++) {
			struct packet p = rows[i];
			p.len = len;
			store16(p.bytes + (header == 20 ? 2 : 4),
				(uint16_t)(header == 20 ? len : len - header));
			if (header == 20)
				fix(&p);
			bool is_udp = p.bytes[header == 20 ? 9 : 6] == 17;
			if (is_udp && len >= header + 8)
				store16(p.bytes + header + 4, (uint16_t)(len - header));
			in(w, &p);
			assert_true(net_take_drop(w->net) > 0);
			assert_int_equal(w->n_segments, 0);
			assert_int_equal(w->overhead, 0);
		}
	}
}

// FL-36: of what we sent, which the tier brings since it is for the VIP.
static void errors_of_the_way_to_clients_are_taken(void **state)
{
	struct world *w = *state;
	struct packet sent = segment(VIP, CLIENT, ACK), sent6 = segment(VIP6, CLIENT6, ACK);
	store16(sent.bytes + 2, 1500);
	fix(&sent);
	store16(sent6.bytes + 4, 1460);
	uint8_t message[64] = {3, 4, [6] = 1400 >> 8, 1400 & 0xff};
	memcpy(message + 8, sent.bytes, 28);
	uint16_t sum = csum(message, 36);
	memcpy(message + 2, &sum, 2);
	struct packet inner = packet("198.51.100.1", VIP, 1, message, 36), p = in_ip(TIER, &inner);
	in(w, &p);
	assert_int_equal(w->n_too_big, 1);
	assert_int_equal(w->too_big_mtu, 1400);
	uint8_t f[256], message6[64] = {2, 0, [6] = 1400 >> 8, 1400 & 0xff};
	memcpy(message6 + 8, sent6.bytes, 56);
	inner.len = make_icmp6(f, "2001:db8:66::1", VIP6, message6, 64) - 14;
	memcpy(inner.bytes, f + 14, inner.len);
	p = in_ip(TIER, &inner);
	in(w, &p);
	assert_int_equal(w->n_too_big, 2);
	struct ip_addr client = ip6_of(CLIENT6);
	assert_true(ip_eq(&w->too_big.remote, &client));
}

// FL-36
static void nobody_is_a_neighbor_through_a_tunnel(void **state)
{
	struct world *w = *state;
	uint8_t f[256];
	struct packet inner;
	inner.len = make_solicitation(f, &(struct nd_text){PEER6, VIP6, VIP6, peer_mac, 0}) - 14;
	memcpy(inner.bytes, f + 14, inner.len);
	struct packet p = in_ip(TIER, &inner);
	assert_dropped(w, &p, "icmp6_ignored");
	assert_int_equal(w->n_sent, 0);
	assert_int_equal(world_count(w, "nd_learned"), 0);
}

// FL-31: from the VIP, by our own routes.
static void an_echo_is_answered_without_a_tunnel(void **state)
{
	struct world *w = *state;
	uint8_t message[8] = {8, 0, 0, 0, 1, 2, 3, 4};
	uint16_t sum = csum(message, 8);
	memcpy(message + 2, &sum, 2);
	struct packet inner = packet("10.0.0.7", VIP, 1, message, 8), p = in_ip(TIER, &inner);
	in(w, &p);
	world_resolve(w, 0, IP(10, 0, 0, 7), peer_mac);
	const struct world_frame *sent = &w->sent[w->n_sent - 1];
	assert_int_equal(sent->bytes[23], 1);
	assert_int_equal(load32(sent->bytes + 26), IP(10, 9, 0, 7));
	assert_int_equal(load32(sent->bytes + 30), IP(10, 0, 0, 7));
}

// FL-37
static void a_mark_of_the_outer_packet_is_one_of_what_is_within(void **state)
{
	struct world *w = *state;
	struct packet inner = client_segment(), p = in_ip(TIER, &inner);
	p.bytes[1] = 3;
	fix(&p);
	assert_dropped(w, &p, "tunnel_congested");
	inner.bytes[1] = 2;
	fix(&inner);
	p = in_ip(TIER, &inner);
	assert_taken(w, &p, CLIENT, VIP);
	assert_int_equal(w->n_marked, 0);
	p.bytes[1] = 3;
	fix(&p);
	assert_taken(w, &p, CLIENT, VIP);
	assert_int_equal(w->n_marked, 1);
	inner = client_segment6();
	inner.bytes[1] |= 0x20;
	p = in_ip(TIER6, &inner);
	p.bytes[1] |= 0x30;
	assert_taken(w, &p, CLIENT6, VIP6);
	assert_int_equal(w->n_marked, 2);
	p = in_ip(TIER6, &inner);
	assert_taken(w, &p, CLIENT6, VIP6);
	assert_int_equal(w->n_marked, 2);
}

// A packet of GLB's with two hosts to go on to.
static struct packet chained(uint8_t next, uint32_t hop, uint8_t flags)
{
	uint8_t gue[16] = {3, 4, 0, 0, 0, 0, next, 2};
	store32(gue + 8 + 4 * (size_t)(next & 1), hop);
	struct packet inner = segment(CLIENT, VIP, flags);
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
	in(w, &p); // asks for the neighbor, whom nobody was sent to before
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
	tunnels.list[1].n_hops = 0;
	p = chained(0, HOP, ACK);
	assert_taken(w, &p, CLIENT, VIP);
	assert_int_equal(world_count(w, "tunnel_relayed"), 0);
	assert_int_equal(w->n_sent, 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, world_teardown)

RUN_SUITE("net/tunnel", CASE(either_family_is_taken_out_of_either),
	CASE(an_outer_packet_may_have_extension_headers), CASE(gue_is_taken_in_both_variants),
	CASE(a_source_that_is_not_configured_is_forged), CASE(only_what_is_for_vips_is_taken),
	CASE(a_tunnel_within_a_tunnel_is_dropped), CASE(what_is_within_is_checked_as_any_packet),
	CASE(fragments_of_outer_packets_are_dropped), CASE(malformed_headers_of_gue_are_dropped),
	CASE(a_cut_packet_is_dropped_wherever_it_is_cut),
	CASE(errors_of_the_way_to_clients_are_taken), CASE(nobody_is_a_neighbor_through_a_tunnel),
	CASE(an_echo_is_answered_without_a_tunnel),
	CASE(a_mark_of_the_outer_packet_is_one_of_what_is_within),
	CASE(a_segment_that_nobody_knows_goes_to_the_next_hop),
	CASE(hops_that_are_none_leave_the_segment_here))
