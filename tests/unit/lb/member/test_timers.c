// SPDX-License-Identifier: Apache-2.0
// The times of connections that several clusters share: each member's env is another cluster's.
#include "lb/pick/timers.h"
#include "tests/support/check.h"
#include "tests/unit/lb/member/member_world.h"

#define ASKED_BY(...) ((struct lb_timers){__VA_ARGS__})

static void assert_timers(struct member_world *m, uint32_t number, struct lb_timers wanted)
{
	assert_true(lb_timers_eq(m->world.timers[member_world_id(m, number)], wanted));
}

// CL-09
static void the_shortest_time_of_all_clusters_counts(void **state)
{
	struct member_world m;
	member_world_init(&m, (uint32_t[]){1}, 1);
	m.env.timers = ASKED_BY(.connect_ms = 5000, .ping_interval_ms = 100);
	lb_member_connect(m.member);
	assert_timers(&m, 1, ASKED_BY(.connect_ms = 5000, .ping_interval_ms = 100));

	struct lb_member_env other = {m.world.connectivity, 250 * WORLD_MS,
		.timers = {.connect_ms = 1000, .tcp_keepalive_ms = 7000, .ping_interval_ms = 200}};
	struct ip_port address = member_world_addr(1);
	struct lb_member *beside = lb_member_new(&other, 6, &address, 1);
	assert_non_null(beside);
	lb_member_connect(beside);
	assert_timers(&m, 1,
		ASKED_BY(.connect_ms = 1000, .tcp_keepalive_ms = 7000, .ping_interval_ms = 100));

	lb_member_put(beside); // only one is left
	assert_timers(&m, 1, ASKED_BY(.connect_ms = 5000, .ping_interval_ms = 100));
	member_world_fini(&m);
}

// CL-09
static void other_times_hold_for_all_addresses_at_once(void **state)
{
	struct member_world m;
	member_world_init(&m, (uint32_t[]){1, 2}, 2);
	m.env.timers = ASKED_BY(.ping_timeout_ms = 20);
	lb_member_connect(m.member);
	m.env.timers = ASKED_BY(.ping_timeout_ms = 3000);
	lb_member_apply_timers(m.member);
	assert_timers(&m, 1, ASKED_BY(.ping_timeout_ms = 3000));
	assert_timers(&m, 2, ASKED_BY(.ping_timeout_ms = 3000));
	m.env.timers = ASKED_BY(0);
	lb_member_apply_timers(m.member);
	assert_timers(&m, 1, ASKED_BY(0));
	member_world_fini(&m);
}

// CL-09
static void an_address_that_comes_back_has_no_times_of_its_past(void **state)
{
	struct member_world m;
	member_world_init(&m, (uint32_t[]){1}, 1);
	m.env.timers = ASKED_BY(.connect_ms = 1);
	lb_member_connect(m.member);
	lb_member_disconnect(m.member);
	m.env.timers = ASKED_BY(0);
	lb_member_connect(m.member);
	assert_timers(&m, 1, ASKED_BY(0));
	member_world_fini(&m);
}

#define CASE(f) cmocka_unit_test(f)
RUN_SUITE("lb/timers", CASE(the_shortest_time_of_all_clusters_counts),
	CASE(other_times_hold_for_all_addresses_at_once),
	CASE(an_address_that_comes_back_has_no_times_of_its_past))
