// SPDX-License-Identifier: Apache-2.0
// Whose frames are: of a port with a kernel behind it.
#include "dataplane/net/csum.h"
#include "dataplane/net/foreign.h"
#include "tests/support/check.h"
#include "tests/unit/net/world.h"
#include "tests/unit/net/world6.h"

#include <string.h>

#define PEER IP(10, 0, 0, 7)
#define OURS IP(10, 0, 0, 1)
#define VIP IP(10, 9, 0, 7)
#define UDP 17
#define UNREACHABLE 3

static int setup(void **state)
{
	struct net_port_conf ports[2] = {
		{.mtu = 1500, .n_addresses = 1, .is_shared = true},
		{.mtu = 1500, .n_addresses = 1},
	};
	ports[0].addresses[0] = (struct net_prefix){ip_from_v4(OURS), 24};
	ports[1].addresses[0] = (struct net_prefix){ip_from_v4(IP(10, 1, 0, 1)), 16};
	struct net_vip vip = {.prefix = {ip_from_v4(IP(10, 9, 0, 0)), IP_V4_BITS + 24}};
	int rc = world_setup_ports(state, ports);
	struct world *w = *state;
	return rc ? rc : net_set_vips(w->net, &vip, 1, 1);
}

static int setup6(void **state)
{
	struct net_port_conf ports[2] = {
		{.mtu = 1500, .n_addresses = 1, .is_shared = true, .accept_ra = true},
		{.mtu = 1500, .n_addresses = 1},
	};
	ports[0].addresses[0] = (struct net_prefix){ip6_of(OURS6), 64};
	ports[1].addresses[0] = (struct net_prefix){ip6_of("2001:db8:1::1"), 64};
	return world_setup_ports(state, ports);
}

// The frame as it is comes to that port: whose is it?
static enum net_foreign whose(struct world *w, uint32_t port, const uint8_t *frame, size_t len)
{
	(void)net_take_drop(w->net);
	world_in(w, port, frame, len);
	return net_foreign_of(w->net, port, frame, len, net_take_drop(w->net));
}

static enum net_foreign whose_ip(
	struct world *w, uint32_t dst, uint8_t protocol, const uint8_t *payload, size_t len)
{
	uint8_t f[256];
	size_t n = make_ip(f, PEER, dst, protocol, payload, len);
	return whose(w, 0, f, n);
}

// FL-21
static void what_we_serve_is_not_the_kernels(void **state)
{
	struct world *w = *state;
	uint8_t payload[24] = {0};
	assert_int_equal(whose_ip(w, OURS, 6, payload, sizeof(payload)), NET_NOT_FOREIGN);
	assert_int_equal(w->n_segments, 1);
	struct ip_addr ip = ip_from_v4(OURS), vip = ip_from_v4(VIP), far = ip_from_v4(PEER);
	assert_true(net_is_shared(w->net, &ip));
	assert_false(net_is_shared(w->net, &vip));
	assert_false(net_is_shared(w->net, &far));
}

// FL-20
static void protocols_and_fragments_of_a_shared_address_are_the_kernels(void **state)
{
	struct world *w = *state;
	uint8_t payload[24] = {0};
	assert_int_equal(whose_ip(w, OURS, UDP, payload, sizeof(payload)), NET_FOREIGN_OTHER);
	assert_int_equal(whose_ip(w, VIP, UDP, payload, sizeof(payload)), NET_NOT_FOREIGN);
	uint8_t f[256];
	size_t n = make_ip(f, PEER, OURS, UDP, payload, sizeof(payload));
	f[20] |= 0x20; // more follow
	fix_ip_checksum(f);
	assert_int_equal(whose(w, 0, f, n), NET_FOREIGN_OTHER);
	f[24] ^= 1; // a wrong sum
	assert_int_equal(whose(w, 0, f, n), NET_NOT_FOREIGN);
}

// FL-20
static void addresses_that_are_not_ours_are_the_kernels(void **state)
{
	struct world *w = *state;
	uint8_t payload[24] = {0};
	assert_int_equal(
		whose_ip(w, IP(10, 0, 0, 11), 6, payload, sizeof(payload)), NET_FOREIGN_OTHER);
	uint8_t f[256];
	size_t n = make_ip(f, PEER, IP(224, 0, 0, 5), 89, payload, sizeof(payload)); // OSPF
	memcpy(f, (uint8_t[]){1, 0, 0x5e, 0, 0, 5}, 6);
	assert_int_equal(whose(w, 0, f, n), NET_FOREIGN_GROUP);
	f[0] = 2; // another station's
	assert_int_equal(whose(w, 0, f, n), NET_NOT_FOREIGN);
	memcpy(f, world_mac[0], 6);
	f[12] = 0x88;
	f[13] = 0xcc; // LLDP
	assert_int_equal(whose(w, 0, f, n), NET_FOREIGN_OTHER);
	assert_int_equal(whose(w, 0, f, 13), NET_NOT_FOREIGN);
}

// FL-22
static void we_answer_echo_and_arp_and_the_kernel_hears_answers(void **state)
{
	struct world *w = *state;
	uint8_t echo[8] = {8}, reply[8] = {0};
	uint16_t sum = csum(echo, sizeof(echo));
	memcpy(echo + 2, &sum, 2);
	sum = csum(reply, sizeof(reply));
	memcpy(reply + 2, &sum, 2);
	assert_int_equal(whose_ip(w, OURS, 1, echo, sizeof(echo)), NET_NOT_FOREIGN);
	assert_int_equal(whose_ip(w, OURS, 1, reply, sizeof(reply)), NET_FOREIGN_ICMP);
	assert_int_equal(whose_ip(w, VIP, 1, reply, sizeof(reply)), NET_NOT_FOREIGN);
	uint8_t f[14 + 28] = {[12] = 8, [13] = 6, [15] = 1, [16] = 8, [18] = 6, [19] = 4, [21] = 2};
	memcpy(f, world_mac[0], 6);
	memcpy(f + 6, peer_mac, 6);
	memcpy(f + 22, peer_mac, 6);
	store32(f + 28, PEER);
	memcpy(f + 32, world_mac[0], 6);
	store32(f + 38, OURS);
	assert_int_equal(whose(w, 0, f, sizeof(f)), NET_FOREIGN_NEIGHBORS);
	f[21] = 1; // a question for us
	assert_int_equal(whose(w, 0, f, sizeof(f)), NET_NOT_FOREIGN);
	assert_int_equal(world_count(w, "arp_answered"), 1);
	store32(f + 38, IP(10, 0, 0, 11)); // for another
	assert_int_equal(whose(w, 0, f, sizeof(f)), NET_FOREIGN_NEIGHBORS);
}

// FL-22. What is quoted may be either's: both look.
static void errors_go_to_both(void **state)
{
	struct world *w = *state;
	uint8_t message[8 + 28] = {[0] = UNREACHABLE, [8] = 0x45, [11] = 48, [17] = 6};
	store32(message + 20, OURS);
	store32(message + 24, PEER);
	uint16_t sum = csum(message, sizeof(message));
	memcpy(message + 2, &sum, 2);
	assert_int_equal(whose_ip(w, OURS, 1, message, sizeof(message)), NET_FOREIGN_ICMP);
	assert_int_equal(w->n_unreachable, 1);
	message[17] = UDP;
	memset(message + 2, 0, 2);
	sum = csum(message, sizeof(message));
	memcpy(message + 2, &sum, 2);
	assert_int_equal(whose_ip(w, OURS, 1, message, sizeof(message)), NET_FOREIGN_ICMP);
	assert_int_equal(w->n_unreachable, 1);
}

// FL-23
static void a_port_without_a_kernel_gives_nothing(void **state)
{
	struct world *w = *state;
	uint8_t f[256], payload[24] = {0};
	size_t n = make_ip(f, IP(10, 1, 0, 7), IP(10, 1, 0, 1), UDP, payload, sizeof(payload));
	memcpy(f, world_mac[1], 6);
	assert_int_equal(whose(w, 1, f, n), NET_NOT_FOREIGN);
	struct ip_addr its_own = ip_from_v4(IP(10, 1, 0, 1));
	assert_false(net_is_shared(w->net, &its_own));
}

// FL-20, FL-22
static void it_is_the_same_with_ip6(void **state)
{
	struct world *w = *state;
	uint8_t f[256], payload[24] = {0};
	size_t n = make_ip6(f, PEER6, OURS6, UDP, payload, sizeof(payload));
	assert_int_equal(whose(w, 0, f, n), NET_FOREIGN_OTHER);
	n = make_ip6(f, PEER6, "2001:db8::99", 6, payload, sizeof(payload));
	assert_int_equal(whose(w, 0, f, n), NET_FOREIGN_OTHER);
	uint8_t echo[8] = {128}, reply[8] = {129};
	n = make_icmp6(f, PEER6, OURS6, echo, sizeof(echo));
	assert_int_equal(whose(w, 0, f, n), NET_NOT_FOREIGN);
	n = make_icmp6(f, PEER6, OURS6, reply, sizeof(reply));
	assert_int_equal(whose(w, 0, f, n), NET_FOREIGN_ICMP);
	n = make_advertisement(f, &(struct nd_text){.src = PEER6,
					  .dst = OURS6,
					  .target = PEER6,
					  .mac = peer_mac,
					  .flags = 0x60});
	assert_int_equal(whose(w, 0, f, n), NET_FOREIGN_NEIGHBORS);
	uint8_t router[16] = {134, [4] = 64, [7] = 200}; // for 200 s
	n = make_icmp6(f, "fe80::a", "ff02::1", router, sizeof(router));
	assert_int_equal(whose(w, 0, f, n), NET_FOREIGN_NEIGHBORS);
	assert_int_equal(world_count(w, "ra_heard"), 1);
	n = make_solicitation(
		f, &(struct nd_text){.src = PEER6, .dst = OURS6, .target = OURS6, .mac = peer_mac});
	assert_int_equal(whose(w, 0, f, n), NET_NOT_FOREIGN);
}

// FL-25. As a kernel leaves it for a card: the pseudo-header's sum, not inverted.
static void a_checksum_that_was_left_to_hardware_is_made(void **state)
{
	uint8_t f[256], datagram[11] = {0, 1, 0, 2, 0, 11, 0, 0, 'a', 'b', 'c'}, pseudo[12] = {0};
	store32(pseudo, PEER);
	store32(pseudo + 4, OURS);
	pseudo[9] = UDP;
	pseudo[11] = sizeof(datagram);
	uint16_t sum = (uint16_t)~csum(pseudo, sizeof(pseudo));
	memcpy(datagram + 6, &sum, 2);
	size_t n = make_ip(f, PEER, OURS, UDP, datagram, sizeof(datagram));
	net_foreign_make_checksum(f, n);
	uint64_t all = csum_add(0, pseudo, sizeof(pseudo));
	assert_int_equal(csum_fold(csum_add(all, f + 34, sizeof(datagram))), 0);
	uint8_t before[256];
	n = make_ip(f, PEER, OURS, 89, datagram, sizeof(datagram));
	memcpy(before, f, n);
	net_foreign_make_checksum(f, n);
	for (size_t len = 0; len < n; len++)
		net_foreign_make_checksum(f, len);
	assert_memory_equal(f, before, n);
}

// FL-80
static void what_no_router_passes_on_is_of_the_link(void **state)
{
	(void)state;
	uint8_t f[256], payload[24] = {0};
	size_t n = make_ip(f, PEER, OURS, UDP, payload, sizeof(payload));
	assert_false(net_foreign_is_near(f, n));
	f[22] = 255;
	assert_true(net_foreign_is_near(f, n));
	assert_false(net_foreign_is_near(f, 33)); // no whole header
	f[22] = 254;
	assert_false(net_foreign_is_near(f, n));
	n = make_ip(f, PEER, IP(224, 0, 0, 5), 89, payload, sizeof(payload));
	assert_true(net_foreign_is_near(f, n));
	n = make_ip(f, PEER, IP(224, 0, 1, 5), 89, payload, sizeof(payload));
	assert_false(net_foreign_is_near(f, n));
	f[13] = 6; // ARP
	assert_true(net_foreign_is_near(f, n));
	assert_false(net_foreign_is_near(f, 13));
}

// FL-80
static void it_is_the_same_of_ip6_and_of_tagged_frames(void **state)
{
	(void)state;
	uint8_t f[256] = {0}, payload[24] = {0};
	size_t n = make_ip6(f, PEER6, OURS6, UDP, payload, sizeof(payload));
	f[21] = 64;
	assert_false(net_foreign_is_near(f, n));
	f[21] = 255;
	assert_true(net_foreign_is_near(f, n));
	assert_false(net_foreign_is_near(f, 53));
	n = make_ip6(f, PEER6, "ff02::5", 89, payload, sizeof(payload));
	f[21] = 1;
	assert_true(net_foreign_is_near(f, n));
	n = make_ip6(f, PEER6, "ff0e::5", 89, payload, sizeof(payload));
	f[21] = 1;
	assert_false(net_foreign_is_near(f, n));
	memmove(f + 16, f + 12, n - 12);
	memcpy(f + 12, (uint8_t[]){0x81, 0, 0, 0}, 4);
	assert_false(net_foreign_is_near(f, n + 4));
	f[25] = 255;
	assert_true(net_foreign_is_near(f, n + 4));
}

static bool ip_is_for_all(uint8_t protocol, uint8_t type)
{
	uint8_t f[256], payload[40] = {type};
	size_t n = make_ip(f, PEER, OURS, protocol, payload, sizeof(payload));
	return net_foreign_is_for_all(f, n);
}

static bool ip6_is_for_all(uint8_t protocol, uint8_t type)
{
	uint8_t f[94] = {[12] = 0x86, [13] = 0xdd, [14] = 0x60, [19] = 40, [20] = protocol};
	f[54] = type;
	return net_foreign_is_for_all(f, sizeof(f));
}

static void fl_103_neighbors_routers_and_errors_are_for_all(void **state)
{
	uint8_t arp[42] = {[12] = 8, [13] = 6, [15] = 1, [16] = 8, [18] = 6, [19] = 4};
	for (arp[21] = 1; arp[21] <= 2; arp[21]++) // questions, too: both learn of who asks
		assert_true(net_foreign_is_for_all(arp, sizeof(arp)));
	assert_true(ip_is_for_all(1, UNREACHABLE));
	assert_false(ip_is_for_all(1, 8)); // an echo request is answered once
	assert_false(ip_is_for_all(6, UNREACHABLE) || ip_is_for_all(UDP, UNREACHABLE));
	for (uint8_t type = 1; type <= 4; type++)
		assert_true(ip6_is_for_all(58, type));
	for (uint8_t type = 134; type <= 136; type++) // routers', neighbors'
		assert_true(ip6_is_for_all(58, type));
	assert_false(ip6_is_for_all(58, 128) || ip6_is_for_all(6, 1));
	assert_false(net_foreign_is_for_all(arp, 13));
	assert_false(net_foreign_is_for_all(arp, 0));
}

static int drop_of(struct world *w, uint8_t type, uint8_t sum)
{
	uint8_t f[256], message[40] = {type, 0, sum, 0xff};
	size_t n = make_ip(f, PEER, OURS, 1, message, sizeof(message));
	(void)net_take_drop(w->net);
	world_in(w, 0, f, n);
	return net_take_drop(w->net);
}

static void fl_127_echo_requests_that_a_silent_host_leaves_are_anothers(void **state)
{
	struct world *w = *state;
	assert_true(drop_of(w, 8, 0xf7) < 0); // it answers
	net_set_silent(w->net, true);
	int left = drop_of(w, 8, 0xf7), bad = drop_of(w, 8, 0xf6);
	assert_true(left >= 0 && net_foreign_is_left((uint8_t)left));
	assert_true(bad >= 0 && !net_foreign_is_left((uint8_t)bad));
}

// FL-24
static void the_kernels_frames_leave_as_they_are(void **state)
{
	struct world *w = *state;
	uint8_t f[1600] = {2, 0, 0, 0, 0, 0xaa, 2, 0, 0, 0, 0, 0xbb, 8, 0};
	assert_true(net_foreign_send(w->net, 0, f, 1514));
	assert_int_equal(w->n_sent, 1);
	assert_int_equal(w->sent[0].len, 1514);
	assert_memory_equal(w->sent[0].bytes, f, 1514);
	assert_false(net_foreign_send(w->net, 0, f, 1515));
	w->ports[0].starved = true;
	assert_false(net_foreign_send(w->net, 0, f, 60));
	assert_int_equal(w->n_sent, 1);
}

#define IN_WORLD(name, setup) cmocka_unit_test_setup_teardown(name, setup, world_teardown)

RUN_SUITE("net/foreign", IN_WORLD(what_we_serve_is_not_the_kernels, setup),
	IN_WORLD(protocols_and_fragments_of_a_shared_address_are_the_kernels, setup),
	IN_WORLD(addresses_that_are_not_ours_are_the_kernels, setup),
	IN_WORLD(we_answer_echo_and_arp_and_the_kernel_hears_answers, setup),
	IN_WORLD(errors_go_to_both, setup), IN_WORLD(a_port_without_a_kernel_gives_nothing, setup),
	IN_WORLD(it_is_the_same_with_ip6, setup6),
	IN_WORLD(a_checksum_that_was_left_to_hardware_is_made, setup),
	cmocka_unit_test(fl_103_neighbors_routers_and_errors_are_for_all),
	IN_WORLD(fl_127_echo_requests_that_a_silent_host_leaves_are_anothers, setup),
	cmocka_unit_test(what_no_router_passes_on_is_of_the_link),
	cmocka_unit_test(it_is_the_same_of_ip6_and_of_tagged_frames),
	IN_WORLD(the_kernels_frames_leave_as_they_are, setup))
