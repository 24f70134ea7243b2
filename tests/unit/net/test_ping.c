// SPDX-License-Identifier: Apache-2.0
// Echo requests of ours, and what comes of each (OPS-197, OPS-198).
#include "dataplane/net/csum.h"
#include "dataplane/net/inside.h"
#include "lb/pick/ping.h"
#include "tests/support/check.h"
#include "tests/unit/net/world6.h"

#include <string.h>

#define PEER IP(10, 0, 0, 7)
#define ROUTER IP(10, 0, 0, 254)
#define FAR IP(192, 0, 2, 80)
#define OURS IP(10, 0, 0, 1)
#define LEN (8 + NET_PING_COOKIE)

static struct lb_ping ping;

static void begin(struct world *w, const struct ip_addr *to, uint32_t count, uint8_t port)
{
	ping = (struct lb_ping){.address = *to, .count = count, .port = port};
	lb_ping_ask(&ping);
	net_ping_begin(w->net, &ping);
}

static void begin4(struct world *w, uint32_t to, uint32_t count)
{
	const struct ip_addr ip = ip_from_v4(to);
	begin(w, &ip, count, LB_PING_ANY_PORT);
}

// The peer's answer to the nth frame, which is bent first; 0 = nothing of the message is.
static void answer(struct world *w, uint32_t nth, uint32_t from, size_t bent)
{
	uint8_t f[128], message[LEN];
	memcpy(message, w->sent[nth].bytes + 34, LEN);
	message[0] = 0;
	message[bent] ^= bent ? 1 : 0;
	memset(message + 2, 0, 2);
	uint16_t sum = csum(message, LEN);
	memcpy(message + 2, &sum, sizeof(sum));
	world_in(w, 0, f, make_ip(f, from, OURS, 1, message, LEN));
}

static void learn(struct world *w, uint32_t ip)
{
	world_arp_in(w, 0, &(struct arp_text){1, peer_mac, ip, OURS});
	world_send(w, OURS, ip, "x");
	world_resolve(w, 0, ip, peer_mac);
	world_forget(w);
}

static void advance(struct world *w, uint64_t ns)
{
	for (uint64_t passed = 0; passed < ns; passed += NS_PER_MS)
		world_advance(w, NS_PER_MS);
}

// OPS-197
static void each_answer_is_told_with_its_time(void **state)
{
	struct world *w = *state;
	learn(w, PEER);
	begin4(w, PEER, 2);
	assert_int_equal(w->n_sent, 1);
	const uint8_t *f = w->sent[0].bytes;
	assert_int_equal(load32(f + 26), OURS);
	assert_int_equal(load32(f + 30), PEER);
	assert_int_equal(f[34], 8);
	assert_int_equal(csum(f + 34, LEN), 0);
	advance(w, 5 * NS_PER_MS);
	answer(w, 0, PEER, 0);
	advance(w, LB_PING_INTERVAL_NS);
	assert_int_equal(w->n_sent, 2);
	assert_false(lb_ping_is_free(&ping));
	answer(w, 1, PEER, 0);
	advance(w, LB_PING_INTERVAL_NS);
	assert_true(lb_ping_is_free(&ping));
	for (int i = 0; i < 2; i++)
		assert_int_equal(ping.replies[i].result, LB_PING_ANSWERED);
	assert_in_range(ping.replies[0].rtt_ns, 5 * NS_PER_MS, 6 * NS_PER_MS);
	assert_int_equal(world_count(w, "pings_sent"), 2);
	assert_int_equal(world_count(w, "pings_answered"), 2);
}

// OPS-197
static void what_is_no_answer_of_the_peers_is_none(void **state)
{
	struct world *w = *state;
	learn(w, PEER);
	begin4(w, PEER, 1);
	answer(w, 0, IP(10, 0, 0, 8), 0); // of another
	answer(w, 0, PEER, 4); // identifier
	answer(w, 0, PEER, 7); // number
	answer(w, 0, PEER, 8); // what is behind
	assert_int_equal(ping.replies[0].result, LB_PING_WAITS);
	assert_int_equal(world_count(w, "icmp_ignored"), 4);
	answer(w, 0, PEER, 0);
	answer(w, 0, PEER, 0); // twice
	assert_int_equal(world_count(w, "pings_answered"), 1);
	advance(w, LB_PING_INTERVAL_NS);
	answer(w, 0, PEER, 0); // late
	assert_int_equal(world_count(w, "icmp_ignored"), 6);
}

// OPS-197
static void silence_of_a_neighbor_and_of_its_address_are_two_things(void **state)
{
	struct world *w = *state;
	learn(w, PEER);
	begin4(w, PEER, 1);
	advance(w, LB_PING_PATIENCE_NS + LB_PING_INTERVAL_NS);
	assert_true(lb_ping_is_free(&ping));
	assert_int_equal(ping.replies[0].result, LB_PING_TIMEOUT);
	world_forget(w);
	begin4(w, FAR, 1);
	assert_true(is_arp_request(&w->sent[0], ROUTER));
	advance(w, LB_PING_PATIENCE_NS + LB_PING_INTERVAL_NS);
	assert_int_equal(ping.replies[0].result, LB_PING_NO_NEIGHBOR);
	assert_int_equal(ip_to_v4(&ping.hop), ROUTER);
	assert_int_equal(ping.out_port, 0);
}

static void say_error(struct world *w, uint8_t type, uint8_t code, uint32_t from)
{
	uint8_t f[128], message[8 + 28] = {type, code};
	memcpy(message + 8, w->sent[0].bytes + 14, 28);
	uint16_t sum = csum(message, sizeof(message));
	memcpy(message + 2, &sum, sizeof(sum));
	world_in(w, 0, f, make_ip(f, from, OURS, 1, message, sizeof(message)));
}

// OPS-197
static void who_says_that_it_is_unreachable_is_told(void **state)
{
	static const struct {
		uint8_t type, code;
		enum lb_ping_result result;
	} rows[] = {{3, 1, LB_PING_UNREACHABLE}, {3, 13, LB_PING_UNREACHABLE},
		{11, 0, LB_PING_EXPIRED}};
	struct world *w = *state;
	learn(w, ROUTER);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		world_forget(w);
		begin4(w, FAR, 1);
		say_error(w, rows[i].type, rows[i].code, IP(198, 51, 100, 3));
		advance(w, LB_PING_INTERVAL_NS);
		assert_true(lb_ping_is_free(&ping));
		assert_int_equal(ping.replies[0].result, rows[i].result);
		assert_int_equal(ping.replies[0].code, rows[i].code);
		assert_int_equal(ip_to_v4(&ping.replies[0].from), IP(198, 51, 100, 3));
	}
	assert_int_equal(w->n_unreachable, 0); // TCP hears of none
}

// OPS-197
static void what_leads_nowhere_is_said_at_once(void **state)
{
	struct world *w = *state;
	static const uint32_t nowhere[] = {OURS, IP(127, 0, 0, 1), IP(10, 0, 0, 255)};
	for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		begin4(w, nowhere[i], 2);
		assert_true(lb_ping_is_free(&ping));
		assert_int_equal(ping.replies[0].result, LB_PING_NO_ROUTE);
		assert_int_equal(ping.replies[1].result, LB_PING_NO_ROUTE);
		assert_true(ip_is_none(&ping.hop));
	}
	const struct ip_addr peer = ip_from_v4(PEER);
	begin(w, &peer, 1, 1); // of the other port's link
	assert_int_equal(ping.replies[0].result, LB_PING_NO_ROUTE);
	assert_int_equal(w->n_sent, 0);
}

// OPS-197
static void of_ipv6_the_same_is_told(void **state)
{
	struct world *w = *state;
	const struct ip_addr peer = ip6_of(PEER6);
	begin(w, &peer, 1, LB_PING_ANY_PORT);
	assert_true(is_solicitation(&w->sent[0], PEER6));
	world6_resolve(w, 0, PEER6, peer_mac);
	const uint8_t *sent = w->sent[w->n_sent - 1].bytes + 54;
	assert_int_equal(sent[0], 128);
	uint8_t f[160], message[LEN];
	memcpy(message, sent, LEN);
	message[0] = 129;
	memset(message + 2, 0, 2);
	world_in(w, 0, f, make_icmp6(f, PEER6, OURS6, message, LEN));
	assert_int_equal(ping.replies[0].result, LB_PING_ANSWERED);
	assert_true(ip_eq(&ping.source, &(struct ip_addr){{0x20, 0x01, 0x0d, 0xb8, [15] = 1}}));
	advance(w, LB_PING_INTERVAL_NS);
	assert_true(lb_ping_is_free(&ping));
}

// OPS-197
static void a_link_local_neighbor_is_asked_on_the_port_that_is_named(void **state)
{
	struct world *w = *state;
	const struct ip_addr peer = ip6_of("fe80::7");
	begin(w, &peer, 1, LB_PING_ANY_PORT);
	assert_int_equal(ping.replies[0].result, LB_PING_NO_ROUTE);
	begin(w, &peer, 1, 1);
	assert_int_equal(w->sent[0].port, 1);
	assert_true(is_solicitation(&w->sent[0], "fe80::7"));
	assert_true(ip_is_link_local(&ping.source));
}

// OPS-198
static void it_is_given_back_when_the_worker_ends(void **state)
{
	struct world *w = *state;
	begin4(w, PEER, 20);
	net_ping_fini(w->net);
	assert_true(lb_ping_is_free(&ping));
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
#define CASE6(test) cmocka_unit_test_setup_teardown(test, world6_setup, world_teardown)

RUN_SUITE("net/ping", CASE(each_answer_is_told_with_its_time),
	CASE(what_is_no_answer_of_the_peers_is_none),
	CASE(silence_of_a_neighbor_and_of_its_address_are_two_things),
	CASE(who_says_that_it_is_unreachable_is_told), CASE(what_leads_nowhere_is_said_at_once),
	CASE6(of_ipv6_the_same_is_told),
	CASE6(a_link_local_neighbor_is_asked_on_the_port_that_is_named),
	CASE(it_is_given_back_when_the_worker_ends))
