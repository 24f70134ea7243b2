// SPDX-License-Identifier: Apache-2.0
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/policy/node_world.h"

#include <errno.h>
#include <string.h>

static void init(struct node_world *w, uint64_t seed)
{
	node_world_init(w, &lb_node_round_robin, seed);
}

// RR-01
static void every_endpoint_is_connected_and_kept_so(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 1);
	assert_int_equal(node_world_update(&w, 0, 5, ""), 0);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(node_world_connects(&w, i), 1);
	assert_int_equal(w.n_published, 1);
	assert_int_equal(w.state, LB_CONNECTING);
	assert_int_equal(node_world_pick(&w).kind, LB_PICK_QUEUE);
	node_world_connected(&w, 0, 5);
	world_pass(&w.world, 2 * WORLD_S);
	node_world_event(&w, LB_EVENT_LOST, 3);
	assert_int_equal(node_world_connects(&w, 3), 2);
	for (int i = 0; i < 20; i++)
		assert_int_not_equal(node_world_number(&w), 3);
	node_world_connected(&w, 3, 1);
	bool seen = false;
	for (int i = 0; i < 5; i++)
		seen |= node_world_number(&w) == 3;
	assert_true(seen);
	node_world_fini(&w);
}

// RR-03, ERR-01
static void all_failing_fails_with_the_last_error(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 1);
	assert_int_equal(node_world_update(&w, 0, 2, "EDS orders"), 0);
	node_world_event(&w, LB_EVENT_FAILED, 1);
	assert_int_equal(w.state, LB_CONNECTING);
	node_world_event(&w, LB_EVENT_FAILED, 0);
	assert_int_equal(w.state, LB_TRANSIENT_FAILURE);
	assert_string_equal(node_world_pick(&w).text,
		"cluster orders: none of 2 endpoints is usable, "
		"last error: 10.82.0.0:50051: refused (EDS orders)");
	uint32_t n = w.n_published;
	world_pass(&w.world, 2 * WORLD_S); // both are tried again: still failing (ST-02)
	assert_int_equal(node_world_connects(&w, 0), 2);
	assert_int_equal(w.n_published, n);
	assert_int_equal(node_world_update(&w, 0, 2, "other note"), 0);
	assert_non_null(strstr(node_world_pick(&w).text, "(other note)"));
	node_world_connected(&w, 0, 1);
	assert_int_equal(w.state, LB_READY);
	node_world_fini(&w);
}

// A50-E16
static void ejected_endpoint_leaves_and_returns_at_once(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 1);
	assert_int_equal(node_world_update(&w, 0, 2, ""), 0);
	node_world_connected(&w, 0, 2);
	lb_member_set_ejected(w.members[0], true);
	for (int i = 0; i < 4; i++)
		assert_int_equal(node_world_number(&w), 1);
	lb_member_set_ejected(w.members[1], true);
	assert_int_equal(w.state, LB_TRANSIENT_FAILURE);
	assert_non_null(strstr(node_world_pick(&w).text, "ejected by outlier detection"));
	lb_member_set_ejected(w.members[0], false);
	assert_int_equal(node_world_number(&w), 0);
	assert_int_equal(node_world_connects(&w, 0), 1);
	node_world_event(&w, LB_EVENT_LOST, 1); // ejected and lost: it is kept connected yet
	world_pass(&w.world, 2 * WORLD_S);
	assert_int_equal(node_world_connects(&w, 1), 2);
	node_world_fini(&w);
}

// RR-04
static void new_list_takes_over_when_it_may(void **state)
{
	(void)state;
	struct node_world w;
	for (int how = 0; how < 3; how++) {
		init(&w, 1);
		assert_int_equal(node_world_update(&w, 0, 2, ""), 0);
		node_world_connected(&w, 0, 2);
		uint32_t n = w.n_published;
		assert_int_equal(node_world_update(&w, 10, 2, ""), 0);
		assert_int_equal(w.n_published, n);
		assert_in_range(node_world_number(&w), 0, 1);
		node_world_event(&w, LB_EVENT_FAILED, 10);
		assert_in_range(node_world_number(&w), 0, 1);
		if (how == 0) {
			node_world_connected(&w, 11, 1);
			assert_int_equal(node_world_number(&w), 11);
		} else if (how == 1) {
			node_world_event(&w, LB_EVENT_FAILED, 11);
			assert_int_equal(w.state, LB_TRANSIENT_FAILURE);
		} else {
			node_world_event(&w, LB_EVENT_LOST, 0);
			assert_int_equal(w.state, LB_READY);
			node_world_event(&w, LB_EVENT_LOST, 1);
			assert_int_equal(w.state, LB_CONNECTING);
		}
		node_world_fini(&w);
	}
	init(&w, 1);
	assert_int_equal(node_world_update(&w, 0, 1, ""), 0);
	node_world_connected(&w, 0, 1);
	assert_int_equal(node_world_update(&w, 0, 0, "all localities are empty"), 0);
	assert_string_equal(node_world_pick(&w).text,
		"cluster orders: no endpoints (all localities are empty)");
	node_world_fini(&w);
}

// RR-02, MC-09
static void any_window_gives_each_endpoint_its_share(void **state)
{
	(void)state;
	struct node_world w;
	for (uint32_t n = 1; n <= 7; n++) {
		init(&w, n);
		assert_int_equal(node_world_update(&w, 0, n, ""), 0);
		node_world_connected(&w, 0, n);
		static uint32_t history[1000];
		for (int i = 0; i < 1000; i++)
			history[i] = node_world_number(&w);
		for (int window = 0; window < 200; window++) {
			uint32_t k = 1 + (uint32_t)rand_below(&w.rand, 100);
			uint32_t from = (uint32_t)rand_below(&w.rand, 1000 - k * n);
			uint32_t count[7] = {0};
			for (uint32_t i = 0; i < k * n; i++)
				count[history[from + i]]++;
			for (uint32_t i = 0; i < n; i++)
				assert_in_range(count[i], k - 1, k + 1);
		}
		node_world_fini(&w);
	}
}

// RR-02, MC-10: a thousand swaps with a pick each. Chi squared of 4 degrees of freedom: 18.47 is
// exceeded once in a thousand seeds.
static void swaps_favour_nobody(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 7);
	uint32_t count[6] = {0};
	assert_int_equal(node_world_update(&w, 0, 6, ""), 0);
	node_world_connected(&w, 0, 6);
	for (int i = 0; i < 1000; i++) {
		lb_member_set_ejected(w.members[5], i % 2);
		uint32_t n = w.n_published;
		if (i % 3 == 0)
			assert_int_equal(node_world_update(&w, 0, 6, ""), 0);
		assert_int_equal(w.n_published, n); // the same list says nothing new
		count[node_world_number(&w)]++;
	}
	double chi2 = 0, mean = (1000 - count[5]) / 5.0;
	for (int i = 0; i < 5; i++)
		chi2 += (count[i] - mean) * (count[i] - mean) / mean;
	assert_true(chi2 < 18.47);
	assert_in_range(count[5], 50, 130); // a sixth of every other one
	node_world_fini(&w);
}

static void set_ready(struct node_world *w, uint32_t number, bool ready)
{
	uint32_t id = node_world_id(w, number);
	uint64_t bit = (uint64_t)1 << (id % 64);
	w->ready[id / 64] = ready ? w->ready[id / 64] | bit : w->ready[id / 64] & ~bit;
}

// MC-04, MC-06
static void turns_without_a_local_connection_are_wanted_and_spread(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 3);
	assert_int_equal(node_world_update(&w, 0, 5, ""), 0);
	node_world_connected(&w, 0, 5);
	memset(w.ready, 0, sizeof(w.ready));
	struct lb_pick p = node_world_pick(&w);
	assert_int_equal(p.kind, LB_PICK_QUEUE); // never a failure
	assert_non_null(p.want);
	for (uint32_t i = 1; i < 5; i++)
		set_ready(&w, i, true);
	uint32_t count[5] = {0}, wanted = 0;
	for (int i = 0; i < 10000; i++) {
		p = node_world_pick(&w);
		assert_int_equal(p.kind, LB_PICK_ENDPOINT);
		assert_true(!p.want || p.want->id == node_world_id(&w, 0));
		wanted += p.want != NULL;
		count[p.cell->member]++;
	}
	assert_int_equal(wanted, 2000);
	assert_int_equal(count[0], 0);
	for (int i = 1; i < 5; i++)
		assert_in_range(count[i], 2400, 2600);
	set_ready(&w, 0, true); // back to its share at once
	memset(count, 0, sizeof(count));
	for (int i = 0; i < 10000; i++)
		count[node_world_number(&w)]++;
	for (int i = 0; i < 5; i++)
		assert_int_equal(count[i], 2000);
	node_world_fini(&w);
}

// PF-08: one turn, whichever of its addresses is in use.
static void endpoint_of_two_addresses_is_one_unit(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 1);
	const struct ip_port both[] = {world_addr(1), world_addr(50)};
	w.members[1] = lb_member_new(&w.member_env, 1, both, 2);
	assert_int_equal(node_world_update(&w, 0, 2, ""), 0);
	node_world_connected(&w, 0, 2);
	assert_int_equal(node_world_connects(&w, 50), 0);
	world_pass(&w.world, 2 * WORLD_S);
	node_world_event(&w, LB_EVENT_LOST, 1);
	assert_int_equal(node_world_connects(&w, 1), 2);
	node_world_event(&w, LB_EVENT_FAILED, 1);
	node_world_connected(&w, 50, 1);
	uint32_t id = node_world_id(&w, 50), n = 0;
	for (int i = 0; i < 10; i++) {
		struct lb_pick p = node_world_pick(&w);
		assert_int_equal(p.kind, LB_PICK_ENDPOINT);
		assert_int_equal(p.cell->member, p.cell->endpoint_id == id);
		n += p.cell->member;
	}
	assert_int_equal(n, 5);
	node_world_fini(&w);
}

// MC-09: four workers with places of their own: the union is off by one pick a worker at most.
static void workers_turns_add_up(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 2);
	assert_int_equal(node_world_update(&w, 0, 7, ""), 0);
	node_world_connected(&w, 0, 7);
	uint32_t places[4], count[7] = {0};
	for (int i = 0; i < 4; i++)
		places[i] = (uint32_t)rand_u64(&w.rand);
	for (uint32_t i = 0; i < 4 * 700; i++) {
		uint32_t worker = (uint32_t)rand_below(&w.rand, 4);
		w.positions[0] = places[worker];
		count[node_world_number(&w)]++;
		places[worker] = w.positions[0];
	}
	for (int i = 0; i < 7; i++)
		assert_in_range(count[i], 400 - 4, 400 + 4);
	node_world_fini(&w);
}

// MC-09, wherever a worker begins: no turn but each one's next.
static void turns_go_round_without_a_gap(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= NODE_MEMBERS; n++) {
		struct node_world w;
		init(&w, n);
		assert_int_equal(node_world_update(&w, 0, n, ""), 0);
		node_world_connected(&w, 0, n);
		uint32_t last = node_world_number(&w);
		for (uint32_t i = 0; i < 5 * n; i++) {
			uint32_t number = node_world_number(&w);
			assert_int_equal(number, (last + 1) % n);
			last = number;
		}
		node_world_fini(&w);
	}
}

// UPD-01: what could not be told is told again.
static void failed_publishing_is_tried_again(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 1);
	assert_int_equal(node_world_update(&w, 0, 1, ""), 0);
	w.out_of_memory = true;
	node_world_connected(&w, 0, 1);
	assert_int_equal(w.state, LB_CONNECTING);
	world_pass(&w.world, 3 * WORLD_S);
	w.out_of_memory = false;
	world_pass(&w.world, WORLD_S);
	assert_int_equal(w.state, LB_READY);
	uint32_t n = w.n_published;
	world_pass(&w.world, 10 * WORLD_S);
	assert_int_equal(w.n_published, n);
	node_world_fini(&w);
}

static void each_failed_allocation_is_survived(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 1);
	assert_int_equal(node_world_update(&w, 0, 2, "note"), 0);
	node_world_connected(&w, 0, 1);
	int err = 0;
	for (size_t nth = 0;; nth++) {
		alloc_fail_arm(nth);
		err = node_world_update(&w, 0, 4, "other note");
		if (!alloc_fail_disarm())
			break;
		assert_true(err == 0 || err == -ENOMEM);
		assert_int_equal(node_world_number(&w), 0);
	}
	assert_int_equal(err, 0);
	// And one of each event: the change shows at once, or when it is tried again.
	for (uint32_t i = 1; i < 4; i++) {
		for (size_t nth = 0; nth < 8; nth++) {
			alloc_fail_arm(nth);
			node_world_event(&w, LB_EVENT_CONNECTED, i);
			alloc_fail_disarm();
			alloc_fail_arm(nth);
			node_world_event(&w, LB_EVENT_LOST, i);
			alloc_fail_disarm();
			world_pass(&w.world, 2 * WORLD_S);
			for (int k = 0; k < 8; k++)
				assert_true(node_world_number(&w) != i);
		}
		alloc_fail_arm(0);
		node_world_connected(&w, i, 1);
		alloc_fail_disarm();
		world_pass(&w.world, 2 * WORLD_S);
		bool seen = false;
		for (uint32_t k = 0; k <= i; k++)
			seen |= node_world_number(&w) == i;
		assert_true(seen);
	}
	node_world_fini(&w);
}

// RR-03 and RR-04 as words, against any order of events.
static void random_life_agrees_with_the_rules(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct node_world w;
		init(&w, seed);
		uint32_t first = 0, n = 4;
		assert_int_equal(node_world_update(&w, first, n, ""), 0);
		struct rand r;
		rand_init(&r, seed);
		for (int step = 0; step < 300; step++) {
			uint32_t number = (uint32_t)rand_below(&r, 14);
			switch (rand_below(&r, 9)) {
			case 0:
				world_pass(&w.world, rand_below(&r, 3 * WORLD_S));
				break;
			case 1:
				if (rand_below(&r, 6))
					break;
				first = (uint32_t)rand_below(&r, 8);
				n = (uint32_t)rand_below(&r, 6);
				assert_int_equal(node_world_update(&w, first, n, ""), 0);
				break;
			case 2:
				if (w.members[number])
					lb_member_set_ejected(
						w.members[number], rand_below(&r, 4) == 0);
				break;
			case 3:
			case 4:
				node_world_event(&w, LB_EVENT_CONNECTED, number);
				break;
			case 5:
				node_world_event(&w, LB_EVENT_LOST, number);
				break;
			default:
				node_world_event(&w, LB_EVENT_FAILED, number);
			}
			uint32_t n_in[4] = {0};
			for (uint32_t i = first; i < first + n; i++)
				n_in[lb_member_state(w.members[i])]++;
			assert_int_equal(n_in[LB_IDLE], 0); // RR-01
			if (n_in[LB_READY]) {
				assert_int_equal(w.state, LB_READY);
				bool seen[14] = {0};
				for (uint32_t i = 0; i < n_in[LB_READY]; i++)
					seen[node_world_number(&w)] = true;
				for (uint32_t i = 0; i < 14; i++) {
					bool must = i >= first && i < first + n &&
					            lb_member_state(w.members[i]) == LB_READY;
					assert_true(seen[i] == must);
				}
			} else if (w.state == LB_READY) { // an older list serves
				assert_true(n_in[LB_CONNECTING] > 0);
				uint32_t number_used = node_world_number(&w);
				assert_int_equal(lb_member_state(w.members[number_used]), LB_READY);
			} else {
				assert_int_equal(w.state,
					n_in[LB_CONNECTING] ? LB_CONNECTING : LB_TRANSIENT_FAILURE);
			}
		}
		node_world_fini(&w);
	}
}

// PF-05, PF-06: not for what an ejection or the start of an attempt changes.
static void loss_and_failure_ask_for_a_resolution(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 1);
	assert_int_equal(node_world_update(&w, 0, 1, ""), 0);
	lb_member_connect(w.own ? w.own : w.members[0]);
	node_world_event(&w, LB_EVENT_FAILED, 0);
	assert_int_equal(w.n_resolutions, 1);
	world_pass(&w.world, 2 * WORLD_S);
	assert_int_equal(w.n_resolutions, 1);
	node_world_event(&w, LB_EVENT_FAILED, 0);
	assert_int_equal(w.n_resolutions, 2);
	node_world_connected(&w, 0, 1);
	lb_member_set_ejected(w.members[0], true);
	lb_member_set_ejected(w.members[0], false);
	assert_int_equal(w.n_resolutions, 2);
	world_pass(&w.world, 2 * WORLD_S);
	node_world_event(&w, LB_EVENT_LOST, 0);
	assert_int_equal(w.n_resolutions, 3);
	node_world_fini(&w);
}

RUN_SUITE("lb/node_round_robin", cmocka_unit_test(every_endpoint_is_connected_and_kept_so),
	cmocka_unit_test(all_failing_fails_with_the_last_error),
	cmocka_unit_test(ejected_endpoint_leaves_and_returns_at_once),
	cmocka_unit_test(new_list_takes_over_when_it_may),
	cmocka_unit_test(any_window_gives_each_endpoint_its_share),
	cmocka_unit_test(swaps_favour_nobody),
	cmocka_unit_test(turns_without_a_local_connection_are_wanted_and_spread),
	cmocka_unit_test(endpoint_of_two_addresses_is_one_unit),
	cmocka_unit_test(workers_turns_add_up), cmocka_unit_test(turns_go_round_without_a_gap),
	cmocka_unit_test(failed_publishing_is_tried_again),
	cmocka_unit_test(loss_and_failure_ask_for_a_resolution),
	cmocka_unit_test(each_failed_allocation_is_survived),
	cmocka_unit_test(random_life_agrees_with_the_rules))
