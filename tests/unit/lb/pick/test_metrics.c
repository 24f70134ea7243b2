// SPDX-License-Identifier: Apache-2.0
// Lists of wanted values of backends' reports (gRFC A85; LR-10).
#include "lb/pick/metrics.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <stdio.h>

static struct lb_metrics *list_of(const char *const *names, uint32_t n)
{
	struct lb_metrics *m;
	assert_int_equal(lb_metrics_new(names, n, 3, &m), 0);
	return m;
}

static void wanted_values_are_found_and_others_are_not(void **state)
{
	static const char *const names[] = {"named_metrics.b", "eps", "mem_utilization",
		"named_metrics.", "named_metrics.bb", "named_metrics.a", "utilization.x"};
	struct lb_metrics *m = list_of(names, 7);
	assert_int_equal(m->list, 3);
	assert_int_equal(m->n_named, 4);
	assert_false(m->all_named);
	assert_true(lb_metrics_has(m, LB_METRIC_MEM));
	assert_false(lb_metrics_has(m, LB_METRIC_CPU));
	assert_null(lb_metrics_name(m, LB_METRIC_CPU));
	assert_string_equal(lb_metrics_name(m, LB_METRIC_MEM), "mem_utilization");
	static const char *const found[] = {"", "a", "b", "bb"};
	for (uint32_t i = 0; i < 4; i++) {
		char full[32];
		uint32_t index = lb_metrics_find(m, str_from(found[i]));
		snprintf(full, sizeof(full), "named_metrics.%s", found[i]);
		assert_string_equal(lb_metrics_name(m, index), full);
	}
	static const struct str others[] = {STR("c"), STR("ba"), STR("A"), STR("b\0"), STR("bbb")};
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(lb_metrics_find(m, others[i]), LB_METRIC_NONE);
	assert_null(lb_metrics_name(m, LB_METRIC_NAMED + 4));
	assert_null(lb_metrics_name(m, LB_METRIC_NONE));
	lb_metrics_put(m);
}

static void lists_of_the_same_values_are_the_same(void **state)
{
	static const char *const one[] = {"named_metrics.a", "named_metrics.b", "eps"};
	static const char *const two[] = {"named_metrics.b", "named_metrics.a"};
	static const char *const three[] = {"named_metrics.b", "named_metrics.c"};
	static const char *const all[] = {"named_metrics.*"};
	static const char *const none[] = {"eps", "*"};
	struct lb_metrics *a = list_of(one, 3), *b = list_of(two, 2), *c = list_of(three, 2),
			  *d = list_of(all, 1);
	assert_null(list_of(none, 2));
	assert_true(d->all_named && d->n_named == 0);
	assert_true(lb_metrics_same(a, b) && lb_metrics_same(NULL, NULL));
	assert_false(lb_metrics_same(a, c) || lb_metrics_same(a, d) || lb_metrics_same(a, NULL));
	lb_metrics_put(lb_metrics_get(a));
	lb_metrics_put(a);
	lb_metrics_put(b);
	lb_metrics_put(c);
	lb_metrics_put(d);
	lb_metrics_put(lb_metrics_get(NULL));
}

static void each_failed_allocation_is_survived(void **state)
{
	static const char *const names[] = {"named_metrics.a"};
	struct lb_metrics *m = NULL;
	ALLOC_FAIL_EACH((void)!lb_metrics_new(names, 1, 1, &m), !m, lb_metrics_put(m));
}

RUN_SUITE("lb/metrics", cmocka_unit_test(wanted_values_are_found_and_others_are_not),
	cmocka_unit_test(lists_of_the_same_values_are_the_same),
	cmocka_unit_test(each_failed_allocation_is_survived))
