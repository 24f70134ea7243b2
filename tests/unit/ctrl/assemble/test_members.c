// SPDX-License-Identifier: Apache-2.0
// Numbers of members and of nodes' places, and what workers counted for them.
#include "ctrl/assemble/ids.h"
#include "ctrl/assemble/members.h"
#include "ctrl/assemble/workers.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/pick/link.h"
#include "lb/pick/orca.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

static struct lb_shared *shared;
static struct lb_link *links[2];
static struct workers *workers;
static struct lb_orca_table *orca;
static struct twheel *wheel;
static struct members *members;
static int owner;

static int set_up(void **state)
{
	(void)state;
	shared = lb_shared_new();
	for (uint32_t i = 0; i < 2; i++)
		links[i] = lb_link_new(i, 0, shared);
	workers = workers_new(links, 2, NULL, NULL);
	orca = lb_orca_table_new();
	wheel = twheel_new(1);
	members = members_new(workers, orca, wheel);
	return members ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	members_free(members);
	lb_orca_table_free(orca);
	twheel_free(wheel);
	workers_free(workers);
	for (uint32_t i = 0; i < 2; i++)
		lb_link_free(links[i]);
	lb_shared_free(shared);
	return 0;
}

static void count(uint32_t worker, uint32_t member, uint64_t issued, uint64_t ok, uint64_t failed)
{
	counter_add(&links[worker]->members[member].issued, issued);
	counter_add(&links[worker]->members[member].ok, ok);
	counter_add(&links[worker]->members[member].failed, failed);
}

static void a_number_that_was_given_back_rests(void **state)
{
	(void)state;
	struct ids ids;
	assert_int_equal(ids_init(&ids, 4, 10), 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(ids_take(&ids, 0), i);
	ids_give(&ids, 1, 100);
	ids_give(&ids, 0, 105);
	assert_int_equal(ids_take(&ids, 109), 3); // never given; the others rest
	assert_int_equal(ids_take(&ids, 109), IDS_NONE);
	assert_int_equal(ids_take(&ids, 110), 1);
	assert_int_equal(ids_take(&ids, 114), IDS_NONE);
	assert_int_equal(ids_take(&ids, 115), 0);
	ids_fini(&ids);
}

// A50-E05, MC-15
static void each_ended_request_is_harvested_once_over_all_workers(void **state)
{
	(void)state;
	uint64_t ok, failed;
	uint32_t m = members_take(members, &owner);
	count(0, m, 5, 3, 1);
	count(1, m, 2, 0, 2);
	members_harvest(members, m, &ok, &failed);
	assert_int_equal(ok, 3);
	assert_int_equal(failed, 3);
	members_harvest(members, m, &ok, &failed);
	assert_int_equal(ok + failed, 0);
	count(0, m, 0, 1, 0);
	members_harvest(members, m, &ok, &failed);
	assert_int_equal(ok, 1);
	counter_add(&links[1]->members[m].issued, 1); // ends, and nobody is to blame
	counter_add(&links[1]->members[m].unjudged, 1);
	members_harvest(members, m, &ok, &failed);
	assert_int_equal(ok + failed, 0);
	struct member_totals t;
	members_totals(members, m, &t);
	assert_int_equal(t.issued, 8);
	assert_int_equal(t.ok, 4);
	assert_int_equal(t.failed, 3);
	assert_int_equal(t.active, 0);
}

// A75-O12, MC-16
static void the_newest_use_of_any_worker_counts_and_those_before_the_member_do_not(void **state)
{
	(void)state;
	counter_set_to(&links[1]->members[0].used_ns, 50);
	uint32_t m = members_take(members, &owner);
	assert_int_equal(m, 0);
	assert_int_equal(members_last_used(members, m), 0);
	counter_set_to(&links[0]->members[m].used_ns, 70);
	assert_int_equal(members_last_used(members, m), 70);
	counter_set_to(&links[1]->members[m].used_ns, 90);
	assert_int_equal(members_last_used(members, m), 90);
}

// A50-E18: late results of a member that is gone are not its successor's.
static void a_number_with_requests_in_flight_is_not_given_again(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < LB_MAX_MEMBERS; i++)
		assert_int_equal(members_take(members, &owner), i);
	assert_int_equal(members_take(members, &owner), UINT32_MAX);
	count(0, 7, 1, 0, 0);
	members_give(members, 7);
	assert_null(members_owner(members, 7));
	twheel_advance(wheel, 20 * NS_PER_SECOND);
	assert_int_equal(members_take(members, &owner), UINT32_MAX);
	count(0, 7, 0, 0, 1);
	twheel_advance(wheel, 40 * NS_PER_SECOND);
	assert_int_equal(members_take(members, &owner), 7);
	assert_ptr_equal(members_owner(members, 7), &owner);
	uint64_t ok, failed;
	members_harvest(members, 7, &ok, &failed);
	assert_int_equal(ok + failed, 0); // nothing of the one before it
	count(1, 7, 1, 0, 0);
	members_give(members, 7);
	twheel_advance(wheel, 60 * NS_PER_SECOND);
	assert_int_equal(members_take(members, &owner), UINT32_MAX);
	counter_add(&links[1]->members[7].unjudged, 1);
	twheel_advance(wheel, 80 * NS_PER_SECOND);
	assert_int_equal(members_take(members, &owner), 7);
}

static void numbers_in_flight_in_number_leave_those_never_used(void **state)
{
	enum { BUSY = 1000 };
	(void)state;
	for (uint32_t i = 0; i < BUSY; i++) {
		assert_int_equal(members_take(members, &owner), i);
		count(0, i, 1, 0, 0);
	}
	for (uint32_t i = 0; i < BUSY; i++)
		members_give(members, i);
	twheel_advance(wheel, 20 * NS_PER_SECOND);
	assert_int_equal(members_take(members, &owner), BUSY);
	assert_int_equal(members_take(members, &owner), BUSY + 1);
}

static void what_a_member_left_behind_is_forgotten(void **state)
{
	(void)state;
	const struct lb_orca_report report = {.qps = 10, .cpu_utilization = 0.5};
	const struct lb_orca_conf conf = {.expiration_ns = 1000};
	uint32_t m = members_take(members, &owner);
	assert_true(lb_orca_report(orca, m, &report, 1));
	shared->loads[m] = 9;
	assert_true(lb_orca_weight(orca, m, &conf, 2) > 0);
	members_give(members, m);
	assert_true(lb_orca_weight(orca, m, &conf, 2) == 0);
	assert_int_equal(shared->loads[m], 9); // of requests by earlier snapshots
	twheel_advance(wheel, 20 * NS_PER_SECOND);
	assert_int_equal(members_take(members, &owner), m);
	assert_int_equal(shared->loads[m], 0);
	assert_null(members_owner(members, LB_MAX_MEMBERS)); // of a broken event
}

static void each_failed_allocation_is_survived(void **state)
{
	(void)state;
	struct members *m = NULL;
	ALLOC_FAIL_EACH(m = members_new(workers, orca, wheel), !m, members_free(m));
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

RUN_SUITE("ctrl/members", cmocka_unit_test(a_number_that_was_given_back_rests),
	CASE(each_ended_request_is_harvested_once_over_all_workers),
	CASE(the_newest_use_of_any_worker_counts_and_those_before_the_member_do_not),
	CASE(a_number_with_requests_in_flight_is_not_given_again),
	CASE(numbers_in_flight_in_number_leave_those_never_used),
	CASE(what_a_member_left_behind_is_forgotten), CASE(each_failed_allocation_is_survived))
