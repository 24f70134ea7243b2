// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/csum.h"
#include "tests/support/check.h"
#include "tests/unit/net/world.h"

#include <string.h>

#define PEER IP(10, 0, 0, 7)
#define ROUTER IP(10, 0, 0, 254)
#define BACKEND IP(192, 0, 2, 80)
#define OURS IP(10, 0, 0, 1)

static void fix_icmp(uint8_t *message, size_t len)
{
	memset(message + 2, 0, 2);
	uint16_t sum = csum(message, len);
	memcpy(message + 2, &sum, 2);
}

static void ping(struct world *w, size_t data_len)
{
	uint8_t message[1480] = {8, 0, 0, 0, 0x12, 0x34, 0, 1};
	for (size_t i = 0; i < data_len; i++)
		message[8 + i] = (uint8_t)i;
	fix_icmp(message, 8 + data_len);
	uint8_t f[1600];
	size_t len = make_ip(f, PEER, OURS, 1, message, 8 + data_len);
	world_in(w, 0, f, len);
}

static void learn_peer(struct world *w)
{
	world_arp_in(w, 0, &(struct arp_text){1, peer_mac, PEER, OURS});
	world_send(w, OURS, PEER, "x");
	world_resolve(w, 0, PEER, peer_mac);
	world_forget(w);
}

// NET-27
static void echo_comes_back_with_its_data(void **state)
{
	struct world *w = *state;
	learn_peer(w);
	ping(w, 57);
	assert_int_equal(w->n_sent, 1);
	const uint8_t *f = w->sent[0].bytes;
	assert_int_equal(w->sent[0].len, 14 + 20 + 8 + 57);
	assert_int_equal(load32(f + 26), OURS);
	assert_int_equal(load32(f + 30), PEER);
	const uint8_t head[] = {0, 0};
	assert_memory_equal(f + 34, head, 2);
	const uint8_t id[] = {0x12, 0x34, 0, 1, 0, 1, 2, 3};
	assert_memory_equal(f + 38, id, sizeof(id));
	assert_int_equal(csum(f + 34, 65), 0);
}

static void fl_05_one_behind_another_process_echoes_nothing(void **state)
{
	struct world *w = *state;
	learn_peer(w);
	net_set_silent(w->net, true);
	ping(w, 57);
	assert_int_equal(w->n_sent, 0);
	assert_int_equal(world_count(w, "icmp_ignored"), 1);
}

static void echo_of_an_unknown_host_waits_for_its_address(void **state)
{
	struct world *w = *state;
	ping(w, 56);
	assert_int_equal(w->n_sent, 1);
	assert_true(is_arp_request(&w->sent[0], PEER));
	world_resolve(w, 0, PEER, peer_mac);
	assert_int_equal(w->n_sent, 2);
	assert_int_equal(w->sent[1].bytes[23], 1);
}

static void echo_to_a_silent_host_is_no_news_for_tcp(void **state)
{
	struct world *w = *state;
	ping(w, 56);
	for (int i = 0; i < 4; i++)
		world_advance(w, NS_PER_SECOND);
	assert_int_equal(world_count(w, "hold_dropped"), 1);
	assert_int_equal(w->n_unreachable, 0);
}

// TH-43, NET-27
static void echo_rate_is_limited(void **state)
{
	struct world *w = *state;
	learn_peer(w);
	for (int i = 0; i < 150; i++)
		ping(w, 8);
	assert_int_equal(w->n_sent, 100);
	assert_int_equal(world_count(w, "icmp_echo_limited"), 50);
	world_forget(w);
	world_advance(w, 10 * NS_PER_SECOND / 1000); // 1000 a second
	for (int i = 0; i < 50; i++)
		ping(w, 8);
	assert_int_equal(w->n_sent, 10);
	world_forget(w);
	world_advance(w, 50 * NS_PER_SECOND);
	for (int i = 0; i < 150; i++)
		ping(w, 8);
	assert_int_equal(w->n_sent, 100); // silence saves up no more than the burst
}

static void echo_longer_than_the_link_is_not_answered(void **state)
{
	struct world *w = *state;
	learn_peer(w);
	ping(w, 1472);
	assert_int_equal(w->n_sent, 1);
	// Arrives on a link with a larger MTU, would leave on the smaller.
	uint8_t message[1480] = {8};
	fix_icmp(message, sizeof(message));
	uint8_t f[1600];
	size_t len = make_ip(f, IP(10, 1, 7, 7), OURS, 1, message, sizeof(message));
	world_in(w, 0, f, len);
	assert_int_equal(world_count(w, "icmp_echo_limited"), 1);
}

// NET-29
static void damaged_messages_are_dropped_by_cause(void **state)
{
	struct world *w = *state;
	learn_peer(w);
	uint8_t f[128];
	uint8_t message[16] = {8};
	size_t len = make_ip(f, PEER, OURS, 1, message, 7);
	world_in(w, 0, f, len);
	assert_int_equal(world_count(w, "icmp_malformed"), 1);
	len = make_ip(f, PEER, OURS, 1, message, sizeof(message)); // checksum 0
	world_in(w, 0, f, len);
	assert_int_equal(world_count(w, "icmp_checksum"), 1);
	const uint8_t ignored[][2] = {{0, 0}, {5, 1}, {8, 1}, {11, 0}, {13, 0}, {17, 0}};
	for (size_t i = 0; i < 6; i++) {
		memcpy(message, ignored[i], 2);
		fix_icmp(message, sizeof(message));
		len = make_ip(f, PEER, OURS, 1, message, sizeof(message));
		world_in(w, 0, f, len);
		assert_int_equal(world_count(w, "icmp_ignored"), i + 1);
	}
	assert_int_equal(w->n_sent, 0);
}

// An unreachable of `code` that quotes the first bytes of a segment of ours.
static size_t make_unreachable(uint8_t *f, uint8_t code)
{
	uint8_t message[36] = {3, code};
	uint8_t *quoted = message + 8;
	quoted[0] = 0x45;
	store16(quoted + 2, 60);
	store16(quoted + 6, 0x4000);
	quoted[8] = 61;
	quoted[9] = 6;
	store32(quoted + 12, OURS);
	store32(quoted + 16, BACKEND);
	store16(quoted + 20, 40000);
	store16(quoted + 22, 8080);
	store32(quoted + 24, WORLD_SEQ);
	fix_icmp(message, sizeof(message));
	return make_ip(f, ROUTER, OURS, 1, message, sizeof(message));
}

// NET-28
static void unreachable_names_the_quoted_flow(void **state)
{
	struct world *w = *state;
	const uint8_t codes[] = {0, 1, 2, 3, 9, 10, 13};
	for (size_t i = 0; i < sizeof(codes); i++) {
		uint8_t f[128];
		size_t len = make_unreachable(f, codes[i]);
		world_in(w, 0, f, len);
		assert_int_equal(w->n_unreachable, i + 1);
	}
	assert_int_equal(ip_to_v4(&w->unreachable.local), OURS);
	assert_int_equal(ip_to_v4(&w->unreachable.remote), BACKEND);
	assert_int_equal(w->unreachable.local_port, 40000);
	assert_int_equal(w->unreachable.remote_port, 8080);
	assert_int_equal(w->unreachable_seq, WORLD_SEQ);
}

// Fragmentation needed of this MTU, about a packet of so many bytes, whose segment began at 77.
static void take_too_big(struct world *w, uint16_t mtu, uint16_t packet_len)
{
	uint8_t f[128];
	size_t len = make_unreachable(f, 4);
	store16(f + 34 + 6, mtu);
	store16(f + 34 + 8 + 2, packet_len);
	store32(f + 34 + 8 + 24, 77);
	fix_icmp(f + 34, 36);
	world_in(w, 0, f, len);
}

// NET-33
static void fragmentation_needed_names_flow_segment_and_mtu(void **state)
{
	struct world *w = *state;
	take_too_big(w, 1300, 1500);
	assert_int_equal(w->n_unreachable, 0);
	assert_int_equal(w->n_too_big, 1);
	assert_int_equal(world_count(w, "icmp_fragmentation_needed"), 1);
	assert_int_equal(w->too_big_seq, 77);
	assert_int_equal(w->too_big_mtu, 1300);
	assert_int_equal(ip_to_v4(&w->too_big.local), OURS);
	assert_int_equal(ip_to_v4(&w->too_big.remote), BACKEND);
	assert_int_equal(w->too_big.local_port, 40000);
	assert_int_equal(w->too_big.remote_port, 8080);
	take_too_big(w, 0, 1500); // of a router from before RFC 1191
	assert_int_equal(w->n_too_big, 2);
	assert_int_equal(w->too_big_mtu, 0);
}

// TH-42, NET-33, RFC 5927 7.2.
static void fragmentation_needed_of_what_fits_is_forged(void **state)
{
	struct world *w = *state;
	take_too_big(w, 1500, 1500);
	take_too_big(w, 1501, 1500);
	take_too_big(w, 60, 60);
	assert_int_equal(w->n_too_big, 0);
	assert_int_equal(world_count(w, "icmp_forged"), 3);
	assert_int_equal(world_count(w, "icmp_fragmentation_needed"), 0);
}

// TH-42, NET-28, RFC 5927 4: what we can't have sent.
static void quote_of_what_we_never_send_is_ignored(void **state)
{
	struct world *w = *state;
	const struct {
		size_t at;
		uint32_t value;
	} bends[] = {
		{0, 0x65000000 | 60}, // version
		{0, 0x46000000 | 60}, // options
		{0, 0x44000000 | 60},
		{0, 0x45000000 | 39}, // shorter than our headers
		{4, 0x00000001}, // fragment
		{8, 0x3d110000}, // UDP
		{12, IP(10, 0, 0, 9)}, // ours, but not whom the message is for
		{12, PEER},
		{16, OURS}, // to ourselves
		{16, IP(127, 0, 0, 1)},
	};
	for (size_t i = 0; i < sizeof(bends) / sizeof(bends[0]); i++) {
		uint8_t f[128];
		size_t len = make_unreachable(f, 1);
		store32(f + 34 + 8 + bends[i].at, bends[i].value);
		fix_icmp(f + 34, 36);
		world_in(w, 0, f, len);
		assert_int_equal(w->n_unreachable, 0);
		assert_int_equal(world_count(w, "icmp_forged"), 2 * i + 1);
		f[34 + 1] = 4;
		fix_icmp(f + 34, 36);
		world_in(w, 0, f, len);
		assert_int_equal(w->n_too_big, 0);
		assert_int_equal(world_count(w, "icmp_forged"), 2 * i + 2);
	}
	for (size_t cut = 8; cut < 36; cut++) { // quotes less than 8 bytes of the segment
		uint8_t whole[128], f[128];
		make_unreachable(whole, 1);
		fix_icmp(whole + 34, cut);
		size_t len = make_ip(f, ROUTER, OURS, 1, whole + 34, cut);
		world_in(w, 0, f, len);
		assert_int_equal(w->n_unreachable, 0);
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
RUN_SUITE("net/icmp", CASE(echo_comes_back_with_its_data),
	CASE(fl_05_one_behind_another_process_echoes_nothing),
	CASE(echo_of_an_unknown_host_waits_for_its_address),
	CASE(echo_to_a_silent_host_is_no_news_for_tcp), CASE(echo_rate_is_limited),
	CASE(echo_longer_than_the_link_is_not_answered),
	CASE(damaged_messages_are_dropped_by_cause), CASE(unreachable_names_the_quoted_flow),
	CASE(fragmentation_needed_names_flow_segment_and_mtu),
	CASE(fragmentation_needed_of_what_fits_is_forged),
	CASE(quote_of_what_we_never_send_is_ignored))
