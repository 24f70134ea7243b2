// SPDX-License-Identifier: Apache-2.0
// What operators are told of neighbors and addresses (OPS-195, OPS-196).
#include "dataplane/net/inside.h"
#include "lb/pick/inflight.h"
#include "tests/support/check.h"
#include "tests/unit/net/world6.h"

#include <string.h>

#define PEER IP(10, 0, 0, 7)
#define ROUTER IP(10, 0, 0, 254)
#define OURS IP(10, 0, 0, 1)

static struct lb_inflight *f;

static const struct lb_inflight *look(
	struct world *w, enum lb_inflight_kind kind, const char *prefix, uint8_t bits)
{
	struct lb_inflight_query q = {
		.kind = kind, .limit = LB_INFLIGHT_ROWS, .has_source = prefix};
	if (prefix)
		assert_true(ip_parse(prefix, &q.source.ip));
	q.source.bits = bits;
	lb_inflight_ask(f, &q);
	net_tell_begin(w->net, f);
	for (int ms = 0; !lb_inflight_is_free(f); ms++) {
		assert_true(ms < 1000);
		world_advance(w, NS_PER_MS);
	}
	return f;
}

static const struct lb_inflight_row *row_of(const char *address)
{
	struct ip_addr ip;
	assert_true(ip_parse(address, &ip));
	for (uint32_t i = 0; i < f->n_rows; i++)
		if (ip_eq(&f->rows[i].peer.ip, &ip))
			return &f->rows[i];
	return NULL;
}

// OPS-195
static void neighbors_are_told_with_state_and_address(void **state)
{
	struct world *w = *state;
	assert_int_equal(look(w, LB_INFLIGHT_NEIGHBORS, NULL, 0)->n_all, 0);
	world_arp_in(w, 0, &(struct arp_text){1, peer_mac, PEER, OURS});
	world_send(w, OURS, IP(192, 0, 2, 1), "x"); // by the gateway
	assert_int_equal(look(w, LB_INFLIGHT_NEIGHBORS, NULL, 0)->n_all, 2);
	const struct lb_inflight_row *peer = row_of("10.0.0.7"), *router = row_of("10.0.0.254");
	assert_int_equal(peer->state, LB_NEIGHBOR_stale);
	assert_true(peer->neighbor.has_mac && !peer->neighbor.is_gateway);
	assert_memory_equal(peer->neighbor.mac, peer_mac, 6);
	assert_int_equal(router->state, LB_NEIGHBOR_incomplete);
	assert_true(!router->neighbor.has_mac && router->neighbor.is_gateway);
	assert_int_equal(router->neighbor.n_held, 1);
	assert_int_equal(router->neighbor.n_asks, 1);
	world_resolve(w, 0, ROUTER, peer_mac);
	look(w, LB_INFLIGHT_NEIGHBORS, "10.0.0.254", 128);
	assert_int_equal(f->n_all, 2);
	assert_int_equal(f->n_matching, 1);
	assert_int_equal(f->rows[0].state, LB_NEIGHBOR_reachable);
	assert_int_equal(f->rows[0].neighbor.n_held, 0);
}

// OPS-195
static void many_neighbors_are_told_in_parts(void **state)
{
	struct world *w = *state;
	for (uint32_t i = 0; i < 2000; i++) {
		world_arp_in(w, 1,
			&(struct arp_text){1, peer_mac, IP(10, 1, 16, 1) + i, IP(10, 1, 0, 1)});
		world_forget(w);
	}
	struct lb_inflight_query q = {.kind = LB_INFLIGHT_NEIGHBORS, .limit = 10};
	lb_inflight_ask(f, &q);
	net_tell_begin(w->net, f);
	int n_parts = 0;
	for (; !lb_inflight_is_free(f); n_parts++)
		world_advance(w, NS_PER_MS);
	assert_in_range(n_parts, 4, 20);
	assert_int_equal(f->n_all, 2000);
	assert_int_equal(f->n_rows, 10);
}

// OPS-196
static void addresses_of_ports_prefixes_and_listeners_are_told(void **state)
{
	static const struct net_vip vips[] = {
		{{{{[10] = 255, [11] = 255, 192, 0, 2, 0}}, 24 + IP_V4_BITS}, true},
		{{{{[10] = 255, [11] = 255, 198, 51, 100, 0}}, 24 + IP_V4_BITS}, false}};
	struct world *w = *state;
	const struct ip_addr served = ip_from_v4(IP(192, 0, 2, 9));
	assert_int_equal(net_set_vips(w->net, vips, 2, 4), 0);
	net_serve(w->net, 2, &served);
	look(w, LB_INFLIGHT_ADDRESSES, NULL, 0);
	assert_int_equal(f->n_rows, 4 + 2 + 1); // those of world.h
	const struct lb_inflight_address *a = &row_of("10.1.2.1")->address;
	assert_int_equal(a->kind, LB_ADDRESS_port);
	assert_int_equal(a->port, 1);
	assert_int_equal(a->bits, 24 + IP_V4_BITS);
	assert_true(a->answers);
	assert_true(row_of("192.0.2.0")->address.answers);
	assert_false(row_of("198.51.100.0")->address.answers);
	a = &row_of("192.0.2.9")->address;
	assert_int_equal(a->kind, LB_ADDRESS_vip);
	assert_int_equal(a->port, LB_ADDRESS_ALL_PORTS);
	assert_int_equal(a->rival_ns, 0);
}

// OPS-196
static void who_claims_an_address_of_ours_is_told(void **state)
{
	struct world *w = *state;
	static const uint8_t other[6] = {2, 0, 0, 0, 0, 0xbb};
	world_advance(w, NS_PER_SECOND);
	world_arp_in(w, 0, &(struct arp_text){1, peer_mac, OURS, PEER});
	world_arp_in(w, 0, &(struct arp_text){1, other, OURS, PEER});
	look(w, LB_INFLIGHT_ADDRESSES, NULL, 0);
	const struct lb_inflight_address *a = &row_of("10.0.0.1")->address;
	assert_memory_equal(a->rival, other, 6);
	assert_true(a->rival_ns > 0);
	assert_int_equal(row_of("10.0.0.9")->address.rival_ns, 0);
}

// OPS-196
static void of_ipv6_the_link_local_address_is_told_and_who_claims_one(void **state)
{
	struct world *w = *state;
	world_advance(w, NS_PER_SECOND);
	world6_advertise(w, 0, &(struct nd_text){PEER6, OURS6, OURS6, peer_mac, 0x20});
	look(w, LB_INFLIGHT_ADDRESSES, NULL, 0);
	uint32_t n_link_local = 0;
	for (uint32_t i = 0; i < f->n_rows; i++)
		n_link_local += f->rows[i].address.kind == LB_ADDRESS_link_local;
	assert_int_equal(n_link_local, 2);
	assert_memory_equal(row_of(OURS6)->address.rival, peer_mac, 6);
}

static int setup(void **state)
{
	f = lb_inflight_new();
	return f ? world_setup(state) : -1;
}

static int setup6(void **state)
{
	f = lb_inflight_new();
	return f ? world6_setup(state) : -1;
}

static int teardown(void **state)
{
	int ret = world_teardown(state);
	lb_inflight_free(f);
	return ret;
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define CASE6(test) cmocka_unit_test_setup_teardown(test, setup6, teardown)

RUN_SUITE("net/tell", CASE(neighbors_are_told_with_state_and_address),
	CASE(many_neighbors_are_told_in_parts),
	CASE(addresses_of_ports_prefixes_and_listeners_are_told),
	CASE(who_claims_an_address_of_ours_is_told),
	CASE6(of_ipv6_the_link_local_address_is_told_and_who_claims_one))
