// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/proxy.h"
#include "lb/chain_set.h"
#include "lb/live_frontend.h"
#include "lb/pick/limits.h"
#include "lb/pick/link.h"
#include "lb/snapshot.h"
#include "lb/vips.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <errno.h>
#include <string.h>

static struct twheel *wheel;
static struct pool chunks;
static struct tcp_stack *tcp;
static struct lb_link *l;
static struct lb_frontend_conf frontends[3]; // the last one is by listeners

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
	for (uint32_t i = 0; i < 3; i++)
		frontends[i] = (struct lb_frontend_conf){
			.address = ip_from_v4(0x0a000001 + i), .port = 80, .by_listeners = i == 2};
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

static struct ip_addr served[3 + LB_MAX_VIPS]; // by place

static void serve(void *ctx, uint32_t place, const struct ip_addr *ip)
{
	assert_in_range(place, 0, 3 + LB_MAX_VIPS - 1);
	served[place] = ip ? *ip : (struct ip_addr){0};
}

static struct proxy *make(void)
{
	struct proxy_conf conf = {.frontends = frontends,
		.n_frontends = 3,
		.n_workers = 1,
		.max_clients = 4,
		.max_requests = 4,
		.max_queued = 4,
		.max_conns_per_endpoint = 1,
		.connect_timeout_ns = 1,
		.source_for = source_for,
		.serve = serve};
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

static void turn(struct proxy *p, const struct lb_snapshot *s)
{
	proxy_begin_turn(p, s, 0);
	proxy_end_turn(p);
}

// The next snapshot, with these addresses' last numbers by place; 0 = nothing is there.
static struct lb_snapshot *with_vips(struct lb_snapshot *s, const uint32_t *last, uint32_t n)
{
	static uint64_t version;
	static const uint32_t nowhere[] = {LB_NO_PLACE};
	struct lb_chain_set *chains = lb_chain_set_new(NULL, 0, nowhere, NULL);
	struct lb_vip list[4] = {{.chains = NULL}};
	for (uint32_t i = 0; i < n; i++)
		if (last[i])
			list[i] = (struct lb_vip){{ip_from_v4(0x0a090000 + last[i]), 80}, chains};
	struct lb_vips *vips = lb_vips_new(list, n, ++version);
	struct lb_snapshot *next = lb_snapshot_copy(s);
	lb_snapshot_set_vips(next, vips);
	lb_vips_put(vips);
	lb_chain_set_put(chains);
	lb_snapshot_free(s);
	return next;
}

static bool listens(uint32_t last)
{
	struct ip_addr ip = ip_from_v4(0x0a090000 + last);
	int rc = tcp_listen(tcp, &ip, 80, refuse, NULL);
	if (rc == 0)
		tcp_unlisten(tcp, &ip, 80);
	return rc == -EADDRINUSE;
}

static bool serves(uint32_t place, uint32_t last)
{
	struct ip_addr ip = ip_from_v4(0x0a090000 + last);
	return ip_eq(&served[3 + place], &ip);
}

// A36-65
static void it_listens_where_the_snapshot_says(void **state)
{
	struct proxy *p = make();
	struct lb_snapshot *s = lb_snapshot_new(3, "x");
	turn(p, s = with_vips(s, (uint32_t[]){1, 2, 0}, 3));
	assert_true(listens(1) && listens(2) && !listens(3));
	assert_true(serves(0, 1) && serves(1, 2));
	turn(p, s = with_vips(s, (uint32_t[]){2, 0, 3}, 3)); // the second has moved
	assert_true(!listens(1) && listens(2) && listens(3));
	assert_true(serves(0, 2) && ip_is_none(&served[4]) && serves(2, 3));
	turn(p, s = with_vips(s, (uint32_t[]){2}, 1));
	assert_true(listens(2) && !listens(3));
	proxy_command(p, &(struct lb_command){.kind = LB_COMMAND_DRAIN, .deadline_ns = 1000});
	assert_false(listens(2));
	turn(p, s = with_vips(s, (uint32_t[]){2, 1}, 2)); // too late
	assert_true(!listens(1) && !listens(2));
	proxy_free(p);
	lb_snapshot_free(s);
}

static uint64_t n_refused(const struct proxy *p)
{
	struct counter_set set = proxy_counters(p);
	uint64_t n = 0;
	for (uint32_t i = 0; i < set.n; i++)
		if (strcmp(set.names[i], "vips_refused") == 0)
			n = set.values[i];
	return n;
}

// A36-65
static void an_address_that_is_taken_is_counted_and_tried_again(void **state)
{
	struct proxy *p = make();
	struct ip_addr ip = ip_from_v4(0x0a090001);
	struct lb_snapshot *s = lb_snapshot_new(3, "x");
	assert_int_equal(tcp_listen(tcp, &ip, 80, refuse, NULL), 0);
	turn(p, s = with_vips(s, (uint32_t[]){1, 2}, 2));
	assert_true(listens(2));
	assert_int_equal(n_refused(p), 1);
	tcp_unlisten(tcp, &ip, 80);
	turn(p, s = with_vips(s, (uint32_t[]){1, 2}, 2));
	assert_true(listens(1));
	proxy_free(p);
	assert_false(listens(1));
	lb_snapshot_free(s);
}

static void move_first(struct lb_snapshot *s, struct ip_addr ip)
{
	static uint64_t number;
	struct lb_frontend_conf conf = frontends[0];
	conf.address = ip;
	struct lb_live_frontend *live = lb_live_frontend_new(&conf, ++number, 0, false);
	assert_int_equal(lb_snapshot_set_live(s, 0, live), 0);
	lb_live_frontend_put(live);
}

// OPS-323
static void an_address_goes_from_a_vip_to_a_frontend_and_back_in_one_snapshot(void **state)
{
	struct proxy *p = make();
	struct ip_addr vip = ip_from_v4(0x0a090001);
	struct lb_snapshot *s = lb_snapshot_new(3, "x");
	turn(p, s = with_vips(s, (uint32_t[]){1}, 1));
	s = with_vips(s, (uint32_t[]){0}, 1);
	move_first(s, vip);
	turn(p, s);
	assert_true(listens(1) && ip_eq(&served[0], &vip) && ip_is_none(&served[3]));
	s = with_vips(s, (uint32_t[]){1}, 1);
	move_first(s, frontends[0].address);
	turn(p, s);
	assert_true(listens(1) && serves(0, 1) && ip_eq(&served[0], &frontends[0].address));
	assert_int_equal(n_refused(p), 0);
	proxy_free(p);
	lb_snapshot_free(s);
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
	CASE(freeing_gives_the_addresses_back), CASE(it_listens_where_the_snapshot_says),
	CASE(an_address_that_is_taken_is_counted_and_tried_again),
	CASE(an_address_goes_from_a_vip_to_a_frontend_and_back_in_one_snapshot),
	CASE(every_counter_has_a_name_of_its_own))
