// SPDX-License-Identifier: Apache-2.0
// Several gateways of a port, and the watch: routers that answer or not, in virtual time.
#include "tests/support/check.h"
#include "tests/unit/net/world6.h"

#include <stdio.h>
#include <string.h>

#define OURS IP(10, 0, 0, 1)
#define FAR IP(203, 0, 113, 1)
#define N_ROUTERS 3
#define N_FLOWS 300
#define STEP (10 * NS_PER_MS)
#define DETECTION (1100 * NS_PER_MS) // an interval and three questions: FL-62
#define RETURN (2600 * NS_PER_MS) // a question a second, and three answers

static const char *const texts4[N_ROUTERS] = {"10.0.0.254", "10.0.0.253", "10.0.0.252"};
static const char *const texts6[N_ROUTERS] = {"fe80::fe", "fe80::fd", "2001:db8::fc"};

// The routers of port 0.
static struct routers {
	const char *const *texts;
	uint8_t macs[N_ROUTERS][6];
	bool dead[N_ROUTERS];
	uint32_t n_asked[N_ROUTERS], n_broadcast[N_ROUTERS];
} routers;

static const struct net_watch usual = {500 * NS_PER_MS, 3, 3};

static int setup(void **state, const char *const *texts, uint32_t n, const struct net_watch *watch,
	bool first)
{
	struct net_port_conf ports[2] = {
		{.mtu = 1500,
			.addresses = {{ip6_of(OURS6), 64}, {ip_from_v4(OURS), 24}},
			.n_addresses = 2,
			.first_gateway = first,
			.watch = *watch},
		{.mtu = 1400, .addresses = {{ip_from_v4(IP(10, 1, 0, 1)), 16}}, .n_addresses = 1},
	};
	routers = (struct routers){.texts = texts};
	for (uint32_t i = 0; i < n; i++)
		assert_true(ip_parse(texts[i], &ports[0].gateways[i]));
	for (uint8_t i = 0; i < N_ROUTERS; i++)
		memcpy(routers.macs[i], (const uint8_t[6]){2, 0, 0, 1, 0, i}, 6);
	return world_setup_ports(state, ports);
}

static int setup_three(void **state)
{
	return setup(state, texts4, 3, &usual, false);
}

static int setup_three6(void **state)
{
	return setup(state, texts6, 3, &usual, false);
}

static int setup_in_order(void **state)
{
	return setup(state, texts4, 3, &usual, true);
}

static int setup_one(void **state)
{
	return setup(state, texts4, 1, &usual, false);
}

static int setup_unwatched(void **state)
{
	return setup(state, texts4, 2, &(struct net_watch){0}, false);
}

static bool asks_for(const struct world_frame *f, uint32_t i)
{
	struct ip_addr ip;
	assert_true(ip_parse(routers.texts[i], &ip));
	return ip_is_v4(&ip) ? is_arp_request(f, ip_to_v4(&ip))
	                     : is_solicitation(f, routers.texts[i]);
}

// Each router that lives answers what it was asked; whatever else was sent is forgotten.
static void answer(struct world *w)
{
	bool asked[N_ROUTERS] = {false};
	for (uint32_t i = 0; i < N_ROUTERS; i++)
		for (uint32_t k = 0; k < w->n_sent; k++) {
			if (!asks_for(&w->sent[k], i))
				continue;
			bool broadcast = w->sent[k].bytes[0] & 1;
			asked[i] |= broadcast || memcmp(w->sent[k].bytes, routers.macs[i], 6) == 0;
			routers.n_asked[i]++;
			routers.n_broadcast[i] += broadcast;
		}
	world_forget(w);
	for (uint32_t i = 0; i < N_ROUTERS; i++) {
		struct ip_addr ip;
		if (!asked[i] || routers.dead[i])
			continue;
		assert_true(ip_parse(routers.texts[i], &ip));
		if (ip_is_v4(&ip))
			world_resolve(w, 0, ip_to_v4(&ip), routers.macs[i]);
		else
			world6_resolve(w, 0, routers.texts[i], routers.macs[i]);
	}
}

static void run(struct world *w, uint64_t ns)
{
	for (uint64_t passed = 0; passed < ns; passed += STEP) {
		answer(w);
		world_advance(w, STEP);
	}
	answer(w);
}

static void begin(struct world *w)
{
	net_announce(w->net, 0);
	run(w, NS_PER_SECOND);
}

// By which router a segment of that flow leaves; -1 = by none.
static int way_of(struct world *w, uint16_t flow)
{
	bool v6 = routers.texts == texts6;
	struct tcp_flow f = {.local = v6 ? ip6_of(OURS6) : ip_from_v4(OURS),
		.remote = v6 ? ip6_of("2001:db8:77::1") : ip_from_v4(FAR),
		.local_port = 443,
		.remote_port = (uint16_t)(20000 + flow)};
	world_forget(w);
	uint8_t *segment = w->io.reserve(w->io.ctx, &f, 20);
	assert_non_null(segment);
	memset(segment, 0, 20);
	w->io.emit(w->io.ctx, &f, segment, 20);
	for (int i = 0; i < N_ROUTERS && w->n_sent > 0; i++) // a question may follow it
		if (memcmp(w->sent[0].bytes, routers.macs[i], 6) == 0)
			return i;
	return -1;
}

struct ways {
	int of[N_FLOWS];
	uint32_t n[N_ROUTERS];
};

static struct ways look(struct world *w)
{
	struct ways ways = {0};
	for (uint16_t i = 0; i < N_FLOWS; i++) {
		ways.of[i] = way_of(w, i);
		assert_true(ways.of[i] >= 0);
		ways.n[ways.of[i]]++;
	}
	world_forget(w);
	return ways;
}

// Whoever went by one of the dead routers goes by another now, and nobody else moved.
static void assert_only_these_moved(const struct ways *before, const struct ways *after)
{
	for (uint32_t i = 0; i < N_FLOWS; i++) {
		if (routers.dead[before->of[i]])
			assert_false(routers.dead[after->of[i]]);
		else
			assert_int_equal(after->of[i], before->of[i]);
	}
}

static void assert_same(const struct ways *a, const struct ways *b)
{
	assert_memory_equal(a->of, b->of, sizeof(a->of));
}

// FL-60
static void flows_share_the_gateways_and_stay_with_theirs(void **state)
{
	struct world *w = *state;
	begin(w);
	struct ways ways = look(w);
	for (uint32_t i = 0; i < N_ROUTERS; i++)
		assert_in_range(ways.n[i], N_FLOWS / 6, N_FLOWS / 2);
	run(w, 10 * NS_PER_SECOND);
	struct ways later = look(w);
	assert_same(&ways, &later);
}

// FL-61, FL-62
static void what_one_gateway_leaves_is_shared_and_nothing_else_moves(void **state)
{
	struct world *w = *state;
	begin(w);
	struct ways before = look(w);
	routers.dead[1] = true;
	run(w, DETECTION);
	struct ways after = look(w);
	assert_only_these_moved(&before, &after);
	assert_true(after.n[0] > before.n[0] && after.n[2] > before.n[2]);
	assert_int_equal(world_count(w, "gateway_downs"), 1);

	routers.dead[2] = true; // those that it had taken move on, those of the first stay
	run(w, DETECTION);
	struct ways last = look(w);
	assert_only_these_moved(&after, &last);
	assert_int_equal(last.n[0], N_FLOWS);
}

// FL-63
static void a_gateway_is_used_again_when_it_answers_steadily(void **state)
{
	struct world *w = *state;
	begin(w);
	struct ways before = look(w);
	routers.dead[0] = true;
	run(w, DETECTION);
	routers.dead[0] = false;
	run(w, 900 * NS_PER_MS); // it has answered once at most
	assert_int_equal(look(w).n[0], 0);
	run(w, RETURN - 900 * NS_PER_MS);
	struct ways after = look(w);
	assert_same(&before, &after);
}

// FL-63
static void a_gateway_that_answers_now_and_then_is_not(void **state)
{
	struct world *w = *state;
	begin(w);
	routers.dead[0] = true;
	run(w, DETECTION);
	for (int i = 0; i < 10; i++) { // some answers, never three in a row
		routers.dead[0] = i % 2;
		run(w, (i % 2 ? 2000 : 900) * NS_PER_MS);
		assert_int_equal(look(w).n[0], 0);
	}
	assert_int_equal(world_count(w, "gateway_downs"), 1);
}

// FL-64
static void without_any_that_answers_the_last_ones_are_used(void **state)
{
	struct world *w = *state;
	begin(w);
	routers.dead[0] = true;
	run(w, DETECTION);
	struct ways before = look(w);
	routers.dead[1] = routers.dead[2] = true;
	run(w, 100 * NS_PER_SECOND); // their MAC addresses stay known
	struct ways after = look(w);
	for (uint32_t i = 0; i < N_FLOWS; i++)
		assert_true(after.of[i] == before.of[i] || after.of[i] == 1 || after.of[i] == 2);
	assert_int_equal(after.n[0], 0);
	assert_int_equal(world_count(w, "gateway_downs"), 3);

	routers.dead[0] = false; // the only one: all go there
	run(w, RETURN);
	assert_int_equal(look(w).n[0], N_FLOWS);
}

// FL-65
static void in_order_all_take_the_first_that_answers(void **state)
{
	struct world *w = *state;
	begin(w);
	assert_int_equal(look(w).n[0], N_FLOWS);
	routers.dead[0] = true;
	run(w, DETECTION);
	assert_int_equal(look(w).n[1], N_FLOWS);
	routers.dead[1] = true;
	run(w, DETECTION);
	assert_int_equal(look(w).n[2], N_FLOWS);
	routers.dead[0] = false;
	run(w, RETURN);
	assert_int_equal(look(w).n[0], N_FLOWS);
}

// FL-62
static void each_is_asked_at_its_interval_by_unicast_without_traffic(void **state)
{
	struct world *w = *state;
	begin(w);
	memset(routers.n_asked, 0, sizeof(routers.n_asked));
	memset(routers.n_broadcast, 0, sizeof(routers.n_broadcast));
	run(w, 100 * NS_PER_SECOND);
	for (uint32_t i = 0; i < N_ROUTERS; i++) {
		assert_in_range(routers.n_asked[i], 199, 201);
		assert_int_equal(routers.n_broadcast[i], 0);
	}
}

// FL-62
static void one_that_is_down_is_asked_by_broadcast_once_a_second(void **state)
{
	struct world *w = *state;
	begin(w);
	routers.dead[2] = true;
	run(w, DETECTION);
	memset(routers.n_asked, 0, sizeof(routers.n_asked));
	memset(routers.n_broadcast, 0, sizeof(routers.n_broadcast));
	run(w, 100 * NS_PER_SECOND);
	assert_in_range(routers.n_asked[2], 98, 102);
	assert_int_equal(routers.n_broadcast[2], routers.n_asked[2]);
}

// FL-62
static void a_router_that_was_replaced_is_found_before_it_is_down(void **state)
{
	struct world *w = *state;
	begin(w);
	routers.dead[0] = true; // unicast to the old one
	run(w, 600 * NS_PER_MS);
	routers.macs[0][5] = 0x77;
	routers.dead[0] = false; // the whole link was asked
	run(w, NS_PER_SECOND);
	assert_int_equal(world_count(w, "gateway_downs"), 0);
	assert_in_range(look(w).n[0], N_FLOWS / 6, N_FLOWS / 2);
}

// FL-66
static void one_that_never_answered_is_not_used_once_another_does(void **state)
{
	struct world *w = *state;
	routers.dead[1] = true;
	begin(w);
	assert_int_equal(look(w).n[1], 0);
	run(w, 3 * NS_PER_SECOND);
	assert_int_equal(world_count(w, "gateway_downs"), 1);
	routers.dead[1] = false;
	run(w, RETURN);
	assert_in_range(look(w).n[1], N_FLOWS / 6, N_FLOWS / 2);
}

// FL-64
static void a_lone_gateway_is_watched_and_its_address_is_kept(void **state)
{
	struct world *w = *state;
	begin(w);
	assert_int_equal(look(w).n[0], N_FLOWS);
	routers.dead[0] = true;
	run(w, 700 * NS_PER_SECOND); // longer than a neighbor's life
	assert_int_equal(world_count(w, "gateway_downs"), 1);
	assert_int_equal(way_of(w, 1), 0);
	run(w, 10 * NS_PER_SECOND);
	assert_int_equal(world_count(w, "gateways_silent"), 1);
	routers.dead[0] = false;
	run(w, RETURN);
	assert_int_equal(world_count(w, "gateways_silent"), 0);
	assert_int_equal(way_of(w, 1), 0);
}

// FL-60
static void without_a_watch_all_are_used(void **state)
{
	struct world *w = *state;
	net_announce(w->net, 0);
	world_forget(w);
	for (uint16_t i = 0; i < 20; i++) // both are asked for, by traffic
		way_of(w, i), answer(w);
	struct ways ways = look(w);
	assert_true(ways.n[0] > 0 && ways.n[1] > 0);
	run(w, 2 * NS_PER_SECOND);
	assert_int_equal(world_count(w, "gateway_asks"), 0);
}

// FL-67
static void a_worker_that_does_not_ask_follows_the_one_that_does(void **state)
{
	struct world *w = *state;
	struct lb_gateways board = {0};
	void *others;
	assert_int_equal(setup_three(&others), 0);
	struct world *other = others;
	net_share_gateways(w->net, &board);
	net_share_gateways(other->net, &board);
	net_announce(w->net, 0);
	for (int i = 0; i < 20; i++) { // what one gets is copied to the other
		run(w, 50 * NS_PER_MS);
		world_resolve(other, 0, IP(10, 0, 0, 254), routers.macs[0]);
		world_resolve(other, 0, IP(10, 0, 0, 253), routers.macs[1]);
		world_resolve(other, 0, IP(10, 0, 0, 252), routers.macs[2]);
	}
	net_follow_gateways(other->net);
	assert_in_range(look(other).n[1], N_FLOWS / 6, N_FLOWS / 2);
	routers.dead[1] = true;
	run(w, DETECTION);
	assert_in_range(look(other).n[1], N_FLOWS / 6, N_FLOWS / 2);
	net_follow_gateways(other->net);
	assert_int_equal(look(other).n[1], 0);
	assert_int_equal(world_count(other, "gateway_asks"), 0);
	assert_int_equal(lb_gateway_read(&board.list[0][1]).state, LB_GATEWAY_DOWN);
	world_teardown(&others);
}

// FL-60: what is no segment takes one way to its destination.
static void echo_replies_to_one_host_take_one_gateway(void **state)
{
	struct world *w = *state;
	uint8_t f[128], first[6];
	begin(w);
	for (int i = 0; i < 8; i++) {
		size_t len = make_ip(f, FAR, OURS, 1, (uint8_t[]){8, 0, 0xf7, 0xff, 0, 0, 0, 0}, 8);
		world_forget(w);
		world_in(w, 0, f, len);
		assert_int_equal(w->n_sent, 1);
		if (i == 0)
			memcpy(first, w->sent[0].bytes, 6);
		assert_memory_equal(w->sent[0].bytes, first, 6);
	}
}

// FL-62: the worker stood still, and then all that waited for it came at once.
static void a_worker_that_stood_still_does_not_take_gateways_for_dead(void **state)
{
	struct world *w = *state;
	begin(w);
	for (int i = 0; i < 20; i++) {
		world_advance(w, 5 * NS_PER_SECOND);
		run(w, NS_PER_SECOND);
	}
	assert_int_equal(world_count(w, "gateway_downs"), 0);
}

#define CASE(of, f) cmocka_unit_test_setup_teardown(f, setup_##of, world_teardown)

RUN_SUITE("net/gateway", CASE(three, flows_share_the_gateways_and_stay_with_theirs),
	CASE(three6, flows_share_the_gateways_and_stay_with_theirs),
	CASE(three, what_one_gateway_leaves_is_shared_and_nothing_else_moves),
	CASE(three6, what_one_gateway_leaves_is_shared_and_nothing_else_moves),
	CASE(three, a_gateway_is_used_again_when_it_answers_steadily),
	CASE(three6, a_gateway_is_used_again_when_it_answers_steadily),
	CASE(three, a_gateway_that_answers_now_and_then_is_not),
	CASE(three, without_any_that_answers_the_last_ones_are_used),
	CASE(three6, without_any_that_answers_the_last_ones_are_used),
	CASE(in_order, in_order_all_take_the_first_that_answers),
	CASE(three, each_is_asked_at_its_interval_by_unicast_without_traffic),
	CASE(three6, each_is_asked_at_its_interval_by_unicast_without_traffic),
	CASE(three, one_that_is_down_is_asked_by_broadcast_once_a_second),
	CASE(three6, one_that_is_down_is_asked_by_broadcast_once_a_second),
	CASE(three, a_router_that_was_replaced_is_found_before_it_is_down),
	CASE(three, one_that_never_answered_is_not_used_once_another_does),
	CASE(one, a_lone_gateway_is_watched_and_its_address_is_kept),
	CASE(unwatched, without_a_watch_all_are_used),
	CASE(three, a_worker_that_does_not_ask_follows_the_one_that_does),
	CASE(three, echo_replies_to_one_host_take_one_gateway),
	CASE(three, a_worker_that_stood_still_does_not_take_gateways_for_dead))
