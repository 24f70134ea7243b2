// SPDX-License-Identifier: Apache-2.0
// Which parts of an answer get a colour.
#include "tests/support/check.h"
#include "tools/shuntctl/paint.h"

#include <stdlib.h>
#include <string.h>

#define BOLD "\033[1m"
#define RED "\033[31m"
#define GREEN "\033[32m"
#define PLAIN "\033[0m"

static void check_painted(const char *const lines[], const char *expected)
{
	struct paint paint = {.after_row = false};
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	for (; *lines; lines++)
		paint_line(&paint, out, *lines);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
}

static void ops_127_names_of_columns_are_bold_and_states_have_colours(void **state)
{
	check_painted((const char *const[]){"cluster  state  error\n", "blue     READY  refused\n",
			      "green    TRANSIENT_FAILURE  \n", NULL},
		BOLD "cluster  state  error" PLAIN "\n"
		     "blue     " GREEN "READY" PLAIN "  refused\n"
		     "green    " RED "TRANSIENT_FAILURE" PLAIN "  \n");
}

static void rows_that_look_like_names_are_rows(void **state)
{
	check_painted((const char *const[]){"name  state\n", "web  ready\n", NULL},
		BOLD "name  state" PLAIN "\nweb  " GREEN "ready" PLAIN "\n");
}

static void each_table_of_an_answer_has_names(void **state)
{
	check_painted((const char *const[]){"state: ready\n", "frontends:\n", "  name  state\n",
			      "  web   failing\n", NULL},
		"state: " GREEN "ready" PLAIN "\nfrontends:\n" BOLD "  name  state" PLAIN
		"\n  web   " RED "failing" PLAIN "\n");
}

static void words_inside_of_texts_stay_plain(void **state)
{
	check_painted((const char *const[]){"error: it is not READY yet\n", "READYs  UPs\n", "\n",
			      "no end", NULL},
		"error: it is not READY yet\nREADYs  UPs\n\nno end");
}

RUN_SUITE("shuntctl/paint",
	cmocka_unit_test(ops_127_names_of_columns_are_bold_and_states_have_colours),
	cmocka_unit_test(rows_that_look_like_names_are_rows),
	cmocka_unit_test(each_table_of_an_answer_has_names),
	cmocka_unit_test(words_inside_of_texts_stay_plain))
