// SPDX-License-Identifier: Apache-2.0
// Names of resources: canonical form, authority, and what is refused (FE-*).
#include "ctrl/xds/bootstrap/name.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define URL "type.googleapis.com/a.b.Thing"
#define T "a.b.Thing"

struct good {
	const char *text, *canonical;
	const char *authority; // NULL = old-style
};

static void check_good(const struct good *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct xds_name name;
		struct lb_err err = {""};
		if (xds_name_parse(rows[i].text, URL, &name, &err))
			fail_msg("%s: %s", rows[i].text, err.text);
		if (strcmp(name.text, rows[i].canonical) != 0)
			fail_msg("%s became %s", rows[i].text, name.text);
		if (rows[i].authority)
			assert_string_equal(name.authority, rows[i].authority);
		else
			assert_null(name.authority);
		xds_name_fini(&name);
	}
}
#define CHECK_GOOD(...)                                                                            \
	static const struct good rows[] = {__VA_ARGS__};                                           \
	check_good(rows, sizeof(rows) / sizeof(rows[0]))

struct bad {
	const char *text, *why;
};

static void check_bad(const struct bad *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct xds_name name = {NULL, NULL};
		struct lb_err err = {""};
		int rc = xds_name_parse(rows[i].text, URL, &name, &err);
		if (rc != -EINVAL || name.text || strcmp(err.text, rows[i].why) != 0)
			fail_msg("%s: %d \"%s\"", rows[i].text, rc, err.text);
	}
}
#define CHECK_BAD(...)                                                                             \
	static const struct bad rows[] = {__VA_ARGS__};                                            \
	check_bad(rows, sizeof(rows) / sizeof(rows[0]))

// clang-format off
static void fe_01_names_of_other_schemes_are_opaque(void **state)
{
	CHECK_GOOD(
		{"web", "web", NULL},
		{"a b/%zz?y=2&x=1#f", "a b/%zz?y=2&x=1#f", NULL},
		{"xdstp", "xdstp", NULL},
		{"xdstp/:a", "xdstp/:a", NULL},
		{"XDSTP://auth/" T "/x", "XDSTP://auth/" T "/x", NULL},
		{" xdstp://auth/" T "/x", " xdstp://auth/" T "/x", NULL},
		{"xds://auth/x", "xds://auth/x", NULL},
		{"https://auth/x", "https://auth/x", NULL},
		{"outbound|80||a.default.svc", "outbound|80||a.default.svc", NULL},
		{"\xc3\xa4", "\xc3\xa4", NULL},
		{"/", "/", NULL},
		{"**", "**", NULL});
}

static void fe_01_names_have_an_authority_a_type_and_an_id(void **state)
{
	CHECK_GOOD(
		{"xdstp://auth/" T "/x", "xdstp://auth/" T "/x", "auth"},
		{"xdstp://auth/" T "/x/y/z", "xdstp://auth/" T "/x/y/z", "auth"},
		{"xdstp://auth/" T "/x/", "xdstp://auth/" T "/x/", "auth"},
		{"xdstp://auth/" T "//", "xdstp://auth/" T "//", "auth"},
		{"xdstp://auth/" T "/../x", "xdstp://auth/" T "/../x", "auth"},
		{"xdstp://auth/" T "/:@!$&'()*+,;=-._~", "xdstp://auth/" T "/:@!$&'()*+,;=-._~",
			"auth"},
		{"xdstp://auth/" T "/*x", "xdstp://auth/" T "/*x", "auth"},
		{"xdstp://auth/" T "/x*", "xdstp://auth/" T "/x*", "auth"},
		{"xdstp://a.example:18000/" T "/x", "xdstp://a.example:18000/" T "/x",
			"a.example:18000"},
		{"xdstp://[::1]:80/" T "/x", "xdstp://[::1]:80/" T "/x", "[::1]:80"},
		{"xdstp://u@h/" T "/x", "xdstp://u@h/" T "/x", "u@h"},
		{"xdstp://AUTH/" T "/x", "xdstp://AUTH/" T "/x", "AUTH"});
}

static void fe_04_an_empty_authority_is_one_too(void **state)
{
	CHECK_GOOD(
		{"xdstp:///" T "/x", "xdstp:///" T "/x", ""},
		{"xdstp:///" T "/x?k=v", "xdstp:///" T "/x?k=v", ""});
}

static void fe_03_context_parameters_are_sorted_by_key(void **state)
{
	CHECK_GOOD(
		{"xdstp://a/" T "/x?k=v", "xdstp://a/" T "/x?k=v", "a"},
		{"xdstp://a/" T "/x?b=2&a=1", "xdstp://a/" T "/x?a=1&b=2", "a"},
		{"xdstp://a/" T "/x?a=1&b=2", "xdstp://a/" T "/x?a=1&b=2", "a"},
		{"xdstp://a/" T "/x?c=&a=3&b=2", "xdstp://a/" T "/x?a=3&b=2&c=", "a"},
		{"xdstp://a/" T "/x?ab=1&a=2&abc=3&b=4",
			"xdstp://a/" T "/x?a=2&ab=1&abc=3&b=4", "a"},
		{"xdstp://a/" T "/x?B=1&a=2", "xdstp://a/" T "/x?B=1&a=2", "a"},
		{"xdstp://a/" T "/x?k=1&k=2", "xdstp://a/" T "/x?k=2", "a"},
		{"xdstp://a/" T "/x?k=2&j=0&k=1&k=3", "xdstp://a/" T "/x?j=0&k=3", "a"},
		{"xdstp://a/" T "/x?k", "xdstp://a/" T "/x?k=", "a"},
		{"xdstp://a/" T "/x?b&a&c", "xdstp://a/" T "/x?a=&b=&c=", "a"},
		{"xdstp://a/" T "/x?k=a=b", "xdstp://a/" T "/x?k=a=b", "a"},
		{"xdstp://a/" T "/x?k=a/b?c", "xdstp://a/" T "/x?k=a/b?c", "a"},
		{"xdstp://a/" T "/x?k==", "xdstp://a/" T "/x?k==", "a"},
		{"xdstp://a/" T "/x?", "xdstp://a/" T "/x", "a"},
		{"xdstp://a/" T "/x?&&", "xdstp://a/" T "/x", "a"},
		{"xdstp://a/" T "/x?&b=1&&a=2&", "xdstp://a/" T "/x?a=2&b=1", "a"});
}

static void fe_03_percent_encoding_has_one_form(void **state)
{
	CHECK_GOOD(
		{"xdstp://a/" T "/%41%7a%2D", "xdstp://a/" T "/Az-", "a"},
		{"xdstp://a/" T "/%2f%3f", "xdstp://a/" T "/%2F%3F", "a"}, // no slash, no query
		{"xdstp://a/" T "/we%20b", "xdstp://a/" T "/we%20b", "a"},
		{"xdstp://a/" T "/%00", "xdstp://a/" T "/%00", "a"},
		{"xdstp://a/" T "/%25%32%35", "xdstp://a/" T "/%2525", "a"}, // decoded once
		{"xdstp://a/" T "/%c3%a4", "xdstp://a/" T "/%C3%A4", "a"},
		{"xdstp://a/" T "/x?%62=1&%61=%7e", "xdstp://a/" T "/x?a=~&b=1", "a"},
		{"xdstp://a/" T "/x?k%3d=1%26", "xdstp://a/" T "/x?k%3D=1%26", "a"},
		{"xdstp://a/" T "/x?%6b=1&k=2", "xdstp://a/" T "/x?k=2", "a"},
		{"xdstp://%61%2fb/" T "/x", "xdstp://a%2Fb/" T "/x", "a/b"});
}

static void fe_10_fragments_are_no_part_of_what_is_asked_for(void **state)
{
	CHECK_GOOD(
		{"xdstp://a/" T "/x#", "xdstp://a/" T "/x", "a"},
		{"xdstp://a/" T "/x#entry=y", "xdstp://a/" T "/x", "a"},
		{"xdstp://a/" T "/x?k=v#alt=xdstp://b/T/y,entry=z", "xdstp://a/" T "/x?k=v", "a"},
		{"xdstp://a/" T "/x#?k=v", "xdstp://a/" T "/x", "a"});
}

static void fe_01_names_that_lack_a_part_are_refused(void **state)
{
	CHECK_BAD(
		{"", "is empty"},
		{"xdstp:", "must start with xdstp://"},
		{"xdstp:/", "must start with xdstp://"},
		{"xdstp:web", "must start with xdstp://"},
		{"xdstp:/" T "/x", "must start with xdstp://"},
		{"xdstp://", "has no resource type"},
		{"xdstp:///", "has no resource type"},
		{"xdstp://a", "has no resource type"},
		{"xdstp://a/", "has no resource type"},
		{"xdstp://a//x", "has no resource type"},
		{"xdstp://a?k=v", "has no resource type"},
		{"xdstp://a#f", "has no resource type"},
		{"xdstp://a/?k=v", "has no resource type"},
		{"xdstp://a/" T, "has no id after the resource type"},
		{"xdstp://a/" T "/", "has no id after the resource type"},
		{"xdstp://a/" T "?k=v", "has no id after the resource type"},
		{"xdstp://a/" T "/?k=v", "has no id after the resource type"},
		{"xdstp://a/" T "/#f", "has no id after the resource type"});
}

static void fe_02_names_of_other_types_are_refused(void **state)
{
	CHECK_BAD(
		{"xdstp://a/x", "is the name of a \"x\", not of a \"a.b.Thing\""},
		{"xdstp://a/b.Thing/x", "is the name of a \"b.Thing\", not of a \"a.b.Thing\""},
		{"xdstp://a/a.b.Thin/x", "is the name of a \"a.b.Thin\", not of a \"a.b.Thing\""},
		{"xdstp://a/a.b.Things/x",
			"is the name of a \"a.b.Things\", not of a \"a.b.Thing\""},
		{"xdstp://a/a.b.thing/x",
			"is the name of a \"a.b.thing\", not of a \"a.b.Thing\""},
		{"xdstp://a/" URL "/x",
			"is the name of a \"type.googleapis.com\", not of a \"a.b.Thing\""});
}

static void fe_01_what_no_uri_holds_is_refused(void **state)
{
	static const char HEX[] = "\"%\" must be followed by two hexadecimal digits";
	CHECK_BAD(
		{"xdstp://a/" T "/x y", "byte 0x20 must be percent-encoded"},
		{"xdstp://a/" T "/x\ty", "byte 0x09 must be percent-encoded"},
		{"xdstp://a/" T "/\"x\"", "byte 0x22 must be percent-encoded"},
		{"xdstp://a/" T "/a|b", "byte 0x7c must be percent-encoded"},
		{"xdstp://a/" T "/[x]", "byte 0x5b must be percent-encoded"},
		{"xdstp://a/" T "/\xc3\xa4", "byte 0xc3 must be percent-encoded"},
		{"xdstp://a/" T "/x?k=\x7f", "byte 0x7f must be percent-encoded"},
		{"xdstp://a/" T "/x?a b=1", "byte 0x20 must be percent-encoded"},
		{"xdstp://a b/" T "/x", "byte 0x20 must be percent-encoded"},
		{"xdstp://a/" T "/%", HEX},
		{"xdstp://a/" T "/%4", HEX},
		{"xdstp://a/" T "/%4?k=v", HEX},
		{"xdstp://a/" T "/%zz", HEX},
		{"xdstp://a/" T "/x?k=%", HEX},
		{"xdstp://a/" T "/x?%1&=1", HEX},
		{"xdstp://%4/" T "/x", HEX},
		{"xdstp://a%00b/" T "/x", "its authority holds a NUL"},
		{"xdstp://a/" T "/x?=v", "a context parameter has no key"},
		{"xdstp://a/" T "/x?a=1&=2", "a context parameter has no key"},
		{"xdstp://a/" T "/x?=", "a context parameter has no key"});
}

static void fe_10_globs_are_refused(void **state)
{
	CHECK_BAD(
		{"xdstp://a/" T "/*", "is a glob collection, which is not supported"},
		{"xdstp://a/" T "/x/*", "is a glob collection, which is not supported"},
		{"xdstp://a/" T "/x/*?k=v", "is a glob collection, which is not supported"});
}

static void sw_09_a_star_is_no_name(void **state)
{
	CHECK_BAD({"*", "stands for all resources"});
}
// clang-format on

static void every_allocation_may_fail(void **state)
{
	struct xds_name name;
	struct lb_err err = {""};
	int rc;
	ALLOC_FAIL_EACH(rc = xds_name_parse("xdstp://a/" T "/x?b=2&a=1", URL, &name, &err),
		rc == -ENOMEM, xds_name_fini(&name));
	ALLOC_FAIL_EACH(
		rc = xds_name_parse("x", URL, &name, &err), rc == -ENOMEM, xds_name_fini(&name));
}

RUN_SUITE("xds/name", cmocka_unit_test(fe_01_names_of_other_schemes_are_opaque),
	cmocka_unit_test(fe_01_names_have_an_authority_a_type_and_an_id),
	cmocka_unit_test(fe_04_an_empty_authority_is_one_too),
	cmocka_unit_test(fe_03_context_parameters_are_sorted_by_key),
	cmocka_unit_test(fe_03_percent_encoding_has_one_form),
	cmocka_unit_test(fe_10_fragments_are_no_part_of_what_is_asked_for),
	cmocka_unit_test(fe_01_names_that_lack_a_part_are_refused),
	cmocka_unit_test(fe_02_names_of_other_types_are_refused),
	cmocka_unit_test(fe_01_what_no_uri_holds_is_refused),
	cmocka_unit_test(fe_10_globs_are_refused), cmocka_unit_test(sw_09_a_star_is_no_name),
	cmocka_unit_test(every_allocation_may_fail))
