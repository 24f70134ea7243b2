// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/csum.h"
#include "tests/support/check.h"
#include "tests/unit/net/world6.h"

#include <string.h>

#define ROUTER "fe80::fe"
#define ALL_NODES "ff02::1"
#define AT 62 // of the message, behind the hop-by-hop header

// A query in a packet as routers send it, with a router alert; returns the frame's length.
static size_t make_query(uint8_t *f, size_t len, uint16_t most_delay, const char *group)
{
	uint8_t packet[8 + 40] = {58, 0, 5, 2, 0, 0, 1, 0, [8] = 130};
	struct ip_addr asked = ip6_of(group);
	store16(packet + 12, most_delay);
	memcpy(packet + 16, asked.b, 16);
	make_icmp6(f, ROUTER, ALL_NODES, packet + 8, len); // for its checksum
	memcpy(packet + 10, f + 56, 2);
	size_t frame_len = make_ip6(f, ROUTER, ALL_NODES, 0, packet, 8 + len);
	f[21] = 1;
	return frame_len;
}

static void query(struct world *w, size_t len, uint16_t most_delay, const char *group)
{
	uint8_t f[128];
	world_in(w, 0, f, make_query(f, len, most_delay, group));
}

// MLDv2's; n records of that kind, the first of the group.
static void assert_report(
	const struct world_frame *sent, uint32_t port, uint8_t kind, uint8_t n, const char *group)
{
	const uint8_t *f = sent->bytes;
	struct ip_addr routers = ip6_of("ff02::16"), first = ip6_of(group);
	assert_int_equal(sent->port, port);
	assert_int_equal(sent->len, AT + 8 + 20 * n);
	assert_memory_equal(f, "\x33\x33\0\0\0\x16", 6);
	assert_int_equal(load16(f + 18), 8 + 8 + 20 * n);
	assert_int_equal(f[20], 0); // hop-by-hop options first, with a router alert
	assert_memory_equal(f + 54, "\x3a\0\5\2\0\0\1\0", 8);
	assert_int_equal(f[21], 1);
	assert_int_equal(load16(f + 22), 0xfe80);
	assert_memory_equal(f + 38, routers.b, 16);
	assert_int_equal(f[AT], 143);
	assert_int_equal(load16(f + AT + 6), n);
	assert_int_equal(f[AT + 8], kind);
	assert_memory_equal(f + AT + 12, first.b, 16);
	uint8_t words[8] = {[3] = (uint8_t)(8 + 20 * n), [7] = 58};
	uint64_t sum = csum_add(csum_add(0, f + 22, 32), words, sizeof(words));
	assert_int_equal(csum_fold(csum_add(sum, f + AT, 8 + 20u * n)), 0);
}

// IP6-20: all addresses of port 0 have one group, those of port 1 two.
static void groups_are_reported_at_start_and_a_second_later(void **state)
{
	struct world *w = *state;
	for (uint32_t p = 0; p < 2; p++)
		net_announce(w->net, p);
	assert_report(&w->sent[0], 0, 4, 1, "ff02::1:ff00:1");
	assert_report(&w->sent[8], 1, 4, 2, "ff02::1:ff00:2");
	world_forget(w);
	world_advance(w, NS_PER_SECOND);
	assert_int_equal(w->n_sent, 2);
	assert_report(&w->sent[0], 0, 4, 1, "ff02::1:ff00:1");
	world_advance(w, 100 * NS_PER_SECOND);
	assert_int_equal(w->n_sent, 2);
	assert_int_equal(world_count(w, "mld_reported"), 4);
}

// IP6-21
static void a_router_that_asks_gets_a_report_within_its_time(void **state)
{
	struct world *w = *state;
	query(w, 28, 10000, "::");
	query(w, 28, 10000, "::"); // still the one report
	assert_int_equal(w->n_sent, 0);
	for (int i = 0; i < 101; i++)
		world_advance(w, 100 * NS_PER_MS);
	assert_int_equal(w->n_sent, 1);
	assert_report(&w->sent[0], 0, 2, 1, "ff02::1:ff00:1");
	query(w, 28, 0, "ff02::1:ff00:1");
	world_advance(w, 20 * NS_PER_MS);
	assert_int_equal(w->n_sent, 2);
	query(w, 28, 0x8000, "::"); // 32768 ms
	for (int i = 0; i < 33; i++)
		world_advance(w, NS_PER_SECOND);
	assert_int_equal(w->n_sent, 3);
	query(w, 28, 0, "ff02::1:ff00:77");
	world_advance(w, NS_PER_SECOND);
	assert_int_equal(w->n_sent, 3); // of another's group
}

// IP6-21: RFC 3810 8.2.1
static void a_router_of_the_first_version_is_answered_in_kind(void **state)
{
	struct world *w = *state;
	query(w, 24, 0, "::");
	world_advance(w, 20 * NS_PER_MS);
	assert_int_equal(w->n_sent, 1);
	const uint8_t *f = w->sent[0].bytes;
	struct ip_addr group = ip6_of("ff02::1:ff00:1");
	assert_int_equal(w->sent[0].len, AT + 24);
	assert_int_equal(f[AT], 131);
	assert_memory_equal(f + 38, group.b, 16);
	assert_memory_equal(f + AT + 8, group.b, 16);
}

// IP6-21
static void forged_queries_are_dropped(void **state)
{
	struct world *w = *state;
	uint8_t f[128];
	size_t len = make_query(f, 28, 0, "::");
	f[21] = 2; // it came from farther than the link
	world_in(w, 0, f, len);
	query(w, 25, 0, "::");
	query(w, 20, 0, "::");
	make_query(f, 28, 0, "::");
	uint8_t message[28];
	memcpy(message, f + AT, sizeof(message));
	make_icmp6(f, "2001:db8::7", ALL_NODES, message, sizeof(message));
	f[21] = 1;
	world_in(w, 0, f, 54 + 28);
	world_advance(w, NS_PER_SECOND);
	assert_int_equal(w->n_sent, 0);
	assert_int_equal(world_count(w, "mld_malformed") + world_count(w, "icmp6_checksum"), 4);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, world6_setup, world_teardown)
RUN_SUITE("net/mld", CASE(groups_are_reported_at_start_and_a_second_later),
	CASE(a_router_that_asks_gets_a_report_within_its_time),
	CASE(a_router_of_the_first_version_is_answered_in_kind), CASE(forged_queries_are_dropped))
