// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/cause.h"
#include "tests/support/check.h"

#include <string.h>

static void every_cause_has_its_own_flag_and_name(void **state)
{
	(void)state;
	for (int i = 0; i < LB_N_CAUSES; i++) {
		const struct lb_cause_info *a = lb_cause_info((enum lb_cause)i);
		assert_true(a->flag && a->flag[0] && a->name && a->name[0]);
		assert_true(a->http_status >= 200 && a->http_status < 600);
		assert_true((i == LB_CAUSE_OK) == !a->text[0]);
		for (int j = 0; j < i; j++) {
			const struct lb_cause_info *b = lb_cause_info((enum lb_cause)j);
			assert_string_not_equal(a->flag, b->flag);
			assert_string_not_equal(a->name, b->name);
		}
	}
}

// ERR-02: the balancer itself never answers with these.
static void local_replies_use_only_statuses_a_balancer_may(void **state)
{
	(void)state;
	static const int forbidden[] = {0, 3, 5, 6, 9, 10, 11, 15};
	for (int i = LB_CAUSE_OK + 1; i < LB_N_CAUSES; i++)
		for (size_t k = 0; k < sizeof(forbidden) / sizeof(forbidden[0]); k++)
			assert_int_not_equal(
				lb_cause_info((enum lb_cause)i)->grpc_status, forbidden[k]);
}

// ERR-03
static void statuses_are_those_of_the_page(void **state)
{
	(void)state;
	assert_string_equal(lb_cause_info(LB_CAUSE_OK)->flag, "-");
	assert_int_equal(lb_cause_info(LB_CAUSE_NO_ROUTE)->grpc_status, 14); // D1
	assert_int_equal(lb_cause_info(LB_CAUSE_NO_ROUTE)->http_status, 404);
	assert_int_equal(lb_cause_info(LB_CAUSE_NO_HEALTHY)->http_status, 503); // ERR-03
	assert_int_equal(lb_cause_info(LB_CAUSE_DROPPED)->grpc_status, 14); // A27-I03
	assert_string_equal(lb_cause_info(LB_CAUSE_DROPPED)->flag, "DO");
	assert_int_equal(lb_cause_info(LB_CAUSE_TIMEOUT)->grpc_status, 4);
	assert_int_equal(lb_cause_info(LB_CAUSE_CLIENT_PROTOCOL)->http_status, 400);
}

RUN_SUITE("lb/cause", cmocka_unit_test(every_cause_has_its_own_flag_and_name),
	cmocka_unit_test(local_replies_use_only_statuses_a_balancer_may),
	cmocka_unit_test(statuses_are_those_of_the_page))
