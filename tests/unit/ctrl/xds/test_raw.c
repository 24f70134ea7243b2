// SPDX-License-Identifier: Apache-2.0
// Resources that are only passed on: their names, and that nothing else of them matters.
#include "ctrl/xds/raw.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

// Decodes; the name it tells, "" = none.
static void expect_name(const char *bytes, size_t len, const char *name)
{
	const struct xds_type type = xds_raw_type("a/b.C", "C", false);
	struct xds_decoded d = {0};
	type.decode((const uint8_t *)bytes, len, &d);
	assert_non_null(d.res);
	assert_int_equal(d.res->len, len);
	assert_true(len == 0 || memcmp(d.res->bytes, bytes, len) == 0);
	assert_string_equal(d.name ? d.name : "", name);
	free(d.name);
	xds_res_put(d.res);
}

static void name_is_the_field_with_number_one(void **state)
{
	expect_name("\x0a\x03red", 5, "red");
	expect_name("\x10\x07\x0a\x03red\x1a\x01x", 10, "red");
	expect_name("\x0a\x03red\x0a\x04"
		    "blue",
		11, "blue");
	expect_name("\x0a\x02\xc3\xa4", 4, "\xc3\xa4");
}

static void what_is_no_name_is_none(void **state)
{
	expect_name("", 0, "");
	expect_name("\x0a\x00", 2, "");
	expect_name("\x0a\x02\xc3\x28", 4, ""); // not UTF-8
	expect_name("\x0a\x03r\0d", 5, "");
	expect_name("\x08\x03", 2, ""); // a number
	expect_name("\x0a\x09red", 5, ""); // cut off
	expect_name("\x0a\x03red\xff", 6, ""); // followed by what is no field
}

RUN_SUITE("xds/raw", cmocka_unit_test(name_is_the_field_with_number_one),
	cmocka_unit_test(what_is_no_name_is_none))
