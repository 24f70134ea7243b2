// SPDX-License-Identifier: Apache-2.0
// Two ports that reach the same destinations: one subnet in two VLANs, with the same hosts in both,
// and a gateway of the same address behind each.
#include "dataplane/net/csum.h"
#include "tests/support/check.h"
#include "tests/unit/net/world6.h"

#include <string.h>

#define FAR IP(203, 0, 113, 1)
#define FAR6 "2001:db8:77::1"
#define HOST IP(10, 0, 0, 7) // in both
#define HOST6 "2001:db8::7"
#define GATEWAY IP(10, 0, 0, 254)
#define GATEWAY6 "fe80::fe"

static const uint32_t ours[2] = {IP(10, 0, 0, 1), IP(10, 0, 0, 2)};
static const char *const ours6[2] = {"2001:db8::1", "2001:db8::2"};
static const uint8_t hosts[2][6] = {{2, 0, 0, 2, 0, 0}, {2, 0, 0, 2, 0, 1}};
static const uint8_t gateways[2][6] = {{2, 0, 0, 3, 0, 0}, {2, 0, 0, 3, 0, 1}};

static int setup(void **state)
{
	struct net_port_conf ports[2] = {0};
	for (unsigned i = 0; i < 2; i++)
		ports[i] = (struct net_port_conf){.mtu = (uint16_t)(1500 - 100 * i),
			.addresses = {{ip_from_v4(ours[i]), 24}, {ip6_of(ours6[i]), 64}},
			.n_addresses = 2,
			.gateways = {ip_from_v4(GATEWAY), ip6_of(GATEWAY6)}};
	return world_setup_ports(state, ports);
}

// Whoever is asked for on a port answers there, each with a MAC address of its own.
static void resolve_all(struct world *w)
{
	for (unsigned i = 0; i < 2; i++) {
		(void)world_send(w, ours[i], FAR, "");
		(void)world_send(w, ours[i], HOST, "");
		(void)world6_send(w, ours6[i], FAR6, "");
		(void)world6_send(w, ours6[i], HOST6, "");
	}
	for (unsigned i = 0; i < 2; i++) {
		world_arp_in(w, i, &(struct arp_text){2, gateways[i], GATEWAY, ours[i]});
		world_arp_in(w, i, &(struct arp_text){2, hosts[i], HOST, ours[i]});
		world6_advertise(
			w, i, &(struct nd_text){GATEWAY6, ours6[i], GATEWAY6, gateways[i], 0x60});
		world6_advertise(w, i, &(struct nd_text){HOST6, ours6[i], HOST6, hosts[i], 0x60});
	}
	assert_int_equal(world_count(w, "arp_learned"), 4);
	assert_int_equal(world_count(w, "nd_learned"), 4);
	assert_int_equal(world_count(w, "arp_off_link") + world_count(w, "nd_off_link"), 0);
	world_forget(w);
}

static void assert_left(struct world *w, unsigned port, const uint8_t mac[6])
{
	assert_int_equal(w->n_sent, 1);
	assert_int_equal(w->sent[0].port, port);
	assert_memory_equal(w->sent[0].bytes, mac, 6);
	assert_memory_equal(w->sent[0].bytes + 6, world_mac[port], 6);
	world_forget(w);
}

// NET-42
static void a_flow_leaves_by_the_port_of_its_address(void **state)
{
	struct world *w = *state;
	resolve_all(w);
	for (unsigned k = 0; k < 6; k++) { // the way is found, then known
		unsigned i = k % 2;
		assert_true(world_send(w, ours[i], FAR, "x"));
		assert_left(w, i, gateways[i]);
		assert_true(world_send(w, ours[i], HOST, "x"));
		assert_left(w, i, hosts[i]);
		assert_true(world6_send(w, ours6[i], FAR6, "x"));
		assert_left(w, i, gateways[i]);
		assert_true(world6_send(w, ours6[i], HOST6, "x"));
		assert_left(w, i, hosts[i]);
	}
}

// NET-42
static void questions_go_where_the_flow_does(void **state)
{
	struct world *w = *state;
	assert_true(world_send(w, ours[1], HOST, "x"));
	assert_int_equal(w->n_sent, 1);
	assert_int_equal(w->sent[0].port, 1);
	assert_true(is_arp_request(&w->sent[0], HOST));
	assert_int_equal(load32(w->sent[0].bytes + 28), ours[1]);
	world_forget(w);
	world_arp_in(w, 0, &(struct arp_text){2, hosts[0], HOST, ours[0]}); // nobody asked there
	assert_int_equal(w->n_sent, 0);
	world_arp_in(w, 1, &(struct arp_text){2, hosts[1], HOST, ours[1]});
	assert_left(w, 1, hosts[1]);
}

// NET-42
static void the_mtu_is_that_of_the_port(void **state)
{
	struct world *w = *state;
	for (unsigned k = 0; k < 4; k++) {
		unsigned i = k % 2;
		struct tcp_flow v4 = {.local = ip_from_v4(ours[i]), .remote = ip_from_v4(FAR)};
		struct tcp_flow v6 = {.local = ip6_of(ours6[i]), .remote = ip6_of(FAR6)};
		assert_int_equal(w->io.mtu(w->io.ctx, &v4), 1500 - 100 * i);
		assert_int_equal(w->io.mtu(w->io.ctx, &v6), 1500 - 100 * i);
		if (k == 1)
			resolve_all(w);
	}
}

// NET-42
static void an_echo_is_answered_where_its_address_is(void **state)
{
	static const uint8_t echo[8] = {8, 0, 0xf7, 0xff}, echo6[8] = {128};
	struct world *w = *state;
	resolve_all(w);
	for (unsigned i = 0; i < 2; i++) {
		uint8_t f[128];
		size_t len = make_ip(f, FAR, ours[i], 1, echo, sizeof(echo));
		memcpy(f, world_mac[i], 6);
		world_in(w, i, f, len);
		assert_left(w, i, gateways[i]);
		len = make_icmp6(f, FAR6, ours6[i], echo6, sizeof(echo6));
		memcpy(f, world_mac[i], 6);
		world_in(w, i, f, len);
		assert_left(w, i, gateways[i]);
	}
}

// NET-42
static void what_begins_here_takes_the_first_port(void **state)
{
	struct world *w = *state;
	struct ip_addr far = ip_from_v4(FAR), host = ip6_of(HOST6), own = ip6_of(ours6[0]);
	struct ip_addr source;
	assert_true(net_source_for(w->net, &far, &source));
	assert_int_equal(ip_to_v4(&source), ours[0]);
	assert_true(net_source_for(w->net, &host, &source));
	assert_true(ip_eq(&source, &own));
	assert_true(net_prepare(w->net, &far));
	assert_int_equal(w->n_sent, 1);
	assert_int_equal(w->sent[0].port, 0);
	assert_true(is_arp_request(&w->sent[0], GATEWAY));
	assert_true(net_prepare(w->net, &far)); // known now
	assert_int_equal(w->n_sent, 1);
}

// NET-42
static void an_address_of_no_port_takes_the_first(void **state)
{
	struct world *w = *state;
	resolve_all(w);
	assert_true(world_send(w, IP(192, 0, 2, 1), FAR, "x"));
	assert_left(w, 0, gateways[0]);
}

// NET-42: several gateways of each port.
static void a_flow_chooses_among_its_own_ports_gateways(void **state)
{
	struct net_port_conf ports[2] = {0};
	for (unsigned i = 0; i < 2; i++)
		ports[i] = (struct net_port_conf){.mtu = 1500,
			.addresses = {{ip_from_v4(ours[i]), 24}},
			.n_addresses = 1,
			.gateways = {ip_from_v4(GATEWAY), ip_from_v4(GATEWAY - 1)}};
	assert_int_equal(world_setup_ports(state, ports), 0);
	struct world *w = *state;
	struct tcp_flow flow = {.remote = ip_from_v4(FAR)};
	for (unsigned i = 0; i < 2; i++)
		for (unsigned g = 0; g < 2; g++)
			world_arp_in(w, i,
				&(struct arp_text){
					2, g ? hosts[i] : gateways[i], GATEWAY - g, ours[i]});
	unsigned n[2][2] = {0};
	for (unsigned k = 0; k < 200; k++) {
		unsigned i = k % 2;
		flow.local = ip_from_v4(ours[i]);
		flow.remote_port = (uint16_t)(1000 + k);
		world_forget(w);
		uint8_t *segment = w->io.reserve(w->io.ctx, &flow, 20);
		memset(segment, 0, 20);
		w->io.emit(w->io.ctx, &flow, segment, 20);
		assert_int_equal(w->sent[0].port, i);
		bool second = memcmp(w->sent[0].bytes, hosts[i], 6) == 0;
		assert_true(second || memcmp(w->sent[0].bytes, gateways[i], 6) == 0);
		n[i][second]++;
	}
	for (unsigned i = 0; i < 2; i++)
		assert_true(n[i][0] > 20 && n[i][1] > 20);
}

// NET-11: of prefixes of two lengths the longer one has it, whoever speaks.
static void a_longer_prefix_comes_first(void **state)
{
	struct net_port_conf ports[2] = {
		{.mtu = 1500, .addresses = {{ip_from_v4(ours[0]), 16}}, .n_addresses = 1},
		{.mtu = 1500, .addresses = {{ip_from_v4(ours[1]), 24}}, .n_addresses = 1},
	};
	assert_int_equal(world_setup_ports(state, ports), 0);
	struct world *w = *state;
	assert_true(world_send(w, ours[0], HOST, "x"));
	assert_int_equal(w->sent[0].port, 1);
}

// NET-15: of whom nothing may be learned on either.
static void a_host_of_neither_link_is_off_link_still(void **state)
{
	struct world *w = *state;
	world_arp_in(w, 1, &(struct arp_text){1, peer_mac, IP(10, 9, 0, 7), ours[1]});
	assert_int_equal(world_count(w, "arp_off_link"), 1);
	assert_int_equal(w->n_sent, 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)
#define OWN(f) cmocka_unit_test_teardown(f, world_teardown)
RUN_SUITE("net/way", CASE(a_flow_leaves_by_the_port_of_its_address),
	CASE(questions_go_where_the_flow_does), CASE(the_mtu_is_that_of_the_port),
	CASE(an_echo_is_answered_where_its_address_is), CASE(what_begins_here_takes_the_first_port),
	CASE(an_address_of_no_port_takes_the_first),
	OWN(a_flow_chooses_among_its_own_ports_gateways), OWN(a_longer_prefix_comes_first),
	CASE(a_host_of_neither_link_is_off_link_still))
