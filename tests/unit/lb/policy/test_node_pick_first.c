// SPDX-License-Identifier: Apache-2.0
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/policy/node_world.h"

#include <errno.h>
#include <string.h>

static void init(struct node_world *w, uint64_t seed)
{
	node_world_init(w, &lb_node_pick_first, seed);
}

// PF-02
static void first_address_is_tried_first(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 1);
	assert_int_equal(node_world_update(&w, 0, 3, ""), 0);
	assert_int_equal(w.state, LB_CONNECTING);
	assert_int_equal(w.n_published, 1);
	assert_int_equal(node_world_connects(&w, 0), 1);
	assert_int_equal(node_world_connects(&w, 1), 0);
	node_world_event(&w, LB_EVENT_FAILED, 0);
	assert_int_equal(node_world_connects(&w, 1), 1);
	node_world_connected(&w, 1, 1);
	assert_int_equal(w.state, LB_READY);
	for (int i = 0; i < 5; i++)
		assert_int_equal(node_world_number(&w), 1); // counted for the endpoint it is of
	node_world_fini(&w);
}

// PF-06
static void lost_connection_waits_for_a_pick(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 1);
	assert_int_equal(node_world_update(&w, 0, 2, ""), 0);
	node_world_connected(&w, 0, 1);
	world_pass(&w.world, 2 * WORLD_S);
	node_world_event(&w, LB_EVENT_LOST, 0);
	assert_int_equal(w.state, LB_IDLE);
	world_pass(&w.world, 20 * WORLD_S);
	assert_int_equal(node_world_connects(&w, 0), 1);
	struct lb_pick p = node_world_pick(&w);
	assert_int_equal(p.kind, LB_PICK_QUEUE);
	assert_null(p.want);
	assert_int_equal(p.connect_request, NODE_OWN + 1);
	assert_int_equal(node_world_update(&w, 0, 2, "other note"), 0); // wakes nobody
	assert_int_equal(w.state, LB_IDLE);
	lb_member_connect(w.own); // what the request comes to
	assert_int_equal(w.state, LB_CONNECTING);
	assert_int_equal(node_world_connects(&w, 0), 2);
	node_world_connected(&w, 0, 1);
	world_pass(&w.world, 2 * WORLD_S);
	node_world_event(&w, LB_EVENT_LOST, 0);
	w.node->ops->exit_idle(w.node); // or a parent's word
	assert_int_equal(w.state, LB_CONNECTING);
	node_world_fini(&w);
}

// PF-05, ERR-01
static void all_failing_names_the_last_error(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 1);
	assert_int_equal(node_world_update(&w, 0, 2, "EDS orders"), 0);
	node_world_event(&w, LB_EVENT_FAILED, 0);
	node_world_event(&w, LB_EVENT_FAILED, 1);
	assert_int_equal(w.state, LB_TRANSIENT_FAILURE);
	assert_string_equal(node_world_pick(&w).text,
		"cluster orders: none of 2 endpoints is usable, "
		"last error: 10.82.0.1:50051: refused (EDS orders)");
	world_pass(&w.world, 2 * WORLD_S);
	assert_int_equal(w.state, LB_TRANSIENT_FAILURE);
	node_world_connected(&w, 0, 1);
	assert_int_equal(node_world_number(&w), 0);
	assert_int_equal(node_world_update(&w, 0, 0, "gone"), 0);
	assert_string_equal(node_world_pick(&w).text, "cluster orders: no endpoints (gone)");
	node_world_fini(&w);
}

// PF-07
static void new_list_keeps_the_connection_it_contains(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 1);
	assert_int_equal(node_world_update(&w, 0, 3, ""), 0);
	node_world_event(&w, LB_EVENT_FAILED, 0);
	node_world_connected(&w, 1, 1);
	uint32_t id = node_world_id(&w, 1);
	assert_int_equal(node_world_update(&w, 0, 6, ""), 0);
	assert_int_equal(w.state, LB_READY);
	assert_int_equal(node_world_number(&w), 1);
	assert_int_equal(w.world.n_connects[id], 1);
	assert_int_equal(w.world.n_releases[id], 0);
	node_world_event(&w, LB_EVENT_LOST, 1);
	assert_int_equal(node_world_connects(&w, 0), 1); // of the first pass
	w.node->ops->exit_idle(w.node); // the next pass begins with the list's first
	assert_int_equal(node_world_connects(&w, 0), 2);
	assert_int_equal(w.world.n_connects[id], 1);
	node_world_fini(&w);
}

// PF-07
static void new_list_without_it_drops_the_connection(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 1);
	assert_int_equal(node_world_update(&w, 0, 2, ""), 0);
	node_world_connected(&w, 0, 1);
	uint32_t id = node_world_id(&w, 0);
	assert_int_equal(node_world_update(&w, 10, 2, ""), 0);
	assert_int_equal(w.state, LB_CONNECTING);
	assert_int_equal(w.world.n_releases[id], 1);
	assert_int_equal(node_world_connects(&w, 10), 1);
	node_world_fini(&w);
}

// PF-01: with shuffling who weighs more is first more often; three to one here (gRFC A113).
// ±4 standard deviations of 1000 draws.
static void shuffling_follows_the_weights(void **state)
{
	(void)state;
	struct node_world w;
	uint32_t n_first = 0;
	for (uint64_t seed = 0; seed < 1000; seed++) {
		init(&w, seed);
		w.spec.pick_first.shuffle = true;
		w.weights[1] = 3;
		assert_int_equal(node_world_update(&w, 0, 2, ""), 0);
		n_first += node_world_connects(&w, 1);
		assert_int_equal(node_world_connects(&w, 0) + node_world_connects(&w, 1), 1);
		node_world_fini(&w);
	}
	assert_in_range(n_first, 695, 805);
}

// MC-04
static void worker_without_connection_opens_its_own(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 1);
	assert_int_equal(node_world_update(&w, 0, 2, ""), 0);
	node_world_connected(&w, 0, 1);
	memset(w.ready, 0, sizeof(w.ready));
	struct lb_pick p = node_world_pick(&w);
	assert_int_equal(p.kind, LB_PICK_QUEUE);
	assert_int_equal(p.want->id, node_world_id(&w, 0));
	assert_int_equal(p.connect_request, 0);
	node_world_fini(&w);
}

static void each_failed_allocation_is_survived(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 1);
	assert_int_equal(node_world_update(&w, 0, 2, ""), 0);
	node_world_connected(&w, 0, 1);
	int err = 0;
	for (size_t nth = 0;; nth++) {
		alloc_fail_arm(nth);
		err = node_world_update(&w, 0, 4, "");
		if (!alloc_fail_disarm())
			break;
		assert_true(err == 0 || err == -ENOMEM);
		world_pass(&w.world, 2 * WORLD_S);
		assert_int_equal(w.state, LB_READY);
		assert_int_equal(node_world_number(&w), 0);
	}
	assert_int_equal(err, 0);
	for (size_t nth = 0; nth < 6; nth++) {
		alloc_fail_arm(nth);
		err = node_world_update(&w, nth % 2 ? 20 : 30, 2, "");
		alloc_fail_disarm();
		world_pass(&w.world, 2 * WORLD_S);
		assert_int_equal(w.state, err && nth == 0 ? LB_READY : LB_CONNECTING);
		if (err)
			assert_int_equal(node_world_update(&w, nth % 2 ? 20 : 30, 2, ""), 0);
		assert_int_equal(w.state, LB_CONNECTING);
	}
	node_world_fini(&w);
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

RUN_SUITE("lb/node_pick_first", cmocka_unit_test(first_address_is_tried_first),
	cmocka_unit_test(lost_connection_waits_for_a_pick),
	cmocka_unit_test(all_failing_names_the_last_error),
	cmocka_unit_test(new_list_keeps_the_connection_it_contains),
	cmocka_unit_test(new_list_without_it_drops_the_connection),
	cmocka_unit_test(shuffling_follows_the_weights),
	cmocka_unit_test(worker_without_connection_opens_its_own),
	cmocka_unit_test(loss_and_failure_ask_for_a_resolution),
	cmocka_unit_test(each_failed_allocation_is_survived))
