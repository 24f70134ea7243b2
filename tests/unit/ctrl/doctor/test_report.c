// SPDX-License-Identifier: Apache-2.0
#include "ctrl/doctor/report.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

static int set_up(void **state)
{
	static struct doctor_report report;
	assert_true(doctor_report_init(&report));
	doctor_report_begin(&report, "test");
	*state = &report;
	return 0;
}

static int tear_down(void **state)
{
	doctor_report_fini(*state);
	return 0;
}

// Good until the next call.
static const char *text_of(const struct doctor_report *r)
{
	static char copy[4096];
	json_t *tree = doctor_report_json(r);
	char *text = doctor_report_text(tree);
	snprintf(copy, sizeof(copy), "%s", text);
	free(text);
	json_decref(tree);
	return copy;
}

// OPS-130
static void a_finding_is_a_line_and_the_worst_come_first(void **state)
{
	struct doctor_report *r = *state;
	doctor_find(r, DOCTOR_NOTE, "core %d is shared; it is slow", 1);
	doctor_find(r, DOCTOR_ERROR, "eth1 is down; nothing comes");
	doctor_fix(r, "ip link set %s up", "eth1");
	doctor_find(r, DOCTOR_WARNING, "a; b");
	assert_string_equal(text_of(r),
		"error    eth1 is down; nothing comes; fix: ip link set eth1 up\n"
		"warning  a; b\n"
		"note     core 1 is shared; it is slow\n"
		"1 error, 1 warning, 1 note\n");
}

// OPS-130
static void the_status_is_that_of_the_worst(void **state)
{
	struct doctor_report *r = *state;
	assert_string_equal(text_of(r), "0 errors, 0 warnings, 0 notes\n");
	doctor_find(r, DOCTOR_NOTE, "a");
	assert_int_equal(doctor_report_status(r), 0);
	doctor_find(r, DOCTOR_WARNING, "a");
	assert_int_equal(doctor_report_status(r), 1);
	doctor_find(r, DOCTOR_ERROR, "a");
	doctor_find(r, DOCTOR_NOTE, "a");
	assert_int_equal(doctor_report_status(r), 2);
}

static void one_check_tells_ten_findings_and_counts_the_rest(void **state)
{
	struct doctor_report *r = *state;
	for (int i = 0; i < 12; i++) {
		doctor_find(r, DOCTOR_WARNING, "finding %d;", i);
		doctor_fix(r, "fix %d;", i);
	}
	doctor_report_begin(r, "other");
	doctor_find(r, DOCTOR_NOTE, "another one");
	const char *text = text_of(r);
	assert_non_null(strstr(text, "finding 9;; fix: fix 9;"));
	assert_null(strstr(text, "finding 10;"));
	assert_null(strstr(text, "fix 10;"));
	assert_null(strstr(text, "fix 11;"));
	assert_non_null(strstr(text, "another one\nand 2 more\n0 errors, 12 warnings, 1 note\n"));
}

static void a_line_stays_a_line_whatever_a_server_said(void **state)
{
	struct doctor_report *r = *state;
	doctor_find(r, DOCTOR_NOTE, "%s", "a\nerror \x1b[31m \xff \xc2\x9b 1\xc3\xa9 \xe2\x82");
	assert_string_equal(text_of(r),
		"note     a error  [31m ? ?? 1\xc3\xa9 ??\n0 errors, 0 warnings, 1 note\n");
}

static void the_findings_of_another_examination_are_taken_over(void **state)
{
	struct doctor_report *r = *state, other;
	assert_true(doctor_report_init(&other));
	doctor_report_begin(&other, "there");
	doctor_find(&other, DOCTOR_ERROR, "there");
	doctor_find(r, DOCTOR_NOTE, "here");
	json_t *tree = doctor_report_json(&other);
	assert_true(doctor_report_add(r, tree));
	assert_int_equal(doctor_report_status(r), 2);
	assert_string_equal(
		text_of(r), "error    there\nnote     here\n1 error, 0 warnings, 1 note\n");
	json_decref(tree);
	doctor_report_fini(&other);
}

static void what_is_no_examination_is_not_taken_over(void **state)
{
	static const char *const texts[] = {"{}", "[]", "{\"findings\":{}}", "{\"findings\":[1]}",
		"{\"findings\":[{\"severity\":\"fatal\"}]}", "{\"findings\":[{\"severity\":1}]}"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		json_t *tree = json_loads(texts[i], 0, NULL);
		assert_non_null(tree);
		assert_false(doctor_report_add(*state, tree));
		json_decref(tree);
	}
	assert_false(doctor_report_add(*state, NULL));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RUN_SUITE("ctrl/doctor/report", TEST(a_finding_is_a_line_and_the_worst_come_first),
	TEST(the_status_is_that_of_the_worst),
	TEST(one_check_tells_ten_findings_and_counts_the_rest),
	TEST(a_line_stays_a_line_whatever_a_server_said),
	TEST(the_findings_of_another_examination_are_taken_over),
	TEST(what_is_no_examination_is_not_taken_over))
