// SPDX-License-Identifier: Apache-2.0
// Text, JSON and CSV of one tree.
#include "ctrl/stats/render.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

static void check_text(const char *json, const char *expected)
{
	json_t *tree = json_loads(json, 0, NULL);
	assert_non_null(tree);
	char *text = render_text(tree, false);
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

// Each is what a server may put into a name or an error text.
static void text_cannot_end_an_answer_or_steer_a_terminal(void **state)
{
	json_t *tree = json_object();
	json_object_set_new(tree, "error",
		render_string("a\n\nstate: fine\r\x1b[2J\x7f\xc2\x9b"
			      "1m\tz"));
	char *text = render_text(tree, false);
	assert_string_equal(text, "error: a\\n\\nstate: fine\\x0d\\x1b[2J\\x7f\\x9b1m\\x09z\n");
	free(text);
	text = render_json(tree); // where nothing is lost
	assert_non_null(strstr(text, "a\\n\\nstate: fine\\r\\u001B[2J"));
	free(text);
	json_decref(tree);
}

static void csv_cells_are_quoted_where_they_must_be(void **state)
{
	static const char *const columns[] = {"a", "b", NULL};
	json_t *rows = json_array(), *row = json_object();
	json_object_set_new(row, "a", render_string("x,y\n# z"));
	json_object_set_new(row, "b", render_string("say \"hi\""));
	json_array_append_new(rows, row);
	char *text = render_csv(rows, columns);
	assert_string_equal(text, "# a,b,\n\"x,y\\n# z\",\"say \"\"hi\"\"\",\n");
	free(text);
	json_decref(rows);
}

static void text_cut_in_a_character_is_still_json(void **state)
{
	static const struct {
		const char *given, *string;
	} rows[] = {
		{"", ""},
		{"gr\u00fcn \U0001f600", "gr\u00fcn \U0001f600"},
		{"gr\xc3", "gr\uFFFD"},
		{"\xf0\x9f\x98", "\uFFFD\uFFFD\uFFFD"},
		{"a\xff"
		 "b",
			"a\uFFFDb"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *v = render_string(rows[i].given);
		assert_string_equal(json_string_value(v), rows[i].string);
		json_t *again = json_string(json_string_value(v)); // which checks
		assert_non_null(again);
		json_decref(again);
		json_decref(v);
	}
	json_t *none = render_string(NULL);
	assert_true(json_is_null(none));
	json_decref(none);
}

static void columns_are_aligned_by_characters(void **state)
{
	check_text("[{\"name\":\"gr\u00fcn\",\"x\":1},{\"name\":\"blue\",\"x\":2}]",
		"name  x\ngr\u00fcn  1\nblue  2\n");
}

static void ops_128_people_get_units(void **state)
{
	json_t *tree = json_loads(
		"[{\"age_s\":1.234,\"bytes\":812,\"rx_bytes\":1536,\"cwnd\":10485760,\"requests\":"
		"123456},"
		"{\"age_s\":75.9,\"bytes\":0,\"rx_bytes\":1048576,\"cwnd\":1,\"requests\":1},"
		"{\"age_s\":11520,\"bytes\":1024,\"rx_bytes\":1,\"cwnd\":1,\"requests\":1},"
		"{\"age_s\":439200,\"bytes\":null,\"rx_bytes\":1,\"cwnd\":1,\"requests\":1}]",
		0, NULL);
	char *text = render_text(tree, true);
	assert_string_equal(text, "age_s  bytes   rx_bytes  cwnd     requests\n"
				  "1.23s  812B    1.5KiB    10.0MiB  123456\n"
				  "1m15s  0B      1.0MiB    1B       1\n"
				  "3h12m  1.0KiB  1B        1B       1\n"
				  "5d02h  -       1B        1B       1\n");
	free(text);
	json_decref(tree);
	tree = json_loads("{\"uptime_s\":65.0,\"speed_mbps\":100}", 0, NULL);
	text = render_text(tree, true);
	assert_string_equal(text, "uptime_s: 1m05s\nspeed_mbps: 100\n");
	free(text);
	json_decref(tree);
}

RUN_SUITE("ctrl/render", cmocka_unit_test(an_object_is_lines_of_key_and_value),
	cmocka_unit_test(an_array_of_objects_is_an_aligned_table),
	cmocka_unit_test(nested_parts_become_titled_sections),
	cmocka_unit_test(csv_has_a_header_and_leaves_absent_values_empty),
	cmocka_unit_test(json_is_one_line),
	cmocka_unit_test(text_cannot_end_an_answer_or_steer_a_terminal),
	cmocka_unit_test(csv_cells_are_quoted_where_they_must_be),
	cmocka_unit_test(text_cut_in_a_character_is_still_json),
	cmocka_unit_test(columns_are_aligned_by_characters),
	cmocka_unit_test(ops_128_people_get_units))
