// SPDX-License-Identifier: Apache-2.0
#include "lb/base/rand.h"
#include "lb/index/address_index.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <errno.h>
#include <stdlib.h>

#define MOST 3000

// Few enough different ones that lists have some twice, or so many that they do not.
static struct ip_port any(struct rand *rand, uint32_t n_hosts)
{
	uint32_t host = (uint32_t)rand_below(rand, n_hosts);
	struct ip_port a = {.port = (uint16_t)(80 + rand_below(rand, 3))};
	if (host % 2)
		a.ip = ip_from_v4(0x0a000000 + host);
	else
		memcpy(a.ip.b + host % 12, &host, sizeof(host));
	return a;
}

static uint32_t twin_find(const struct ip_port *list, uint32_t n, const struct ip_port *a)
{
	for (uint32_t i = 0; i < n; i++)
		if (ip_port_eq(&list[i], a))
			return i;
	return UINT32_MAX;
}

static uint32_t twin_second(const struct ip_port *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (twin_find(list, i, &list[i]) != UINT32_MAX)
			return i;
	return UINT32_MAX;
}

static void finds_what_a_walk_through_the_list_finds(void **state)
{
	static struct ip_port list[MOST];
	struct rand rand;
	uint32_t n_unique = 0;
	rand_init(&rand, 1);
	for (uint32_t round = 0; round < 300; round++) {
		uint32_t n = (uint32_t)rand_below(&rand, round % 100 == 0 ? MOST : 100);
		uint32_t n_hosts = round % 2 ? 100 : 1000000, second;
		struct lb_address_index x;
		for (uint32_t i = 0; i < n; i++)
			list[i] = any(&rand, n_hosts);
		assert_int_equal(lb_address_index_init(&x, list, n, NULL, &second), 0);
		assert_int_equal(second, twin_second(list, n));
		n_unique += second == UINT32_MAX;
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(
				lb_address_index_find(&x, &list[i]), twin_find(list, n, &list[i]));
		for (uint32_t i = 0; i < 100; i++) {
			const struct ip_port a = any(&rand, n_hosts);
			assert_int_equal(lb_address_index_find(&x, &a), twin_find(list, n, &a));
		}
		lb_address_index_fini(&x);
	}
	assert_in_range(n_unique, 100, 250);
}

static void without_memory_there_is_no_index(void **state)
{
	const struct ip_port a = {ip_from_v4(0x0a000001), 80};
	struct lb_address_index x = {0};
	uint32_t second;
	int err = 0;
	lb_address_index_fini(&x);
	ALLOC_FAIL_EACH(err = lb_address_index_init(&x, &a, 1, NULL, &second), err == -ENOMEM,
		lb_address_index_fini(&x));
}

RUN_SUITE("lb/address_index", cmocka_unit_test(finds_what_a_walk_through_the_list_finds),
	cmocka_unit_test(without_memory_there_is_no_index))
