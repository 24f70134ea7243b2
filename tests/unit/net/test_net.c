// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/csum.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/net/world.h"

static void birth_survives_each_failed_allocation(void **state)
{
	struct world *w = *state;
	struct net_port_conf port = {
		.mtu = 1500, .addresses = {{ip_from_v4(IP(10, 0, 0, 1)), 24}}, .n_addresses = 1};
	struct net *net = NULL;
	ALLOC_FAIL_EACH(net = net_new(&port, 1, 16, w->wheel, 1), net == NULL, net_free(net));
}

// Every address must be found, wherever the hash puts it.
static void as_many_addresses_as_allowed_are_all_ours(void **state)
{
	struct world *w = *state;
	struct net_port_conf ports[NET_MAX_PORTS] = {0};
	for (uint32_t p = 0; p < NET_MAX_PORTS; p++) {
		ports[p].device = (struct net_device){.reserve = NULL};
		ports[p].mtu = 1500;
		ports[p].n_addresses = NET_MAX_ADDRESSES;
		for (uint32_t i = 0; i < NET_MAX_ADDRESSES; i++)
			ports[p].addresses[i] =
				(struct net_prefix){ip_from_v4(IP(10, p, i, 1)), 24};
	}
	struct net *net = net_new(ports, NET_MAX_PORTS, 16, w->wheel, 3);
	for (uint32_t p = 0; p < NET_MAX_PORTS; p++)
		for (uint32_t i = 0; i < NET_MAX_ADDRESSES; i++) {
			uint8_t f[64] = {0};
			size_t len = make_ip(f, IP(10, p, i, 2), IP(10, p, i, 1), 17, "", 0);
			f[0] = f[1] = 0;
			net_input(net, p, f, len);
			struct ip_addr dst = ip_from_v4(IP(10, p, i, 77)), source;
			assert_true(net_source_for(net, &dst, &source));
			assert_int_equal(ip_to_v4(&source), IP(10, p, i, 1));
		}
	struct counter_set set = net_counters(net);
	for (uint32_t i = 0; i < set.n; i++)
		if (set.values[i])
			assert_int_equal(set.values[i], NET_MAX_PORTS * NET_MAX_ADDRESSES);
	net_free(net);
}

// NET-11
static void gateway_outside_of_every_prefix_is_a_neighbor(void **state)
{
	struct world *w = *state;
	struct net_port_conf port = {
		.device = {.reserve = NULL},
		.mtu = 1500,
		.addresses = {{ip_from_v4(IP(192, 0, 2, 10)), 32}},
		.n_addresses = 1,
		.gateways = {ip_from_v4(IP(198, 51, 100, 1))},
	};
	struct net *net = net_new(&port, 1, 16, w->wheel, 3);
	struct ip_addr source, dst = ip_from_v4(IP(203, 0, 113, 5));
	assert_true(net_source_for(net, &dst, &source));
	assert_int_equal(ip_to_v4(&source), IP(192, 0, 2, 10));
	dst = port.gateways[0];
	assert_true(net_source_for(net, &dst, &source));
	net_free(net);
}

static void without_gateway_only_the_links_are_reached(void **state)
{
	struct world *w = *state;
	struct net_port_conf port = {
		.mtu = 1500, .addresses = {{ip_from_v4(IP(10, 0, 0, 1)), 24}}, .n_addresses = 1};
	struct net *net = net_new(&port, 1, 16, w->wheel, 3);
	struct ip_addr source, dst = ip_from_v4(IP(10, 0, 1, 1));
	assert_false(net_source_for(net, &dst, &source));
	dst = ip_from_v4(IP(10, 0, 0, 2));
	assert_true(net_source_for(net, &dst, &source));
	net_free(net);
}

// NET-36
static void a_tag_with_a_priority_alone_is_passed_over(void **state)
{
	struct world *w = *state;
	uint8_t f[68], tagged[72] = {0};
	size_t len = make_ip(f, IP(10, 0, 0, 7), IP(10, 0, 0, 1), 6, "segment", 7);
	memcpy(tagged, f, 12);
	memcpy(tagged + 16, f + 12, len - 12);
	store16(tagged + 12, 0x8100);
	store16(tagged + 14, 0xe000); // priority 7, VLAN 0
	world_in(w, 0, tagged, len + 4);
	assert_int_equal(w->n_segments, 1);
	assert_int_equal(w->segment_len, 7);
	assert_memory_equal(w->segment, "segment", 7);
	store16(tagged + 14, 0xe001);
	world_in(w, 0, tagged, len + 4);
	for (size_t cut = 14; cut < 18; cut++) {
		store16(tagged + 14, 0xe000);
		world_in(w, 0, tagged, cut);
	}
	assert_int_equal(w->n_segments, 1);
	assert_int_equal(world_count(w, "eth_vlan"), 5);
}

// NET-36
static void a_question_with_a_priority_is_answered(void **state)
{
	struct world *w = *state;
	uint8_t tagged[64] = {0};
	memcpy(tagged, broadcast_mac, 6);
	memcpy(tagged + 6, peer_mac, 6);
	memcpy(tagged + 12, "\x81\0\0\0\x08\x06\0\1\x08\0\6\4\0\1", 14);
	memcpy(tagged + 26, peer_mac, 6);
	store32(tagged + 32, IP(10, 0, 0, 7));
	store32(tagged + 42, IP(10, 0, 0, 1));
	net_hear(w->net, 0, tagged, 46);
	assert_int_equal(w->n_sent, 0);
	world_in(w, 0, tagged, 46);
	assert_int_equal(w->n_sent, 1);
	assert_int_equal(world_count(w, "arp_answered"), 1);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
RUN_SUITE("net/net", CASE(birth_survives_each_failed_allocation),
	CASE(as_many_addresses_as_allowed_are_all_ours),
	CASE(a_tag_with_a_priority_alone_is_passed_over),
	CASE(a_question_with_a_priority_is_answered),
	CASE(gateway_outside_of_every_prefix_is_a_neighbor),
	CASE(without_gateway_only_the_links_are_reached))
