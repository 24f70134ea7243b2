// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/csum.h"
#include "tests/support/check.h"
#include "tests/unit/net/world6.h"

#include <string.h>

static const uint8_t segment[24] = {3, 0xe8, 7, 0xd0, [12] = 0x50, [20] = 'd', 'a', 't', 'a'};

static void segment_in(struct world *w, const char *src, const char *dst)
{
	uint8_t f[256];
	size_t len = make_ip6(f, src, dst, 6, segment, sizeof(segment));
	world_in(w, 0, f, len);
}

// IP6-01
static void segments_reach_tcp_without_padding(void **state)
{
	struct world *w = *state;
	uint8_t f[256] = {0};
	make_ip6(f, PEER6, OURS6, 6, segment, sizeof(segment));
	world_in(w, 0, f, 100);
	assert_int_equal(w->n_segments, 1);
	assert_int_equal(w->segment_len, sizeof(segment));
	assert_memory_equal(w->segment, segment, sizeof(segment));
	struct ip_addr local = ip6_of(OURS6), remote = ip6_of(PEER6);
	assert_true(ip_eq(&w->segment_local, &local) && ip_eq(&w->segment_remote, &remote));
}

// IP6-01: the fast path for an address that is known, and the slow one, say the same
static void a_peer_that_is_known_is_heard_as_before(void **state)
{
	struct world *w = *state;
	world6_send(w, OURS6, PEER6, "x");
	world6_resolve(w, 0, PEER6, peer_mac);
	world_forget(w);
	segment_in(w, PEER6, OURS6);
	segment_in(w, PEER6, "fd00::1");
	segment_in(w, PEER6, OURS6);
	assert_int_equal(w->n_segments, 3);
	segment_in(w, PEER6, "2001:db8::2");
	assert_int_equal(world_count(w, "ip6_not_ours"), 1);
}

struct extension_case {
	uint8_t first; // kind of the first extension header
	uint8_t bytes[40]; // all of them; the last one says TCP
	size_t len;
	const char *dropped; // NULL = reaches TCP
};

// IP6-02
static void extension_headers_are_passed_over_within_bounds(void **state)
{
	static const struct extension_case cases[] = {
		{0, {6, 0, 1, 4}, 8, NULL}, // hop-by-hop: PadN
		{0, {6, 0, 5, 2, 0, 0, 1, 0}, 8, NULL}, // router alert
		{60, {6, 0, 0x1e, 4}, 8, NULL}, // unknown, to be passed over
		{60, {6, 0, 0x5e, 4}, 8, "ip6_option"}, // unknown, to be discarded
		{60, {6, 0, 1, 5}, 8, "ip6_option"}, // longer than its header
		{0, {6, 0, 0xc2, 4, 0, 1, 0, 0}, 8, "ip6_option"}, // jumbogram
		{43, {6, 0, 4, 0}, 8, NULL}, // routing, at its end
		{43, {6, 0, 4, 1}, 8, "ip6_routing"},
		{43, {6, 0, 0, 1}, 8, "ip6_routing"}, // type 0
		{44, {6, 0, 0, 0, 1, 2, 3, 4}, 8, NULL}, // RFC 6946
		{44, {6, 0, 0, 1, 1, 2, 3, 4}, 8, "ip6_fragment"},
		{44, {6, 0, 0, 8, 1, 2, 3, 4}, 8, "ip6_fragment"},
		{0, {60, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4}, 16, NULL},
		{60, {0, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4}, 16, "ip6_unknown_protocol"},
		{60, {6, 200, 1, 4}, 8, "ip6_extension"},
		{51, {6, 4, 0, 0}, 24, "ip6_unknown_protocol"}, // authentication
		{59, {0}, 8, "ip6_unknown_protocol"},
	};
	struct world *w = *state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct extension_case *c = &cases[i];
		uint8_t f[256], payload[80];
		uint64_t before = c->dropped ? world_count(w, c->dropped) : 0;
		memcpy(payload, c->bytes, c->len);
		memcpy(payload + c->len, segment, sizeof(segment));
		size_t len = make_ip6(f, PEER6, OURS6, c->first, payload, c->len + sizeof(segment));
		world_forget(w);
		world_in(w, 0, f, len);
		if (w->n_segments != !c->dropped)
			fail_msg("case %zu", i);
		if (c->dropped)
			assert_int_equal(world_count(w, c->dropped), before + 1);
		else
			assert_int_equal(w->segment_len, sizeof(segment));
	}
}

// IP6-02
static void too_many_extension_headers_are_dropped(void **state)
{
	struct world *w = *state;
	for (unsigned n = 1; n <= 9; n++) {
		uint8_t f[256], payload[128] = {0};
		for (unsigned i = 0; i < n; i++)
			memcpy(payload + (size_t)8 * i,
				(const uint8_t[]){i + 1 < n ? 60 : 6, 0, 1, 4}, 4);
		memcpy(payload + (size_t)8 * n, segment, sizeof(segment));
		size_t len = make_ip6(f, PEER6, OURS6, 60, payload, 8 * n + sizeof(segment));
		world_in(w, 0, f, len);
	}
	assert_int_equal(w->n_segments, 6);
	assert_int_equal(world_count(w, "ip6_extension"), 3);
}

static void bend_in(struct world *w, size_t at, uint8_t value, size_t len)
{
	uint8_t f[256];
	size_t whole = make_ip6(f, PEER6, OURS6, 6, segment, sizeof(segment));
	f[at] = value;
	world_in(w, 0, f, len ? len : whole);
}

// IP6-03
static void malformed_packets_are_dropped_by_cause(void **state)
{
	struct world *w = *state;
	bend_in(w, 14, 0x45, 0);
	bend_in(w, 14, 0x60, 53);
	bend_in(w, 19, 25, 0);
	segment_in(w, "::", OURS6);
	segment_in(w, "::1", OURS6);
	segment_in(w, "ff02::1", OURS6);
	segment_in(w, "::ffff:10.0.0.7", OURS6);
	segment_in(w, PEER6, "::ffff:10.0.0.1");
	segment_in(w, "fd00::1", OURS6);
	segment_in(w, "fe80::7", OURS6);
	segment_in(w, PEER6, "ff02::1");
	assert_int_equal(w->n_segments, 0);
	assert_int_equal(world_count(w, "ip6_version"), 1);
	assert_int_equal(world_count(w, "ip6_short"), 1);
	assert_int_equal(world_count(w, "ip6_length"), 1);
	assert_int_equal(world_count(w, "ip6_martian"), 7);
	assert_int_equal(world_count(w, "ip6_group"), 1);
}

// IP6-03
static void a_frame_to_a_group_carries_no_packet_for_one_host(void **state)
{
	struct world *w = *state;
	uint8_t f[256];
	size_t len = make_ip6(f, PEER6, OURS6, 6, segment, sizeof(segment));
	f[0] = f[1] = 0x33;
	world_in(w, 0, f, len);
	memcpy(f, broadcast_mac, 6);
	world_in(w, 0, f, len);
	assert_int_equal(world_count(w, "ip6_group"), 2);
}

static void a_port_without_an_ipv6_address_hears_none(void **state)
{
	struct world *w = *state; // of IPv4
	segment_in(w, PEER6, OURS6);
	assert_int_equal(world_count(w, "eth_ip6"), 1);
	assert_false(world6_send(w, OURS6, PEER6, "x"));
	assert_int_equal(world_count(w, "tx_no_route"), 1);
}

// IP6-04
static void what_is_sent_has_a_header_and_keeps_its_flow_label(void **state)
{
	struct world *w = *state;
	world6_send(w, OURS6, PEER6, "x");
	world6_resolve(w, 0, PEER6, peer_mac);
	world_forget(w);
	assert_true(world6_send(w, OURS6, PEER6, "abc"));
	assert_true(world6_send(w, OURS6, PEER6, "defg"));
	const uint8_t *f = w->sent[0].bytes;
	struct ip_addr src = ip6_of(OURS6), dst = ip6_of(PEER6);
	assert_int_equal(w->sent[0].len, 54 + 23);
	assert_memory_equal(f, peer_mac, 6);
	assert_memory_equal(f + 6, world_mac[0], 6);
	assert_int_equal(load16(f + 12), 0x86dd);
	assert_int_equal(f[14] >> 4, 6);
	assert_int_equal(load16(f + 18), 23);
	assert_int_equal(f[20], 6);
	assert_int_equal(f[21], 64);
	assert_memory_equal(f + 22, src.b, 16);
	assert_memory_equal(f + 38, dst.b, 16);
	assert_memory_equal(f + 74, "abc", 3);
	assert_int_equal(load32(f + 14), load32(w->sent[1].bytes + 14)); // RFC 6437
	assert_true(load32(f + 14) & 0xfffff);
}

// TCP-159, TCP-160
static void marks_of_congestion_are_in_the_traffic_class(void **state)
{
	struct world *w = *state;
	uint8_t f[256];
	world6_send(w, OURS6, PEER6, "x");
	world6_resolve(w, 0, PEER6, peer_mac);
	size_t len = make_ip6(f, PEER6, OURS6, 6, segment, sizeof(segment));
	for (uint8_t ecn = 0; ecn < 4; ecn++) {
		f[15] = (uint8_t)(0x80 | ecn << 4);
		world_in(w, 0, f, len);
		assert_int_equal(w->n_segments, ecn + 1);
		assert_int_equal(w->n_marked, ecn == 3);
	}
	world_forget(w);
	struct tcp_flow flow = {.local = ip6_of(OURS6), .remote = ip6_of(PEER6)};
	uint8_t *room = w->io.reserve(w->io.ctx, &flow, sizeof(segment));
	memcpy(room, segment, sizeof(segment));
	w->io.emit_ect(w->io.ctx, &flow, room, sizeof(segment));
	assert_int_equal(w->n_sent, 1);
	assert_int_equal(load32(w->sent[0].bytes + 14) >> 20, 0x602);
}

struct source_case {
	const char *dst;
	const char *source; // NULL = no way
};

// IP6-05: RFC 6724 5, rules 6 and 8
static void the_source_is_of_the_link_or_closest_to_what_is_far(void **state)
{
	static const struct source_case cases[] = {
		{PEER6, OURS6},
		{"fd00::7", "fd00::1"},
		{"2001:db8:1::7", "2001:db8:1::1"},
		{"2a00:1450::80", OURS6},
		{"fd77::80", "fd00::1"},
		{"fdff::80", "fd00::1"},
		{"::1", NULL},
		{"ff02::1", NULL},
		{OURS6, NULL},
		{"::", NULL},
	};
	struct world *w = *state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ip_addr dst = ip6_of(cases[i].dst), got;
		bool has = net_source_for(w->net, &dst, &got);
		if (has != (cases[i].source != NULL))
			fail_msg("%s", cases[i].dst);
		if (has) {
			struct ip_addr wanted = ip6_of(cases[i].source);
			assert_true(ip_eq(&got, &wanted));
		}
	}
}

// IP6-05
static void what_is_far_goes_to_the_gateway(void **state)
{
	struct world *w = *state;
	assert_true(world6_send(w, OURS6, "2a00:1450::80", "x"));
	assert_int_equal(w->n_sent, 1);
	assert_true(is_solicitation(&w->sent[0], "fe80::fe"));
	world6_advertise(w, 0, &(struct nd_text){"fe80::fe", OURS6, "fe80::fe", peer_mac, 0xe0});
	assert_int_equal(w->n_sent, 2);
	assert_memory_equal(w->sent[1].bytes, peer_mac, 6);
	struct ip_addr dst = ip6_of("2a00:1450::80");
	assert_memory_equal(w->sent[1].bytes + 38, dst.b, 16);
}

static void mtu_is_that_of_the_link(void **state)
{
	struct world *w = *state;
	struct tcp_flow flow = {.remote = ip6_of(PEER6)};
	assert_int_equal(w->io.mtu(w->io.ctx, &flow), 1500);
	flow.remote = ip6_of("2001:db8:1::7");
	assert_int_equal(w->io.mtu(w->io.ctx, &flow), 1400);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, world6_setup, world_teardown)
RUN_SUITE("net/ip6", CASE(segments_reach_tcp_without_padding),
	CASE(a_peer_that_is_known_is_heard_as_before),
	CASE(extension_headers_are_passed_over_within_bounds),
	CASE(too_many_extension_headers_are_dropped), CASE(malformed_packets_are_dropped_by_cause),
	CASE(a_frame_to_a_group_carries_no_packet_for_one_host),
	cmocka_unit_test_setup_teardown(
		a_port_without_an_ipv6_address_hears_none, world_setup, world_teardown),
	CASE(what_is_sent_has_a_header_and_keeps_its_flow_label),
	CASE(marks_of_congestion_are_in_the_traffic_class),
	CASE(the_source_is_of_the_link_or_closest_to_what_is_far),
	CASE(what_is_far_goes_to_the_gateway), CASE(mtu_is_that_of_the_link))
