// SPDX-License-Identifier: Apache-2.0
// Traces in fields, and who is traced.
#include "dataplane/h2/h2.h"
#include "dataplane/h2/hpack_tables.h"
#include "dataplane/proxy/trace.h"
#include "lb/base/rand.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

#define MAX_FIELDS 6
#define T "0af7651916cd43dd8448eb211c80319c"
#define S "b7ad6b7169203331"
#define HIGH UINT64_C(0x0af7651916cd43dd)
#define LOW UINT64_C(0x8448eb211c80319c)
#define SPAN UINT64_C(0xb7ad6b7169203331)
#define NONE                                                                                       \
	{                                                                                          \
		.word = PROXY_TRACE_UNSAID                                                         \
	}
#define TRACE(said) .high = HIGH, .low = LOW, .span = SPAN, .word = PROXY_TRACE_##said

struct row {
	const char *name;
	struct {
		const char *name, *value;
	} fields[MAX_FIELDS];
	struct proxy_trace_parent parent;
};

// What a client says of traces (OPS-160).
static const struct row rows[] = {
	{"nothing", {{"a", "1"}}, NONE},
	{"sampled", {{"traceparent", "00-" T "-" S "-01"}}, {TRACE(YES), .is_w3c = true}},
	{"not sampled", {{"traceparent", "00-" T "-" S "-00"}}, {TRACE(NO), .is_w3c = true}},
	{"other flags", {{"traceparent", "00-" T "-" S "-fe"}}, {TRACE(NO), .is_w3c = true}},
	{"a later version", {{"traceparent", "cc-" T "-" S "-01"}}, {TRACE(YES), .is_w3c = true}},
	{"a later one with more", {{"traceparent", "cc-" T "-" S "-01-what"}},
		{TRACE(YES), .is_w3c = true}},
	{"a later one with a wrong end", {{"traceparent", "cc-" T "-" S "-01.what"}}, NONE},
	{"version 0 with more", {{"traceparent", "00-" T "-" S "-01-what"}}, NONE},
	{"version ff", {{"traceparent", "ff-" T "-" S "-01"}}, NONE},
	{"capitals", {{"traceparent", "00-0AF7651916CD43DD8448EB211C80319C-" S "-01"}}, NONE},
	{"no trace", {{"traceparent", "00-00000000000000000000000000000000-" S "-01"}}, NONE},
	{"no span", {{"traceparent", "00-" T "-0000000000000000-01"}}, NONE},
	{"too short", {{"traceparent", "00-" T "-" S "-0"}}, NONE},
	{"wrong dashes", {{"traceparent", "00." T "-" S "-01"}}, NONE},
	{"empty", {{"traceparent", ""}}, NONE},
	{"two", {{"traceparent", "00-" T "-" S "-01"}, {"traceparent", "00-" T "-" S "-01"}}, NONE},
	{"b3", {{"b3", T "-" S "-1-" S}}, {TRACE(YES), .has_b3 = true}},
	{"b3 without parent", {{"b3", T "-" S "-0"}}, {TRACE(NO), .has_b3 = true}},
	{"b3 undecided", {{"b3", T "-" S}}, {TRACE(UNSAID), .has_b3 = true}},
	{"b3 to be debugged", {{"b3", T "-" S "-d"}}, {TRACE(YES), .has_b3 = true}},
	{"b3 denied", {{"b3", "0"}}, {.word = PROXY_TRACE_NO, .has_b3 = true}},
	{"b3 of 64 bits", {{"b3", S "-" S "-1"}},
		{.low = SPAN, .span = SPAN, .word = PROXY_TRACE_YES, .has_b3 = true}},
	{"b3 malformed", {{"b3", T "-" S "-2"}}, {.has_b3 = true}},
	{"b3 without span", {{"b3", T}}, {.has_b3 = true}},
	{"b3 in many", {{"x-b3-traceid", T}, {"x-b3-spanid", S}, {"x-b3-sampled", "1"}},
		{TRACE(YES), .has_b3_many = true}},
	{"b3 in many undecided", {{"x-b3-traceid", T}, {"x-b3-spanid", S}},
		{TRACE(UNSAID), .has_b3_many = true}},
	{"b3 in many to be debugged",
		{{"x-b3-traceid", T}, {"x-b3-spanid", S}, {"x-b3-flags", "1"}},
		{TRACE(YES), .has_b3_many = true}},
	{"b3 in many denied", {{"x-b3-sampled", "0"}},
		{.word = PROXY_TRACE_NO, .has_b3_many = true}},
	{"b3 in many without span", {{"x-b3-traceid", T}, {"x-b3-sampled", "1"}},
		{.has_b3_many = true}},
	{"traceparent before b3", {{"b3", S "-" S "-0"}, {"traceparent", "00-" T "-" S "-01"}},
		{TRACE(YES), .is_w3c = true, .has_b3 = true}},
	{"b3 where traceparent is malformed", {{"b3", T "-" S "-1"}, {"traceparent", "00"}},
		{TRACE(YES), .has_b3 = true}},
	{"asked for", {{"x-client-trace-id", "x"}}, {.is_asked = true}},
	{"forced", {{"x-envoy-force-trace", "1"}}, {.is_forced = true}},
};

static size_t fields_of(const struct row *r, bool numbered, struct field *ret)
{
	size_t n = 0;
	for (; n < MAX_FIELDS && r->fields[n].name; n++) {
		struct str name = str_from(r->fields[n].name);
		ret[n] = (struct field){.name = name,
			.value = str_from(r->fields[n].value),
			.name_id = numbered ? (uint8_t)hpack_name_of(name) : 0};
	}
	return n;
}

// As HTTP/2 gives them, with numbers, and HTTP/1.1, without.
static void ops_160_what_a_client_says_of_traces_is_read(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int numbered = 0; numbered < 2; numbered++) {
			const struct proxy_trace_parent *want = &rows[i].parent;
			struct field fields[MAX_FIELDS];
			struct proxy_trace_parent got;
			proxy_trace_read(fields, fields_of(&rows[i], numbered, fields), &got);
			if (got.high != want->high || got.low != want->low ||
				got.span != want->span || got.word != want->word ||
				got.is_w3c != want->is_w3c || got.has_b3 != want->has_b3 ||
				got.has_b3_many != want->has_b3_many ||
				got.is_asked != want->is_asked || got.is_forced != want->is_forced)
				fail_msg("%s", rows[i].name);
		}
}

static void expect(const struct field *f, const char *name, const char *value)
{
	if (!str_eq(f->name, str_from(name)) || !str_eq(f->value, str_from(value)))
		fail_msg("%.*s: %.*s instead of %s: %s", (int)f->name.len, f->name.p,
			(int)f->value.len, f->value.p, name, value);
}

static void ops_162_a_backend_is_told_in_the_forms_of_the_client(void **state)
{
	const struct lb_trace_ids ids = {.high = HIGH, .low = LOW, .span = 1};
	struct field f[PROXY_TRACE_FIELDS];
	char text[PROXY_TRACE_TEXT];
	assert_int_equal(proxy_trace_write(&ids, SPAN, false, false, f, text), 1);
	expect(&f[0], "traceparent", "00-" T "-" S "-01");
	assert_int_equal(f[0].name_id, HPACK_TRACEPARENT);
	assert_int_equal(proxy_trace_write(&ids, SPAN, true, true, f, text), PROXY_TRACE_FIELDS);
	expect(&f[0], "traceparent", "00-" T "-" S "-01");
	expect(&f[1], "b3", T "-" S "-1");
	expect(&f[2], "x-b3-traceid", T);
	expect(&f[3], "x-b3-spanid", S);
	expect(&f[4], "x-b3-sampled", "1");
	for (size_t i = 0; i < PROXY_TRACE_FIELDS; i++)
		assert_true(proxy_trace_is_replaced(&f[i], true));
	f[0] = (struct field){.name = STR("tracestate"), .name_id = HPACK_TRACESTATE};
	assert_false(proxy_trace_is_replaced(&f[0], true));
	assert_true(proxy_trace_is_replaced(&f[0], false));
	f[0] = (struct field){.name = STR("x-client-trace-id")};
	assert_false(proxy_trace_is_replaced(&f[0], false));
}

#define ALL LB_TRACE_ALL

// Which of many requests are traced: none, all, or some (OPS-161, OPS-163).
static void ops_161_who_began_the_trace_decides_then_the_client_then_chance(void **state)
{
	static const struct proxy_trace_parent plain = NONE, yes = {TRACE(YES)}, no = {TRACE(NO)},
					       asked = {.is_asked = true},
					       forced = {.is_forced = true}, open = {TRACE(UNSAID)};
	static const struct {
		const struct proxy_trace_parent *parent;
		uint64_t client, random, overall;
		uint32_t percent;
	} cases[] = {
		{&plain, ALL, 0, ALL, 0},
		{&plain, 0, ALL, ALL, 100},
		{&plain, 0, ALL / 4, ALL, 25},
		{&plain, 0, ALL, 0, 0},
		{&plain, 0, ALL / 2, ALL / 2, 25},
		{&yes, 0, 0, ALL, 100},
		{&yes, 0, 0, ALL / 2, 50},
		{&no, ALL, ALL, ALL, 0},
		{&open, 0, ALL / 4, ALL, 25},
		{&asked, ALL, 0, ALL, 100},
		{&asked, 0, 0, ALL, 0},
		{&asked, ALL / 2, 0, ALL, 50},
		{&forced, 0, 0, ALL, 100},
		{&forced, 0, 0, 0, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct lb_tracing t = {.on = true,
			.client = cases[i].client,
			.random = cases[i].random,
			.overall = cases[i].overall};
		struct rand rand;
		uint32_t n = 0;
		rand_init(&rand, 7);
		for (int j = 0; j < 10000; j++)
			n += proxy_trace_wants(&rand, &t, cases[i].parent);
		uint32_t want = cases[i].percent * 100;
		bool is_exact = want == 0 || want == 10000;
		if (is_exact ? n != want : n < want - 200 || n > want + 200)
			fail_msg("case %zu: %u of 10000, not %u", i, n, want);
	}
}

// A request's tags, and the longest that a listener may ask for.
static void ops_220_tags_have_what_the_request_says_or_their_own_value(void **state)
{
	const struct lb_trace_tag tags[] = {{STR("const"), STR(""), STR("1")},
		{STR("tenant"), STR("x-tenant"), STR("nobody")},
		{STR("absent"), STR("x-absent"), STR("default")},
		{STR("none"), STR("x-none"), STR("")}, {STR("empty"), STR("x-empty"), STR("2")},
		{STR("at"), STR(":authority"), STR("")}, {STR("odd"), STR(":odd"), STR("3")}};
	const struct field fields[] = {{.name = STR("x-tenant"), .value = STR("blue")},
		{.name = STR("x-tenant"), .value = STR("green")}, {.name = STR("x-empty")}};
	static const char *const want[][2] = {{"const", "1"}, {"tenant", "blue"},
		{"absent", "default"}, {"none", ""}, {"empty", "2"}, {"at", "example.org"},
		{"odd", "3"}};
	const struct h2_message m = {
		.authority = STR("example.org"), .fields = fields, .n_fields = 3};
	const struct lb_tracing t = {.on = true, .tags = tags, .n_tags = 7};
	struct lb_trace_tags got, copied;
	struct str key, value;
	uint16_t at = 0;
	proxy_trace_tags(&t, &m, &got);
	lb_trace_tags_copy(&copied, &got);
	for (size_t i = 0; i < 7; i++) {
		assert_true(lb_trace_tags_next(&copied, &at, &key, &value));
		if (!str_eq(key, str_from(want[i][0])) || !str_eq(value, str_from(want[i][1])))
			fail_msg("%s: %.*s", want[i][0], (int)value.len, value.p);
	}
	assert_false(lb_trace_tags_next(&copied, &at, &key, &value));
	char longest[1000];
	memset(longest, 'a', sizeof(longest));
	got.n_bytes = 0;
	for (int i = 0; i < LB_TRACE_TAGS; i++)
		lb_trace_tags_add(&got, (struct str){longest, LB_TRACE_TAG_KEY},
			(struct str){longest, sizeof(longest)});
	assert_int_equal(got.n_bytes, sizeof(got.bytes));
	for (at = 0; lb_trace_tags_next(&got, &at, &key, &value);)
		assert_int_equal(value.len, LB_TRACE_TAG_VALUE);
}

RUN_SUITE("proxy/trace", cmocka_unit_test(ops_160_what_a_client_says_of_traces_is_read),
	cmocka_unit_test(ops_162_a_backend_is_told_in_the_forms_of_the_client),
	cmocka_unit_test(ops_161_who_began_the_trace_decides_then_the_client_then_chance),
	cmocka_unit_test(ops_220_tags_have_what_the_request_says_or_their_own_value))
