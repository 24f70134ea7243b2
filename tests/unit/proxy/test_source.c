// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/source.h"
#include "tests/support/check.h"

#define N 4

static struct proxy_sources sources;

static int setup(void **state)
{
	static const uint8_t key[16] = {1, 2, 3};
	return proxy_sources_init(&sources, N, key);
}

static int teardown(void **state)
{
	proxy_sources_fini(&sources);
	return 0;
}

static struct proxy_source *join(const char *address)
{
	struct ip_addr ip;
	assert_true(ip_parse(address, &ip));
	uint64_t hash = proxy_source_hash(&sources, &ip);
	return proxy_source_join(&sources, proxy_source_find(&sources, &ip, hash), &ip);
}

static void connections_of_one_address_share_a_source(void **state)
{
	struct proxy_source *s = join("10.0.0.1");
	assert_ptr_equal(join("10.0.0.1"), s);
	assert_int_equal(s->n_clients, 2);
	assert_ptr_not_equal(join("10.0.0.2"), s);
}

static void ipv6_addresses_of_one_64_share_a_source(void **state)
{
	struct proxy_source *s = join("2001:db8:1:2::1");
	assert_ptr_equal(join("2001:db8:1:2:ffff::9"), s);
	assert_ptr_not_equal(join("2001:db8:1:3::1"), s);
}

static void source_without_connections_is_remembered(void **state)
{
	struct proxy_source *s = join("10.0.0.1");
	proxy_source_leave(&sources, s);
	assert_int_equal(s->n_clients, 0);
	assert_ptr_equal(join("10.0.0.1"), s);
	assert_int_equal(s->n_clients, 1);
}

static void longest_idle_source_makes_room(void **state)
{
	struct proxy_source *first = join("10.0.0.1"), *stays = join("10.0.1.1");
	proxy_source_leave(&sources, first);
	char address[] = "10.0.2.0";
	for (int i = 1; i < 2 * N; i++) {
		address[7] = (char)('0' + i);
		proxy_source_leave(&sources, join(address));
	}
	assert_int_equal(pool_left(&sources.pool), 0);
	// The place of the first one was needed; a source with a connection keeps its own.
	assert_ptr_equal(join("10.0.1.1"), stays);
	assert_int_equal(stays->n_clients, 2);
	struct proxy_source *again = join("10.0.0.1");
	assert_int_equal(again->n_clients, 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

RUN_SUITE("proxy/source", CASE(connections_of_one_address_share_a_source),
	CASE(ipv6_addresses_of_one_64_share_a_source),
	CASE(source_without_connections_is_remembered), CASE(longest_idle_source_makes_room))
