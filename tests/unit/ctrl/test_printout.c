// SPDX-License-Identifier: Apache-2.0
#include "ctrl/base/printout.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

static void a_printout_is_whole_and_its_length_known(void **state)
{
	struct printout p;
	FILE *to = printout_begin(&p);
	assert_non_null(to);
	for (int i = 0; i < 10000; i++)
		fprintf(to, "%04d", i);
	fputc('\0', to);
	char *text = printout_end(&p);
	assert_non_null(text);
	assert_int_equal(strlen(text), 40000);
	assert_int_equal(p.len, 40001);
	assert_memory_equal(text + 40000 - 4, "9999", 5);
	free(text);
}

static void a_printout_of_nothing_is_an_empty_text(void **state)
{
	struct printout p;
	assert_non_null(printout_begin(&p));
	char *text = printout_end(&p);
	assert_string_equal(text, "");
	free(text);
}

RUN_SUITE("printout", cmocka_unit_test(a_printout_is_whole_and_its_length_known),
	cmocka_unit_test(a_printout_of_nothing_is_an_empty_text))
