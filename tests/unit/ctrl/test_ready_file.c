// SPDX-License-Identifier: Apache-2.0
// OPS-240
#include "ctrl/ready_file.h"
#include "lb/base/time.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[32], path[64];
static struct ready_file file;

static int set_up(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/shunt-ready-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/ready", dir);
	file = (struct ready_file){.path = path};
	return 0;
}

static int tear_down(void **state)
{
	unlink(path);
	rmdir(path);
	rmdir(dir);
	return 0;
}

static bool is_there(void)
{
	return access(path, F_OK) == 0;
}

static void touch(void)
{
	fclose(fopen(path, "we"));
}

static void it_is_there_while_we_are_ready(void **state)
{
	ready_file_set(&file, false, 1);
	assert_false(is_there());
	ready_file_set(&file, true, 2); // at once
	assert_true(is_there());
	ready_file_set(&file, false, 3);
	assert_false(is_there());
	ready_file_set(&file, true, 4);
	ready_file_end(&file);
	assert_false(is_there());
}

static void one_that_is_left_over_goes(void **state)
{
	touch();
	ready_file_set(&file, false, 1);
	assert_false(is_there());
}

// As another process made it, in whose place we are.
static void one_that_is_right_stays(void **state)
{
	struct stat before, after;
	touch();
	assert_int_equal(stat(path, &before), 0);
	ready_file_set(&file, true, 1);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_null(file.error);
}

static void what_somebody_removes_is_there_again_within_a_second(void **state)
{
	ready_file_set(&file, true, 0);
	unlink(path);
	ready_file_set(&file, true, NS_PER_SECOND - 1);
	assert_false(is_there());
	ready_file_set(&file, true, NS_PER_SECOND);
	assert_true(is_there());
}

static void what_fails_is_told_and_tried_again_each_second(void **state)
{
	assert_int_equal(mkdir(path, 0700), 0);
	ready_file_set(&file, true, 0);
	assert_string_equal(file.error, "it is no empty file");
	rmdir(path);
	ready_file_set(&file, true, NS_PER_MS);
	assert_non_null(file.error);
	ready_file_set(&file, true, NS_PER_SECOND);
	assert_null(file.error);
	assert_true(is_there());
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	ready_file_set(&file, true, 2 * NS_PER_SECOND);
	assert_string_equal(file.error, "No such file or directory");
	ready_file_set(&file, false, 2 * NS_PER_SECOND + 1);
	assert_null(file.error);
}

static void a_file_of_somebody_elses_is_left_as_it_is(void **state)
{
	FILE *f = fopen(path, "we");
	fputs("mine", f);
	fclose(f);
	for (int i = 0; i < 2; i++) {
		ready_file_set(&file, i, i);
		assert_string_equal(file.error, "it is no empty file");
		assert_true(is_there());
	}
	ready_file_end(&file);
	assert_true(is_there());
}

static void without_a_path_nothing_happens(void **state)
{
	file.path = NULL;
	ready_file_set(&file, true, 0);
	ready_file_end(&file);
	assert_null(file.error);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

RUN_SUITE("ctrl/ready_file", CASE(it_is_there_while_we_are_ready), CASE(one_that_is_left_over_goes),
	CASE(one_that_is_right_stays), CASE(what_somebody_removes_is_there_again_within_a_second),
	CASE(a_file_of_somebody_elses_is_left_as_it_is),
	CASE(what_fails_is_told_and_tried_again_each_second), CASE(without_a_path_nothing_happens))
