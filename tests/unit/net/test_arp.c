// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/csum.h"
#include "tests/support/check.h"
#include "tests/unit/net/world.h"

#include <string.h>

#define PEER IP(10, 0, 0, 7)
#define OURS IP(10, 0, 0, 1)

static const uint8_t other_mac[6] = {2, 0, 0, 0, 0, 0xbb};

// NET-13
static void request_for_our_address_is_answered_to_the_asker(void **state)
{
	struct world *w = *state;
	world_arp_in(w, 0, &(struct arp_text){1, peer_mac, PEER, OURS});
	assert_int_equal(w->n_sent, 1);
	const uint8_t *f = w->sent[0].bytes;
	assert_int_equal(w->sent[0].len, 42);
	assert_memory_equal(f, peer_mac, 6);
	assert_memory_equal(f + 6, world_mac[0], 6);
	const uint8_t head[] = {8, 6, 0, 1, 8, 0, 6, 4, 0, 2};
	assert_memory_equal(f + 12, head, sizeof(head));
	assert_memory_equal(f + 22, world_mac[0], 6);
	assert_int_equal(load32(f + 28), OURS);
	assert_memory_equal(f + 32, peer_mac, 6);
	assert_int_equal(load32(f + 38), PEER);
}

static void fl_05_one_behind_another_process_learns_and_does_not_answer(void **state)
{
	struct world *w = *state;
	net_set_silent(w->net, true);
	world_arp_in(w, 0, &(struct arp_text){1, peer_mac, PEER, OURS});
	assert_int_equal(w->n_sent, 0);
	assert_true(world_send(w, OURS, PEER, "x"));
	assert_memory_equal(w->sent[0].bytes, peer_mac, 6);
	assert_int_equal(load16(w->sent[0].bytes + 12), 0x0800);
}

static void request_for_a_lone_address_is_answered(void **state)
{
	struct world *w = *state;
	world_arp_in(w, 0, &(struct arp_text){1, peer_mac, PEER, IP(10, 0, 0, 9)});
	assert_int_equal(w->n_sent, 1);
	assert_int_equal(load32(w->sent[0].bytes + 28), IP(10, 0, 0, 9));
}

// NET-13
static void request_for_an_address_of_another_port_is_not_answered(void **state)
{
	struct world *w = *state;
	world_arp_in(w, 0, &(struct arp_text){1, peer_mac, PEER, IP(10, 1, 0, 1)});
	world_arp_in(w, 0, &(struct arp_text){1, peer_mac, PEER, IP(10, 0, 0, 8)});
	assert_int_equal(w->n_sent, 0);
	assert_int_equal(world_count(w, "arp_not_ours"), 2);
}

// NET-15, RFC 826: who asks for us will be answered by us, so its address is learned without asking
// back.
static void asker_is_learned_and_then_verified(void **state)
{
	struct world *w = *state;
	world_arp_in(w, 0, &(struct arp_text){1, peer_mac, PEER, OURS});
	world_forget(w);
	assert_true(world_send(w, OURS, PEER, "x"));
	assert_int_equal(w->n_sent, 2); // the segment at once, then a question to that host alone
	assert_memory_equal(w->sent[0].bytes, peer_mac, 6);
	assert_int_equal(load16(w->sent[0].bytes + 12), 0x0800);
	assert_true(is_arp_request(&w->sent[1], PEER));
	assert_memory_equal(w->sent[1].bytes, peer_mac, 6);
}

// NET-17, RFC 5227 2.1.1
static void probe_is_answered_and_teaches_nothing(void **state)
{
	struct world *w = *state;
	world_arp_in(w, 0, &(struct arp_text){1, peer_mac, 0, OURS});
	assert_int_equal(w->n_sent, 1);
	assert_int_equal(load16(w->sent[0].bytes + 20), 2);
}

struct ears {
	uint32_t n, last;
};

static void on_neighbor(void *ctx, const struct ip_addr *ip)
{
	struct ears *e = ctx;
	e->n++;
	e->last = ip_to_v4(ip);
}

// Announced, asking anybody, answering us: whoever waits for that host hears of it, and of a MAC
// that is known already no more.
static void host_that_turns_up_is_told_of(void **state)
{
	struct world *w = *state;
	struct ears e = {0};
	net_set_on_neighbor(w->net, on_neighbor, &e);
	world_arp_in(w, 0, &(struct arp_text){1, peer_mac, PEER, PEER});
	assert_int_equal(e.n, 1);
	assert_int_equal(e.last, PEER);
	world_arp_in(w, 0, &(struct arp_text){1, peer_mac, PEER, IP(10, 0, 0, 8)});
	assert_int_equal(e.n, 2); // not learned yet
	world_arp_in(w, 0, &(struct arp_text){1, peer_mac, PEER, OURS});
	assert_int_equal(e.n, 3);
	world_arp_in(w, 0, &(struct arp_text){1, peer_mac, PEER, OURS});
	assert_int_equal(e.n, 3);
	world_arp_in(w, 0, &(struct arp_text){1, other_mac, PEER, OURS});
	assert_int_equal(e.n, 4);
	world_arp_in(w, 0, &(struct arp_text){1, peer_mac, PEER, PEER});
	assert_int_equal(e.n, 5);
	world_arp_in(w, 0, &(struct arp_text){1, peer_mac, IP(10, 9, 9, 9), OURS}); // off link
	world_arp_in(w, 0, &(struct arp_text){1, peer_mac, 0, OURS}); // a probe
	assert_int_equal(e.n, 5);
	world_send(w, OURS, IP(10, 0, 0, 20), "x");
	world_resolve(w, 0, IP(10, 0, 0, 20), other_mac);
	assert_int_equal(e.n, 6);
	assert_int_equal(e.last, IP(10, 0, 0, 20));
	net_set_on_neighbor(w->net, NULL, NULL);
}

// NET-15
static void overheard_arp_teaches_nothing(void **state)
{
	struct world *w = *state;
	world_arp_in(w, 0, &(struct arp_text){1, peer_mac, PEER, PEER}); // gratuitous
	world_arp_in(w, 0, &(struct arp_text){2, peer_mac, PEER, IP(10, 0, 0, 8)});
	world_arp_in(w, 0, &(struct arp_text){2, peer_mac, PEER, OURS}); // nobody asked
	assert_int_equal(w->n_sent, 0);
	assert_true(world_send(w, OURS, PEER, "x"));
	assert_int_equal(w->n_sent, 1);
	assert_true(is_arp_request(&w->sent[0], PEER));
}

// TH-47, NET-19
static void own_address_is_never_learned_but_defended(void **state)
{
	struct world *w = *state;
	world_arp_in(w, 0, &(struct arp_text){1, other_mac, OURS, PEER});
	assert_int_equal(w->n_sent, 1); // RFC 5227 2.4 (b): one announcement
	assert_true(is_arp_request(&w->sent[0], OURS));
	assert_memory_equal(w->sent[0].bytes, broadcast_mac, 6);
	assert_memory_equal(w->sent[0].bytes + 22, world_mac[0], 6);
	for (int i = 0; i < 5; i++) {
		world_arp_in(w, 0, &(struct arp_text){1, other_mac, OURS, OURS});
		world_arp_in(w, 0, &(struct arp_text){2, other_mac, OURS, OURS});
	}
	assert_int_equal(w->n_sent, 1); // and no more within ten seconds
	assert_int_equal(world_count(w, "arp_conflict"), 11);
	world_advance(w, 11 * NS_PER_SECOND);
	world_arp_in(w, 0, &(struct arp_text){1, other_mac, OURS, OURS});
	assert_int_equal(w->n_sent, 2);
	// Nor can it be talked into sending to itself.
	assert_false(world_send(w, OURS, OURS, "x"));
}

// NET-19: some links send it back.
static void our_own_announcement_is_no_claim(void **state)
{
	struct world *w = *state;
	world_arp_in(w, 0, &(struct arp_text){1, world_mac[0], OURS, OURS});
	assert_int_equal(world_count(w, "arp_own"), 1);
	assert_int_equal(world_count(w, "arp_conflict"), 0);
	assert_int_equal(w->n_sent, 0);
}

// NET-14
static void sender_outside_of_the_link_is_ignored(void **state)
{
	struct world *w = *state;
	world_arp_in(w, 0, &(struct arp_text){1, peer_mac, IP(10, 9, 9, 9), OURS});
	world_arp_in(w, 0, &(struct arp_text){1, peer_mac, IP(10, 0, 0, 255), OURS});
	world_arp_in(w, 0, &(struct arp_text){1, peer_mac, IP(10, 1, 0, 5), OURS});
	assert_int_equal(w->n_sent, 0);
	assert_int_equal(world_count(w, "arp_off_link"), 3);
}

// NET-14
static void malformed_arp_is_dropped(void **state)
{
	struct world *w = *state;
	const struct {
		size_t at;
		uint8_t value;
	} bends[] = {
		{14, 9}, // hardware type
		{16, 0x86}, // protocol type
		{18, 8}, // hardware length
		{19, 16}, // protocol length
		{21, 3}, // operation
		{22, 3}, // sender is a group
	};
	for (size_t i = 0; i < sizeof(bends) / sizeof(bends[0]); i++) {
		world_forget(w);
		world_arp_in(w, 0, &(struct arp_text){1, peer_mac, PEER, OURS});
		uint8_t f[60] = {0};
		memcpy(f, broadcast_mac, 6);
		memcpy(f + 6, peer_mac, 6);
		memcpy(f + 12, w->sent[0].bytes + 12, 30);
		f[21] = 1;
		memcpy(f + 22, peer_mac, 6);
		store32(f + 28, PEER);
		store32(f + 38, OURS);
		f[bends[i].at] = bends[i].value;
		world_in(w, 0, f, sizeof(f));
		assert_int_equal(w->n_sent, 1);
		assert_int_equal(world_count(w, "arp_malformed"), i + 1);
	}
	uint8_t zero_sender[60] = {0};
	memcpy(zero_sender, broadcast_mac, 6);
	memcpy(zero_sender + 6, peer_mac, 6);
	const uint8_t head[] = {8, 6, 0, 1, 8, 0, 6, 4, 0, 1};
	memcpy(zero_sender + 12, head, sizeof(head));
	store32(zero_sender + 28, PEER);
	store32(zero_sender + 38, OURS);
	world_in(w, 0, zero_sender, sizeof(zero_sender));
	world_in(w, 0, zero_sender, 41); // one byte short
	assert_int_equal(world_count(w, "arp_malformed"), 8);
}

// NET-18
static void announcement_names_every_address_on_its_port(void **state)
{
	struct world *w = *state;
	for (uint32_t p = 0; p < 2; p++)
		net_announce(w->net, p);
	const uint32_t ips[] = {OURS, IP(10, 0, 0, 9), IP(10, 1, 0, 1), IP(10, 1, 2, 1)};
	assert_int_equal(w->n_sent, 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(w->sent[i].port, i / 2);
		assert_true(is_arp_request(&w->sent[i], ips[i]));
		assert_int_equal(load32(w->sent[i].bytes + 28), ips[i]);
		assert_memory_equal(w->sent[i].bytes, broadcast_mac, 6);
	}
}

// It may have moved to another host, of which the process in front knows.
static void fl_05_one_behind_announces_no_address_before_it_answers_for_it(void **state)
{
	struct world *w = *state;
	net_set_silent(w->net, true);
	net_announce(w->net, 0);
	net_announce(w->net, 0);
	assert_int_equal(w->n_sent, 0);
	net_set_silent(w->net, false);
	assert_int_equal(w->n_sent, 2); // of that port alone
	assert_true(is_arp_request(&w->sent[0], OURS));
	assert_true(is_arp_request(&w->sent[1], IP(10, 0, 0, 9)));
	net_set_silent(w->net, true);
	net_set_silent(w->net, false);
	assert_int_equal(w->n_sent, 2);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
static void make_arp(uint8_t frame[42], uint16_t op, uint32_t from, uint32_t to)
{
	static const uint8_t head[] = {0, 1, 8, 0, 6, 4};
	memset(frame, 0, 42);
	memcpy(frame, op == 1 ? broadcast_mac : world_mac[0], 6);
	memcpy(frame + 6, peer_mac, 6);
	store16(frame + 12, 0x0806);
	memcpy(frame + 14, head, sizeof(head));
	store16(frame + 20, op);
	memcpy(frame + 22, peer_mac, 6);
	store32(frame + 28, from);
	store32(frame + 38, to);
}

// NET-26
static void what_another_worker_got_is_learned_and_not_answered(void **state)
{
	struct world *w = *state;
	uint8_t frame[42];
	make_arp(frame, 1, PEER, OURS);
	net_hear(w->net, 0, frame, sizeof(frame));
	assert_int_equal(w->n_sent, 0);
	assert_true(world_send(w, OURS, PEER, "x"));
	assert_memory_equal(w->sent[0].bytes, peer_mac, 6);
	assert_int_equal(load16(w->sent[0].bytes + 12), 0x0800);
}

static void answer_that_another_worker_got_ends_the_wait(void **state)
{
	struct world *w = *state;
	uint8_t frame[42];
	assert_true(world_send(w, OURS, PEER, "x"));
	assert_int_equal(w->n_sent, 1);
	assert_true(is_arp_request(&w->sent[0], PEER));
	make_arp(frame, 2, PEER, OURS);
	for (size_t len = 0; len < sizeof(frame); len++)
		net_hear(w->net, 0, frame, len);
	assert_int_equal(w->n_sent, 1);
	net_hear(w->net, 0, frame, sizeof(frame));
	assert_int_equal(w->n_sent, 2);
	assert_memory_equal(w->sent[1].bytes, peer_mac, 6);
	assert_int_equal(world_count(w, "rx_frames"), 0);
}

static void stranger_that_another_worker_heard_is_not_learned(void **state)
{
	struct world *w = *state;
	uint8_t frame[42];
	make_arp(frame, 1, IP(192, 168, 9, 9), OURS);
	net_hear(w->net, 0, frame, sizeof(frame));
	make_arp(frame, 1, OURS, OURS);
	net_hear(w->net, 0, frame, sizeof(frame));
	assert_int_equal(w->n_sent, 0);
	assert_int_equal(world_count(w, "arp_conflict"), 0);
}

RUN_SUITE("net/arp", CASE(request_for_our_address_is_answered_to_the_asker),
	CASE(fl_05_one_behind_another_process_learns_and_does_not_answer),
	CASE(fl_05_one_behind_announces_no_address_before_it_answers_for_it),
	CASE(request_for_a_lone_address_is_answered),
	CASE(request_for_an_address_of_another_port_is_not_answered),
	CASE(asker_is_learned_and_then_verified), CASE(probe_is_answered_and_teaches_nothing),
	CASE(host_that_turns_up_is_told_of), CASE(overheard_arp_teaches_nothing),
	CASE(own_address_is_never_learned_but_defended), CASE(our_own_announcement_is_no_claim),
	CASE(sender_outside_of_the_link_is_ignored), CASE(malformed_arp_is_dropped),
	CASE(announcement_names_every_address_on_its_port),
	CASE(what_another_worker_got_is_learned_and_not_answered),
	CASE(answer_that_another_worker_got_ends_the_wait),
	CASE(stranger_that_another_worker_heard_is_not_learned))
