// SPDX-License-Identifier: Apache-2.0
// Names of actions over updates, as gRFC A28 gives them.
#include "ctrl/assemble/actions.h"
#include "ctrl/base/slice.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/routes_by_hand.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ROUTE(...)                                                                                 \
	{                                                                                          \
		PREFIX("/"), CLUSTERS(__VA_ARGS__)                                                 \
	}

// In steps. NULL = out of memory.
static struct actions *list(
	struct res_route_config *routes, int32_t vhost, const struct actions *before)
{
	struct slice one_vhost = {.most = 1};
	struct actions_job *job = actions_job_new(routes, vhost);
	struct actions *a = NULL;
	int rc;
	do {
		slice_begin(&one_vhost);
		rc = job ? actions_job_run(job, &one_vhost, before, &a) : -ENOMEM;
	} while (rc == -EAGAIN);
	actions_job_free(job);
	return a;
}

static struct actions *next(struct actions *before, const struct res_vhost *v)
{
	struct res_route_config *r = routes_of(v, 1);
	struct actions *a = list(r, -1, before);
	assert_non_null(a);
	xds_res_put(&r->base);
	actions_free(before);
	return a;
}
#define NEXT(before, ...) next(before, &(struct res_vhost){"v", ROUTES(__VA_ARGS__)})

static const char *name_of(const struct actions *a, uint32_t route)
{
	int64_t index = actions_of(a, 0, route);
	assert_true(index >= 0);
	return actions_at(a, (uint32_t)index)->name;
}

// A28-N01, A28-N02
static void equal_actions_are_one_with_a_readable_name(void **state)
{
	struct actions *a = NEXT(NULL, ROUTE({"blue", 1}), ROUTE({"blue", 7}),
		ROUTE({"blue", 75}, {"green", 25}), ROUTE({"green", 25}, {"blue", 75}),
		ROUTE({"blue", 99}, {"red", 1}), ROUTE({"blue", 60}, {"green", 40}));
	assert_int_equal(actions_count(a), 4);
	assert_string_equal(name_of(a, 0), "cds:blue");
	assert_string_equal(name_of(a, 1), "cds:blue");
	assert_string_equal(name_of(a, 2), "weighted:blue_green_1");
	assert_string_equal(name_of(a, 3), "weighted:blue_green_1");
	assert_string_equal(name_of(a, 4), "weighted:blue_red_1");
	assert_string_equal(name_of(a, 5), "weighted:blue_green_2");
	actions_free(a);
}

// A28-W07
static void a_cluster_that_is_listed_twice_has_both_weights(void **state)
{
	struct actions *a = NEXT(NULL, ROUTE({"b", 1}, {"a", 2}, {"b", 3}),
		ROUTE({"a", 2}, {"b", 4}), ROUTE({"a", 1}, {"a", 1}), ROUTE({"a", 1}));
	assert_int_equal(actions_count(a), 2);
	const struct action *weighted = actions_at(a, 0);
	assert_int_equal(weighted->n_targets, 2);
	assert_string_equal(weighted->targets[1].cluster, "b");
	assert_int_equal(weighted->targets[1].weight, 4);
	assert_string_equal(name_of(a, 2), "cds:a");
	actions_free(a);
}

// A28-N03
static void unchanged_actions_keep_their_names_wherever_they_move(void **state)
{
	struct actions *a =
		NEXT(NULL, ROUTE({"a", 1}, {"b", 2}), ROUTE({"a", 1}, {"b", 3}), ROUTE({"c", 1}));
	assert_string_equal(name_of(a, 1), "weighted:a_b_2");
	a = NEXT(a, ROUTE({"d", 1}), ROUTE({"a", 1}, {"b", 3}));
	assert_string_equal(name_of(a, 1), "weighted:a_b_2");
	a = NEXT(a, ROUTE({"b", 3}, {"a", 1}), ROUTE({"a", 1}, {"b", 2}));
	assert_string_equal(name_of(a, 0), "weighted:a_b_2");
	assert_string_equal(name_of(a, 1), "weighted:a_b_1");
	actions_free(a);
}

// A28-N04: the canary roll-out of the gRFC.
static void new_weights_of_the_same_clusters_inherit_the_name(void **state)
{
	struct actions *a = NEXT(NULL, ROUTE({"a", 50}, {"b", 50}), ROUTE({"a", 99}, {"b", 1}));
	for (uint32_t weight = 2; weight < 10; weight++) {
		a = NEXT(a, ROUTE({"a", 50}, {"b", 50}), ROUTE({"b", weight}, {"a", 100}));
		assert_string_equal(name_of(a, 0), "weighted:a_b_1");
		assert_string_equal(name_of(a, 1), "weighted:a_b_2");
	}
	a = NEXT(a, ROUTE({"a", 1}, {"b", 0})); // a set is of names, whatever the weights
	assert_string_equal(name_of(a, 0), "weighted:a_b_1");
	actions_free(a);
}

// A28-N05
static void a_name_goes_to_one_heir_with_the_same_clusters(void **state)
{
	struct actions *a = NEXT(NULL, ROUTE({"a", 1}, {"b", 1}));
	a = NEXT(a, ROUTE({"a", 2}, {"b", 1}), ROUTE({"a", 3}, {"b", 1}),
		ROUTE({"a", 1}, {"b", 1}, {"c", 1}), ROUTE({"a", 1}), ROUTE({"b", 1}));
	assert_string_equal(name_of(a, 0), "weighted:a_b_1");
	assert_string_equal(name_of(a, 1), "weighted:a_b_2");
	assert_string_equal(name_of(a, 2), "weighted:a_b_c_1");
	assert_string_equal(name_of(a, 3), "cds:a");
	assert_string_equal(name_of(a, 4), "cds:b");
	// Two leave, two come: in order, one each.
	a = NEXT(a, ROUTE({"a", 9}, {"b", 1}), ROUTE({"a", 8}, {"b", 1}));
	assert_string_equal(name_of(a, 0), "weighted:a_b_1");
	assert_string_equal(name_of(a, 1), "weighted:a_b_2");
	actions_free(a);
}

// A28-N02, A28-N05: underscores in names make equal stems; what leaves keeps its name to itself.
static void names_stay_unique_whatever_clusters_are_called(void **state)
{
	struct actions *a = NEXT(NULL, ROUTE({"a_b", 1}, {"c", 1}), ROUTE({"a", 1}, {"b_c", 1}),
		ROUTE({"a", 1}, {"b_c_1", 1}), ROUTE({"a_b", 2}, {"c", 1}));
	assert_string_equal(name_of(a, 0), "weighted:a_b_c_1");
	assert_string_equal(name_of(a, 1), "weighted:a_b_c_2");
	assert_string_equal(name_of(a, 2), "weighted:a_b_c_1_1");
	assert_string_equal(name_of(a, 3), "weighted:a_b_c_3");
	a = NEXT(a, ROUTE({"a_b_c", 1}), ROUTE({"a", 5}, {"b", 1}, {"c", 1}));
	assert_string_equal(name_of(a, 1), "weighted:a_b_c_4");
	a = NEXT(a, ROUTE({"a", 7}, {"b_c", 1}));
	assert_string_equal(name_of(a, 0), "weighted:a_b_c_1");
	actions_free(a);
}

static void only_routes_of_the_virtual_host_in_use_count(void **state)
{
	const struct res_vhost vhosts[] = {
		{"v", ROUTES(ROUTE({"a", 1}))},
		{"w", ROUTES({PREFIX("/x"), .action = LB_ACTION_UNSUPPORTED}, ROUTE({"b", 1}))},
	};
	struct res_route_config *r = routes_of(vhosts, 2);
	struct actions *a = list(r, 1, NULL);
	assert_int_equal(actions_count(a), 1);
	assert_int_equal(actions_of(a, 1, 0), -1);
	assert_int_equal(actions_of(a, 1, 1), 0);
	actions_free(a);
	assert_int_equal(r->base.n_refs, 1);
	xds_res_put(&r->base);
}

static void any_allocation_may_fail(void **state)
{
	const struct res_vhost v = {"v", ROUTES(ROUTE({"a", 1}, {"b", 1}), ROUTE({"c", 1}))};
	const struct res_vhost w = {"w", ROUTES(ROUTE({"a", 2}, {"b", 1}), ROUTE({"d", 1}))};
	struct res_route_config *first = routes_of(&v, 1), *second = routes_of(&w, 1);
	struct actions *a = list(first, -1, NULL), *b = NULL;
	size_t nth = 0;
	for (bool hit = true; hit; nth++) {
		actions_free(b);
		alloc_fail_arm(nth);
		b = list(second, -1, a);
		hit = alloc_fail_disarm();
		assert_true(b || hit);
		assert_true(b || alloc_fail_live() == 0);
	}
	assert_true(nth > 5 || !alloc_fail_works());
	assert_string_equal(name_of(b, 0), "weighted:a_b_1");
	actions_free(a);
	actions_free(b);
	assert_int_equal(first->base.n_refs, 1);
	assert_int_equal(second->base.n_refs, 1);
	xds_res_put(&first->base);
	xds_res_put(&second->base);
}

RUN_SUITE("ctrl/actions", cmocka_unit_test(equal_actions_are_one_with_a_readable_name),
	cmocka_unit_test(a_cluster_that_is_listed_twice_has_both_weights),
	cmocka_unit_test(unchanged_actions_keep_their_names_wherever_they_move),
	cmocka_unit_test(new_weights_of_the_same_clusters_inherit_the_name),
	cmocka_unit_test(a_name_goes_to_one_heir_with_the_same_clusters),
	cmocka_unit_test(names_stay_unique_whatever_clusters_are_called),
	cmocka_unit_test(only_routes_of_the_virtual_host_in_use_count),
	cmocka_unit_test(any_allocation_may_fail))
