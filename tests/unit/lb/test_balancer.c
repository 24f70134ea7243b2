// SPDX-License-Identifier: Apache-2.0
#include "lb/balancer.h"
#include "lb/cluster.h"
#include "lb/picker.h"
#include "lb/policy.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/world.h"

#include <errno.h>

struct fixture {
	struct world world;
	struct lb_balancer *balancer;
	uint32_t n_changes;
	struct lb_cluster *last; // borrowed
};

static void on_change(void *ctx, struct lb_cluster *c)
{
	struct fixture *f = ctx;
	f->n_changes++;
	f->last = c;
}

static struct lb_balancer *make(struct fixture *f)
{
	return lb_balancer_new(
		5, "orders", &(struct lb_balancer_env){f->world.connectivity, on_change, f});
}

static void init(struct fixture *f)
{
	*f = (struct fixture){0};
	world_init(&f->world, 1, 1);
	f->balancer = make(f);
	assert_non_null(f->balancer);
}

static void fini(struct fixture *f)
{
	lb_balancer_free(f->balancer);
	lb_balancer_free(NULL);
	world_fini(&f->world);
}

static int update(struct fixture *f, uint32_t n)
{
	struct lb_policy_endpoint endpoints[8];
	for (uint32_t i = 0; i < n; i++)
		endpoints[i] = (struct lb_policy_endpoint){world_addr(i), 1};
	return lb_balancer_update(
		f->balancer, &(struct lb_policy_config){endpoints, n, "orders-eds"});
}

static struct lb_pick pick(const struct lb_cluster *c)
{
	static const uint64_t ready[WORLD_MAX_ENDPOINTS / 64] = {[0] = ~0ull};
	uint32_t position = 0;
	struct rand rand;
	rand_init(&rand, 1);
	struct lb_pick_ctx ctx = {.rand = &rand, .position = &position, .ready = ready};
	return c->picker->pick(c->picker, &ctx);
}

// A28-R05
static void requests_wait_before_the_first_update(void **state)
{
	(void)state;
	struct fixture f;
	init(&f);
	struct lb_cluster *c = lb_balancer_cluster(f.balancer);
	assert_int_equal(c->id, 5);
	assert_string_equal(c->name, "orders");
	assert_int_equal(c->state, LB_CONNECTING);
	assert_int_equal(pick(c).kind, LB_PICK_QUEUE);
	assert_int_equal(f.n_changes, 0);
	fini(&f);
}

static void each_state_is_a_new_object(void **state)
{
	(void)state;
	struct fixture f;
	init(&f);
	assert_int_equal(update(&f, 2), 0);
	assert_int_equal(f.n_changes, 1);
	struct lb_cluster *before = lb_cluster_get(f.last);
	world_event(&f.world, 0, LB_EVENT_CONNECTED, 0, "");
	assert_ptr_not_equal(f.last, before);
	assert_ptr_equal(f.last, lb_balancer_cluster(f.balancer));
	assert_int_equal(f.last->state, LB_READY);
	assert_int_equal(pick(f.last).kind, LB_PICK_ENDPOINT);
	assert_int_equal(before->state, LB_CONNECTING); // immutable
	lb_cluster_put(before);
	fini(&f);
}

// A28-R06
static void cluster_in_error_fails_with_its_text_and_lets_go(void **state)
{
	(void)state;
	struct fixture f;
	init(&f);
	assert_int_equal(update(&f, 1), 0);
	world_event(&f.world, 0, LB_EVENT_CONNECTED, 0, "");
	assert_int_equal(lb_balancer_fail(f.balancer, "cluster orders: not found"), 0);
	assert_int_equal(f.last->state, LB_TRANSIENT_FAILURE);
	assert_string_equal(pick(f.last).text, "cluster orders: not found");
	assert_int_equal(f.world.n_releases[0], 1);
	assert_int_equal(update(&f, 1), 0); // it comes back; its connection is still there
	assert_int_equal(f.last->state, LB_READY);
	fini(&f);
}

// A snapshot may outlive the balancer.
static void cluster_held_by_a_snapshot_keeps_its_endpoints(void **state)
{
	(void)state;
	struct fixture f;
	init(&f);
	assert_int_equal(update(&f, 1), 0);
	world_event(&f.world, 0, LB_EVENT_CONNECTED, 0, "");
	struct lb_cluster *held = lb_cluster_get(f.last);
	lb_balancer_free(f.balancer);
	f.balancer = NULL;
	assert_int_equal(f.world.n_releases[0], 0);
	assert_string_equal(pick(held).endpoint->text, "10.82.0.0:50051");
	lb_cluster_put(held);
	assert_int_equal(f.world.n_releases[0], 1);
	fini(&f);
}

static void each_failed_allocation_is_survived(void **state)
{
	(void)state;
	struct fixture f;
	init(&f);
	struct lb_balancer *b = NULL;
	ALLOC_FAIL_EACH(b = make(&f), !b, lb_balancer_free(b));
	int err = 0;
	for (size_t nth = 0;; nth++) {
		alloc_fail_arm(nth);
		err = update(&f, 2);
		if (!alloc_fail_disarm())
			break;
		assert_non_null(lb_balancer_cluster(f.balancer));
	}
	assert_int_equal(err, 0);
	world_event(&f.world, 0, LB_EVENT_CONNECTED, 0, "");
	assert_int_equal(lb_balancer_cluster(f.balancer)->state, LB_READY);
	for (size_t nth = 0;; nth++) {
		alloc_fail_arm(nth);
		err = lb_balancer_fail(f.balancer, "gone");
		if (!alloc_fail_disarm())
			break;
		assert_int_equal(err, -ENOMEM);
		assert_int_equal(lb_balancer_cluster(f.balancer)->state, LB_READY);
	}
	assert_int_equal(err, 0);
	fini(&f);
}

RUN_SUITE("lb/balancer", cmocka_unit_test(requests_wait_before_the_first_update),
	cmocka_unit_test(each_state_is_a_new_object),
	cmocka_unit_test(cluster_in_error_fails_with_its_text_and_lets_go),
	cmocka_unit_test(cluster_held_by_a_snapshot_keeps_its_endpoints),
	cmocka_unit_test(each_failed_allocation_is_survived))
