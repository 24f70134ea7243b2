// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/csum.h"
#include "tests/support/check.h"
#include "tests/unit/net/world6.h"

#include <string.h>

static const uint8_t other_mac[6] = {2, 0, 0, 0, 0, 0xbb};
#define OUR_GROUP "ff02::1:ff00:1"

// IP6-08: RFC 4861 7.2.2
static void an_unknown_neighbor_is_asked_for_in_its_group(void **state)
{
	struct world *w = *state;
	assert_true(world6_send(w, OURS6, "2001:db8::12:3456", "x"));
	assert_int_equal(w->n_sent, 1);
	const uint8_t *f = w->sent[0].bytes;
	struct ip_addr group = ip6_of("ff02::1:ff12:3456"), src = ip6_of(OURS6);
	assert_true(is_solicitation(&w->sent[0], "2001:db8::12:3456"));
	assert_memory_equal(f, "\x33\x33\xff\x12\x34\x56", 6);
	assert_memory_equal(f + 22, src.b, 16);
	assert_memory_equal(f + 38, group.b, 16);
	assert_int_equal(f[21], 255);
	assert_int_equal(f[78], 1); // our MAC address, so that the answer needs no question
	assert_memory_equal(f + 80, world_mac[0], 6);
	uint16_t sum;
	memcpy(&sum, f + 56, 2);
	fix_icmp6_checksum(w->sent[0].bytes);
	assert_memory_equal(&sum, f + 56, 2);
}

// IP6-08
static void what_waited_goes_out_with_the_answer(void **state)
{
	struct world *w = *state;
	world6_send(w, OURS6, PEER6, "ab");
	world6_send(w, OURS6, PEER6, "cd");
	assert_int_equal(w->n_sent, 1);
	world6_resolve(w, 0, PEER6, peer_mac);
	assert_int_equal(w->n_sent, 3);
	assert_memory_equal(w->sent[1].bytes, peer_mac, 6);
	assert_memory_equal(w->sent[1].bytes + 74, "ab", 2);
	assert_memory_equal(w->sent[2].bytes + 74, "cd", 2);
	assert_int_equal(world_count(w, "nd_learned"), 1);
}

// IP6-08
static void a_silent_neighbor_is_told_to_tcp(void **state)
{
	struct world *w = *state;
	world6_send(w, OURS6, PEER6, "x");
	for (int i = 0; i < 4; i++)
		world_advance(w, NS_PER_SECOND);
	assert_int_equal(w->n_sent, 3);
	assert_int_equal(w->n_unreachable, 1);
	struct ip_addr remote = ip6_of(PEER6);
	assert_true(ip_eq(&w->unreachable.remote, &remote));
	assert_int_equal(w->unreachable.local_port, 1000);
	assert_int_equal(w->unreachable.remote_port, 2000);
	assert_int_equal(w->unreachable_seq, WORLD_SEQ);
}

// IP6-09: RFC 4861 7.2.4
static void questions_for_us_are_answered(void **state)
{
	struct world *w = *state;
	world6_solicit(w, 0, &(struct nd_text){PEER6, OUR_GROUP, OURS6, peer_mac, 0});
	assert_int_equal(w->n_sent, 1);
	const uint8_t *f = w->sent[0].bytes;
	struct ip_addr src = ip6_of(OURS6), dst = ip6_of(PEER6);
	assert_true(is_advertisement(&w->sent[0], OURS6));
	assert_memory_equal(f, peer_mac, 6);
	assert_memory_equal(f + 22, src.b, 16);
	assert_memory_equal(f + 38, dst.b, 16);
	assert_int_equal(f[58], 0x60); // solicited, override; no router
	assert_int_equal(f[78], 2);
	assert_memory_equal(f + 80, world_mac[0], 6);
	assert_true(world6_send(w, OURS6, PEER6, "x")); // who asked is known now
	assert_memory_equal(w->sent[1].bytes, peer_mac, 6);
}

static void fl_05_one_behind_another_process_learns_and_does_not_answer(void **state)
{
	struct world *w = *state;
	net_set_silent(w->net, true);
	world6_solicit(w, 0, &(struct nd_text){PEER6, OUR_GROUP, OURS6, peer_mac, 0});
	assert_int_equal(w->n_sent, 0);
	assert_true(world6_send(w, OURS6, PEER6, "x"));
	assert_memory_equal(w->sent[0].bytes, peer_mac, 6);
}

// IP6-09
static void a_question_without_an_option_is_answered_to_its_sender(void **state)
{
	struct world *w = *state;
	world6_solicit(w, 0, &(struct nd_text){PEER6, OURS6, OURS6, NULL, 0});
	assert_int_equal(w->n_sent, 1);
	assert_memory_equal(w->sent[0].bytes, peer_mac, 6);
}

// IP6-09
static void questions_for_others_or_from_elsewhere_are_not_answered(void **state)
{
	struct world *w = *state;
	world6_solicit(w, 0, &(struct nd_text){PEER6, OUR_GROUP, "2001:db8::2", peer_mac, 0});
	assert_int_equal(world_count(w, "nd_not_ours"), 1);
	world6_solicit(w, 0, &(struct nd_text){"2a00::7", OUR_GROUP, OURS6, peer_mac, 0});
	assert_int_equal(world_count(w, "nd_off_link"), 1);
	world6_solicit(w, 1, &(struct nd_text){"2001:db8:1::7", OUR_GROUP, OURS6, peer_mac, 0});
	assert_int_equal(world_count(w, "nd_not_ours"), 2); // our other port's
	assert_int_equal(w->n_sent, 0);
}

static void link_local_bent(struct world *w, size_t at, uint8_t value, size_t cut)
{
	uint8_t f[128];
	size_t len = make_solicitation(f, &(struct nd_text){PEER6, OUR_GROUP, OURS6, peer_mac, 0});
	f[at] = value;
	store16(f + 18, (uint16_t)(load16(f + 18) - cut));
	fix_icmp6_checksum(f);
	world_in(w, 0, f, len - cut);
}

// IP6-10: RFC 4861 7.1.1, 7.1.2
static void what_a_router_forwarded_or_is_malformed_is_dropped(void **state)
{
	struct world *w = *state;
	link_local_bent(w, 21, 254, 0); // hop limit
	link_local_bent(w, 55, 1, 0); // code
	link_local_bent(w, 62, 0xff, 0); // target is a group
	link_local_bent(w, 79, 0, 0); // option without a length
	link_local_bent(w, 79, 2, 0); // longer than the message
	link_local_bent(w, 80, 0x33, 0); // a group's MAC address
	link_local_bent(w, 58, 0, 12); // too short
	world6_solicit(w, 0, &(struct nd_text){"::", OUR_GROUP, OURS6, peer_mac, 0}); // with a MAC
	world6_solicit(w, 0, &(struct nd_text){"::", OURS6, OURS6, NULL, 0}); // not to the group
	world6_advertise(w, 0, &(struct nd_text){PEER6, "ff02::1", PEER6, peer_mac, 0x40});
	assert_int_equal(world_count(w, "nd_malformed"), 10);
	assert_int_equal(w->n_sent, 0);
}

// IP6-28: RFC 6980 5. A whole packet may say that it is its only fragment, but not with this in it.
static void what_comes_with_a_fragment_header_is_dropped(void **state)
{
	struct world *w = *state;
	uint8_t f[128];
	size_t len = make_solicitation(f, &(struct nd_text){PEER6, OUR_GROUP, OURS6, peer_mac, 0});
	len = put_fragment_header(f, len);
	world_in(w, 0, f, len);
	net_hear(w->net, 0, f, len);
	len = make_advertisement(f, &(struct nd_text){PEER6, OURS6, PEER6, peer_mac, 0x60});
	len = put_fragment_header(f, len);
	world_in(w, 0, f, len);
	assert_int_equal(world_count(w, "nd_malformed"), 2);
	assert_int_equal(w->n_sent, 0);
	world6_send(w, OURS6, PEER6, "x");
	assert_true(is_solicitation(&w->sent[0], PEER6)); // nothing was learned
}

// IP6-11
static void an_address_of_ours_is_defended_at_our_pace(void **state)
{
	struct world *w = *state;
	for (int i = 0; i < 20; i++)
		world6_advertise(w, 0, &(struct nd_text){OURS6, "ff02::1", OURS6, other_mac, 0x20});
	assert_int_equal(w->n_sent, 0); // from an address of ours: nothing is believed of it
	assert_int_equal(world_count(w, "ip6_martian"), 20);
	for (int i = 0; i < 20; i++)
		world6_advertise(w, 0, &(struct nd_text){PEER6, "ff02::1", OURS6, other_mac, 0x20});
	assert_int_equal(w->n_sent, 1);
	assert_true(is_advertisement(&w->sent[0], OURS6));
	assert_int_equal(world_count(w, "nd_conflict"), 20);
	world_forget(w);
	world_advance(w, 11 * NS_PER_SECOND);
	world6_solicit(w, 0, &(struct nd_text){"::", OUR_GROUP, OURS6, NULL, 0}); // RFC 4862 5.4.3
	assert_int_equal(w->n_sent, 1);
	assert_true(is_advertisement(&w->sent[0], OURS6));
	assert_memory_equal(w->sent[0].bytes, "\x33\x33\0\0\0\1", 6);
}

// IP6-12, TH-47
static void a_claim_does_not_take_an_address_in_use(void **state)
{
	struct world *w = *state;
	world6_send(w, OURS6, PEER6, "x");
	world6_resolve(w, 0, PEER6, peer_mac);
	world_advance(w, 2 * NS_PER_SECOND);
	world_forget(w);
	world6_advertise(w, 0, &(struct nd_text){PEER6, "ff02::1", PEER6, other_mac, 0x20});
	assert_int_equal(w->n_sent, 1); // asked again
	assert_true(is_solicitation(&w->sent[0], PEER6));
	world6_send(w, OURS6, PEER6, "y");
	assert_memory_equal(w->sent[1].bytes, peer_mac, 6);
	world6_resolve(w, 0, PEER6, other_mac); // it has moved indeed
	world6_send(w, OURS6, PEER6, "z");
	assert_memory_equal(w->sent[2].bytes, other_mac, 6);
}

// IP6-12: RFC 4861 7.2.5
static void an_answer_that_does_not_override_keeps_the_known_address(void **state)
{
	struct world *w = *state;
	world6_send(w, OURS6, PEER6, "x");
	world6_resolve(w, 0, PEER6, peer_mac);
	world_advance(w, 2 * NS_PER_SECOND);
	world_forget(w);
	world6_advertise(w, 0, &(struct nd_text){PEER6, OURS6, PEER6, other_mac, 0x40});
	world6_send(w, OURS6, PEER6, "y");
	assert_memory_equal(w->sent[w->n_sent - 1].bytes, peer_mac, 6);
}

// IP6-13
static void every_address_is_asked_for_and_announced_at_start(void **state)
{
	struct world *w = *state;
	for (uint32_t p = 0; p < 2; p++)
		net_announce(w->net, p);
	assert_int_equal(
		w->n_sent, 13); // two for each of IPv6, one for IPv4, a report of groups each
	assert_true(is_solicitation(&w->sent[1], OURS6));
	struct ip_addr none = {0};
	assert_memory_equal(w->sent[1].bytes + 22, none.b, 16);
	assert_int_equal(w->sent[1].len, 78); // nobody has no MAC address to tell
	assert_true(is_advertisement(&w->sent[2], OURS6));
	assert_true(is_advertisement(&w->sent[4], "fd00::1"));
	assert_true(is_solicitation(&w->sent[6], "fe80::ff:fe00:1")); // of 02:00:00:00:00:01
	assert_true(is_advertisement(&w->sent[7], "fe80::ff:fe00:1"));
	assert_true(is_advertisement(&w->sent[10], "2001:db8:1::1"));
	assert_int_equal(w->sent[10].port, 1);
	assert_true(is_advertisement(&w->sent[12], "fe80::ff:fe00:2"));
}

// IP6-29: RFC 4862 5.4.3. Some switches and bonds send it back.
static void our_own_question_for_an_address_is_no_rivals(void **state)
{
	struct world *w = *state;
	net_announce(w->net, 0);
	uint32_t n = w->n_sent;
	for (uint32_t i = 0; i < n; i++)
		if (is_solicitation(&w->sent[i], OURS6))
			world_in(w, 0, w->sent[i].bytes, w->sent[i].len);
	assert_int_equal(world_count(w, "nd_conflict"), 0);
	assert_int_equal(world_count(w, "nd_own"), 1);
	assert_int_equal(w->n_sent, n);
}

// IP6-11, IP6-29: what others learn is the MAC address in the message, whoever sent the frame.
static void who_takes_our_address_in_our_name_is_no_echo_of_ours(void **state)
{
	struct world *w = *state;
	const struct nd_text claim = {PEER6, "ff02::1", OURS6, other_mac, 0x20};
	uint8_t f[128];
	size_t len = make_advertisement(f, &claim);
	memcpy(f + 6, world_mac[0], 6);
	world_in(w, 0, f, len);
	assert_int_equal(world_count(w, "nd_conflict"), 1);
	assert_true(is_advertisement(&w->sent[0], OURS6));
}

// IP6-14
static void the_link_local_address_answers_questions_and_echo_alone(void **state)
{
	struct world *w = *state;
	const char *ours = "fe80::ff:fe00:1"; // of 02:00:00:00:00:01
	world6_solicit(w, 0, &(struct nd_text){"fe80::7", "ff02::1:ff00:1", ours, peer_mac, 0});
	assert_int_equal(w->n_sent, 1);
	assert_true(is_advertisement(&w->sent[0], ours));
	uint8_t f[128];
	static const uint8_t echo[8] = {128};
	size_t len = make_icmp6(f, "fe80::7", ours, echo, sizeof(echo));
	world_in(w, 0, f, len);
	assert_int_equal(w->n_sent, 3); // and whether the asker is there
	assert_int_equal(w->sent[1].bytes[54], 129);
	static const uint8_t segment[20] = {0};
	len = make_ip6(f, "fe80::7", ours, 6, segment, sizeof(segment));
	world_in(w, 0, f, len);
	assert_int_equal(world_count(w, "ip6_not_ours"), 1);
}

// IP6-15
static void other_workers_learn_without_answering(void **state)
{
	struct world *w = *state;
	uint8_t f[128];
	size_t len = make_solicitation(f, &(struct nd_text){PEER6, OUR_GROUP, OURS6, peer_mac, 0});
	net_hear(w->net, 0, f, len);
	assert_int_equal(w->n_sent, 0);
	assert_true(world6_send(w, OURS6, PEER6, "x"));
	assert_memory_equal(w->sent[0].bytes, peer_mac, 6);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, world6_setup, world_teardown)
RUN_SUITE("net/nd", CASE(an_unknown_neighbor_is_asked_for_in_its_group),
	CASE(what_waited_goes_out_with_the_answer), CASE(a_silent_neighbor_is_told_to_tcp),
	CASE(questions_for_us_are_answered),
	CASE(fl_05_one_behind_another_process_learns_and_does_not_answer),
	CASE(a_question_without_an_option_is_answered_to_its_sender),
	CASE(questions_for_others_or_from_elsewhere_are_not_answered),
	CASE(what_a_router_forwarded_or_is_malformed_is_dropped),
	CASE(what_comes_with_a_fragment_header_is_dropped),
	CASE(an_address_of_ours_is_defended_at_our_pace),
	CASE(a_claim_does_not_take_an_address_in_use),
	CASE(an_answer_that_does_not_override_keeps_the_known_address),
	CASE(every_address_is_asked_for_and_announced_at_start),
	CASE(our_own_question_for_an_address_is_no_rivals),
	CASE(who_takes_our_address_in_our_name_is_no_echo_of_ours),
	CASE(the_link_local_address_answers_questions_and_echo_alone),
	CASE(other_workers_learn_without_answering))
