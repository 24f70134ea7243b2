// SPDX-License-Identifier: Apache-2.0
// Overlap of two constraints: exact, with a witness, bounded (TP2-S06).
#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/variants/overlap.h"
#include "ctrl/xds/variants/params.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/variants/variants_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IS(k, v) "{'constraint':{'key':'" k "','value':'" v "'}}"
#define HAS(k) "{'constraint':{'key':'" k "','exists':{}}}"
#define NOT(x) "{'not_constraints':" x "}"
#define AND(x) "{'and_constraints':{'constraints':[" x "]}}"
#define OR(x) "{'or_constraints':{'constraints':[" x "]}}"

// The witness as a text, checked against both; "" = disjoint.
static const char *overlap(const char *json_a, const char *json_b)
{
	static char text[256];
	struct xds_constraints *a = constraints_of(json_a), *b = constraints_of(json_b);
	struct xds_params *witness = NULL, *mirror = NULL;
	struct lb_err err = {""};
	int rc = xds_overlap_find(a, b, &witness, &err);
	assert_in_range(rc, 0, 1);
	assert_int_equal(xds_overlap_find(b, a, &mirror, &err), rc);
	if (rc) {
		assert_true(xds_constraints_match(a, witness));
		assert_true(xds_constraints_match(b, witness));
		assert_true(xds_constraints_match(a, mirror));
		assert_true(xds_constraints_match(b, mirror));
		xds_params_print(witness, text, sizeof(text));
	} else {
		*text = '\0';
	}
	xds_params_put(witness);
	xds_params_put(mirror);
	xds_constraints_put(a);
	xds_constraints_put(b);
	return text;
}

// TP2 "Matching Ambiguity" and "Example".
static void examples_of_tp2_are_told_apart(void **state)
{
	assert_string_equal(overlap(IS("env", "prod"), IS("env", "test")), "");
	assert_string_equal(
		overlap(IS("env", "prod"), AND(IS("env", "prod") "," IS("version", "v1"))),
		"{env=prod, version=v1}");
	assert_string_equal(overlap(AND(IS("env", "prod") "," NOT(HAS("version"))),
				    AND(IS("env", "prod") "," IS("version", "v1"))),
		"");
	assert_string_equal(overlap(OR(IS("env", "prod") "," IS("env", "test")),
				    OR(IS("env", "qa") "," IS("env", "test"))),
		"{env=test}");
	static const char *const four[] = {
		AND(NOT(IS("env", "prod")) "," NOT(IS("version", "v1"))),
		AND(IS("env", "prod") "," NOT(IS("version", "v1"))),
		AND(NOT(IS("env", "prod")) "," IS("version", "v1")),
		AND(IS("env", "prod") "," IS("version", "v1")),
	};
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 4; k++)
			assert_int_equal(*overlap(four[i], four[k]) != '\0', i == k);
}

static void absent_and_unmentioned_values_are_considered(void **state)
{
	assert_string_equal(overlap("{}", "{}"), "{}");
	assert_string_equal(overlap(IS("a", "1"), IS("b", "2")), "{a=1, b=2}");
	assert_string_equal(overlap(NOT(IS("a", "1")), NOT(IS("a", "2"))), "{}");
	assert_string_equal(
		overlap(AND(HAS("a") "," NOT(IS("a", "1"))), NOT(IS("a", "2"))), "{a=other}");
	assert_string_equal(
		overlap(AND(HAS("a") "," NOT(IS("a", "other"))), NOT(IS("a", "2"))), "{a=other2}");
	assert_string_equal(overlap(HAS("a"), NOT(HAS("a"))), "");
	assert_string_equal(overlap(NOT(HAS("a")), NOT(IS("a", "1"))), "{}");
	assert_string_equal(overlap(IS("a", ""), HAS("a")), "{a=\"\"}");
	assert_string_equal(overlap(IS("a", ""), NOT(HAS("a"))), "");
	assert_string_equal(overlap(OR(""), "{}"), "");
	assert_string_equal(overlap(AND(""), NOT(OR(""))), "{}");
	assert_string_equal(overlap(NOT("{}"), "{}"), "");
	// One that contradicts itself overlaps with nothing, itself neither.
	static const char never[] = AND(IS("a", "1") "," IS("a", "2"));
	assert_string_equal(overlap(never, never), "");
}

// Narrowing alone leaves these open: each key by itself still has a choice.
static void what_no_key_decides_alone_is_found_by_trying(void **state)
{
	static const char same[] = OR(AND(IS("a", "1") "," IS("b", "1")) "," AND(
		NOT(IS("a", "1")) "," NOT(IS("b", "1"))));
	static const char differ[] = OR(AND(IS("a", "1") "," NOT(IS("b", "1"))) "," AND(
		NOT(IS("a", "1")) "," IS("b", "1")));
	assert_string_equal(overlap(same, differ), "");
	assert_true(*overlap(same, same));
	assert_true(*overlap(differ, differ));
	// Three keys, pairwise different, with two values: not possible.
#define DIFFER(x, y) OR(AND(x "," NOT(y)) "," AND(NOT(x) "," y))
	static const char triangle[] = AND(DIFFER(IS("a", "1"), IS("b", "1")) "," DIFFER(
		IS("b", "1"), IS("c", "1")) "," DIFFER(IS("a", "1"), IS("c", "1")));
	assert_string_equal(overlap(triangle, "{}"), "");
}

static void random_pairs_overlap_as_brute_force_says(void **state)
{
	struct rand r;
	rand_init(&r, 20260102);
	unsigned n_yes = 0, n_no = 0;
	for (int i = 0; i < 20000; i++) {
		struct twin *a = twin_new(&r, 1 + (unsigned)rand_below(&r, 6));
		struct twin *b = twin_new(&r, 1 + (unsigned)rand_below(&r, 6));
		bool expected = false;
		struct twin_params at = {{TWIN_ABSENT, TWIN_ABSENT, TWIN_ABSENT}};
		do {
			expected = expected || (twin_match(a, &at) && twin_match(b, &at));
		} while (twin_next(&at));
		struct xds_constraints *c_a = twin_constraints(a), *c_b = twin_constraints(b);
		struct xds_params *witness = NULL;
		struct lb_err err = {""};
		assert_int_equal(xds_overlap_find(c_a, c_b, &witness, &err), expected);
		if (expected) {
			assert_true(xds_constraints_match(c_a, witness));
			assert_true(xds_constraints_match(c_b, witness));
		}
		*(expected ? &n_yes : &n_no) += 1;
		xds_params_put(witness);
		xds_constraints_put(c_a);
		xds_constraints_put(c_b);
		twin_free(a);
		twin_free(b);
	}
	assert_in_range(n_yes, 2000, 18000);
	assert_in_range(n_no, 2000, 18000);
}

// {'or_constraints': n values of a key, from `first` on}
static char *values_of(const char *key, unsigned first, unsigned n)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	assert_non_null(f);
	fputs("{'or_constraints':{'constraints':[", f);
	for (unsigned i = 0; i < n; i++)
		fprintf(f, "%s{'constraint':{'key':'%s','value':'v%u'}}", i ? "," : "", key,
			first + i);
	fputs("]}}", f);
	fclose(f);
	return text;
}

// As large as constraints that people write may get.
static void long_lists_of_values_are_decided(void **state)
{
	char *a = values_of("customer", 0, 500), *b = values_of("customer", 500, 500);
	char *c = values_of("customer", 999, 500);
	assert_string_equal(overlap(a, b), "");
	assert_string_equal(overlap(b, c), "{customer=v999}");
	free(a);
	free(b);
	free(c);
	// Sixty keys of three values each, all but the last the same.
	char *texts[2];
	for (int t = 0; t < 2; t++) {
		size_t len = 0;
		FILE *f = open_memstream(&texts[t], &len);
		assert_non_null(f);
		fputs("{'and_constraints':{'constraints':[", f);
		for (unsigned k = 0; k < 60; k++) {
			char key[8];
			snprintf(key, sizeof(key), "k%u", k);
			char *values = values_of(key, k == 59 ? 10 * (unsigned)t : 0, 3);
			fprintf(f, "%s%s", k ? "," : "", values);
			free(values);
		}
		fputs("]}}", f);
		fclose(f);
	}
	assert_string_equal(overlap(texts[0], texts[1]), "");
	free(texts[0]);
	free(texts[1]);
}

// Pigeons in holes, the textbook case of exponential search: each of n + 1 keys has one of n
// values, no two the same.
static char *pigeons(unsigned n)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	assert_non_null(f);
	fputs("{'and_constraints':{'constraints':[", f);
	for (unsigned k = 0; k <= n; k++) {
		char key[8];
		snprintf(key, sizeof(key), "k%u", k);
		char *values = values_of(key, 0, n);
		fprintf(f, "%s%s", k ? "," : "", values);
		free(values);
		for (unsigned other = 0; other < k; other++)
			for (unsigned v = 0; v < n; v++)
				fprintf(f,
					",{'not_constraints':{'and_constraints':{'constraints':["
					"{'constraint':{'key':'k%u','value':'v%u'}},"
					"{'constraint':{'key':'k%u','value':'v%u'}}]}}}",
					k, v, other, v);
	}
	fputs("]}}", f);
	fclose(f);
	return text;
}

static void what_is_too_complex_is_said_to_be(void **state)
{
	char *small = pigeons(3), *large = pigeons(9);
	assert_string_equal(overlap(small, "{}"), "");
	struct xds_constraints *c = constraints_of(large);
	struct xds_params *witness = NULL;
	struct lb_err err = {""};
	assert_int_equal(xds_overlap_find(c, NULL, &witness, &err), -E2BIG);
	assert_null(witness);
	assert_non_null(strstr(err.text, "too complex: undecided after "));
	xds_constraints_put(c);
	free(small);
	free(large);
}

static void each_allocation_may_fail(void **state)
{
	struct xds_constraints *a = constraints_of(AND(HAS("a") "," NOT(IS("a", "1"))));
	struct xds_constraints *b = constraints_of(OR(IS("b", "1") "," HAS("c")));
	struct xds_params *witness = NULL;
	struct lb_err err = {""};
	int rc;
	ALLOC_FAIL_EACH(rc = xds_overlap_find(a, b, &witness, &err), rc == -ENOMEM && !witness, {});
	assert_int_equal(rc, 1);
	xds_params_put(witness);
	xds_constraints_put(a);
	xds_constraints_put(b);
}

RUN_SUITE("xds/overlap", cmocka_unit_test(examples_of_tp2_are_told_apart),
	cmocka_unit_test(absent_and_unmentioned_values_are_considered),
	cmocka_unit_test(what_no_key_decides_alone_is_found_by_trying),
	cmocka_unit_test(random_pairs_overlap_as_brute_force_says),
	cmocka_unit_test(long_lists_of_values_are_decided),
	cmocka_unit_test(what_is_too_complex_is_said_to_be),
	cmocka_unit_test(each_allocation_may_fail))
