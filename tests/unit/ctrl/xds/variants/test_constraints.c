// SPDX-License-Identifier: Apache-2.0
// Constraints: what they match, what is refused, what makes two the same (TP2-C*, TP2-T*).
#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/variants/params.h"
#include "envoy/service/discovery/v3/discovery.pb-c.h"
#include "proto/json.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/variants/variants_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 256
#define PROD "{'constraint':{'key':'env','value':'prod'}}"
#define TEST "{'constraint':{'key':'env','value':'test'}}"
#define V1 "{'constraint':{'key':'version','value':'v1'}}"
#define HAS_VERSION "{'constraint':{'key':'version','exists':{}}}"
#define NOT(x) "{'not_constraints':" x "}"
#define AND(x) "{'and_constraints':{'constraints':[" x "]}}"
#define OR(x) "{'or_constraints':{'constraints':[" x "]}}"

static bool matches(const char *json, const char *params)
{
	struct xds_constraints *c = constraints_of(json);
	struct xds_params *p = params_of(params);
	bool result = xds_constraints_match(c, p);
	xds_constraints_put(c);
	xds_params_put(p);
	return result;
}

// TP2-C01
static void value_wants_the_key_with_just_these_bytes(void **state)
{
	assert_true(matches(PROD, "env=prod"));
	assert_false(matches(PROD, "env=Prod"));
	assert_false(matches(PROD, "env=prod2"));
	assert_false(matches(PROD, "env=pro"));
	assert_false(matches(PROD, "env="));
	assert_false(matches(PROD, "envy=prod"));
	assert_false(matches(PROD, ""));
}

// TP2-C02
static void exists_wants_the_key_with_any_value(void **state)
{
	assert_true(matches(HAS_VERSION, "version=v1"));
	assert_true(matches(HAS_VERSION, "version="));
	assert_false(matches(HAS_VERSION, "versions=v1"));
	assert_false(matches(HAS_VERSION, ""));
}

// TP2-C03
static void not_is_true_of_an_absent_key(void **state)
{
	assert_true(matches(NOT(PROD), ""));
	assert_true(matches(NOT(PROD), "env=test"));
	assert_false(matches(NOT(PROD), "env=prod"));
	assert_true(matches(NOT(HAS_VERSION), "env=prod"));
	assert_false(matches(NOT(HAS_VERSION), "version="));
	assert_true(matches(NOT(NOT(PROD)), "env=prod"));
	assert_false(matches(NOT(NOT(PROD)), ""));
}

// TP2-C04
static void and_wants_all_or_wants_any_however_nested(void **state)
{
	assert_true(matches(AND(PROD "," V1), "env=prod version=v1"));
	assert_false(matches(AND(PROD "," V1), "env=prod"));
	assert_false(matches(AND(PROD "," V1), "version=v1"));
	assert_true(matches(OR(PROD "," V1), "env=prod"));
	assert_true(matches(OR(PROD "," V1), "version=v1"));
	assert_false(matches(OR(PROD "," V1), "env=test version=v2"));
	static const char nested[] = AND(OR(PROD "," TEST) "," NOT(AND(PROD "," V1)));
	assert_true(matches(nested, "env=test version=v1"));
	assert_true(matches(nested, "env=prod"));
	assert_false(matches(nested, "env=prod version=v1"));
	assert_false(matches(nested, "version=v1"));
}

// TP2-C05
static void parameters_that_are_not_mentioned_never_matter(void **state)
{
	assert_true(matches(PROD, "a=b env=prod version=v1 z=z"));
	assert_false(matches(PROD, "a=b env=test version=v1 z=z"));
	assert_true(matches(NOT(PROD), "a=b version=v1"));
}

// TP2-C06
static void no_constraints_match_everything(void **state)
{
	struct xds_constraints *c = (struct xds_constraints *)&c;
	struct lb_err err = {""};
	assert_int_equal(xds_constraints_read(NULL, &c, &err), 0); // the field is unset
	assert_null(c);
	assert_int_equal(xds_constraints_decode((const uint8_t *)"", 0, &c, &err), 0); // the oneof
	assert_null(c);
	assert_true(matches("{}", ""));
	assert_true(matches("{}", "env=prod"));
	assert_true(xds_constraints_match(NULL, NULL));
	assert_null(xds_constraints_message(NULL));
	size_t len = 7;
	assert_null(xds_constraints_bytes(NULL, &len));
	assert_int_equal(len, 0);
	assert_null(xds_constraints_get(NULL));
	xds_constraints_put(NULL);
}

// TP2-C07
static void empty_and_is_true_empty_or_is_false_not_of_nothing_is_false(void **state)
{
	static const char *const params[] = {"", "env=prod"};
	for (size_t i = 0; i < 2; i++) {
		assert_true(matches(AND(""), params[i]));
		assert_false(matches(OR(""), params[i]));
		assert_true(matches("{'and_constraints':{}}", params[i]));
		assert_false(matches("{'or_constraints':{}}", params[i]));
		assert_false(matches(NOT("{}"), params[i]));
		assert_false(matches(NOT(AND("")), params[i]));
		assert_true(matches(NOT(OR("")), params[i]));
		assert_true(matches(AND("{},{}"), params[i]));
		assert_true(matches(OR("{}"), params[i]));
	}
}

static int decode(const uint8_t *bytes, size_t len, struct xds_constraints **ret, char *ret_text)
{
	struct lb_err err = {""};
	*ret = NULL;
	int rc = xds_constraints_decode(bytes, len, ret, &err);
	strcpy(ret_text, err.text);
	return rc;
}

// TP2-C08
static void neither_value_nor_exists_is_refused_by_name(void **state)
{
	static const struct {
		uint8_t bytes[16];
		size_t len;
		const char *why;
	} rows[] = {
		{{0x0a, 0}, 2, "constraint on \"\": neither value nor exists is set"},
		{{0x0a, 3, 0x0a, 1, 'k'}, 5,
			"constraint on \"k\": neither value nor exists is set"},
		{{0x22, 2, 0x0a, 0}, 4, "not_constraints: constraint on \"\": neither"},
		{{0x1a, 10, 0x0a, 4, 0x0a, 2, 0x12, 0, 0x0a, 2, 0x0a, 0}, 12,
			"and_constraints[1]: constraint on \"\": neither"},
		{{0x12, 4, 0x0a, 2, 0x0a, 0}, 6, "or_constraints[0]: constraint on \"\": neither"},
		// A kind of constraint to come is none that is known (WF-01).
		{{0x0a, 6, 0x0a, 1, 'k', 0x22, 1, 'x'}, 8, "constraint on \"k\": neither"},
		{{0x0a}, 1, "malformed"},
		{{0x0a, 5, 0x0a, 1}, 4, "malformed"},
		{{0x0a, 4, 0x0a, 2, 'k', 0}, 6, "holds a NUL"},
		{{0x0a, 3, 0x12, 1, 0xff}, 5, "not UTF-8"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xds_constraints *c;
		char text[384];
		assert_int_equal(decode(rows[i].bytes, rows[i].len, &c, text), -EINVAL);
		assert_null(c);
		if (!strstr(text, rows[i].why))
			fail_msg("row %zu: \"%s\"", i, text);
	}
}

static void assert_bytes(const struct xds_constraints *c, const void *bytes, size_t len)
{
	size_t len_c;
	const uint8_t *bytes_c = xds_constraints_bytes(c, &len_c);
	assert_int_equal(len_c, len);
	assert_memory_equal(bytes_c, bytes, len);
	// What a ResourceName will carry is the same.
	const Envoy__Service__Discovery__V3__DynamicParameterConstraints *m =
		xds_constraints_message(c);
	uint8_t packed[64];
	assert_in_range(len, 0, sizeof(packed));
	assert_int_equal(
		envoy__service__discovery__v3__dynamic_parameter_constraints__get_packed_size(m),
		len);
	envoy__service__discovery__v3__dynamic_parameter_constraints__pack(m, packed);
	assert_memory_equal(packed, bytes, len);
}

// TP2-C09
static void empty_value_is_set_and_stays_so_on_the_wire(void **state)
{
	static const uint8_t value[] = {0x0a, 5, 0x0a, 1, 'k', 0x12, 0};
	static const uint8_t exists[] = {0x0a, 5, 0x0a, 1, 'k', 0x1a, 0};
	struct xds_constraints *c;
	char text[384];
	assert_int_equal(decode(value, sizeof(value), &c, text), 0);
	assert_bytes(c, value, sizeof(value));
	struct xds_constraints *json = constraints_of("{'constraint':{'key':'k','value':''}}");
	assert_true(xds_constraints_eq(c, json));
	assert_bytes(json, value, sizeof(value));
	xds_constraints_put(json);
	xds_constraints_put(c);
	assert_int_equal(decode(exists, sizeof(exists), &c, text), 0);
	assert_bytes(c, exists, sizeof(exists));
	xds_constraints_put(c);
	assert_true(matches("{'constraint':{'key':'k','value':''}}", "k="));
	assert_false(matches("{'constraint':{'key':'k','value':''}}", "k=x"));
	assert_false(matches("{'constraint':{'key':'k','value':''}}", ""));
}

// WF-01: of a oneof the last member counts, unknown fields are skipped.
static void wire_forms_are_read_as_protobuf_has_them(void **state)
{
	static const uint8_t last_wins[] = {0x0a, 7, 0x12, 1, 'v', 0x0a, 0, 0x1a, 0};
	static const uint8_t exists[] = {0x0a, 2, 0x1a, 0};
	static const uint8_t unknown[] = {0x78, 1, 0x0a, 4, 0x1a, 0, 0x78, 1};
	static const uint8_t over_list[] = {0x12, 4, 0x0a, 2, 0x0a, 0, 0x0a, 2, 0x1a, 0};
	struct xds_constraints *c;
	char text[384];
	assert_int_equal(decode(last_wins, sizeof(last_wins), &c, text), 0);
	assert_bytes(c, exists, sizeof(exists));
	xds_constraints_put(c);
	assert_int_equal(decode(unknown, sizeof(unknown), &c, text), 0);
	assert_bytes(c, exists, sizeof(exists)); // TP2-T02: structure, not bytes
	xds_constraints_put(c);
	assert_int_equal(decode(over_list, sizeof(over_list), &c, text), 0);
	assert_bytes(c, exists, sizeof(exists));
	xds_constraints_put(c);
}

// n levels of field 4 (not) or of lists, around `exists`.
static uint8_t *nested(unsigned field, unsigned n, size_t *ret_len)
{
	size_t room = 16 + (size_t)n * 16, at = room;
	uint8_t *bytes = malloc(room);
	assert_non_null(bytes);
	static const uint8_t leaf[] = {0x0a, 2, 0x1a, 0};
	at -= sizeof(leaf);
	memcpy(bytes + at, leaf, sizeof(leaf));
	for (unsigned i = 0; i < n * (field == 4 ? 1 : 2); i++) {
		uint8_t head[8] = {(uint8_t)((field == 4 || i % 2 ? field : 1) << 3 | 2)};
		size_t len = 1, left = room - at;
		for (; left > 0x7f; left >>= 7)
			head[len++] = (uint8_t)(left | 0x80);
		head[len++] = (uint8_t)left;
		at -= len;
		memcpy(bytes + at, head, len);
	}
	*ret_len = room - at;
	memmove(bytes, bytes + at, room - at);
	return bytes;
}

// TP2-C10
static void nesting_is_bounded_and_no_depth_uses_up_the_stack(void **state)
{
	static const struct {
		unsigned n;
		bool ok;
	} rows[] = {{1, true}, {XDS_CONSTRAINTS_DEPTH_MAX - 1, true},
		{XDS_CONSTRAINTS_DEPTH_MAX, false}, {60, false}, {100000, false}};
	for (unsigned field = 2; field <= 4; field++) {
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			size_t len;
			uint8_t *bytes = nested(field, rows[i].n, &len);
			struct xds_constraints *c;
			char text[384];
			assert_int_equal(decode(bytes, len, &c, text), rows[i].ok ? 0 : -EINVAL);
			if (rows[i].ok) {
				struct xds_params *p = params_of("x=y");
				bool odd = field == 4 && rows[i].n % 2 == 1;
				assert_int_equal(xds_constraints_match(c, p), odd);
				xds_params_put(p);
				char out[ROOM];
				xds_constraints_print(c, out, sizeof(out));
				assert_non_null(strstr(out, field == 4 ? "NOT" : "exists(\"\")"));
			} else if (!strstr(text, "nested deeper than 32") &&
				   !strstr(text, "nested deeper than 100")) {
				fail_msg("%u: %s", rows[i].n, text);
			}
			xds_constraints_put(c);
			free(bytes);
		}
	}
}

// TP2-C11: the four variants of TP2 "Example".
static void example_of_tp2_has_one_match_for_each_of_its_nine_pairs(void **state)
{
	static const char *const variants[] = {
		AND(NOT(PROD) "," NOT(V1)),
		AND(PROD "," NOT(V1)),
		AND(NOT(PROD) "," V1),
		AND(PROD "," V1),
	};
	static const char *const envs[] = {"prod", "canary", "test"};
	static const char *const versions[] = {"v1", "v2", "v3"};
	for (int i = 0; i < 10; i++) {
		char params[64] = "";
		int expected = 0;
		if (i < 9) {
			snprintf(params, sizeof(params), "env=%s version=%s", envs[i / 3],
				versions[i % 3]);
			expected = (i / 3 == 0 ? 1 : 0) + (i % 3 == 0 ? 2 : 0);
		}
		for (int v = 0; v < 4; v++)
			assert_int_equal(matches(variants[v], params), v == expected);
	}
}

// TP2-T02
static void equality_is_of_structure_and_operands_have_an_order(void **state)
{
	static const char *const different[] = {"{}", AND(""), OR(""), NOT("{}"), PROD, TEST, V1,
		HAS_VERSION, "{'constraint':{'key':'version','value':''}}", NOT(PROD),
		NOT(NOT(PROD)), AND(PROD), OR(PROD), AND(PROD "," V1), AND(V1 "," PROD),
		AND(PROD "," PROD), OR(PROD "," V1), AND(AND(PROD "," V1)), AND("{}"), AND("{},{}"),
		AND(PROD "," AND(V1))};
	size_t n = sizeof(different) / sizeof(different[0]);
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < n; k++) {
			struct xds_constraints *a = constraints_of(different[i]);
			struct xds_constraints *b = constraints_of(different[k]);
			assert_int_equal(xds_constraints_eq(a, b), i == k);
			assert_int_equal(
				xds_constraints_hash(a) == xds_constraints_hash(b), i == k);
			int ab = xds_constraints_cmp(a, b), ba = xds_constraints_cmp(b, a);
			assert_int_equal((ab > 0) - (ab < 0), (ba < 0) - (ba > 0));
			assert_int_equal(ab == 0, i == k);
			size_t len_a, len_b;
			(void)xds_constraints_bytes(a, &len_a);
			(void)xds_constraints_bytes(b, &len_b);
			if (len_a < len_b)
				assert_true(ab < 0);
			xds_constraints_put(a);
			xds_constraints_put(b);
		}
	}
}

static void text_is_for_operators(void **state)
{
	static const struct {
		const char *json, *text;
	} rows[] = {
		{"{}", "any"},
		{PROD, "env=prod"},
		{AND(PROD "," NOT(HAS_VERSION)), "env=prod AND NOT exists(version)"},
		{AND(OR(PROD "," TEST) "," V1), "(env=prod OR env=test) AND version=v1"},
		{NOT(OR(PROD "," TEST)), "NOT (env=prod OR env=test)"},
		{OR(AND(PROD "," V1) "," TEST), "(env=prod AND version=v1) OR env=test"},
		{OR(AND(PROD)), "env=prod"},
		{AND(OR(PROD "," V1)), "env=prod OR version=v1"},
		{NOT(AND(OR(PROD "," V1))), "NOT (env=prod OR version=v1)"},
		{AND(""), "any"},
		{OR(""), "none"},
		{NOT("{}"), "NOT any"},
		{"{'constraint':{'key':'a b','value':''}}", "\"a b\"=\"\""},
		{"{'constraint':{'key':'a(b','exists':{}}}", "exists(\"a(b\")"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xds_constraints *c = constraints_of(rows[i].json);
		char out[ROOM], cut[8];
		xds_constraints_print(c, out, sizeof(out));
		assert_string_equal(out, rows[i].text);
		xds_constraints_print(c, cut, sizeof(cut));
		assert_int_equal(strlen(cut), strlen(out) < 8 ? strlen(out) : 7);
		xds_constraints_put(c);
	}
}

static void json_form_of_resource_files_goes_both_ways(void **state)
{
	struct xds_constraints *c = constraints_of(
		AND(PROD "," NOT(HAS_VERSION) ",{'constraint':{'key':'k','value':''}}"));
	json_t *json = proto_json_encode((const ProtobufCMessage *)xds_constraints_message(c));
	assert_non_null(json);
	char *text = json_dumps(json, JSON_COMPACT);
	assert_non_null(text);
	assert_string_equal(text,
		"{\"andConstraints\":{\"constraints\":["
		"{\"constraint\":{\"key\":\"env\",\"value\":\"prod\"}},"
		"{\"notConstraints\":{\"constraint\":{\"key\":\"version\",\"exists\":{}}}},"
		"{\"constraint\":{\"key\":\"k\",\"value\":\"\"}}]}}");
	struct xds_constraints *back = constraints_of(text);
	assert_true(xds_constraints_eq(c, back));
	xds_constraints_put(back);
	free(text);
	json_decref(json);
	xds_constraints_put(c);
}

// TP2-S06: variants should constrain the same keys.
static void key_that_only_one_of_two_mentions_is_found(void **state)
{
	static const struct {
		const char *a, *b, *key; // NULL = none
	} rows[] = {
		{"{}", "{}", NULL},
		{PROD, TEST, NULL},
		{PROD, "{}", "env"},
		{AND(PROD "," NOT(HAS_VERSION)), AND(V1 "," TEST), NULL},
		{AND(PROD "," V1), PROD, "version"},
		{OR(NOT(V1)), AND(V1 "," TEST), "env"},
		{PROD, V1, "env"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xds_constraints *a = constraints_of(rows[i].a);
		struct xds_constraints *b = constraints_of(rows[i].b);
		const char *ab = xds_constraints_odd_key(a, b);
		const char *ba = xds_constraints_odd_key(b, a);
		if (rows[i].key)
			assert_string_equal(ab, rows[i].key);
		else
			assert_null(ab);
		assert_int_equal(!ab, !ba);
		xds_constraints_put(a);
		xds_constraints_put(b);
	}
}

static void random_trees_match_as_the_naive_twin_says(void **state)
{
	struct rand r;
	rand_init(&r, 20260101);
	unsigned n_true = 0, n_false = 0;
	for (int i = 0; i < 3000; i++) {
		struct twin *t = twin_new(&r, 1 + (unsigned)rand_below(&r, 6));
		struct xds_constraints *c = twin_constraints(t);
		size_t len, len_c;
		uint8_t *bytes = twin_encode(t, &len);
		const uint8_t *bytes_c = xds_constraints_bytes(c, &len_c);
		assert_int_equal(len, len_c);
		if (len)
			assert_memory_equal(bytes, bytes_c, len);
		free(bytes);
		struct twin_params at = {{TWIN_ABSENT, TWIN_ABSENT, TWIN_ABSENT}};
		do {
			struct xds_params *p = twin_params(&at);
			bool expected = twin_match(t, &at);
			assert_int_equal(xds_constraints_match(c, p), expected);
			*(expected ? &n_true : &n_false) += 1;
			xds_params_put(p);
		} while (twin_next(&at));
		xds_constraints_put(c);
		twin_free(t);
	}
	assert_in_range(n_true, 10000, 182000);
	assert_in_range(n_false, 10000, 182000);
}

static void each_allocation_may_fail(void **state)
{
	struct xds_constraints *c = constraints_of(AND(
		OR(PROD "," TEST) "," NOT(HAS_VERSION) ",{'constraint':{'key':'k','value':''}}"));
	struct xds_constraints *copy = NULL;
	struct lb_err err = {""};
	int rc;
	ALLOC_FAIL_EACH(rc = xds_constraints_read(xds_constraints_message(c), &copy, &err),
		rc == -ENOMEM, {});
	assert_true(xds_constraints_eq(c, copy));
	xds_constraints_put(copy);
	copy = NULL;
	size_t len;
	const uint8_t *bytes = xds_constraints_bytes(c, &len);
	ALLOC_FAIL_EACH(rc = xds_constraints_decode(bytes, len, &copy, &err), rc != 0 && !copy, {});
	assert_true(xds_constraints_eq(c, copy));
	xds_constraints_put(copy);
	xds_constraints_put(c);
}

RUN_SUITE("xds/constraints", cmocka_unit_test(value_wants_the_key_with_just_these_bytes),
	cmocka_unit_test(exists_wants_the_key_with_any_value),
	cmocka_unit_test(not_is_true_of_an_absent_key),
	cmocka_unit_test(and_wants_all_or_wants_any_however_nested),
	cmocka_unit_test(parameters_that_are_not_mentioned_never_matter),
	cmocka_unit_test(no_constraints_match_everything),
	cmocka_unit_test(empty_and_is_true_empty_or_is_false_not_of_nothing_is_false),
	cmocka_unit_test(neither_value_nor_exists_is_refused_by_name),
	cmocka_unit_test(empty_value_is_set_and_stays_so_on_the_wire),
	cmocka_unit_test(wire_forms_are_read_as_protobuf_has_them),
	cmocka_unit_test(nesting_is_bounded_and_no_depth_uses_up_the_stack),
	cmocka_unit_test(example_of_tp2_has_one_match_for_each_of_its_nine_pairs),
	cmocka_unit_test(equality_is_of_structure_and_operands_have_an_order),
	cmocka_unit_test(text_is_for_operators),
	cmocka_unit_test(json_form_of_resource_files_goes_both_ways),
	cmocka_unit_test(key_that_only_one_of_two_mentions_is_found),
	cmocka_unit_test(random_trees_match_as_the_naive_twin_says),
	cmocka_unit_test(each_allocation_may_fail))
