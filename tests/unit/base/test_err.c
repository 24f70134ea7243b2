// SPDX-License-Identifier: Apache-2.0
#include "lb/base/err.h"
#include "tests/support/check.h"

#include <errno.h>
#include <string.h>

static void set_formats_and_returns_einval(void **state)
{
	struct lb_err err;
	assert_int_equal(lb_err_set(&err, "field %s is %d", "weight", 0), -EINVAL);
	assert_string_equal(err.text, "field weight is 0");
	assert_int_equal(lb_err_set(NULL, "nobody listens"), -EINVAL);
	assert_int_equal(lb_err_within(NULL, "nobody listens"), -EINVAL);
}

static void within_puts_the_parent_in_front(void **state)
{
	struct lb_err err;
	lb_err_set(&err, "is empty");
	assert_int_equal(lb_err_within(&err, "routes[%u]", 3), -EINVAL);
	lb_err_within(&err, "virtual host %s", "a");
	assert_string_equal(err.text, "virtual host a: routes[3]: is empty");
}

static void long_texts_are_cut_and_stay_terminated(void **state)
{
	struct lb_err err;
	char text[1000];
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = 0;
	lb_err_set(&err, "%s", text);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_string_equal(err.text + sizeof(err.text) - 6, "xx...");
	text[sizeof(err.text) - 1] = 0; // it fits
	lb_err_set(&err, "%s", text);
	assert_string_equal(err.text, text);
	lb_err_within(&err, "parent");
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_memory_equal(err.text, "parent: xxx", 11);
	assert_string_equal(err.text + sizeof(err.text) - 6, "xx...");
	text[sizeof(err.text) - 1] = 'x';
	lb_err_within(&err, "%s", text);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_string_equal(err.text + sizeof(err.text) - 6, "xx...");
}

RUN_SUITE("base/err", cmocka_unit_test(set_formats_and_returns_einval),
	cmocka_unit_test(within_puts_the_parent_in_front),
	cmocka_unit_test(long_texts_are_cut_and_stay_terminated))
