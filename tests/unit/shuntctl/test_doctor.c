// SPDX-License-Identifier: Apache-2.0
#include "tests/support/check.h"
#include "tools/shuntctl/doctor.h"

static void doctor_is_asked_in_text_and_in_json(void **state)
{
	assert_true(doctor_is_asked("doctor"));
	assert_true(doctor_is_asked("doctor json"));
	assert_false(doctor_is_asked("doctors"));
	assert_false(doctor_is_asked("show doctor"));
	assert_false(doctor_is_asked(""));
}

static void the_worst_line_counts(void **state)
{
	assert_int_equal(doctor_status("note    a core is not isolated\n", 0), 0);
	assert_int_equal(doctor_status("warning the clock is not synchronised\n", 0), 1);
	assert_int_equal(doctor_status("note    a core is not isolated\n", 1), 1);
	assert_int_equal(doctor_status("error   no hugepages\n", 1), 2);
	assert_int_equal(doctor_status("error: unknown command\n", 0), 0); // a refusal
	assert_int_equal(
		doctor_status(
			"{\"schema_version\":1,\"data\":{\"status\":2,\"findings\":[]}}\n", 0),
		2);
}

RUN_SUITE("shuntctl/doctor", cmocka_unit_test(doctor_is_asked_in_text_and_in_json),
	cmocka_unit_test(the_worst_line_counts))
