// SPDX-License-Identifier: Apache-2.0
// Sets of dynamic parameters: from bootstrap, metadata and wire, and what makes two the same
// (TP2-B*).
#include "ctrl/xds/variants/params.h"
#include "envoy/service/discovery/v3/discovery.pb-c.h"
#include "lb/base/arena.h"
#include "proto/wire.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/variants/variants_fixture.h"

#include <jansson.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 128

static json_t *json_of(const char *text)
{
	json_error_t error;
	char *copy = strdup(text);
	assert_non_null(copy);
	for (char *p = copy; *p; p++)
		if (*p == '\'')
			*p = '"';
	json_t *o = json_loads(copy, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
	assert_non_null(o);
	free(copy);
	return o;
}

static void assert_prints(const struct xds_params *p, const char *text)
{
	char out[ROOM];
	xds_params_print(p, out, sizeof(out));
	assert_string_equal(out, text);
}

// TP2-B01
static void bootstrap_object_of_strings_is_read(void **state)
{
	json_t *o = json_of("{'version':'v1','env':'prod','empty':'','':'x'}");
	struct xds_params *p = NULL;
	struct lb_err err = {""};
	assert_int_equal(xds_params_from_json(o, "dynamic_parameters", &p, &err), 0);
	json_decref(o);
	assert_prints(p, "{\"\"=x, empty=\"\", env=prod, version=v1}");
	assert_string_equal(xds_params_find(p, "env"), "prod");
	assert_string_equal(xds_params_find(p, "empty"), "");
	assert_string_equal(xds_params_find(p, ""), "x");
	assert_null(xds_params_find(p, "envy"));
	assert_null(xds_params_find(p, "en"));
	xds_params_put(p);
}

// TP2-B01
static void bootstrap_errors_name_the_key(void **state)
{
	static const struct {
		const char *json, *why;
	} rows[] = {
		{"7", "dynamic_parameters: must be an object of strings"},
		{"[]", "dynamic_parameters: must be an object of strings"},
		{"null", "dynamic_parameters: must be an object of strings"},
		{"'env=prod'", "dynamic_parameters: must be an object of strings"},
		{"{'env':7}", "dynamic_parameters[\"env\"]: must be a string"},
		{"{'a':'b','env':null}", "dynamic_parameters[\"env\"]: must be a string"},
		{"{'env':true}", "dynamic_parameters[\"env\"]: must be a string"},
		{"{'env':{'x':'y'}}", "dynamic_parameters[\"env\"]: must be a string"},
		{"{'env':['prod']}", "dynamic_parameters[\"env\"]: must be a string"},
		{"{'env':'a\\u0000b'}", "dynamic_parameters[\"env\"]: must not hold a NUL"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *o = json_of(rows[i].json);
		struct xds_params *p = NULL;
		struct lb_err err = {""};
		assert_int_equal(xds_params_from_json(o, "dynamic_parameters", &p, &err), -EINVAL);
		assert_null(p);
		assert_string_equal(err.text, rows[i].why);
		json_decref(o);
	}
}

// TP2-B03
static void absent_and_empty_parameters_are_the_same_nothing(void **state)
{
	struct lb_err err = {""};
	struct xds_params *p = NULL;
	assert_int_equal(xds_params_from_json(NULL, "dynamic_parameters", &p, &err), 0);
	assert_null(p);
	json_t *o = json_of("{}");
	assert_int_equal(xds_params_from_json(o, "dynamic_parameters", &p, &err), 0);
	assert_null(p);
	assert_int_equal(xds_params_from_metadata(o, NULL, &p), 0);
	assert_null(p);
	assert_int_equal(xds_params_from_metadata(NULL, NULL, &p), 0);
	assert_null(p);
	json_decref(o);
	assert_null(xds_params_find(NULL, "env"));
	assert_true(xds_params_eq(NULL, NULL));
	assert_int_equal(xds_params_cmp(NULL, NULL), 0);
	assert_null(xds_params_get(NULL));
	xds_params_put(NULL);
	assert_prints(NULL, "{}");
	struct lb_arena arena = {NULL};
	Envoy__Service__Discovery__V3__ResourceLocator *m = xds_params_locator(NULL, "n", &arena);
	assert_int_equal(m->n_dynamic_parameters, 0);
	lb_arena_fini(&arena);
}

// TP2-B02
static void metadata_gives_its_strings_and_what_is_given_wins(void **state)
{
	json_t *o = json_of("{'env':'test','zone':'a','n':7,'deep':{'x':'y'},'list':['z'],"
			    "'nul':'a\\u0000b','none':null}");
	struct xds_params *given = params_of("env=prod version=v1"), *p = NULL;
	assert_int_equal(xds_params_from_metadata(o, given, &p), 0);
	assert_prints(p, "{env=prod, version=v1, zone=a}");
	xds_params_put(p);
	assert_int_equal(xds_params_from_metadata(o, NULL, &p), 0);
	assert_prints(p, "{env=test, zone=a}");
	xds_params_put(p);
	assert_int_equal(xds_params_from_metadata(NULL, given, &p), 0);
	assert_true(xds_params_eq(p, given));
	xds_params_put(p);
	xds_params_put(given);
	json_decref(o);
}

static struct xds_params *over_the_wire(const struct xds_params *p)
{
	struct lb_arena arena = {NULL};
	Envoy__Service__Discovery__V3__ResourceLocator *m = xds_params_locator(p, "name", &arena);
	assert_non_null(m);
	size_t len = envoy__service__discovery__v3__resource_locator__get_packed_size(m);
	uint8_t *bytes = malloc(len);
	assert_non_null(bytes);
	envoy__service__discovery__v3__resource_locator__pack(m, bytes);
	lb_arena_fini(&arena);
	m = proto_unpack(
		&envoy__service__discovery__v3__resource_locator__descriptor, bytes, len, NULL);
	free(bytes);
	assert_non_null(m);
	assert_string_equal(m->name, "name");
	struct xds_params *back = NULL;
	assert_int_equal(xds_params_from_locator(m, &back), 0);
	proto_free(m);
	return back;
}

static void locator_carries_the_set_both_ways(void **state)
{
	struct twin_params at = {{TWIN_ABSENT, TWIN_ABSENT, TWIN_ABSENT}};
	do {
		struct xds_params *p = twin_params(&at), *back = over_the_wire(p);
		assert_true(xds_params_eq(p, back));
		assert_int_equal(xds_params_hash(p), xds_params_hash(back));
		xds_params_put(p);
		xds_params_put(back);
	} while (twin_next(&at));
}

// WF-01: {key 1, value 2}, either may be missing, and of a repeated key the last counts.
static void wire_maps_are_read_as_protobuf_has_them(void **state)
{
	static const uint8_t bytes[] = {0x0a, 1, 'n', //
		0x12, 6, 0x0a, 1, 'k', 0x12, 1, '1', //
		0x12, 3, 0x12, 1, 'v', //
		0x12, 6, 0x12, 1, '2', 0x0a, 1, 'k', //
		0x12, 3, 0x0a, 1, 'e', //
		0x12, 0};
	Envoy__Service__Discovery__V3__ResourceLocator *m =
		proto_unpack(&envoy__service__discovery__v3__resource_locator__descriptor, bytes,
			sizeof(bytes), NULL);
	assert_non_null(m);
	struct xds_params *p = NULL;
	assert_int_equal(xds_params_from_locator(m, &p), 0);
	proto_free(m);
	assert_prints(p, "{\"\"=\"\", e=\"\", k=2}");
	xds_params_put(p);
}

static void sets_differ_by_any_key_or_value_and_are_in_order(void **state)
{
	// In order.
	static const char *const texts[] = {"", "a=", "a=1", "a=1 b=2", "a=1 bb=2", "a=2",
		"a1=", "ab=1", "b=1", "b=1 c=1", "env=prod"};
	size_t n = sizeof(texts) / sizeof(texts[0]);
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < n; k++) {
			struct xds_params *a = params_of(texts[i]), *b = params_of(texts[k]);
			int order = xds_params_cmp(a, b);
			assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
			assert_int_equal(xds_params_eq(a, b), i == k);
			assert_int_equal(xds_params_hash(a) == xds_params_hash(b), i == k);
			xds_params_put(a);
			xds_params_put(b);
		}
	}
	struct xds_params *a = params_of("x=1 y=2 x=3"), *b = params_of("y=2 x=3");
	assert_true(xds_params_eq(a, b));
	xds_params_put(a);
	xds_params_put(b);
}

static void text_quotes_what_is_odd_and_is_cut_to_its_room(void **state)
{
	const struct xds_param list[] = {{"k\"e\\y", "a b"}, {"n\n", "\xc3\xa9"}};
	struct xds_params *p = NULL;
	assert_int_equal(xds_params_new(list, 2, &p), 0);
	static const char whole[] = "{\"k\\\"e\\\\y\"=\"a b\", \"n\\x0a\"=\"\\xc3\\xa9\"}";
	assert_prints(p, whole);
	for (size_t room = 4; room < sizeof(whole) + 2; room++) {
		char *out = malloc(room); // of just this size, for the sanitizers
		assert_non_null(out);
		xds_params_print(p, out, room);
		size_t len = strlen(out);
		if (room >= sizeof(whole)) {
			assert_string_equal(out, whole);
		} else {
			assert_int_equal(len, room - 1);
			assert_string_equal(out + len - 3, "...");
			assert_memory_equal(out, whole, len - 3);
		}
		free(out);
	}
	xds_params_put(p);
}

static void each_allocation_may_fail(void **state)
{
	json_t *o = json_of("{'env':'prod','version':'v1'}");
	struct lb_err err = {""};
	int rc;
	struct xds_params *p = NULL;
	ALLOC_FAIL_EACH(rc = xds_params_from_json(o, "x", &p, &err), rc == -ENOMEM, {});
	struct xds_params *q = NULL;
	ALLOC_FAIL_EACH(rc = xds_params_from_metadata(o, p, &q), rc == -ENOMEM, {});
	assert_true(xds_params_eq(p, q));
	struct lb_arena arena = {NULL};
	Envoy__Service__Discovery__V3__ResourceLocator *m;
	ALLOC_FAIL_EACH(m = xds_params_locator(p, "n", &arena);
			if (!m) lb_arena_fini(&arena), !m, {});
	struct xds_params *back = NULL;
	ALLOC_FAIL_EACH(rc = xds_params_from_locator(m, &back), rc == -ENOMEM, {});
	assert_true(xds_params_eq(p, back));
	lb_arena_fini(&arena);
	xds_params_put(back);
	xds_params_put(q);
	xds_params_put(p);
	json_decref(o);
}

RUN_SUITE("xds/params", cmocka_unit_test(bootstrap_object_of_strings_is_read),
	cmocka_unit_test(bootstrap_errors_name_the_key),
	cmocka_unit_test(absent_and_empty_parameters_are_the_same_nothing),
	cmocka_unit_test(metadata_gives_its_strings_and_what_is_given_wins),
	cmocka_unit_test(locator_carries_the_set_both_ways),
	cmocka_unit_test(wire_maps_are_read_as_protobuf_has_them),
	cmocka_unit_test(sets_differ_by_any_key_or_value_and_are_in_order),
	cmocka_unit_test(text_quotes_what_is_odd_and_is_cut_to_its_room),
	cmocka_unit_test(each_allocation_may_fail))
