// SPDX-License-Identifier: Apache-2.0
// What an L4 tier brings within its packets, taken out or dropped by its cause.
#include "dataplane/net/csum.h"
#include "tests/support/check.h"
#include "tests/unit/net/world_tunnel.h"

#include <string.h>

#define STRANGER "10.0.6.7"

static bool is_ip4(const struct packet *p)
{
	return p->bytes[0] >> 4 == 4;
}

static struct packet client_segment(void)
{
	return make_segment(CLIENT, VIP, ACK);
}

static struct packet client_segment6(void)
{
	return make_segment(CLIENT6, VIP6, ACK);
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
	world_packet_in(w, &plain);
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
	struct packet outer = make_packet(TIER6, OURS6, 60, payload, 8 + inner.len);
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
	world_tunnels.n = 1; // no GUE any more
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
		struct packet inner = make_segment(others[i][0], others[i][1], ACK);
		struct packet p = in_ip(TIER, &inner);
		assert_dropped(*state, &p, "tunnel_not_vip");
	}
}

// FL-33
static void a_tunnel_within_a_tunnel_is_dropped(void **state)
{
	static const uint8_t plain[] = {0, 4, 0, 0};
	struct packet inner = client_segment();
	struct packet once = make_packet(TIER, VIP, 4, inner.bytes, inner.len);
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
		struct packet inner = make_segment(rows[i].src, v4 ? VIP : VIP6, ACK);
		if (rows[i].value)
			store16(inner.bytes + rows[i].at, rows[i].value);
		if (rows[i].value && v4 && !rows[i].keep_checksum)
			fix_packet(&inner);
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
		fix_packet(&p);
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
				fix_packet(&p);
			bool is_udp = p.bytes[header == 20 ? 9 : 6] == 17;
			if (is_udp && len >= header + 8)
				store16(p.bytes + header + 4, (uint16_t)(len - header));
			world_packet_in(w, &p);
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
	struct packet sent = make_segment(VIP, CLIENT, ACK),
		      sent6 = make_segment(VIP6, CLIENT6, ACK);
	store16(sent.bytes + 2, 1500);
	fix_packet(&sent);
	store16(sent6.bytes + 4, 1460);
	uint8_t message[64] = {3, 4, [6] = 1400 >> 8, 1400 & 0xff};
	memcpy(message + 8, sent.bytes, 28);
	uint16_t sum = csum(message, 36);
	memcpy(message + 2, &sum, 2);
	struct packet inner = make_packet("198.51.100.1", VIP, 1, message, 36),
		      p = in_ip(TIER, &inner);
	world_packet_in(w, &p);
	assert_int_equal(w->n_too_big, 1);
	assert_int_equal(w->too_big_mtu, 1400);
	uint8_t f[256], message6[64] = {2, 0, [6] = 1400 >> 8, 1400 & 0xff};
	memcpy(message6 + 8, sent6.bytes, 56);
	inner.len = make_icmp6(f, "2001:db8:66::1", VIP6, message6, 64) - 14;
	memcpy(inner.bytes, f + 14, inner.len);
	p = in_ip(TIER, &inner);
	world_packet_in(w, &p);
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
	struct packet inner = make_packet("10.0.0.7", VIP, 1, message, 8), p = in_ip(TIER, &inner);
	world_packet_in(w, &p);
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
	fix_packet(&p);
	assert_dropped(w, &p, "tunnel_congested");
	inner.bytes[1] = 2;
	fix_packet(&inner);
	p = in_ip(TIER, &inner);
	assert_taken(w, &p, CLIENT, VIP);
	assert_int_equal(w->n_marked, 0);
	p.bytes[1] = 3;
	fix_packet(&p);
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

#define CASE(test) cmocka_unit_test_setup_teardown(test, world_tunnel_setup, world_teardown)

RUN_SUITE("net/tunnel", CASE(either_family_is_taken_out_of_either),
	CASE(an_outer_packet_may_have_extension_headers), CASE(gue_is_taken_in_both_variants),
	CASE(a_source_that_is_not_configured_is_forged), CASE(only_what_is_for_vips_is_taken),
	CASE(a_tunnel_within_a_tunnel_is_dropped), CASE(what_is_within_is_checked_as_any_packet),
	CASE(fragments_of_outer_packets_are_dropped), CASE(malformed_headers_of_gue_are_dropped),
	CASE(a_cut_packet_is_dropped_wherever_it_is_cut),
	CASE(errors_of_the_way_to_clients_are_taken), CASE(nobody_is_a_neighbor_through_a_tunnel),
	CASE(an_echo_is_answered_without_a_tunnel),
	CASE(a_mark_of_the_outer_packet_is_one_of_what_is_within))
