// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/csum.h"
#include "dataplane/net/neigh.h"
#include "tests/support/check.h"
#include "tests/unit/net/world.h"

#include <string.h>

#define PEER IP(10, 0, 0, 7)
#define OURS IP(10, 0, 0, 1)

static const uint8_t other_mac[6] = {2, 0, 0, 0, 0, 0xbb};

static uint32_t n_requests(const struct world *w, uint32_t ip)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < w->n_sent; i++)
		n += is_arp_request(&w->sent[i], ip);
	return n;
}

static uint32_t n_packets(const struct world *w)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < w->n_sent; i++)
		n += load16(w->sent[i].bytes + 12) == 0x0800;
	return n;
}

static void learn_peer(struct world *w)
{
	assert_true(world_send(w, OURS, PEER, "hello"));
	world_resolve(w, 0, PEER, peer_mac);
	world_forget(w);
}

static void frames_wait_for_the_answer_and_leave_in_order(void **state)
{
	struct world *w = *state;
	assert_true(world_send(w, OURS, PEER, "one"));
	assert_true(world_send(w, OURS, PEER, "two"));
	assert_int_equal(w->n_sent, 1);
	assert_true(is_arp_request(&w->sent[0], PEER));
	assert_memory_equal(w->sent[0].bytes, broadcast_mac, 6);
	assert_int_equal(load32(w->sent[0].bytes + 28), OURS);

	world_resolve(w, 0, PEER, peer_mac);
	assert_int_equal(w->n_sent, 3);
	for (int i = 1; i < 3; i++) {
		const uint8_t *f = w->sent[i].bytes;
		assert_memory_equal(f, peer_mac, 6);
		assert_memory_equal(f + 6, world_mac[0], 6);
		assert_int_equal(csum(f + 14, 20), 0);
		assert_int_equal(load32(f + 30), PEER);
		assert_memory_equal(f + 54, i == 1 ? "one" : "two", 3);
	}
	assert_true(world_send(w, OURS, PEER, "three")); // now without waiting
	assert_int_equal(w->n_sent, 4);
	assert_memory_equal(w->sent[3].bytes, peer_mac, 6);
}

// NET-20, RFC 1122 2.3.2.1
static void question_is_repeated_once_a_second_whatever_is_sent(void **state)
{
	struct world *w = *state;
	for (int i = 0; i < 5; i++)
		assert_true(world_send(w, OURS, PEER, "x"));
	assert_int_equal(n_requests(w, PEER), 1);
	world_advance(w, NS_PER_SECOND - 2000000);
	assert_int_equal(n_requests(w, PEER), 1);
	world_advance(w, 3000000);
	assert_int_equal(n_requests(w, PEER), 2);
	world_advance(w, NS_PER_SECOND);
	assert_int_equal(n_requests(w, PEER), 3);
}

static void nobody_answers(struct world *w)
{
	for (int i = 0; i < 4; i++)
		world_advance(w, NS_PER_SECOND + NS_PER_MS);
}

// OPS-137
static void a_gateway_is_silent_from_a_question_without_answer_to_the_next_word(void **state)
{
	struct world *w = *state;
	const uint32_t far = IP(203, 0, 113, 1), gateway = IP(10, 0, 0, 254);
	assert_true(world_send(w, OURS, far, "x"));
	assert_true(world_send(w, OURS, PEER, "x"));
	assert_int_equal(world_count(w, "gateways_silent"), 0);
	nobody_answers(w);
	assert_int_equal(world_count(w, "neigh_failed"), 2); // of which one is the gateway
	assert_int_equal(world_count(w, "gateways_silent"), 1);
	assert_true(world_send(w, OURS, far, "x"));
	nobody_answers(w);
	assert_int_equal(world_count(w, "gateways_silent"), 1);
	assert_true(world_send(w, OURS, far, "x"));
	world_resolve(w, 0, gateway, peer_mac);
	assert_int_equal(world_count(w, "gateways_silent"), 0);
}

static const uint8_t new_mac[6] = {2, 0, 0, 0, 0, 0xcc};

static void another_device_of_a_port_sends_as_itself_and_asks_the_link_anew(void **state)
{
	struct world *w = *state;
	learn_peer(w);
	net_renew_port(w->net, 0, new_mac);
	assert_int_equal(w->n_sent, 0); // who is not sent to is not asked for
	assert_true(world_send(w, OURS, PEER, "x"));
	assert_int_equal(w->n_sent, 2);
	assert_memory_equal(w->sent[0].bytes, peer_mac, 6);
	assert_memory_equal(w->sent[0].bytes + 6, new_mac, 6);
	assert_true(is_arp_request(&w->sent[1], PEER));
	assert_memory_equal(w->sent[1].bytes, broadcast_mac, 6);
	assert_memory_equal(w->sent[1].bytes + 22, new_mac, 6);

	world_arp_in(w, 0, &(struct arp_text){2, other_mac, PEER, OURS, new_mac});
	world_forget(w);
	assert_true(world_send(w, OURS, PEER, "x"));
	assert_int_equal(w->n_sent, 1);
	assert_memory_equal(w->sent[0].bytes, other_mac, 6);
}

static void frames_that_waited_leave_as_the_new_device(void **state)
{
	struct world *w = *state;
	assert_true(world_send(w, OURS, PEER, "x"));
	net_renew_port(w->net, 0, new_mac);
	net_renew_port(w->net, 1, other_mac); // not these frames'
	world_forget(w);
	world_arp_in(w, 0, &(struct arp_text){2, peer_mac, PEER, OURS, new_mac});
	assert_int_equal(w->n_sent, 1);
	assert_memory_equal(w->sent[0].bytes, peer_mac, 6);
	assert_memory_equal(w->sent[0].bytes + 6, new_mac, 6);
}

static void net_44_silence_says_nothing_while_a_new_device_settles(void **state)
{
	struct world *w = *state;
	learn_peer(w);
	net_renew_port(w->net, 0, new_mac);
	assert_true(world_send(w, OURS, PEER, "x"));
	assert_true(world_send(w, OURS, IP(10, 0, 0, 99), "x"));
	for (unsigned s = 0; s < 9; s++)
		world_advance(w, NS_PER_SECOND);
	assert_int_equal(world_count(w, "neigh_failed"), 0);
	assert_int_equal(w->n_unreachable, 0);
	world_arp_in(w, 0, &(struct arp_text){2, peer_mac, PEER, OURS, new_mac});
	for (unsigned s = 0; s < 4; s++)
		world_advance(w, NS_PER_SECOND);
	assert_int_equal(world_count(w, "neigh_failed"), 1);
	assert_int_equal(w->n_unreachable, 1);
}

// NET-25
static void silence_drops_the_frames_and_tells_their_flow(void **state)
{
	struct world *w = *state;
	assert_true(world_send(w, OURS, PEER, "x"));
	assert_true(world_send(w, OURS, PEER, "y"));
	world_advance(w, 2 * NS_PER_SECOND);
	assert_int_equal(w->n_unreachable, 0);
	world_advance(w, NS_PER_SECOND);
	world_advance(w, NS_PER_SECOND);
	assert_int_equal(w->n_unreachable, 2);
	assert_int_equal(ip_to_v4(&w->unreachable.local), OURS);
	assert_int_equal(ip_to_v4(&w->unreachable.remote), PEER);
	assert_int_equal(w->unreachable.local_port, 1000);
	assert_int_equal(w->unreachable.remote_port, 2000);
	assert_int_equal(w->unreachable_seq, WORLD_SEQ);
	assert_int_equal(world_count(w, "hold_dropped"), 2);
	assert_int_equal(world_count(w, "neigh_failed"), 1);
	assert_int_equal(n_packets(w), 0);
	world_forget(w);
	world_advance(w, 10 * NS_PER_SECOND); // nobody asks for ever
	assert_int_equal(w->n_sent, 0);
	assert_true(world_send(w, OURS, PEER, "z")); // a new attempt starts over
	assert_int_equal(n_requests(w, PEER), 1);
}

static void try_again(struct world *w)
{
	assert_true(world_send(w, OURS, PEER, "again"));
}

static void flow_may_try_again_while_it_hears_of_the_failure(void **state)
{
	struct world *w = *state;
	w->on_unreachable = try_again;
	assert_true(world_send(w, OURS, PEER, "x"));
	for (int i = 0; i < 4; i++)
		world_advance(w, NS_PER_SECOND);
	assert_int_equal(w->n_unreachable, 1);
	world_resolve(w, 0, PEER, peer_mac);
	assert_int_equal(n_packets(w), 1);
}

// NET-22
static void hold_is_bounded_per_neighbor(void **state)
{
	struct world *w = *state;
	for (int i = 0; i < NEIGH_MAX_HELD; i++)
		assert_true(world_send(w, OURS, PEER, "x"));
	assert_false(world_send(w, OURS, PEER, "x"));
	assert_int_equal(world_count(w, "hold_full"), 1);
	world_resolve(w, 0, PEER, peer_mac);
	assert_int_equal(n_packets(w), NEIGH_MAX_HELD);
}

// NET-22
static void hold_is_bounded_in_total_and_still_asks(void **state)
{
	struct world *w = *state;
	uint32_t n = 0;
	for (uint32_t ip = IP(10, 1, 4, 1); n < NEIGH_MAX_HELD_ALL; ip++)
		for (int i = 0; i < NEIGH_MAX_HELD; i++, n++) {
			assert_true(world_send(w, OURS, ip, "x"));
			world_forget(w);
		}
	assert_false(world_send(w, OURS, PEER, "x"));
	assert_int_equal(world_count(w, "hold_full"), 1);
	assert_int_equal(n_requests(w, PEER), 1);
	world_resolve(w, 0, PEER, peer_mac);
	assert_true(world_send(w, OURS, PEER, "x"));
	assert_int_equal(n_packets(w), 1);
}

// A thousand SYNs that wait leave room for what is longer.
static void long_frames_and_short_ones_wait_apart(void **state)
{
	struct world *w = *state;
	char text[NEIGH_SMALL_FRAME + 1] = {0};
	memset(text, 'x', NEIGH_SMALL_FRAME);
	uint32_t n = 0;
	for (uint32_t ip = IP(10, 1, 4, 1); n < NEIGH_MAX_HELD_ALL; ip++)
		for (int i = 0; i < NEIGH_MAX_HELD; i++, n++)
			assert_true(world_send(w, OURS, ip, "x"));
	assert_false(world_send(w, OURS, PEER, "x"));
	world_forget(w);
	assert_true(world_send(w, OURS, PEER, text));
	world_resolve(w, 0, PEER, peer_mac);
	assert_int_equal(n_packets(w), 1);
}

static void held_frames_are_back_in_the_pool_afterwards(void **state)
{
	struct world *w = *state;
	char text[NEIGH_SMALL_FRAME + 1] = {0};
	memset(text, 'x', NEIGH_SMALL_FRAME);
	for (int round = 0; round < 400; round++) { // 200 * 16 is more than either pool
		world_forget(w);
		uint32_t ip = IP(10, 1, 5, 1) + (uint32_t)round;
		for (int i = 0; i < NEIGH_MAX_HELD; i++)
			assert_true(world_send(w, OURS, ip, round % 4 < 2 ? "x" : text));
		if (round % 2)
			world_resolve(w, 1, ip, peer_mac);
		else
			for (int i = 0; i < 4; i++)
				world_advance(w, NS_PER_SECOND);
	}
	assert_int_equal(world_count(w, "hold_full"), 0);
}

// NET-23
static void old_entry_is_refreshed_while_traffic_flows(void **state)
{
	struct world *w = *state;
	learn_peer(w);
	world_advance(w, 59 * NS_PER_SECOND);
	assert_true(world_send(w, OURS, PEER, "x"));
	assert_int_equal(w->n_sent, 1);
	world_advance(w, 2 * NS_PER_SECOND);
	world_forget(w);
	assert_true(world_send(w, OURS, PEER, "x"));
	assert_int_equal(w->n_sent, 2);
	assert_true(is_arp_request(&w->sent[1], PEER));
	assert_memory_equal(w->sent[1].bytes, peer_mac, 6); // to that host alone
	world_resolve(w, 0, PEER, peer_mac);
	world_forget(w);
	world_advance(w, 30 * NS_PER_SECOND);
	assert_true(world_send(w, OURS, PEER, "x"));
	assert_int_equal(w->n_sent, 1);
}

// NET-20, NET-25
static void refresh_without_answer_asks_everybody_and_then_fails(void **state)
{
	struct world *w = *state;
	learn_peer(w);
	world_advance(w, 61 * NS_PER_SECOND);
	assert_true(world_send(w, OURS, PEER, "x"));
	for (int i = 0; i < 5; i++) {
		world_advance(w, NS_PER_SECOND);
		assert_true(world_send(w, OURS, PEER, "x")); // never held back meanwhile
	}
	assert_int_equal(n_packets(w), 6);
	assert_int_equal(n_requests(w, PEER), 6);
	uint32_t n_broadcast = 0;
	for (uint32_t i = 0; i < w->n_sent; i++)
		n_broadcast += memcmp(w->sent[i].bytes, broadcast_mac, 6) == 0;
	assert_int_equal(n_broadcast, 3);
	world_advance(w, NS_PER_SECOND);
	assert_int_equal(world_count(w, "neigh_failed"), 1);
	world_forget(w);
	assert_true(world_send(w, OURS, PEER, "x")); // held from now on
	assert_int_equal(n_packets(w), 0);
	assert_int_equal(n_requests(w, PEER), 1);
}

static void host_that_moved_is_followed(void **state)
{
	struct world *w = *state;
	learn_peer(w);
	world_advance(w, 5 * NS_PER_SECOND);
	// A gratuitous ARP is not believed, but asked about at once.
	world_arp_in(w, 0, &(struct arp_text){1, other_mac, PEER, PEER});
	assert_int_equal(n_requests(w, PEER), 1);
	assert_memory_equal(w->sent[0].bytes, broadcast_mac, 6);
	world_forget(w);
	assert_true(world_send(w, OURS, PEER, "x"));
	assert_memory_equal(w->sent[0].bytes, peer_mac, 6);
	world_resolve(w, 0, PEER, other_mac);
	world_forget(w);
	assert_true(world_send(w, OURS, PEER, "x"));
	assert_int_equal(w->n_sent, 1);
	assert_memory_equal(w->sent[0].bytes, other_mac, 6);
}

// NET-16
static void two_claimants_do_not_make_us_ask_at_their_pace(void **state)
{
	struct world *w = *state;
	learn_peer(w);
	world_advance(w, 5 * NS_PER_SECOND);
	for (int i = 0; i < 50; i++) {
		world_arp_in(w, 0, &(struct arp_text){1, other_mac, PEER, PEER});
		world_resolve(w, 0, PEER, peer_mac);
		world_resolve(w, 0, PEER, other_mac);
		world_advance(w, NS_PER_SECOND / 10);
	}
	assert_true(n_requests(w, PEER) <= 6); // one a second
}

// TH-47, NET-16
static void lie_does_not_stick_when_the_owner_answers(void **state)
{
	struct world *w = *state;
	learn_peer(w);
	world_advance(w, 5 * NS_PER_SECOND);
	world_arp_in(w, 0, &(struct arp_text){1, other_mac, PEER, OURS});
	world_resolve(w, 0, PEER, peer_mac);
	world_forget(w);
	assert_true(world_send(w, OURS, PEER, "x"));
	assert_memory_equal(w->sent[0].bytes, peer_mac, 6);
}

// NET-23
static void unused_entry_is_forgotten(void **state)
{
	struct world *w = *state;
	learn_peer(w);
	world_advance(w, 61 * NS_PER_SECOND);
	world_advance(w, 601 * NS_PER_SECOND);
	assert_true(world_send(w, OURS, PEER, "x"));
	assert_int_equal(w->n_sent, 1);
	assert_true(is_arp_request(&w->sent[0], PEER));
	assert_memory_equal(w->sent[0].bytes, broadcast_mac, 6);
}

// TH-48, NET-24
static void flood_of_askers_fills_no_more_than_the_table_and_spares_live_entries(void **state)
{
	struct world *w = *state;
	learn_peer(w);
	for (uint32_t i = 0; i < 3 * WORLD_NEIGHBORS; i++) {
		world_arp_in(w, 1,
			&(struct arp_text){
				1, peer_mac, IP(10, 1, 128, 1) + i % 32000, IP(10, 1, 0, 1)});
		world_forget(w);
	}
	assert_true(world_count(w, "neigh_evicted") >= 2 * WORLD_NEIGHBORS - 1);
	assert_int_equal(world_count(w, "neigh_full"), 0);
	assert_true(world_send(w, OURS, PEER, "x"));
	assert_int_equal(w->n_sent, 1);
	assert_memory_equal(w->sent[0].bytes, peer_mac, 6);
}

static void table_full_of_live_entries_refuses_one_more(void **state)
{
	struct world *w = *state;
	for (uint32_t i = 0; i < WORLD_NEIGHBORS; i++) {
		uint32_t ip = IP(10, 1, 128, 1) + i;
		assert_true(world_send(w, IP(10, 1, 0, 1), ip, "x"));
		world_resolve(w, 1, ip, peer_mac);
		world_forget(w);
	}
	assert_false(world_send(w, OURS, PEER, "x"));
	assert_int_equal(world_count(w, "neigh_full"), 1);
	assert_true(world_send(w, IP(10, 1, 0, 1), IP(10, 1, 128, 1), "x"));
	assert_int_equal(n_packets(w), 1);
}

#define LINK IP(10, 1, 0, 1) // our address on port 1
#define IN_USE IP(10, 1, 0, 5) // and its successor
#define N_NEWCOMERS 5000 // more than there is room for
#define NEWCOMER(i) (IP(10, 1, 128, 1) + (uint32_t)(i))

static void learn_those_in_use(struct world *w)
{
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(world_send(w, LINK, IN_USE + i, "x"));
		world_resolve(w, 1, IN_USE + i, peer_mac);
	}
	world_forget(w);
}

static void assert_in_use_served_at_once(struct world *w)
{
	for (uint32_t i = 0; i < 2; i++) {
		world_forget(w);
		assert_true(world_send(w, LINK, IN_USE + i, "x"));
		assert_int_equal(n_packets(w), 1);
		assert_memory_equal(w->sent[0].bytes, peer_mac, 6);
		if (w->n_sent > 1) { // refreshed in the same turn, whoever else is asked for
			assert_true(is_arp_request(&w->sent[1], IN_USE + i));
			assert_memory_equal(w->sent[1].bytes, peer_mac, 6);
			world_resolve(w, 1, IN_USE + i, peer_mac);
		}
	}
	world_forget(w);
}

// NET-24
static void newcomers_never_take_the_place_of_those_in_use(void **state)
{
	struct world *w = *state;
	learn_those_in_use(w);
	for (int t = 0; t < 200; t++) {
		for (int i = 0; i < N_NEWCOMERS; i++) {
			(void)world_send(w, LINK, NEWCOMER(i), "x");
			if (i % 2) // half of them exist
				world_resolve(w, 1, NEWCOMER(i), other_mac);
			world_forget(w);
		}
		// Each instant that a refresh can fall on is met: they age while nobody sends.
		if (t % 10 == 9)
			assert_in_use_served_at_once(w);
		for (int ms = 0; ms < 7000; ms += 10) {
			world_advance(w, NS_PER_SECOND / 100);
			world_forget(w);
		}
	}
	assert_true(world_count(w, "neigh_full") > 0);
}

// NET-21
static void newcomers_are_asked_for_in_turn_and_nobody_else_waits(void **state)
{
	struct world *w = *state;
	learn_those_in_use(w);
	world_advance(w, 61 * NS_PER_SECOND);
	uint32_t n_asked = 0;
	for (int i = 0; i < 2000; i++) {
		assert_true(world_send(w, LINK, NEWCOMER(i), "x") == (i < NEIGH_MAX_HELD_ALL));
		n_asked += w->n_sent;
		world_forget(w);
	}
	assert_int_equal(n_asked, NEIGH_TURN_BURST);
	assert_in_use_served_at_once(w);
	for (int ms = 1; n_asked < 2000; ms++) {
		world_advance(w, NS_PER_SECOND / 1000);
		assert_in_range(w->n_sent, 1, 11);
		n_asked += w->n_sent;
		assert_true(ms <= 191);
		world_forget(w);
	}
	world_resolve(w, 1, NEWCOMER(0), other_mac);
	world_resolve(w, 1, NEWCOMER(1999), other_mac);
	assert_int_equal(n_packets(w), 1); // the frame of the last one found no room to wait
	assert_true(world_send(w, LINK, NEWCOMER(1999), "x"));
	assert_int_equal(n_packets(w), 2);
}

static void newcomer_answered_before_its_turn_is_not_asked_for(void **state)
{
	struct world *w = *state;
	for (int i = 0; i <= NEIGH_TURN_BURST; i++)
		assert_true(world_send(w, LINK, NEWCOMER(i), "x"));
	assert_int_equal(n_requests(w, NEWCOMER(NEIGH_TURN_BURST)), 0);
	world_resolve(w, 1, NEWCOMER(NEIGH_TURN_BURST), other_mac);
	assert_int_equal(n_packets(w), 1);
	world_forget(w);
	world_advance(w, NS_PER_SECOND / 2);
	assert_int_equal(w->n_sent, 0);
}

static void fill_with_live_ones(struct world *w)
{
	for (uint32_t i = 0; i < WORLD_NEIGHBORS; i++) {
		assert_true(world_send(w, LINK, NEWCOMER(i), "x"));
		world_resolve(w, 1, NEWCOMER(i), peer_mac);
		world_forget(w);
	}
}

// NET-24
static void newcomer_without_room_is_refused_before_it_connects(void **state)
{
	struct world *w = *state;
	fill_with_live_ones(w);
	struct ip_addr known = ip_from_v4(NEWCOMER(1)), newcomer = ip_from_v4(PEER);
	assert_true(net_prepare(w->net, &known));
	assert_false(net_prepare(w->net, &newcomer));
	assert_int_equal(world_count(w, "neigh_full"), 1);
	world_advance(w, 61 * NS_PER_SECOND); // not answered for a minute: spared for another one
	assert_false(net_prepare(w->net, &newcomer));
	world_advance(w, 61 * NS_PER_SECOND);
	assert_int_equal(w->n_sent, 0);
	assert_true(net_prepare(w->net, &newcomer));
	assert_int_equal(n_requests(w, PEER), 1);
	assert_true(net_prepare(w->net, &newcomer)); // asked for once
	assert_int_equal(w->n_sent, 1);
	assert_int_equal(world_count(w, "neigh_evicted"), 1);
}

// NET-24
static void who_does_not_answer_goes_before_the_next_newcomer_and_not_sooner(void **state)
{
	struct world *w = *state;
	fill_with_live_ones(w);
	world_advance(w, 61 * NS_PER_SECOND);
	world_advance(w, 61 * NS_PER_SECOND); // nobody is in use
	assert_true(world_send(w, LINK, NEWCOMER(1), "x"));
	for (uint32_t i = 1; i < WORLD_NEIGHBORS; i++) {
		world_forget(w);
		(void)world_send(w, LINK, IP(10, 1, 64, 1) + i, "x");
	}
	assert_int_equal(world_count(w, "neigh_full"), 0);
	assert_int_equal(world_count(w, "neigh_evicted"), WORLD_NEIGHBORS - 1);
	assert_false(world_send(w, OURS, PEER, "x")); // all of them are just being asked for
	for (int ms = 0; ms < 1000; ms++) {
		world_forget(w);
		world_advance(w, NS_PER_SECOND / 1000);
	}
	assert_int_equal(world_count(w, "neigh_full"), 1);
	(void)world_send(w, OURS, PEER, "x");
	assert_int_equal(world_count(w, "neigh_full"), 1);
	assert_int_equal(world_count(w, "neigh_evicted"), WORLD_NEIGHBORS);
	world_forget(w);
	assert_true(world_send(w, LINK, NEWCOMER(1), "x"));
	assert_int_equal(n_packets(w), 1);
}

static const struct tcp_conn_ops no_ops;

static void connect_to(struct tcp_stack *tcp, uint32_t ip)
{
	struct tcp_flow flow = {
		.local = ip_from_v4(LINK), .remote = ip_from_v4(ip), .remote_port = 80};
	assert_non_null(tcp_connect(tcp, &flow, 20 * NS_PER_SECOND, &no_ops, NULL));
}

static void connections_to_newcomers_do_not_hold_up_those_of_others(void **state)
{
	struct world *w = *state;
	learn_those_in_use(w);
	world_advance(w, NS_PER_SECOND);
	struct pool chunks;
	assert_int_equal(pool_init(&chunks, sizeof(struct buf_chunk), 1), 0);
	struct tcp_conf conf = {.max_conns = N_NEWCOMERS + 2,
		.max_half_open = 1,
		.max_time_wait = 1,
		.send_limit = 65536,
		.recv_window = 65536};
	struct tcp_stack *tcp = tcp_stack_new(&conf, &w->io, &chunks, w->wheel);
	assert_non_null(tcp);
	for (int i = 0; i < N_NEWCOMERS; i++)
		connect_to(tcp, NEWCOMER(i));
	connect_to(tcp, IN_USE);
	connect_to(tcp, IN_USE + 1);
	tcp_stack_flush(tcp);
	assert_int_equal(n_packets(w), 2);
	assert_int_equal(w->n_sent, NEIGH_TURN_BURST + 2);
	assert_true(world_count(w, "hold_full") > 0 && world_count(w, "neigh_full") > 0);
	tcp_stack_free(tcp);
	pool_fini(&chunks);
}

static void held_frame_without_a_buffer_is_counted(void **state)
{
	struct world *w = *state;
	assert_true(world_send(w, OURS, PEER, "x"));
	w->ports[0].starved = true;
	world_resolve(w, 0, PEER, peer_mac);
	assert_false(world_send(w, OURS, PEER, "x"));
	assert_int_equal(world_count(w, "tx_no_buffer"), 2);
	w->ports[0].starved = false;
	assert_true(world_send(w, OURS, PEER, "x"));
	assert_int_equal(n_packets(w), 1);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
RUN_SUITE("net/neigh", CASE(frames_wait_for_the_answer_and_leave_in_order),
	CASE(question_is_repeated_once_a_second_whatever_is_sent),
	CASE(a_gateway_is_silent_from_a_question_without_answer_to_the_next_word),
	CASE(another_device_of_a_port_sends_as_itself_and_asks_the_link_anew),
	CASE(frames_that_waited_leave_as_the_new_device),
	CASE(net_44_silence_says_nothing_while_a_new_device_settles),
	CASE(silence_drops_the_frames_and_tells_their_flow),
	CASE(flow_may_try_again_while_it_hears_of_the_failure), CASE(hold_is_bounded_per_neighbor),
	CASE(hold_is_bounded_in_total_and_still_asks), CASE(long_frames_and_short_ones_wait_apart),
	CASE(held_frames_are_back_in_the_pool_afterwards),
	CASE(old_entry_is_refreshed_while_traffic_flows),
	CASE(refresh_without_answer_asks_everybody_and_then_fails),
	CASE(host_that_moved_is_followed), CASE(two_claimants_do_not_make_us_ask_at_their_pace),
	CASE(lie_does_not_stick_when_the_owner_answers), CASE(unused_entry_is_forgotten),
	CASE(flood_of_askers_fills_no_more_than_the_table_and_spares_live_entries),
	CASE(table_full_of_live_entries_refuses_one_more),
	CASE(newcomers_never_take_the_place_of_those_in_use),
	CASE(newcomers_are_asked_for_in_turn_and_nobody_else_waits),
	CASE(newcomer_answered_before_its_turn_is_not_asked_for),
	CASE(newcomer_without_room_is_refused_before_it_connects),
	CASE(who_does_not_answer_goes_before_the_next_newcomer_and_not_sooner),
	CASE(connections_to_newcomers_do_not_hold_up_those_of_others),
	CASE(held_frame_without_a_buffer_is_counted))
