// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/csum.h"
#include "lb/base/rand.h"
#include "tests/support/check.h"
#include "tests/unit/net/world.h"

#include <string.h>

#define PEER IP(10, 0, 0, 7)
#define OURS IP(10, 0, 0, 1)

static const uint8_t payload[24] = "a segment for tcp, 24 b";

static void segment_reaches_tcp_with_its_addresses(void **state)
{
	struct world *w = *state;
	uint8_t f[128];
	size_t len = make_ip(f, PEER, OURS, 6, payload, sizeof(payload));
	world_in(w, 0, f, len);
	assert_int_equal(w->n_segments, 1);
	assert_int_equal(ip_to_v4(&w->segment_local), OURS);
	assert_int_equal(ip_to_v4(&w->segment_remote), PEER);
	assert_int_equal(w->segment_len, sizeof(payload));
	assert_memory_equal(w->segment, payload, sizeof(payload));
}

// TCP-159
static void what_may_be_marked_says_so(void **state)
{
	struct world *w = *state;
	world_send(w, OURS, PEER, "x");
	world_resolve(w, 0, PEER, peer_mac);
	for (int ect = 0; ect < 2; ect++) {
		world_forget(w);
		struct tcp_flow flow = {.local = ip_from_v4(OURS), .remote = ip_from_v4(PEER)};
		uint8_t *segment = w->io.reserve(w->io.ctx, &flow, sizeof(payload));
		memcpy(segment, payload, sizeof(payload));
		(ect ? w->io.emit_ect : w->io.emit)(w->io.ctx, &flow, segment, sizeof(payload));
		assert_int_equal(w->n_sent, 1);
		assert_int_equal(w->sent[0].bytes[15], ect ? 2 : 0);
		assert_int_equal(csum(w->sent[0].bytes + 14, 20), 0);
	}
}

// TCP-160
static void what_a_router_marked_is_told(void **state)
{
	struct world *w = *state;
	uint8_t f[128];
	size_t len = make_ip(f, PEER, OURS, 6, payload, sizeof(payload));
	for (uint8_t ecn = 0; ecn < 4; ecn++) {
		f[15] = 0xb8 | ecn; // and a class of service
		fix_ip_checksum(f);
		world_in(w, 0, f, len);
		assert_int_equal(w->n_segments, ecn + 1);
		assert_int_equal(w->n_marked, ecn == 3);
	}
}

// NET-03
static void padding_of_a_short_frame_is_cut_off(void **state)
{
	struct world *w = *state;
	uint8_t f[60] = {0};
	make_ip(f, PEER, OURS, 6, payload, 20);
	memset(f + 54, 0x55, 6);
	world_in(w, 0, f, 60);
	assert_int_equal(w->n_segments, 1);
	assert_int_equal(w->segment_len, 20);
}

// NET-07
static void harmless_options_are_skipped(void **state)
{
	struct world *w = *state;
	uint8_t f[128];
	uint8_t with_options[28] = {1, 68, 3, 5}; // NOP, timestamp of 3 bytes
	memcpy(with_options + 4, payload, 24);
	size_t len = make_ip(f, PEER, OURS, 6, with_options, sizeof(with_options));
	f[14] = 0x46;
	fix_ip_checksum(f);
	world_in(w, 0, f, len);
	assert_int_equal(w->n_segments, 1);
	assert_int_equal(w->segment_len, 24);
	assert_memory_equal(w->segment, payload, 24);
}

// NET-08, RFC 1122 3.2.1.7
static void small_ttl_is_no_reason_to_drop(void **state)
{
	struct world *w = *state;
	uint8_t f[128];
	for (uint8_t ttl = 0; ttl < 2; ttl++) {
		size_t len = make_ip(f, PEER, OURS, 6, payload, sizeof(payload));
		f[22] = ttl;
		fix_ip_checksum(f);
		world_in(w, 0, f, len);
	}
	assert_int_equal(w->n_segments, 2);
}

static void df_flag_is_no_fragment(void **state)
{
	struct world *w = *state;
	uint8_t f[128];
	size_t len = make_ip(f, PEER, OURS, 6, payload, sizeof(payload));
	store16(f + 20, 0x4000);
	fix_ip_checksum(f);
	world_in(w, 0, f, len);
	assert_int_equal(w->n_segments, 1);
}

// One bent field each, with a right checksum unless that is the bend.
struct bend {
	const char *counter;
	uint32_t src, dst; // 0 = PEER, OURS
	size_t at;
	uint16_t value; // at `at`, 0 = none
	size_t len; // of the frame; 0 = as made
	bool keep_checksum;
};
static const struct bend bends[] = {
	{"eth_short", .len = 13},
	{"eth_not_ours", .at = 0, .value = 0x0202},
	{"eth_not_ours", .at = 0, .value = 0x0100},
	{"eth_bad_source", .at = 6, .value = 0xffff},
	{"eth_vlan", .at = 12, .value = 0x8100},
	{"eth_vlan", .at = 12, .value = 0x88a8},
	{"eth_ip6", .at = 12, .value = 0x86dd},
	{"eth_unknown_type", .at = 12, .value = 0x88cc},
	{"ip_short", .len = 14},
	{"ip_short", .len = 33},
	{"ip_version", .at = 14, .value = 0x6500},
	{"ip_version", .at = 14, .value = 0x0500},
	{"ip_header_length", .at = 14, .value = 0x4400, .keep_checksum = true},
	{"ip_header_length", .at = 14, .value = 0x4f00, .keep_checksum = true},
	{"ip_total_length", .at = 16, .value = 19},
	{"ip_total_length", .at = 16, .value = 45},
	{"ip_total_length", .at = 16, .value = 0xffff},
	{"ip_total_length", .len = 57},
	{"ip_checksum", .at = 24, .value = 0x1234, .keep_checksum = true},
	{"ip_checksum", .at = 18, .value = 1, .keep_checksum = true},
	{"ip_fragment", .at = 20, .value = 0x2000},
	{"ip_fragment", .at = 20, .value = 0x2001},
	{"ip_fragment", .at = 20, .value = 0x0001},
	{"ip_fragment", .at = 20, .value = 0x5fff},
	{"ip_not_ours", .dst = IP(10, 0, 0, 8)},
	{"ip_not_ours", .dst = IP(10, 0, 0, 255)},
	{"ip_not_ours", .dst = IP(255, 255, 255, 255)},
	{"ip_not_ours", .dst = IP(224, 0, 0, 1)},
	{"ip_martian", .src = IP(0, 0, 0, 1)},
	{"ip_martian", .src = IP(127, 0, 0, 1)},
	{"ip_martian", .src = IP(224, 0, 0, 1)},
	{"ip_martian", .src = IP(240, 0, 0, 1)},
	{"ip_martian", .src = IP(255, 255, 255, 255)},
	{"ip_martian", .src = IP(10, 0, 0, 255)}, // an answer would be a broadcast
	{"ip_martian", .src = IP(10, 0, 0, 0)},
	{"ip_martian", .src = OURS}, // land
	{"ip_martian", .src = IP(10, 1, 2, 1)}, // ours, too
	{"ip_unknown_protocol", .at = 22, .value = 0x4011},
};

// TH-41, TH-44, NET-01, NET-02, NET-03, NET-04, NET-05, NET-09
static void each_malformed_packet_is_dropped_by_its_cause(void **state)
{
	struct world *w = *state;
	for (size_t i = 0; i < sizeof(bends) / sizeof(bends[0]); i++) {
		const struct bend *b = &bends[i];
		uint8_t f[128];
		size_t len = make_ip(f, b->src ? b->src : PEER, b->dst ? b->dst : OURS, 6, payload,
			sizeof(payload));
		if (b->value) {
			store16(f + b->at, b->value);
			if (!b->keep_checksum && b->at >= 14)
				fix_ip_checksum(f);
		}
		uint64_t before = world_count(w, b->counter);
		world_in(w, 0, f, b->len ? b->len : len);
		if (world_count(w, b->counter) != before + 1)
			fail_msg("bend %zu is not counted as %s", i, b->counter);
		assert_int_equal(w->n_segments, 0);
	}
	struct counter_set set = net_counters(w->net); // each once, none twice
	uint64_t drops = 0;
	for (uint32_t i = 0; i < set.n; i++)
		if (strcmp(set.names[i], "rx_frames") != 0)
			drops += counter_read(&set.values[i]);
	assert_int_equal(drops, sizeof(bends) / sizeof(bends[0]));
}

// NET-07, RFC 7126 4.3, 4.4
static void source_routes_and_broken_options_are_dropped(void **state)
{
	struct world *w = *state;
	const uint8_t options[][4] = {{131, 3, 4, 0}, {137, 3, 4, 0}, {1, 1, 131, 2}, {68, 5, 0, 0},
		{68, 1, 0, 0}, {1, 1, 1, 68}};
	size_t n = sizeof(options) / sizeof(options[0]);
	for (size_t i = 0; i < n; i++) {
		uint8_t f[128];
		size_t len = make_ip(f, PEER, OURS, 6, options[i], 4);
		f[14] = 0x46;
		fix_ip_checksum(f);
		world_in(w, 0, f, len);
	}
	assert_int_equal(world_count(w, "ip_options"), n);
	assert_int_equal(w->n_segments, 0);
}

// NET-06, RFC 1122 3.3.6
static void unicast_packet_in_a_broadcast_frame_is_dropped(void **state)
{
	struct world *w = *state;
	uint8_t f[128];
	size_t len = make_ip(f, PEER, OURS, 6, payload, sizeof(payload));
	memcpy(f, broadcast_mac, 6);
	world_in(w, 0, f, len);
	assert_int_equal(w->n_segments, 0);
	assert_int_equal(world_count(w, "ip_broadcast"), 1);
}

// Who was sent to is remembered, and so is which address of ours he uses.
static void all_checks_hold_for_packets_of_a_known_peer(void **state)
{
	static const struct {
		uint32_t dst;
		const char *counter; // NULL = reaches TCP
	} cases[] = {
		{IP(0, 0, 0, 0), "ip_not_ours"}, // before anything is remembered of him
		{OURS, NULL},
		{IP(0, 0, 0, 0), "ip_not_ours"},
		{IP(10, 0, 0, 9), NULL},
		{PEER, "ip_not_ours"},
		{IP(10, 0, 0, 9), NULL},
		{IP(10, 0, 0, 8), "ip_not_ours"},
		{IP(10, 1, 0, 1), NULL},
		{IP(10, 0, 0, 255), "ip_not_ours"},
		{OURS, NULL},
	};
	struct world *w = *state;
	uint8_t f[128];
	world_resolve(w, 0, PEER, peer_mac);
	assert_true(world_send(w, OURS, PEER, "known"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *counter = cases[i].counter;
		size_t len = make_ip(f, PEER, cases[i].dst, 6, payload, sizeof(payload));
		uint64_t before = counter ? world_count(w, counter) : 0;
		uint32_t heard = w->n_segments;
		world_in(w, 0, f, len);
		assert_int_equal(w->n_segments - heard, counter ? 0 : 1);
		if (counter)
			assert_int_equal(world_count(w, counter) - before, 1);
		else
			assert_int_equal(ip_to_v4(&w->segment_local), cases[i].dst);
	}
	make_ip(f, PEER, OURS, 6, payload, sizeof(payload));
	store16(f + 20, 0x2000); // more fragments
	fix_ip_checksum(f);
	world_in(w, 0, f, 58);
	assert_int_equal(world_count(w, "ip_fragment"), 1);
	make_ip(f, PEER, OURS, 6, payload, sizeof(payload));
	f[24] ^= 1;
	world_in(w, 0, f, 58);
	assert_int_equal(world_count(w, "ip_checksum"), 1);
}

static void segments_before_tcp_is_known_are_counted(void **state)
{
	struct world *w = *state;
	net_set_tcp(w->net, &(struct net_tcp){0});
	uint8_t f[128];
	size_t len = make_ip(f, PEER, OURS, 6, payload, sizeof(payload));
	world_in(w, 0, f, len);
	assert_int_equal(world_count(w, "tcp_absent"), 1);
}

// NET-10
static void header_of_our_packets_is_complete(void **state)
{
	struct world *w = *state;
	assert_true(world_send(w, OURS, PEER, "x"));
	world_resolve(w, 0, PEER, peer_mac);
	world_forget(w);
	assert_true(world_send(w, OURS, PEER, "hello"));
	const uint8_t *f = w->sent[0].bytes;
	assert_int_equal(w->sent[0].len, 59);
	assert_memory_equal(f, peer_mac, 6);
	assert_memory_equal(f + 6, world_mac[0], 6);
	const uint8_t fixed[] = {8, 0, 0x45, 0, 0, 45, 0, 0, 0x40, 0, 64, 6};
	assert_memory_equal(f + 12, fixed, sizeof(fixed));
	assert_int_equal(csum(f + 14, 20), 0);
	assert_int_equal(load32(f + 26), OURS);
	assert_int_equal(load32(f + 30), PEER);
	assert_memory_equal(f + 54, "hello", 5);
}

// The address that a packet to dst is asked for, and where.
static void assert_goes(struct world *w, uint32_t dst, uint32_t port, uint32_t next_hop)
{
	world_forget(w);
	assert_true(world_send(w, OURS, dst, "x"));
	assert_int_equal(w->n_sent, 1);
	assert_int_equal(w->sent[0].port, port);
	assert_true(is_arp_request(&w->sent[0], next_hop));
}

// NET-11
static void on_link_prefixes_come_before_the_gateway(void **state)
{
	struct world *w = *state;
	assert_goes(w, IP(10, 0, 0, 33), 0, IP(10, 0, 0, 33));
	assert_goes(w, IP(10, 1, 7, 7), 1, IP(10, 1, 7, 7));
	assert_goes(w, IP(192, 0, 2, 1), 0, IP(10, 0, 0, 254));
	world_forget(w);
	assert_true(world_send(w, OURS, IP(192, 0, 2, 2), "x")); // asked for already
	assert_int_equal(w->n_sent, 0);
	world_resolve(w, 0, IP(10, 0, 0, 254), peer_mac);
	assert_int_equal(w->n_sent, 2);
	assert_int_equal(load32(w->sent[0].bytes + 30), IP(192, 0, 2, 1));
	assert_int_equal(load32(w->sent[1].bytes + 30), IP(192, 0, 2, 2));
}

// NET-11
static void source_is_the_address_of_the_longest_prefix(void **state)
{
	struct world *w = *state;
	const struct {
		uint32_t dst, source;
	} cases[] = {
		{IP(10, 0, 0, 33), OURS},
		{IP(10, 1, 7, 7), IP(10, 1, 0, 1)},
		{IP(10, 1, 2, 7), IP(10, 1, 2, 1)},
		{IP(198, 51, 100, 1), OURS},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ip_addr dst = ip_from_v4(cases[i].dst), source;
		assert_true(net_source_for(w->net, &dst, &source));
		assert_int_equal(ip_to_v4(&source), cases[i].source);
	}
}

// NET-05
static void impossible_destinations_have_no_source(void **state)
{
	struct world *w = *state;
	const uint32_t none[] = {OURS, IP(10, 0, 0, 255), IP(127, 0, 0, 1), IP(224, 0, 0, 5), 0};
	struct ip_addr source;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		struct ip_addr dst = ip_from_v4(none[i]);
		assert_false(net_source_for(w->net, &dst, &source));
		assert_false(world_send(w, OURS, none[i], "x"));
	}
	assert_int_equal(world_count(w, "tx_no_route"), 5);
	struct ip_addr six = {{0xfd}};
	assert_false(net_source_for(w->net, &six, &source));
}

static void mtu_is_that_of_the_link(void **state)
{
	struct world *w = *state;
	struct tcp_flow flow = {.remote = ip_from_v4(PEER)};
	assert_int_equal(w->io.mtu(w->io.ctx, &flow), 1500);
	flow.remote = ip_from_v4(IP(10, 1, 7, 7));
	assert_int_equal(w->io.mtu(w->io.ctx, &flow), 1400);
	assert_true(world_send(w, OURS, IP(10, 1, 7, 7), "x")); // and from the cache
	assert_int_equal(w->io.mtu(w->io.ctx, &flow), 1400);
}

static uint16_t naive_csum(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;
	for (size_t i = 0; i < len; i++)
		sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void checksum_equals_its_naive_twin(void **state)
{
	struct rand rand;
	rand_init(&rand, 7);
	uint8_t bytes[1600];
	for (int round = 0; round < 2000; round++) {
		size_t len = rand_below(&rand, sizeof(bytes));
		for (size_t i = 0; i < len; i++) // many ones: the carries are what breaks
			bytes[i] = rand_below(&rand, 3) ? 0xff : (uint8_t)rand_u64(&rand);
		uint16_t sum = csum(bytes, len);
		uint8_t stored[2];
		memcpy(stored, &sum, 2);
		assert_int_equal(load16(stored), naive_csum(bytes, len));
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
RUN_SUITE("net/ip4", CASE(segment_reaches_tcp_with_its_addresses), CASE(what_may_be_marked_says_so),
	CASE(what_a_router_marked_is_told), CASE(padding_of_a_short_frame_is_cut_off),
	CASE(harmless_options_are_skipped), CASE(small_ttl_is_no_reason_to_drop),
	CASE(df_flag_is_no_fragment), CASE(each_malformed_packet_is_dropped_by_its_cause),
	CASE(source_routes_and_broken_options_are_dropped),
	CASE(unicast_packet_in_a_broadcast_frame_is_dropped),
	CASE(all_checks_hold_for_packets_of_a_known_peer),
	CASE(segments_before_tcp_is_known_are_counted), CASE(header_of_our_packets_is_complete),
	CASE(on_link_prefixes_come_before_the_gateway),
	CASE(source_is_the_address_of_the_longest_prefix),
	CASE(impossible_destinations_have_no_source), CASE(mtu_is_that_of_the_link),
	cmocka_unit_test(checksum_equals_its_naive_twin))
