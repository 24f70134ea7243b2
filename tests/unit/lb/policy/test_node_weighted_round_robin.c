// SPDX-License-Identifier: Apache-2.0
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/policy/node_world.h"

#include <errno.h>
#include <string.h>

static void init(struct node_world *w, uint32_t n)
{
	node_world_init(w, &lb_node_weighted_round_robin, 3);
	w->spec.wrr.blackout_ns = 10 * WORLD_S;
	w->spec.wrr.expiration_ns = 180 * WORLD_S;
	w->spec.wrr.update_ns = WORLD_S;
	w->spec.wrr.error_penalty = 1;
	assert_int_equal(node_world_update(w, 0, n, ""), 0);
	node_world_connected(w, 0, n);
	assert_int_equal(w->state, LB_READY);
}

static void report(struct node_world *w, uint32_t member, double weight)
{
	const struct lb_orca_report r = {.qps = weight, .cpu_utilization = 1};
	assert_true(lb_orca_report(w->env.orca, member, &r, world_now(&w->world)));
}

// The share of each of n in so many picks, in thousandths.
static void assert_shares(struct node_world *w, const double *share, uint32_t n)
{
	uint32_t count[8] = {0};
	for (int i = 0; i < 40000; i++)
		count[node_world_number(w)]++;
	for (uint32_t i = 0; i < n; i++) {
		double off = count[i] / 40000.0 - share[i];
		assert_true(off > -0.002 && off < 0.002);
	}
}

// A58-05, A58-03, A58-04
static void weights_share_the_picks_once_blackout_is_over(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 4);
	const double plain[] = {0.25, 0.25, 0.25, 0.25};
	assert_shares(&w, plain, 4);
	report(&w, 0, 200);
	report(&w, 1, 100);
	report(&w, 2, 100); // number 3 never reports: it counts as their mean
	world_pass(&w.world, 9 * WORLD_S);
	assert_shares(&w, plain, 4);
	world_pass(&w.world, 2 * WORLD_S);
	assert_shares(&w, (const double[]){0.375, 0.1875, 0.1875, 0.25}, 4);
	world_pass(&w.world, 180 * WORLD_S); // expired
	assert_shares(&w, plain, 4);
	node_world_fini(&w);
}

// A58-04
static void fewer_than_two_weights_are_plain_round_robin(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 3);
	report(&w, 1, 500);
	world_pass(&w.world, 12 * WORLD_S);
	for (int i = 0; i < 99; i++) {
		uint32_t first = node_world_number(&w), second = node_world_number(&w);
		uint32_t third = node_world_number(&w);
		assert_int_equal(1 << first | 1 << second | 1 << third, 7);
	}
	node_world_fini(&w);
}

// OPS-228: each update once more for each endpoint that has none.
static void ops_228_endpoints_without_a_weight_count_by_why_in_each_update(void **state)
{
	(void)state;
	struct lb_wrr_counts n = {0};
	struct node_world w;
	init(&w, 3);
	w.env.wrr = &n;
	report(&w, 1, 500); // which stays the only one: plain round robin
	world_pass(&w.world, WORLD_S + WORLD_MS * 500);
	assert_int_equal(n.updates, 1);
	assert_int_equal(n.rr_fallback, 1);
	assert_int_equal(n.not_yet_usable, 3); // that of the report in its blackout
	world_pass(&w.world, 20 * WORLD_S);
	assert_int_equal(n.updates, 21);
	assert_int_equal(n.rr_fallback, 21);
	assert_in_range(n.not_yet_usable, 21 * 2 + 8, 21 * 2 + 11);
	assert_int_equal(n.stale, 0);
	world_pass(&w.world, 200 * WORLD_S);
	assert_int_equal(n.updates, 221);
	assert_in_range(n.stale, 38, 43);
	struct lb_wrr_counts before = n;
	report(&w, 0, 100);
	report(&w, 1, 100);
	report(&w, 2, 100);
	world_pass(&w.world, 20 * WORLD_S); // without the blackout's ten
	assert_in_range(n.rr_fallback - before.rr_fallback, 8, 11);
	assert_int_equal(n.stale, before.stale);
	node_world_fini(&w);
}

// MC-11: a report acts within one update period; where nothing changes nothing is published.
static void report_acts_within_one_period(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 2);
	report(&w, 0, 100);
	report(&w, 1, 100);
	world_pass(&w.world, 12 * WORLD_S);
	report(&w, 0, 300);
	world_pass(&w.world, WORLD_S);
	assert_shares(&w, (const double[]){0.75, 0.25}, 2);
	uint32_t n = w.n_published;
	world_pass(&w.world, 20 * WORLD_S);
	assert_int_equal(w.n_published, n);
	node_world_fini(&w);
}

// A58-06: an update of addresses forgets no weight; A58-03: a lost connection does.
static void weights_survive_updates_but_not_a_lost_connection(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 2);
	report(&w, 0, 300);
	report(&w, 1, 100);
	world_pass(&w.world, 12 * WORLD_S);
	assert_int_equal(node_world_update(&w, 0, 2, ""), 0);
	assert_shares(&w, (const double[]){0.75, 0.25}, 2);
	node_world_event(&w, LB_EVENT_LOST, 0);
	node_world_connected(&w, 0, 1);
	report(&w, 0, 300);
	world_pass(&w.world, 2 * WORLD_S);
	assert_shares(&w, (const double[]){0.5, 0.5}, 2); // one weight is none
	world_pass(&w.world, 10 * WORLD_S);
	assert_shares(&w, (const double[]){0.75, 0.25}, 2);
	node_world_fini(&w);
}

// The heaviest leaves: the others' shares stay, and no pick searches for ever.
static void others_share_when_the_heaviest_leaves(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 4);
	report(&w, 0, 100000);
	report(&w, 1, 100);
	report(&w, 2, 200);
	report(&w, 3, 400);
	world_pass(&w.world, 12 * WORLD_S);
	lb_member_set_ejected(w.members[0], true);
	// A58-07 has held them at the least share: they are weighed again as they leave.
	assert_shares(&w, (const double[]){0, 1 / 7.0, 2 / 7.0, 4 / 7.0}, 4);
	node_world_fini(&w);
}

static void each_failed_allocation_is_survived(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 2);
	report(&w, 0, 300);
	report(&w, 1, 100);
	world_pass(&w.world, 8 * WORLD_S);
	for (size_t nth = 0;; nth++) {
		report(&w, 0, nth % 2 ? 300 : 500);
		alloc_fail_arm(nth);
		world_pass(&w.world, 5 * WORLD_S);
		if (!alloc_fail_disarm())
			break;
		world_pass(&w.world, 2 * WORLD_S);
		assert_int_equal(w.state, LB_READY);
		double heavy = nth % 2 ? 0.75 : 5 / 6.0;
		assert_shares(&w, (const double[]){heavy, 1 - heavy}, 2);
	}
	int err = 0;
	for (size_t nth = 0;; nth++) {
		alloc_fail_arm(nth);
		err = node_world_update(&w, 0, 3, "");
		if (!alloc_fail_disarm())
			break;
		assert_true(err == 0 || err == -ENOMEM);
		node_world_number(&w);
	}
	assert_int_equal(err, 0);
	node_world_fini(&w);
}

// A58-06: without them there would be no weights, since nobody opens a stream for them.
static void reports_are_wanted_of_answers_also_in_place_of_a_stream(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 3);
	assert_true(node_world_pick(&w).cell->wants_report);
	w.spec.wrr.oob = true;
	assert_int_equal(node_world_update(&w, 0, 3, ""), 0);
	assert_true(node_world_pick(&w).cell->wants_report);
	node_world_fini(&w);
}

RUN_SUITE("lb/node_weighted_round_robin",
	cmocka_unit_test(reports_are_wanted_of_answers_also_in_place_of_a_stream),
	cmocka_unit_test(weights_share_the_picks_once_blackout_is_over),
	cmocka_unit_test(fewer_than_two_weights_are_plain_round_robin),
	cmocka_unit_test(ops_228_endpoints_without_a_weight_count_by_why_in_each_update),
	cmocka_unit_test(report_acts_within_one_period),
	cmocka_unit_test(weights_survive_updates_but_not_a_lost_connection),
	cmocka_unit_test(others_share_when_the_heaviest_leaves),
	cmocka_unit_test(each_failed_allocation_is_survived))
