// SPDX-License-Identifier: Apache-2.0
// Prefixes that are ours beside the ports' addresses.
#include "dataplane/net/csum.h"
#include "tests/support/check.h"
#include "tests/unit/net/world.h"
#include "tests/unit/net/world6.h"

#include <string.h>

#define PEER IP(10, 0, 0, 7)
#define LOUD IP(10, 9, 0, 7) // on no link
#define QUIET IP(10, 8, 0, 7)
#define NEAR IP(10, 0, 0, 130) // in the subnet of port 0
#define PLACES 100

static const uint8_t other_mac[6] = {2, 0, 0, 0, 0, 0xbb};

static struct net_vip vip(const char *text, uint8_t len, bool answers)
{
	struct net_vip v = {.answers = answers};
	assert_true(ip_parse(text, &v.prefix.ip));
	v.prefix.bits = (uint8_t)(len + (ip_is_v4(&v.prefix.ip) ? IP_V4_BITS : 0));
	return v;
}

static int setup(void **state)
{
	const struct net_vip list[] = {
		vip("10.9.0.0", 24, true), vip("10.8.0.0", 24, false), vip("10.0.0.128", 25, true)};
	world_setup(state);
	struct world *w = *state;
	assert_int_equal(net_set_vips(w->net, list, 3, PLACES), 0);
	return 0;
}

static int setup6(void **state)
{
	const struct net_vip list[] = {
		vip("2001:db8:9::", 64, true), vip("2001:db8:8::", 64, false)};
	world6_setup(state);
	struct world *w = *state;
	assert_int_equal(net_set_vips(w->net, list, 2, PLACES), 0);
	return 0;
}

static bool takes(struct world *w, uint32_t port, uint32_t dst)
{
	uint8_t frame[200], segment[20] = {0};
	size_t len = make_ip(frame, IP(192, 0, 2, 1), dst, 6, segment, sizeof(segment));
	memcpy(frame, world_mac[port], 6);
	uint32_t before = w->n_segments;
	world_in(w, port, frame, len);
	return w->n_segments > before;
}

// A36-61
static void what_is_routed_to_a_prefix_is_taken_on_every_port(void **state)
{
	struct world *w = *state;
	for (uint32_t port = 0; port < 2; port++) {
		assert_true(takes(w, port, LOUD));
		assert_true(takes(w, port, QUIET));
		assert_true(takes(w, port, IP(10, 8, 0, 0)));
		assert_false(takes(w, port, IP(10, 8, 1, 7)));
	}
	assert_int_equal(ip_to_v4(&w->segment_local), IP(10, 8, 0, 0));
}

static uint32_t n_answers(struct world *w, uint32_t port, uint32_t ip)
{
	world_forget(w);
	world_arp_in(w, port, &(struct arp_text){1, peer_mac, port ? IP(10, 1, 0, 7) : PEER, ip});
	return w->n_sent;
}

// A36-62
static void arp_answers_for_the_prefixes_that_say_so_alone(void **state)
{
	struct world *w = *state;
	assert_int_equal(n_answers(w, 0, LOUD), 1);
	assert_int_equal(load32(w->sent[0].bytes + 28), LOUD);
	assert_int_equal(n_answers(w, 1, LOUD), 1);
	assert_int_equal(n_answers(w, 0, QUIET), 0);
	assert_int_equal(n_answers(w, 0, NEAR), 1);
	assert_int_equal(n_answers(w, 1, NEAR), 0);
}

// A36-62
static void an_address_that_another_host_has_too_is_defended_only_if_it_answers(void **state)
{
	struct world *w = *state;
	world_arp_in(w, 0, &(struct arp_text){1, other_mac, QUIET, PEER});
	assert_int_equal(w->n_sent, 0);
	assert_int_equal(world_count(w, "arp_conflict"), 0);
	world_arp_in(w, 0, &(struct arp_text){1, other_mac, NEAR, PEER});
	assert_int_equal(w->n_sent, 1);
	assert_true(is_arp_request(&w->sent[0], NEAR));
	assert_int_equal(world_count(w, "arp_conflict"), 1);
}

static uint32_t n_announced(const struct world *w, uint32_t ip)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < w->n_sent; i++)
		n += is_arp_request(&w->sent[i], ip);
	return n;
}

static void serve(struct world *w, uint32_t place, uint32_t ip)
{
	struct ip_addr a = ip_from_v4(ip);
	net_serve(w->net, place, ip ? &a : NULL);
}

static void fl_05_one_behind_announces_what_is_served_once_it_answers_for_it(void **state)
{
	struct world *w = *state;
	net_set_silent(w->net, true);
	net_announce(w->net, 0);
	serve(w, 0, NEAR);
	world_advance(w, NS_PER_SECOND);
	assert_int_equal(w->n_sent, 0);
	net_set_silent(w->net, false);
	world_advance(w, NS_PER_SECOND);
	assert_int_equal(n_announced(w, NEAR), 1);
}

// A36-63
static void what_is_served_is_announced_by_whoever_announces(void **state)
{
	struct world *w = *state;
	serve(w, 0, LOUD);
	serve(w, 1, QUIET);
	world_advance(w, NS_PER_SECOND);
	assert_int_equal(w->n_sent, 0); // another worker does
	net_announce(w->net, 0);
	world_advance(w, NS_PER_SECOND);
	assert_int_equal(n_announced(w, LOUD), 2); // on both links
	assert_int_equal(n_announced(w, QUIET), 0);
	world_forget(w);
	serve(w, 2, NEAR);
	world_advance(w, NS_PER_SECOND);
	assert_int_equal(w->n_sent, 1);
	assert_int_equal(n_announced(w, NEAR), 1);
	assert_int_equal(w->sent[0].port, 0);
	world_forget(w);
	serve(w, 0, 0);
	net_announce(w->net, 1);
	world_advance(w, NS_PER_SECOND);
	assert_int_equal(n_announced(w, LOUD), 0);
	assert_int_equal(n_announced(w, NEAR), 1);
}

// A36-63
static void many_at_once_are_announced_one_after_the_other(void **state)
{
	struct world *w = *state;
	net_announce(w->net, 0);
	world_advance(w, NS_PER_SECOND);
	world_forget(w);
	for (uint32_t i = 0; i < PLACES; i++)
		serve(w, i, IP(10, 0, 0, 129) + i);
	serve(w, PLACES, LOUD); // there is no such place
	world_advance(w, 10 * NS_PER_US);
	assert_in_range(w->n_sent, 0, PLACES / 2);
	for (int i = 0; i < 100; i++)
		world_advance(w, NS_PER_MS);
	assert_int_equal(w->n_sent, PLACES);
	for (uint32_t i = 0; i < PLACES; i++)
		assert_int_equal(n_announced(w, IP(10, 0, 0, 129) + i), 1);
}

// A36-62
static void neighbor_discovery_answers_likewise(void **state)
{
	struct world *w = *state;
	world6_solicit(
		w, 0, &(struct nd_text){PEER6, "ff02::1:ff00:7", "2001:db8:9::7", peer_mac, 0});
	assert_int_equal(w->n_sent, 1);
	assert_true(is_advertisement(&w->sent[0], "2001:db8:9::7"));
	world_forget(w);
	world6_solicit(
		w, 0, &(struct nd_text){PEER6, "ff02::1:ff00:7", "2001:db8:8::7", peer_mac, 0});
	assert_int_equal(w->n_sent, 0);
	world6_advertise(w, 0,
		&(struct nd_text){"2001:db8:8::7", "ff02::1", "2001:db8:8::7", other_mac, 0x20});
	assert_int_equal(w->n_sent, 0);
	assert_int_equal(world_count(w, "nd_conflict"), 0);
}

// Whether a report of MLD's second version names the group of 2001:db8:9::7.
static bool reports_group(const struct world_frame *f)
{
	static const uint8_t group[16] = {0xff, 2, [11] = 1, 0xff, 0, 0, 7};
	for (size_t i = 62; i + 16 <= f->len && f->bytes[62] == 143; i++)
		if (memcmp(f->bytes + i, group, sizeof(group)) == 0)
			return true;
	return false;
}

// A36-63
static void groups_of_what_is_served_are_reported(void **state)
{
	struct world *w = *state;
	struct ip_addr ip = ip6_of("2001:db8:9::7");
	net_announce(w->net, 0);
	for (int i = 0; i < 5; i++)
		world_advance(w, NS_PER_SECOND);
	world_forget(w);
	net_serve(w->net, 3, &ip);
	for (int i = 0; i < 10; i++)
		world_advance(w, NS_PER_MS);
	uint32_t n_reports = 0, n_told = 0;
	for (uint32_t i = 0; i < w->n_sent; i++) {
		n_reports += reports_group(&w->sent[i]);
		n_told += is_advertisement(&w->sent[i], "2001:db8:9::7");
	}
	assert_int_equal(n_told, 2);
	assert_int_equal(n_reports, 2);
}

// OPS-327
static void ops_327_others_take_their_place_and_are_announced_if_they_answer_now(void **state)
{
	struct world *w = *state;
	const struct net_vip list[] = {vip("10.8.0.0", 24, true), vip("10.7.0.0", 24, true),
		vip("10.9.0.0", 25, true), vip("10.9.0.0", 24, false)};
	net_announce(w->net, 0);
	serve(w, 0, QUIET);
	serve(w, 1, LOUD);
	serve(w, 2, NEAR);
	world_advance(w, NS_PER_MS);
	world_forget(w);
	net_change_vips(w->net, list, 4);
	world_advance(w, NS_PER_MS);
	assert_int_equal(n_announced(w, QUIET), 2); // on both links
	assert_int_equal(n_announced(w, LOUD), 0); // they know
	assert_int_equal(n_announced(w, NEAR), 0);
	assert_true(takes(w, 1, IP(10, 7, 0, 7)));
	assert_true(takes(w, 1, LOUD));
	assert_true(takes(w, 1, IP(10, 9, 0, 200)));
	assert_false(takes(w, 1, NEAR));
	assert_int_equal(n_answers(w, 0, QUIET), 1);
	assert_int_equal(n_answers(w, 0, LOUD), 1); // the first that has it counts
	assert_int_equal(n_answers(w, 0, IP(10, 9, 0, 200)), 0);
	assert_int_equal(n_answers(w, 0, NEAR), 0);
	world_forget(w);
	net_announce(w->net, 0); // a link came up
	world_advance(w, NS_PER_MS);
	assert_int_equal(n_announced(w, NEAR), 0);
	assert_int_equal(n_announced(w, LOUD), 2);
	serve(w, 3, IP(10, 7, 0, 7));
	world_advance(w, NS_PER_MS);
	assert_int_equal(n_announced(w, IP(10, 7, 0, 7)), 2);
}

#define IN(setup, test) cmocka_unit_test_setup_teardown(test, setup, world_teardown)

RUN_SUITE("net/vip", IN(setup, what_is_routed_to_a_prefix_is_taken_on_every_port),
	IN(setup, arp_answers_for_the_prefixes_that_say_so_alone),
	IN(setup, an_address_that_another_host_has_too_is_defended_only_if_it_answers),
	IN(setup, what_is_served_is_announced_by_whoever_announces),
	IN(setup, fl_05_one_behind_announces_what_is_served_once_it_answers_for_it),
	IN(setup, many_at_once_are_announced_one_after_the_other),
	IN(setup, ops_327_others_take_their_place_and_are_announced_if_they_answer_now),
	IN(setup6, neighbor_discovery_answers_likewise),
	IN(setup6, groups_of_what_is_served_are_reported))
