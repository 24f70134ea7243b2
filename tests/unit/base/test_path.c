// SPDX-License-Identifier: Apache-2.0
#include "lb/base/path.h"
#include "tests/support/check.h"

#include <string.h>

static void a_path_stands_behind_its_root(void **state)
{
	char path[PATH_MAX];
	assert_string_equal(path_under("", path, "/proc/%d", 7), "/proc/7");
	assert_ptr_equal(path_under("/tmp/x", path, "%s", "/proc"), path);
	assert_string_equal(path, "/tmp/x/proc");
}

static void what_is_too_long_is_cut(void **state)
{
	char path[PATH_MAX], root[PATH_MAX + 2];
	memset(root, 'r', sizeof(root) - 1);
	root[sizeof(root) - 1] = '\0';
	assert_int_equal(strlen(path_under(root, path, "/proc")), PATH_MAX - 1);
	root[PATH_MAX - 3] = '\0';
	assert_int_equal(strlen(path_under(root, path, "/proc")), PATH_MAX - 1);
	assert_string_equal(path + PATH_MAX - 3, "/p");
}

RUN_SUITE("base/path", cmocka_unit_test(a_path_stands_behind_its_root),
	cmocka_unit_test(what_is_too_long_is_cut))
