// SPDX-License-Identifier: Apache-2.0
#include "lb/route/header_value.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/routes.h"

#include <stdlib.h>

// One route with one matcher for everything.
struct one {
	struct routes routes;
	struct lb_header_match_conf *h;
};

static void one_init(
	struct one *o, const char *name, enum lb_header_match_kind kind, const char *text)
{
	*o = (struct one){0};
	routes_add(&o->routes, LB_PATH_PREFIX, "");
	o->h = routes_add_header(&o->routes, name, kind, text);
}

static struct lb_req request(bool is_grpc, const struct field *fields, size_t n)
{
	return (struct lb_req){.authority = STR("example.com:80"),
		.path = STR("/p?q"),
		.method = STR("GET"),
		.scheme = STR("https"),
		.is_grpc = is_grpc,
		.fields = fields,
		.n_fields = n};
}

static bool sees(struct one *o, bool is_grpc, const struct field *fields, size_t n)
{
	const struct lb_req req = request(is_grpc, fields, n);
	return routes_match(&o->routes, &req) == 0;
}

// A plain request with one header x of this value.
static bool takes(struct one *o, const char *value)
{
	const struct field f = {.name = STR("x"), .value = str_from(value)};
	return sees(o, false, &f, 1);
}

static bool takes_absent(struct one *o)
{
	return sees(o, false, NULL, 0);
}

// A28-H01, SM-01
static void exact_compares_bytes_and_needs_the_header(void **state)
{
	(void)state;
	struct one o;
	one_init(&o, "x", LB_HEADER_EXACT, "Abc");
	assert_true(takes(&o, "Abc"));
	assert_false(takes(&o, "abc"));
	assert_false(takes(&o, "Abcd"));
	assert_false(takes(&o, "Ab"));
	one_init(&o, "x", LB_HEADER_EXACT, "");
	assert_true(takes(&o, ""));
	assert_false(takes(&o, "a"));
	assert_false(takes_absent(&o));
}

// A28-H02, SM-01
static void prefix_suffix_and_contains_test_ends_and_inside(void **state)
{
	(void)state;
	struct one o;
	one_init(&o, "x", LB_HEADER_PREFIX, "ab");
	assert_true(takes(&o, "abc"));
	assert_true(takes(&o, "ab"));
	assert_false(takes(&o, "a"));
	assert_false(takes(&o, "cab"));
	one_init(&o, "x", LB_HEADER_SUFFIX, "ab");
	assert_true(takes(&o, "cab"));
	assert_true(takes(&o, "ab"));
	assert_false(takes(&o, "abc"));
	assert_false(takes(&o, ""));
	one_init(&o, "x", LB_HEADER_CONTAINS, "ab");
	assert_true(takes(&o, "xaby"));
	assert_true(takes(&o, "aab"));
	assert_false(takes(&o, "a-b"));
	assert_false(takes(&o, ""));
}

// A28-H03, SM-01
static void regex_has_to_cover_the_value(void **state)
{
	(void)state;
	struct one o;
	one_init(&o, "x", LB_HEADER_REGEX, "a|bc+");
	assert_true(takes(&o, "a"));
	assert_true(takes(&o, "bccc"));
	assert_false(takes(&o, "ab"));
	assert_false(takes(&o, "xa"));
	routes_fini(&o.routes);
}

// A28-H04
static void range_is_half_open_over_whole_integers(void **state)
{
	(void)state;
	struct one o;
	one_init(&o, "x", LB_HEADER_RANGE, "");
	o.h->start = -3;
	o.h->end = 10;
	static const char *const in[] = {"-3", "0", "-0", "+9", "9", "0000000000000000000000009"};
	static const char *const out[] = {"-4", "10", "10.5", "1x", "", "+", "-", "x1", "1 ", "--1",
		"9223372036854775808", "18446744073709551617", "-18446744073709551615"};
	for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++)
		assert_true(takes(&o, in[i]));
	for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++)
		assert_false(takes(&o, out[i]));
	assert_false(takes_absent(&o));
	o.h->start = INT64_MIN;
	o.h->end = INT64_MAX;
	assert_true(takes(&o, "-9223372036854775808"));
	assert_true(takes(&o, "9223372036854775806"));
	assert_false(takes(&o, "9223372036854775807"));
	assert_false(takes(&o, "-9223372036854775809"));
	o.h->end = o.h->start; // matches nothing
	assert_false(takes(&o, "-9223372036854775808"));
}

// A28-H05
static void present_is_true_for_an_empty_header_too(void **state)
{
	(void)state;
	struct one o;
	one_init(&o, "x", LB_HEADER_PRESENT, "");
	o.h->present = true;
	assert_true(takes(&o, ""));
	assert_true(takes(&o, "a"));
	assert_false(takes_absent(&o));
	o.h->present = false;
	assert_false(takes(&o, ""));
	assert_true(takes_absent(&o));
}

// A28-H06
static void absent_header_fails_every_other_matcher_even_inverted(void **state)
{
	(void)state;
	for (int kind = LB_HEADER_EXACT; kind < LB_HEADER_PRESENT; kind++)
		for (int invert = 0; invert < 2; invert++) {
			struct one o;
			one_init(&o, "x", (enum lb_header_match_kind)kind, "");
			o.h->invert = invert;
			o.h->end = 1;
			assert_false(takes_absent(&o));
			routes_fini(&o.routes);
		}
}

// A28-H07
static void invert_flips_what_is_present(void **state)
{
	(void)state;
	struct one o;
	one_init(&o, "x", LB_HEADER_RANGE, "");
	o.h->end = 10;
	o.h->invert = true;
	assert_true(takes(&o, "abc"));
	assert_true(takes(&o, "10"));
	assert_false(takes(&o, "9"));
	one_init(&o, "x", LB_HEADER_PRESENT, "");
	o.h->present = o.h->invert = true;
	assert_true(takes_absent(&o));
	assert_false(takes(&o, "a"));
	one_init(&o, "x", LB_HEADER_REGEX, "a.");
	o.h->invert = true;
	assert_false(takes(&o, "ab"));
	assert_true(takes(&o, "abc"));
	routes_fini(&o.routes);
}

// A28-H08
static void repeated_header_is_joined_in_order(void **state)
{
	(void)state;
	const struct field f[] = {{.name = STR("x"), .value = STR("a")},
		{.name = STR("y"), .value = STR("1")}, {.name = STR("x"), .value = STR("")},
		{.name = STR("y"), .value = STR("2")}, {.name = STR("x"), .value = STR("b")}};
	struct one o;
	one_init(&o, "x", LB_HEADER_EXACT, "a,,b");
	assert_true(sees(&o, false, f, 5));
	assert_true(sees(&o, true, f, 5));
	one_init(&o, "x", LB_HEADER_EXACT, "a");
	assert_false(sees(&o, false, f, 5));
	assert_true(sees(&o, false, f, 2));
	struct routes both = {0};
	routes_add(&both, LB_PATH_PREFIX, "");
	routes_add_header(&both, "y", LB_HEADER_EXACT, "1,2");
	routes_add_header(&both, "x", LB_HEADER_SUFFIX, ",b");
	const struct lb_req req = {.path = STR("/"), .fields = f, .n_fields = 5};
	assert_int_equal(routes_match(&both, &req), 0);
}

// A28-H09
static void split_cookies_are_joined_as_cookies(void **state)
{
	(void)state;
	const struct field f[] = {{.name = STR("cookie"), .value = STR("a=1")},
		{.name = STR("cookie"), .value = STR("b=2; c=3")}};
	struct one o;
	one_init(&o, "cookie", LB_HEADER_EXACT, "a=1; b=2; c=3");
	assert_true(sees(&o, false, f, 2));
}

// A28-H10
static void binary_headers_count_as_absent(void **state)
{
	(void)state;
	const struct field f = {.name = STR("x-bin"), .value = STR("AQ")};
	struct one o;
	one_init(&o, "x-bin", LB_HEADER_EXACT, "AQ");
	assert_false(sees(&o, true, &f, 1));
	one_init(&o, "x-bin", LB_HEADER_PRESENT, "");
	assert_true(sees(&o, true, &f, 1));
	o.h->present = o.h->invert = true;
	assert_true(sees(&o, true, &f, 1));
	o.routes.grpc_sees_all = true;
	assert_true(sees(&o, true, &f, 1));
}

// A28-H11
static void content_type_is_the_real_one(void **state)
{
	(void)state;
	const struct field f = {
		.name = STR("content-type"), .value = STR("application/grpc+proto")};
	struct one o;
	one_init(&o, "content-type", LB_HEADER_EXACT, "application/grpc");
	assert_false(sees(&o, true, &f, 1));
	one_init(&o, "content-type", LB_HEADER_EXACT, "application/grpc+proto");
	assert_true(sees(&o, true, &f, 1));
	assert_false(sees(&o, true, NULL, 0));
}

// A28-H12
static void grpc_requests_show_metadata_and_content_type_alone(void **state)
{
	(void)state;
	const struct field f[] = {{.name = STR("user-agent"), .value = STR("v")},
		{.name = STR("grpc-timeout"), .value = STR("1S")},
		{.name = STR("grpc-encoding"), .value = STR("gzip")},
		{.name = STR("te"), .value = STR("trailers")},
		{.name = STR("x"), .value = STR("v")}};
	static const char *const transport[] = {"user-agent", "grpc-timeout", "grpc-encoding",
		":method", ":path", ":authority", ":scheme", "host"};
	for (size_t i = 0; i < sizeof(transport) / sizeof(transport[0]); i++) {
		struct one o;
		one_init(&o, transport[i], LB_HEADER_PRESENT, "");
		o.h->present = true;
		assert_false(sees(&o, true, f, 5));
		assert_true(sees(&o, false, f, 5));
		o.routes.grpc_sees_all = true; // the switch
		assert_true(sees(&o, true, f, 5));
	}
	struct one o;
	one_init(&o, "x", LB_HEADER_EXACT, "v");
	assert_true(sees(&o, true, f, 5));
	one_init(&o, "te", LB_HEADER_PRESENT, "");
	o.h->present = true;
	o.routes.grpc_sees_all = true;
	assert_false(sees(&o, true, f, 5));
	assert_false(sees(&o, false, f, 5));
}

// A28-H12: for plain HTTP; A28-H15: as received, query included.
static void pseudo_headers_are_what_was_received(void **state)
{
	(void)state;
	static const struct {
		const char *name, *value;
	} rows[] = {{":method", "GET"}, {":scheme", "https"}, {":path", "/p?q"},
		{":authority", "example.com:80"}, {"host", "example.com:80"}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct one o;
		one_init(&o, rows[i].name, LB_HEADER_EXACT, rows[i].value);
		assert_true(takes_absent(&o));
	}
	struct one o;
	one_init(&o, ":authority", LB_HEADER_PRESENT, "");
	const struct lb_req without = {.path = STR("/")};
	assert_int_equal(routes_match(&o.routes, &without), 0); // an empty one is absent
}

// SM-02
static void ignore_case_folds_ascii_on_both_sides_but_not_in_regexes(void **state)
{
	(void)state;
	struct one o;
	static const enum lb_header_match_kind kinds[] = {
		LB_HEADER_EXACT, LB_HEADER_PREFIX, LB_HEADER_SUFFIX, LB_HEADER_CONTAINS};
	for (size_t i = 0; i < 4; i++) {
		one_init(&o, "x", kinds[i], "aBz\xc3\x84");
		assert_false(takes(&o, "AbZ\xc3\x84"));
		o.h->ignore_case = true;
		assert_true(takes(&o, "AbZ\xc3\x84"));
		assert_false(takes(&o, "AbZ\xc3\xa4"));
		assert_int_equal(takes(&o, "?ABZ\xc3\x84"), i >= 2);
		assert_int_equal(takes(&o, "ABZ\xc3\x84?"), i == 1 || i == 3);
	}
	one_init(&o, "x", LB_HEADER_REGEX, "ab");
	o.h->ignore_case = true;
	assert_false(takes(&o, "AB"));
	routes_fini(&o.routes);
}

// SM-02: the search goes back in the text, never in the value.
static void contains_without_case_finds_what_overlaps(void **state)
{
	(void)state;
	struct one o;
	one_init(&o, "x", LB_HEADER_CONTAINS, "aabAAc");
	o.h->ignore_case = true;
	assert_true(takes(&o, "AABaabaac"));
	assert_true(takes(&o, "aaabaac"));
	assert_false(takes(&o, "aabaabaa"));
	assert_false(takes(&o, "aabac"));
}

// A28-R02
static void all_matchers_of_a_route_must_hold(void **state)
{
	(void)state;
	struct one o;
	one_init(&o, "x", LB_HEADER_PREFIX, "a");
	routes_add_header(&o.routes, "x", LB_HEADER_SUFFIX, "z");
	routes_add_header(&o.routes, "x", LB_HEADER_CONTAINS, "m");
	assert_true(takes(&o, "amz"));
	assert_false(takes(&o, "az"));
	assert_false(takes(&o, "am"));
	assert_false(takes(&o, "mz"));
}

// Values that the scratch has no room for are cut: memory is never overrun.
static void joined_values_stay_within_the_scratch(void **state)
{
	(void)state;
	static char long_value[3000];
	memset(long_value, 'v', sizeof(long_value));
	struct field f[9];
	for (int i = 0; i < 9; i++)
		f[i] = (struct field){
			.name = i % 2 ? STR("x") : STR("y"), .value = {long_value, 3000}};
	struct one o;
	one_init(&o, "x", LB_HEADER_CONTAINS, "v,v");
	routes_add_header(&o.routes, "y", LB_HEADER_PREFIX, "v");
	assert_false(sees(&o, false, f, 9)); // x, asked for first, took all the room
	struct lb_route_table *table = routes_compile(&o.routes);
	const struct lb_req req = {.path = STR("/"), .fields = f, .n_fields = 9};
	struct lb_route_scratch *scratch = lb_route_scratch_new(0, sizeof(f) + 9 * 3000);
	struct rand r;
	rand_init(&r, 1);
	struct lb_route_ctx ctx = {.rand = &r, .scratch = scratch};
	assert_int_equal(lb_route_find(table, &req, &ctx).kind, LB_ROUTE_CLUSTER);
	lb_route_scratch_free(scratch);
	lb_route_table_put(table);
}

static void a_regex_without_its_set_is_refused(void **state)
{
	(void)state;
	struct one o;
	one_init(&o, "x", LB_HEADER_EXACT, "a");
	o.h->kind = LB_HEADER_REGEX;
	struct lb_err err = {0};
	struct lb_vhost_conf vhost = routes_vhost(&o.routes);
	assert_null(lb_vhost_new(&vhost, &err));
	assert_string_equal(err.text, "routes[0]: headers[0]: the regex is not compiled");
}

// What explaining and hashing find is what a matcher compares (A28-H08 to A28-H12).
static void finding_a_value_agrees_with_matching_it(void **state)
{
	(void)state;
	static const struct field fields[] = {
		{.name = {"x", 1}, .value = {"a", 1}},
		{.name = {"cookie", 6}, .value = {"b=1", 3}},
		{.name = {"x", 1}, .value = {NULL, 0}},
		{.name = {"cookie", 6}, .value = {"c=2", 3}},
		{.name = {"x", 1}, .value = {"b", 1}},
		{.name = {"y-bin", 5}, .value = {"YQ", 2}},
		{.name = {"te", 2}, .value = {"trailers", 8}},
		{.name = {"user-agent", 10}, .value = {"u", 1}},
		{.name = {"grpc-timeout", 12}, .value = {"1S", 2}},
		{.name = {"content-type", 12}, .value = {"application/grpc", 16}},
		{.name = {"empty", 5}, .value = {NULL, 0}},
	};
	static const struct {
		const char *name, *plain, *grpc; // NULL = absent
	} rows[] = {
		{"x", "a,,b", "a,,b"},
		{"cookie", "b=1; c=2", "b=1; c=2"},
		{"y-bin", NULL, NULL},
		{"te", NULL, NULL},
		{"user-agent", "u", NULL},
		{"grpc-timeout", "1S", NULL},
		{"content-type", "application/grpc", "application/grpc"},
		{"empty", "", ""},
		{"nobody", NULL, NULL},
		{":method", "GET", NULL},
		{":scheme", "https", NULL},
		{":authority", "example.com:80", NULL},
		{"host", "example.com:80", NULL},
		{":path", "/p?q", NULL},
	};
	const size_t n = sizeof(fields) / sizeof(fields[0]);
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		bool is_grpc = i % 2;
		const char *want = is_grpc ? rows[i / 2].grpc : rows[i / 2].plain;
		struct lb_req req = request(is_grpc, fields, n);
		struct str value = {0};
		char buf[32];
		bool found = lb_header_find(
			&req, str_from(rows[i / 2].name), is_grpc, buf, sizeof(buf), &value);
		assert_int_equal(found, want != NULL);
		assert_true(!want || str_eq(value, str_from(want)));
		struct one o;
		one_init(&o, rows[i / 2].name, LB_HEADER_EXACT, want ? want : "");
		assert_int_equal(sees(&o, is_grpc, fields, n), want != NULL);
	}
}

RUN_SUITE("lb/header_match", cmocka_unit_test(exact_compares_bytes_and_needs_the_header),
	cmocka_unit_test(prefix_suffix_and_contains_test_ends_and_inside),
	cmocka_unit_test(regex_has_to_cover_the_value),
	cmocka_unit_test(range_is_half_open_over_whole_integers),
	cmocka_unit_test(present_is_true_for_an_empty_header_too),
	cmocka_unit_test(absent_header_fails_every_other_matcher_even_inverted),
	cmocka_unit_test(invert_flips_what_is_present),
	cmocka_unit_test(repeated_header_is_joined_in_order),
	cmocka_unit_test(split_cookies_are_joined_as_cookies),
	cmocka_unit_test(binary_headers_count_as_absent),
	cmocka_unit_test(content_type_is_the_real_one),
	cmocka_unit_test(grpc_requests_show_metadata_and_content_type_alone),
	cmocka_unit_test(pseudo_headers_are_what_was_received),
	cmocka_unit_test(finding_a_value_agrees_with_matching_it),
	cmocka_unit_test(ignore_case_folds_ascii_on_both_sides_but_not_in_regexes),
	cmocka_unit_test(contains_without_case_finds_what_overlaps),
	cmocka_unit_test(all_matchers_of_a_route_must_hold),
	cmocka_unit_test(joined_values_stay_within_the_scratch),
	cmocka_unit_test(a_regex_without_its_set_is_refused))
