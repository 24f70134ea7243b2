// SPDX-License-Identifier: Apache-2.0
// Names that others chose, as text of a page.
#include "ctrl/page/html.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

static void expect(void (*write)(FILE *, const char *), const char *from, const char *to)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	write(out, from);
	fclose(out);
	assert_string_equal(text, to);
	free(text);
}

// OPS-170
static void ops_170_whatever_would_be_markup_is_text(void **state)
{
	static const char *const rows[][2] = {
		{"", ""},
		{"blue", "blue"},
		{"<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"},
		{"\" onload='x' &amp;", "&quot; onload=&#39;x&#39; &amp;amp;"},
		{"a\nb\r\0c", "a\uFFFDb\uFFFD"},
		{"na\xc3\xafve", "na\xc3\xafve"},
		{"cut \xc3", "cut \uFFFD"},
		{"\xff\xfe<", "\uFFFD\uFFFD&lt;"},
		{"\xc0\xbcscript", "\uFFFD\uFFFDscript"}, // '<' in two bytes
		{"\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD"}, // a surrogate
		{"\xe2\x80\xae"
		 "evil",
			"\uFFFDevil"}, // right-to-left override
		{"\xe2\x81\xa6x\xe2\x81\xa9", "\uFFFDx\uFFFD"}, // isolates
		{"\xe2\x80\xa8", "\uFFFD"}, // a line separator
		{"\xc2\x85\x7f\x1b[31m", "\uFFFD\uFFFD\uFFFD[31m"},
		{"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect(html_text, rows[i][0], rows[i][1]);
}

// OPS-170
static void ops_170_a_name_in_a_query_is_nothing_but_a_value(void **state)
{
	expect(html_query_value, "a-b_c.d~e9", "a-b_c.d~e9");
	expect(html_query_value, "x&y=<\"'>#?/ %\n\xc3\xaf",
		"x%26y%3D%3C%22%27%3E%23%3F%2F%20%25%0A%C3%AF");
}

// Any bytes: nothing that begins a tag, an entity of its own or a new line comes out.
static void random_bytes_make_no_markup(void **state)
{
	uint32_t seed = 1;
	for (int round = 0; round < 2000; round++) {
		char from[24] = "";
		char *text = NULL;
		size_t len;
		for (int i = 0; i < 23; i++) {
			seed = seed * 1664525 + 1013904223;
			from[i] = (char)(seed >> 24);
		}
		FILE *out = open_memstream(&text, &len);
		html_text(out, from);
		fclose(out);
		assert_null(strpbrk(text, "<>\"'\n\r"));
		free(text);
	}
}

static void durations_are_told_in_the_unit_that_fits(void **state)
{
	static const struct {
		double s;
		const char *text;
	} rows[] = {{-1, "0 s"}, {0, "0 s"}, {119, "119 s"}, {120, "2 min"}, {7199, "119 min"},
		{7200, "2 h"}, {48 * 3600, "2 d"}, {1e9, "11574 d"}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *text = NULL;
		size_t len;
		FILE *out = open_memstream(&text, &len);
		html_duration(out, rows[i].s);
		fclose(out);
		assert_string_equal(text, rows[i].text);
		free(text);
	}
}

static void colour_is_not_all_that_tells_badges_apart(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	html_badge(out, HTML_BAD, "<b>");
	fclose(out);
	assert_string_equal(text,
		"<span class=\"badge bad\"><span aria-hidden=\"true\">\u2716</span> "
		"&lt;b&gt;</span>");
	free(text);
}

RUN_SUITE("ctrl/page/html", cmocka_unit_test(ops_170_whatever_would_be_markup_is_text),
	cmocka_unit_test(ops_170_a_name_in_a_query_is_nothing_but_a_value),
	cmocka_unit_test(random_bytes_make_no_markup),
	cmocka_unit_test(durations_are_told_in_the_unit_that_fits),
	cmocka_unit_test(colour_is_not_all_that_tells_badges_apart))
