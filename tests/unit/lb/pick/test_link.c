// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/link.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <string.h>

static void rings_carry_commands_and_events_in_order(void **state)
{
	(void)state;
	struct lb_link *l = lb_link_new(2, 5, NULL);
	assert_int_equal(l->worker, 2);
	assert_int_equal(l->core, 5);
	struct lb_command command = {.kind = LB_COMMAND_DRAIN, .deadline_ns = 77};
	struct lb_event event = {.kind = LB_EVENT_FAILED, .endpoint_id = 9, .why = "refused"};
	for (uint32_t i = 0; i < LB_LINK_COMMANDS; i++) {
		command.deadline_ns = i;
		assert_true(spsc_write(&l->commands, &command));
	}
	assert_false(spsc_write(&l->commands, &command));
	assert_true(spsc_write(&l->events, &event));
	for (uint32_t i = 0; i < LB_LINK_COMMANDS; i++) {
		assert_true(spsc_read(&l->commands, &command));
		assert_int_equal(command.deadline_ns, i);
	}
	struct lb_event got;
	assert_true(spsc_read(&l->events, &got));
	assert_string_equal(got.why, "refused");
	assert_false(spsc_read(&l->events, &got));
	lb_link_free(l);
	lb_link_free(NULL);
}

static void counters_start_at_zero_for_every_id(void **state)
{
	(void)state;
	struct lb_link *l = lb_link_new(0, 0, NULL);
	counter_add(&l->clusters[LB_MAX_CLUSTERS - 1].ended[LB_N_CAUSES - 1], 1);
	assert_int_equal(counter_read(&l->clusters[LB_MAX_CLUSTERS - 1].ended[LB_N_CAUSES - 1]), 1);
	assert_int_equal(counter_read(&l->endpoints[LB_MAX_ENDPOINTS - 1].started), 0);
	assert_int_equal(counter_read(&l->counters.requests), 0);
	lb_link_free(l);
}

static void groups_are_kept_in_order(void **state)
{
	(void)state;
	struct lb_link *l = lb_link_new(0, 0, NULL);
	static const char *const names[] = {"a"};
	static const uint64_t values[] = {3};
	for (int i = 0; i < LB_LINK_MAX_GROUPS; i++)
		lb_link_add_group(l, i ? "h2" : "tcp", (struct counter_set){names, values, 1});
	assert_int_equal(l->n_groups, LB_LINK_MAX_GROUPS);
	assert_string_equal(l->groups[0].name, "tcp");
	assert_int_equal(counter_read(l->groups[1].set.values), 3);
	lb_link_free(l);
}

static void each_failed_allocation_is_survived(void **state)
{
	(void)state;
	struct lb_link *l = NULL;
	ALLOC_FAIL_EACH(l = lb_link_new(0, 0, NULL), !l, lb_link_free(l));
}

RUN_SUITE("lb/link", cmocka_unit_test(rings_carry_commands_and_events_in_order),
	cmocka_unit_test(counters_start_at_zero_for_every_id),
	cmocka_unit_test(groups_are_kept_in_order),
	cmocka_unit_test(each_failed_allocation_is_survived))
