// SPDX-License-Identifier: Apache-2.0
// Words of a command line: what is put together comes apart again.
#include "lb/base/words.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

static void expect(const char *line, const char *const *words)
{
	char text[256];
	struct words w;
	snprintf(text, sizeof(text), "%s", line);
	assert_null(words_split(text, &w));
	for (unsigned i = 0; i < w.n; i++) {
		assert_non_null(words[i]);
		assert_string_equal(w.list[i], words[i]);
	}
	assert_null(words[w.n]);
}

static void blanks_part_words_and_quotes_keep_them(void **state)
{
	expect("", (const char *[]){NULL});
	expect(" \t ", (const char *[]){NULL});
	expect("  show \t stat  ", (const char *[]){"show", "stat", NULL});
	expect("-H \"k: a b\" x", (const char *[]){"-H", "k: a b", "x", NULL});
	expect("a\"b c\"d", (const char *[]){"ab cd", NULL});
	expect("\"\" \"\"\"\"", (const char *[]){"", "", NULL});
	expect("\"\\n\\r\\t\\\\\\\"\\x41\\xfF\"", (const char *[]){"\n\r\t\\\"A\xff", NULL});
	expect("a\\b 'c d'", (const char *[]){"a\\b", "'c", "d'", NULL}); // literal outside quotes
}

static void what_is_no_word_is_refused(void **state)
{
	static const char *const bad[] = {
		"\"", "a \"b", "\"\\", "\"\\\"", "\"\\q\"", "\"\\x4\"", "\"\\xg0\"", "\"\\x00\""};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[16];
		struct words w;
		strcpy(text, bad[i]);
		assert_non_null(words_split(text, &w));
	}
	for (int extra = 0; extra <= 1; extra++) {
		char many[2 * WORDS_MAX + 3] = "";
		struct words w;
		for (int k = 0; k < WORDS_MAX + extra; k++)
			strcat(many, "x ");
		assert_true((words_split(many, &w) == NULL) == (extra == 0));
		assert_int_equal(w.n, WORDS_MAX);
	}
}

static void every_byte_survives_the_way_through_a_line(void **state)
{
	char line[4096] = "";
	char all[256];
	for (int i = 1; i < 256; i++)
		all[i - 1] = (char)i;
	all[255] = 0;
	const char *const words[] = {"explain", "", "k: v", all, "a\\b", "\"", "json"};
	for (size_t i = 0; i < 7; i++)
		assert_true(words_append(line, sizeof(line), words[i]));
	assert_null(strchr(line, '\n'));
	assert_null(strchr(line, '\r'));
	struct words w;
	assert_null(words_split(line, &w));
	assert_int_equal(w.n, 7);
	for (size_t i = 0; i < 7; i++)
		assert_string_equal(w.list[i], words[i]);
}

static void a_word_without_room_leaves_the_line_as_it_was(void **state)
{
	char line[8] = "";
	assert_false(words_append(line, sizeof(line), "12345678"));
	assert_string_equal(line, "");
	assert_true(words_append(line, sizeof(line), "1234567"));
	assert_false(words_append(line, sizeof(line), ""));
	assert_string_equal(line, "1234567");
	strcpy(line, "ab");
	assert_false(words_append(line, sizeof(line), "c d"));
	assert_string_equal(line, "ab");
	assert_true(words_append(line, sizeof(line), " d"));
	assert_string_equal(line, "ab \" d\"");
}

RUN_SUITE("base/words", cmocka_unit_test(blanks_part_words_and_quotes_keep_them),
	cmocka_unit_test(what_is_no_word_is_refused),
	cmocka_unit_test(every_byte_survives_the_way_through_a_line),
	cmocka_unit_test(a_word_without_room_leaves_the_line_as_it_was))
