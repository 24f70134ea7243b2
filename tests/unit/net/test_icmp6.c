// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/csum.h"
#include "tests/support/check.h"
#include "tests/unit/net/world6.h"

#include <string.h>

#define OURS4 IP(10, 0, 0, 1)
#define PEER4 IP(10, 0, 0, 7)

static void learn_peer(struct world *w)
{
	world6_send(w, OURS6, PEER6, "x");
	world6_resolve(w, 0, PEER6, peer_mac);
	world_forget(w);
}

static void ping(struct world *w, const char *src, const char *dst)
{
	static const uint8_t message[] = {128, 0, 0, 0, 0x12, 0x34, 0, 1, 'd', 'a', 't', 'a', '!'};
	uint8_t f[128];
	size_t len = make_icmp6(f, src, dst, message, sizeof(message));
	world_in(w, 0, f, len);
}

// IP6-06
static void echo_comes_back_with_its_data(void **state)
{
	struct world *w = *state;
	learn_peer(w);
	ping(w, PEER6, OURS6);
	assert_int_equal(w->n_sent, 1);
	uint8_t *f = w->sent[0].bytes;
	assert_int_equal(w->sent[0].len, 54 + 13);
	assert_int_equal(f[54], 129);
	assert_memory_equal(f + 58, "\x12\x34\0\1data!", 9);
	uint16_t sum;
	memcpy(&sum, f + 56, 2);
	fix_icmp6_checksum(f);
	assert_memory_equal(&sum, f + 56, 2);
}

static void ping4(struct world *w)
{
	uint8_t f[128], message[16] = {8};
	uint16_t sum = csum(message, sizeof(message));
	memcpy(message + 2, &sum, sizeof(sum));
	world_in(w, 0, f, make_ip(f, PEER4, OURS4, 1, message, sizeof(message)));
}

// IP6-06
static void echo_rate_is_shared_with_ipv4(void **state)
{
	struct world *w = *state;
	world_send(w, OURS4, PEER4, "x");
	world_resolve(w, 0, PEER4, peer_mac);
	learn_peer(w);
	for (int i = 0; i < 75; i++) {
		ping(w, PEER6, OURS6);
		ping4(w);
	}
	assert_int_equal(w->n_sent, 100);
	assert_int_equal(world_count(w, "icmp6_echo"), 50);
	assert_int_equal(world_count(w, "icmp_echo"), 50);
	assert_int_equal(world_count(w, "icmp6_echo_limited"), 25);
	assert_int_equal(world_count(w, "icmp_echo_limited"), 25);
}

// IP6-06: RFC 4443 2.4 (e)
static void groups_and_nobody_get_no_answer(void **state)
{
	struct world *w = *state;
	learn_peer(w);
	ping(w, PEER6, "ff02::1");
	ping(w, "::", OURS6);
	assert_int_equal(w->n_sent, 0);
	assert_int_equal(world_count(w, "icmp6_ignored"), 2);
}

static size_t make_error(uint8_t *f, uint8_t type, const char *local, const char *remote)
{
	uint8_t message[8 + 60] = {type, 0};
	uint8_t *ip = message + 8;
	struct ip_addr src = ip6_of(local), dst = ip6_of(remote);
	ip[0] = 0x60;
	store16(ip + 4, 20);
	ip[6] = 6;
	ip[7] = 60;
	memcpy(ip + 8, src.b, 16);
	memcpy(ip + 24, dst.b, 16);
	store16(ip + 40, 1000);
	store16(ip + 42, 2000);
	store32(ip + 44, WORLD_SEQ);
	return make_icmp6(f, "2001:db8::fe", OURS6, message, sizeof(message));
}

// IP6-07
static void unreachable_destinations_are_told_to_tcp(void **state)
{
	struct world *w = *state;
	uint8_t f[256];
	size_t len = make_error(f, 1, OURS6, "2a00:1450::80");
	world_in(w, 0, f, len);
	struct ip_addr remote = ip6_of("2a00:1450::80");
	assert_int_equal(w->n_unreachable, 1);
	assert_true(ip_eq(&w->unreachable.remote, &remote));
	assert_int_equal(w->unreachable.local_port, 1000);
	assert_int_equal(w->unreachable.remote_port, 2000);
	assert_int_equal(w->unreachable_seq, WORLD_SEQ);
}

// IP6-07: RFC 5927 4
static void errors_about_what_we_never_sent_are_forged(void **state)
{
	struct world *w = *state;
	uint8_t f[256];
	size_t len = make_error(f, 1, "2001:db8::2", "2a00:1450::80");
	world_in(w, 0, f, len);
	len = make_error(f, 1, OURS6, "ff02::1");
	world_in(w, 0, f, len);
	len = make_error(f, 1, OURS6, "::ffff:10.0.0.7");
	world_in(w, 0, f, len);
	const struct bent {
		size_t at;
		uint8_t value;
	} bents[] = {{54 + 8, 0x45}, {54 + 8 + 6, 17}, {54 + 8 + 5, 19}};
	for (size_t i = 0; i < sizeof(bents) / sizeof(bents[0]); i++) {
		len = make_error(f, 1, OURS6, "2a00:1450::80");
		f[bents[i].at] = bents[i].value;
		fix_icmp6_checksum(f);
		world_in(w, 0, f, len);
	}
	assert_int_equal(w->n_unreachable, 0);
	assert_int_equal(world_count(w, "icmp6_forged"), 6);
}

// IP6-16: RFC 8201 4
static void a_smaller_mtu_on_the_way_is_told_to_tcp(void **state)
{
	struct world *w = *state;
	uint8_t f[256];
	size_t len = make_error(f, 2, OURS6, "2a00:1450::80");
	store16(f + 54 + 8 + 4, 1440); // what is quoted had 1480 bytes
	store32(f + 58, 1400);
	fix_icmp6_checksum(f);
	world_in(w, 0, f, len);
	struct ip_addr remote = ip6_of("2a00:1450::80");
	assert_int_equal(w->n_too_big, 1);
	assert_true(ip_eq(&w->too_big.remote, &remote));
	assert_int_equal(w->too_big_seq, WORLD_SEQ);
	assert_int_equal(w->too_big_mtu, 1400);
	store32(f + 58, 1480);
	fix_icmp6_checksum(f);
	world_in(w, 0, f, len);
	assert_int_equal(w->n_too_big, 1);
	assert_int_equal(world_count(w, "icmp6_forged"), 1);
}

static void damaged_messages_are_dropped_by_cause(void **state)
{
	struct world *w = *state;
	uint8_t f[256];
	size_t len = make_error(f, 1, OURS6, "2a00:1450::80");
	f[len - 1] ^= 1;
	world_in(w, 0, f, len);
	len = make_ip6(f, PEER6, OURS6, 58, "1234567", 7);
	world_in(w, 0, f, len);
	len = make_error(f, 4, OURS6, "2a00:1450::80");
	world_in(w, 0, f, len);
	assert_int_equal(world_count(w, "icmp6_checksum"), 1);
	assert_int_equal(world_count(w, "icmp6_malformed"), 1);
	assert_int_equal(world_count(w, "icmp6_ignored"), 1);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, world6_setup, world_teardown)
RUN_SUITE("net/icmp6", CASE(echo_comes_back_with_its_data), CASE(echo_rate_is_shared_with_ipv4),
	CASE(groups_and_nobody_get_no_answer), CASE(unreachable_destinations_are_told_to_tcp),
	CASE(errors_about_what_we_never_sent_are_forged),
	CASE(a_smaller_mtu_on_the_way_is_told_to_tcp), CASE(damaged_messages_are_dropped_by_cause))
