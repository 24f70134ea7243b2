// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/proxy.h"
#include "lb/pick/limits.h"
#include "lb/pick/link.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <errno.h>

static struct twheel *wheel;
static struct pool chunks;
static struct tcp_stack *tcp;
static struct lb_link *l;
static struct proxy_frontend frontends[2];

static void *no_room(void *ctx, const struct tcp_flow *flow, size_t len)
{
	return NULL;
}

static void never(void *ctx, const struct tcp_flow *flow, void *segment, size_t len)
{
}

static uint16_t mtu(void *ctx, const struct tcp_flow *flow)
{
	return 1500;
}

static int setup(void **state)
{
	struct tcp_conf conf = {.max_conns = 8,
		.max_half_open = 8,
		.max_time_wait = 8,
		.send_limit = 65536,
		.recv_window = 65536};
	struct tcp_io io = {no_room, never, mtu, NULL};
	wheel = twheel_new(0);
	l = lb_link_new(0, 0, NULL);
	if (!wheel || !l || buf_pool_init(&chunks, 64))
		return -1;
	tcp = tcp_stack_new(&conf, &io, &chunks, wheel);
	for (uint32_t i = 0; i < 2; i++)
		frontends[i] = (struct proxy_frontend){ip_from_v4(0x0a000001 + i), 80, NULL};
	return tcp ? 0 : -1;
}

static int teardown(void **state)
{
	assert_int_equal(chunks.n_used, 0);
	tcp_stack_free(tcp);
	pool_fini(&chunks);
	lb_link_free(l);
	twheel_free(wheel);
	return 0;
}

static const char *source_for(void *ctx, const struct ip_addr *dst, struct ip_addr *ret)
{
	return "no route";
}

static struct proxy *make(void)
{
	struct proxy_conf conf = {.frontends = frontends,
		.n_frontends = 2,
		.n_workers = 1,
		.max_clients = 4,
		.max_requests = 4,
		.max_queued = 4,
		.max_conns_per_endpoint = 1,
		.connect_timeout_ns = 1,
		.source_for = source_for};
	struct h2_conf h2 = {.max_conns = 8,
		.max_streams = 8,
		.max_concurrent_streams = 4,
		.stream_window = 65535,
		.conn_window = 65535,
		.max_header_bytes = 4096,
		.max_header_fields = 20};
	return proxy_new(&conf, &h2, tcp, wheel, &chunks, l);
}

static const struct tcp_conn_ops *refuse(void *arg, struct tcp_conn *c, void **ret_user)
{
	return NULL;
}

static void each_failed_allocation_makes_none_and_leaves_nothing(void **state)
{
	struct proxy *p = NULL;
	ALLOC_FAIL_EACH(p = make(), !p, proxy_free(p));
	for (uint32_t i = 0; i < 2; i++) // nobody listens there
		assert_int_equal(tcp_listen(tcp, &frontends[i].address, 80, refuse, NULL), 0);
}

static void a_taken_address_makes_none_and_stays_its_owners(void **state)
{
	assert_int_equal(tcp_listen(tcp, &frontends[1].address, 80, refuse, NULL), 0);
	assert_null(make());
	assert_int_equal(tcp_listen(tcp, &frontends[0].address, 80, refuse, NULL), 0);
	assert_int_equal(tcp_listen(tcp, &frontends[1].address, 80, refuse, NULL), -EADDRINUSE);
}

static void freeing_gives_the_addresses_back(void **state)
{
	struct proxy *p = make();
	assert_non_null(p);
	assert_int_equal(tcp_listen(tcp, &frontends[0].address, 80, refuse, NULL), -EADDRINUSE);
	proxy_free(p);
	assert_int_equal(tcp_listen(tcp, &frontends[0].address, 80, refuse, NULL), 0);
	proxy_free(NULL);
}

static void every_counter_has_a_name_of_its_own(void **state)
{
	struct proxy *p = make();
	assert_non_null(p);
	struct counter_set set = proxy_counters(p);
	for (uint32_t i = 0; i < set.n; i++)
		for (uint32_t j = 0; j < i; j++)
			assert_string_not_equal(set.names[i], set.names[j]);
	proxy_free(p);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
RUN_SUITE("proxy/proxy", CASE(each_failed_allocation_makes_none_and_leaves_nothing),
	CASE(a_taken_address_makes_none_and_stays_its_owners),
	CASE(freeing_gives_the_addresses_back), CASE(every_counter_has_a_name_of_its_own))
