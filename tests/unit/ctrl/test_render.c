// SPDX-License-Identifier: Apache-2.0
// Text, JSON and CSV of one tree.
#include "ctrl/render.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

static void check_text(const char *json, const char *expected)
{
	json_t *tree = json_loads(json, 0, NULL);
	assert_non_null(tree);
	char *text = render_text(tree);
	assert_string_equal(text, expected);
	free(text);
	json_decref(tree);
}

static void an_object_is_lines_of_key_and_value(void **state)
{
	check_text(
		"{\"version\":\"0.1\",\"workers\":1,\"busy\":12.5,\"ready\":true,\"error\":null}",
		"version: 0.1\nworkers: 1\nbusy: 12.50\nready: yes\nerror: -\n");
}

static void an_array_of_objects_is_an_aligned_table(void **state)
{
	check_text("[{\"name\":\"a\",\"requests\":10},{\"name\":\"longer\",\"requests\":7}]",
		"name    requests\na       10\nlonger  7\n");
	check_text("[{\"name\":\"a\",\"x\":1},{\"name\":\"b\"}]", "name  x\na     1\nb     -\n");
	check_text("[]", "none\n");
}

static void nested_parts_become_titled_sections(void **state)
{
	check_text("{\"id\":1,\"tcp\":{\"rx\":5},\"list\":[],\"rows\":[{\"a\":1}]}",
		"id: 1\ntcp:\n  rx: 5\nlist: none\nrows:\n  a\n  1\n");
}

static void csv_has_a_header_and_leaves_absent_values_empty(void **state)
{
	static const char *const columns[] = {"pxname", "svname", "scur", NULL};
	json_t *rows = json_loads("[{\"pxname\":\"web\",\"scur\":3},{\"svname\":\"s\"}]", 0, NULL);
	char *text = render_csv(rows, columns);
	assert_string_equal(text, "# pxname,svname,scur,\nweb,,3,\n,s,,\n");
	free(text);
	json_decref(rows);
}

static void json_is_one_line(void **state)
{
	json_t *tree = json_loads("{\"a\": [1, 2]}", 0, NULL);
	char *text = render_json(tree);
	assert_string_equal(text, "{\"a\":[1,2]}\n");
	free(text);
	json_decref(tree);
}

RUN_SUITE("ctrl/render", cmocka_unit_test(an_object_is_lines_of_key_and_value),
	cmocka_unit_test(an_array_of_objects_is_an_aligned_table),
	cmocka_unit_test(nested_parts_become_titled_sections),
	cmocka_unit_test(csv_has_a_header_and_leaves_absent_values_empty),
	cmocka_unit_test(json_is_one_line))
