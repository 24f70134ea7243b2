// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/csum.h"
#include "tests/support/check.h"
#include "tests/unit/net/world6.h"

#include <stdio.h>
#include <string.h>

#define FAR "2001:db8:77::1"
#define HIGH 0x08
#define LOW 0x18

// Port 0 has 2001:db8::1/64 and accepts what routers advertise; port 1 does not.
static int setup(void **state)
{
	struct net_port_conf ports[2] = {
		{.mtu = 1500,
			.addresses = {{ip6_of(OURS6), 64}},
			.n_addresses = 1,
			.accept_ra = true},
		{.mtu = 1500, .addresses = {{ip6_of("2001:db8:1::1"), 64}}, .n_addresses = 1},
	};
	return world_setup_ports(state, ports);
}

struct ra {
	const char *router;
	uint8_t preference; // bits of the flags
	uint16_t lifetime_s;
	const char *prefix; // NULL = none
	uint8_t bits;
	uint32_t prefix_s;
};

static size_t make_ra(uint8_t *f, const struct ra *ra)
{
	uint8_t message[16 + 32] = {134, [4] = 64, [5] = ra->preference};
	store16(message + 6, ra->lifetime_s);
	if (ra->prefix) {
		struct ip_addr prefix = ip6_of(ra->prefix);
		message[16] = 3;
		message[17] = 4;
		message[18] = ra->bits;
		message[19] = 0xc0; // on-link, autonomous
		store32(message + 20, ra->prefix_s);
		memcpy(message + 32, prefix.b, 16);
	}
	return make_icmp6(f, ra->router, "ff02::1", message, ra->prefix ? 48 : 16);
}

static void advertise(struct world *w, uint32_t port, const struct ra *ra)
{
	uint8_t f[128];
	world_in(w, port, f, make_ra(f, ra));
}

static bool has_route(const struct world *w, const char *dst)
{
	struct ip_addr ip = ip6_of(dst), source;
	return net_source_for(w->net, &ip, &source);
}

// Sends there and tells whose MAC address was asked for, or that of nobody.
static bool goes_by(struct world *w, const char *dst, const char *neighbor)
{
	for (int i = 0; i < 10; i++) // whoever was asked for before is forgotten
		world_advance(w, NS_PER_SECOND);
	world_forget(w);
	world6_send(w, OURS6, dst, "x");
	return w->n_sent == 1 && is_solicitation(&w->sent[0], neighbor);
}

// IP6-22
static void the_router_of_highest_preference_is_the_gateway_for_its_time(void **state)
{
	struct world *w = *state;
	assert_false(has_route(w, FAR));
	advertise(w, 0, &(struct ra){"fe80::a", LOW, 1800});
	assert_true(goes_by(w, FAR, "fe80::a"));
	advertise(w, 0, &(struct ra){"fe80::b", HIGH, 100});
	assert_true(goes_by(w, FAR, "fe80::b"));
	advertise(w, 0, &(struct ra){"fe80::c", 0, 1800});
	assert_true(goes_by(w, FAR, "fe80::b"));
	world_advance(w, 100 * NS_PER_SECOND);
	assert_true(goes_by(w, FAR, "fe80::c"));
	advertise(w, 0, &(struct ra){"fe80::c", 0, 0}); // it resigns
	assert_true(goes_by(w, FAR, "fe80::a"));
	world_advance(w, 1800 * NS_PER_SECOND);
	assert_false(has_route(w, FAR));
}

// IP6-22
static void a_prefix_on_the_link_needs_no_gateway(void **state)
{
	struct world *w = *state;
	advertise(w, 0, &(struct ra){"fe80::a", 0, 1800, "2001:db8:77::", 64, 600});
	assert_true(goes_by(w, FAR, FAR));
	world_advance(w, 600 * NS_PER_SECOND);
	assert_true(goes_by(w, FAR, "fe80::a"));
	advertise(w, 0, &(struct ra){"fe80::a", 0, 0, "2001:db8:77::", 64, UINT32_MAX});
	world_advance(w, 100000 * NS_PER_SECOND);
	assert_true(goes_by(w, FAR, FAR));
	advertise(w, 0, &(struct ra){"fe80::a", 0, 0, "2001:db8:77::", 64, 0});
	assert_false(has_route(w, FAR));
	advertise(w, 0, &(struct ra){"fe80::a", 0, 0, "fe80::", 10, 600}); // its own business
	advertise(w, 0, &(struct ra){"fe80::a", 0, 0, "2001:db8:77::", 129, 600});
	assert_false(has_route(w, FAR));
}

// IP6-25
static void no_router_takes_what_goes_to_a_configured_link(void **state)
{
	struct world *w = *state;
	static const struct ra forged[] = {{"fe80::bad", 0, 0, "2001:db8:1::", 80, 600},
		{"fe80::bad", 0, 0, "2001:db8:1::7", 128, 600},
		{"fe80::bad", 0, 0, "2001:db8::", 80, 600}, {"fe80::bad", 0, 0, "2001::", 16, 600}};
	for (unsigned i = 0; i < sizeof(forged) / sizeof(forged[0]); i++)
		advertise(w, 0, &forged[i]);
	assert_true(goes_by(w, "2001:db8:1::7", "2001:db8:1::7"));
	assert_int_equal(w->sent[0].port, 1);
	assert_true(goes_by(w, PEER6, PEER6));
	assert_int_equal(w->sent[0].port, 0);
	assert_false(has_route(w, FAR)); // nor what is around them
}

// IP6-25
static void a_configured_gateway_stays_in_front_of_an_advertised_one(void **state)
{
	struct net_port_conf ports[2] = {
		{.mtu = 1500,
			.addresses = {{ip6_of(OURS6), 64}},
			.n_addresses = 1,
			.accept_ra = true},
		{.mtu = 1500,
			.addresses = {{ip6_of("2001:db8:1::1"), 64}},
			.n_addresses = 1,
			.gateways = {ip6_of("fe80::fe")}},
	};
	assert_int_equal(world_setup_ports(state, ports), 0);
	struct world *w = *state;
	advertise(w, 0, &(struct ra){"fe80::bad", HIGH, 1800});
	assert_true(goes_by(w, FAR, "fe80::fe"));
	assert_int_equal(w->sent[0].port, 1);
}

// IP6-15, IP6-22
static void another_worker_learns_of_routers_too(void **state)
{
	struct world *w = *state;
	uint8_t f[128];
	size_t len = make_ra(f, &(struct ra){"fe80::a", 0, 1800});
	net_hear(w->net, 0, f, len);
	assert_true(has_route(w, FAR));
	assert_int_equal(w->n_sent, 0);
}

// IP6-27
static void advertisements_change_routes_once_in_10_ms(void **state)
{
	struct world *w = *state;
	struct ra on = {"fe80::a", 0, 0, "2001:db8:77::", 64, 600}, off = on;
	off.prefix_s = 0;
	advertise(w, 0, &on); // after a while at once
	assert_true(has_route(w, FAR));
	advertise(w, 0, &off);
	advertise(w, 0, &on);
	advertise(w, 0, &off);
	assert_true(has_route(w, FAR));
	world_advance(w, 9 * NS_PER_MS);
	assert_true(has_route(w, FAR));
	world_advance(w, 2 * NS_PER_MS);
	assert_false(has_route(w, FAR));
	advertise(w, 0, &on);
	assert_false(has_route(w, FAR));
	world_advance(w, 11 * NS_PER_MS);
	assert_true(has_route(w, FAR));
	world_advance(w, NS_PER_SECOND);
	advertise(w, 0, &off);
	assert_false(has_route(w, FAR));
	world_advance(w, NS_PER_SECOND);
	advertise(w, 0, &on);
	advertise(w, 0, &off);
	net_renew_port(w->net, 0, world_mac[0]);
	assert_false(has_route(w, FAR));
	world_advance(w, NS_PER_SECOND);
	assert_false(has_route(w, FAR));
}

// IP6-26
static void another_device_of_a_port_knows_nothing_of_routers(void **state)
{
	struct world *w = *state;
	static const uint8_t new_mac[6] = {2, 0, 0, 0, 0, 0xcc};
	advertise(w, 0, &(struct ra){"fe80::a", 0, 1800, "2001:db8:77::", 64, 600});
	net_renew_port(w->net, 1, world_mac[1]);
	assert_true(goes_by(w, FAR, FAR));
	net_announce(w->net, 0);
	net_renew_port(w->net, 0, new_mac);
	assert_false(has_route(w, FAR));
	uint64_t n_asked = world_count(w, "ra_asked");
	world_advance(w, 1800 * NS_PER_SECOND);
	assert_int_equal(world_count(w, "ra_asked"), n_asked);
	assert_false(has_route(w, FAR));
}

// IP6-23
static void a_fifth_router_displaces_none(void **state)
{
	struct world *w = *state;
	char router[16];
	for (int i = 1; i <= 5; i++) {
		snprintf(router, sizeof(router), "fe80::%d", i);
		advertise(w, 0,
			&(struct ra){router, i == 5 ? HIGH : 0, 1800,
				"2001:db8:a::", (uint8_t)(60 + i), 60});
	}
	assert_int_equal(world_count(w, "ra_full"), 2); // of routers and of prefixes
	assert_true(goes_by(w, FAR, "fe80::1"));
}

// IP6-24
static void routers_are_asked_for_until_one_answers(void **state)
{
	struct world *w = *state;
	net_announce(w->net, 0);
	assert_int_equal(world_count(w, "ra_asked"), 1);
	for (int i = 0; i < 5; i++)
		world_advance(w, 4 * NS_PER_SECOND);
	assert_int_equal(world_count(w, "ra_asked"), 3);
	net_announce(w->net, 0);
	advertise(w, 0, &(struct ra){"fe80::a", 0, 1800});
	world_advance(w, 100 * NS_PER_SECOND);
	assert_int_equal(world_count(w, "ra_asked"), 4);
	net_announce(w->net, 0);
	advertise(w, 0, &(struct ra){"fe80::b", 0, 0, "2001:db8:77::", 64, 600}); // no router
	world_advance(w, 4 * NS_PER_SECOND);
	assert_int_equal(world_count(w, "ra_asked"), 6);
	world_forget(w);
	net_announce(w->net, 0);
	const uint8_t *f = NULL;
	for (uint32_t i = 0; i < w->n_sent; i++)
		if (w->sent[i].bytes[20] == 58 && w->sent[i].bytes[54] == 133)
			f = w->sent[i].bytes;
	assert_non_null(f);
	assert_memory_equal(f, "\x33\x33\0\0\0\2", 6);
	assert_int_equal(f[21], 255);
	assert_memory_equal(f + 62, "\1\1\2\0\0\0\0\1", 8); // our MAC address
}

// IP6-17, IP6-10
static void what_no_router_of_the_link_can_have_sent_is_ignored(void **state)
{
	struct world *w = *state;
	uint8_t f[128];
	advertise(w, 0, &(struct ra){"2001:db8::7", 0, 1800});
	size_t len = make_ra(f, &(struct ra){"fe80::a", 0, 1800, "2001:db8:77::", 64, 600});
	f[21] = 254;
	world_in(w, 0, f, len);
	f[21] = 255;
	f[14 + 40 + 17] = 0; // an option of no length
	fix_icmp6_checksum(f);
	world_in(w, 0, f, len);
	f[14 + 40 + 17] = 5; // and one that is too long
	fix_icmp6_checksum(f);
	world_in(w, 0, f, len);
	len = make_ra(f, &(struct ra){"fe80::a", 0, 1800});
	world_in(w, 0, f, put_fragment_header(f, len)); // IP6-28
	assert_int_equal(world_count(w, "ra_malformed"), 5);
	memcpy(f, world_mac[1], 6);
	advertise(w, 1, &(struct ra){"fe80::a", 0, 1800});
	assert_int_equal(world_count(w, "icmp6_ignored"), 1);
	assert_false(has_route(w, FAR));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)
RUN_SUITE("net/ra", CASE(the_router_of_highest_preference_is_the_gateway_for_its_time),
	CASE(a_prefix_on_the_link_needs_no_gateway),
	CASE(no_router_takes_what_goes_to_a_configured_link),
	cmocka_unit_test_teardown(
		a_configured_gateway_stays_in_front_of_an_advertised_one, world_teardown),
	CASE(another_worker_learns_of_routers_too), CASE(a_fifth_router_displaces_none),
	CASE(advertisements_change_routes_once_in_10_ms),
	CASE(another_device_of_a_port_knows_nothing_of_routers),
	CASE(routers_are_asked_for_until_one_answers),
	CASE(what_no_router_of_the_link_can_have_sent_is_ignored))
