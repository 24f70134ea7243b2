// SPDX-License-Identifier: Apache-2.0
// The cache of variants, as server, client and proxy use it (TP2-T*, TP2-S*, TP2-L*,
// TP2-P*).
#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/variants/params.h"
#include "ctrl/xds/variants/version.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/variants/variants_fixture.h"
#include "tests/unit/ctrl/xds/variants/variants_world.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NONE "{}"
#define PROD "{'constraint':{'key':'env','value':'prod'}}"
#define TEST "{'constraint':{'key':'env','value':'test'}}"
#define V1 "{'constraint':{'key':'version','value':'v1'}}"
#define V2 "{'constraint':{'key':'version','value':'v2'}}"
#define HAS_VERSION "{'constraint':{'key':'version','exists':{}}}"
#define NOT(x) "{'not_constraints':" x "}"
#define AND(x) "{'and_constraints':{'constraints':[" x "]}}"

#define LISTED(w, ...)                                                                             \
	do {                                                                                       \
		xds_variants_begin((w)->cache, XDS_CHANGE_LISTED);                                 \
		__VA_ARGS__;                                                                       \
		xds_variants_commit((w)->cache);                                                   \
	} while (0)
#define FULL(w, ...)                                                                               \
	do {                                                                                       \
		xds_variants_begin((w)->cache, XDS_CHANGE_FULL);                                   \
		__VA_ARGS__;                                                                       \
		xds_variants_commit((w)->cache);                                                   \
	} while (0)

static void server_init(struct world *w)
{
	world_init(w, true, false);
}

static void cache_init(struct world *w)
{
	world_init(w, false, false);
}

static struct xds_variants_counts counts(const struct world *w)
{
	struct xds_variants_counts n;
	xds_variants_counts(w->cache, &n);
	return n;
}

// TP2-T01, TP2-T11, TP2-P01
static void resource_is_a_name_with_constraints(void **state)
{
	struct world w, other_type;
	server_init(&w);
	server_init(&other_type);
	LISTED(&w, world_set(&w, "r", PROD, 1), world_set(&w, "r", TEST, 2),
		world_set(&w, "s", PROD, 3), world_set(&w, "r", NONE, 4));
	LISTED(&other_type, world_set(&other_type, "r", PROD, 5));
	assert_string_equal(world_dump(&w), "r 4 any; r 1 env=prod; r 2 env=test; s 3 env=prod");
	assert_string_equal(world_dump(&other_type), "r 5 env=prod");
	struct xds_constraints *prod = constraints_of(PROD), *v1 = constraints_of(V1);
	assert_int_equal(world_number(xds_variants_find(w.cache, "r", prod)), 1);
	assert_int_equal(world_number(xds_variants_find(w.cache, "s", prod)), 3);
	assert_int_equal(world_number(xds_variants_find(w.cache, "r", NULL)), 4);
	assert_null(xds_variants_find(w.cache, "s", NULL));
	assert_null(xds_variants_find(w.cache, "r", v1));
	assert_null(xds_variants_find(w.cache, "t", prod));
	xds_constraints_put(prod);
	xds_constraints_put(v1);
	xds_variants_free(other_type.cache);
	world_fini(&w);
}

// TP2-T11, PC-07, DL-12
static void same_name_and_constraints_twice_in_one_change_are_refused(void **state)
{
	struct world w;
	struct lb_err err = {""};
	server_init(&w);
	xds_variants_begin(w.cache, XDS_CHANGE_LISTED);
	world_set(&w, "r", PROD, 1);
	assert_int_equal(world_try_set(&w, "r", PROD, 1, &err), -EEXIST);
	assert_string_equal(err.text, "routes \"r\": variant env=prod: listed twice");
	assert_int_equal(world_try_remove(&w, "r", PROD, &err), -EEXIST);
	assert_int_equal(world_try_keep(&w, "r", PROD, &err), -EEXIST);
	world_remove(&w, "r", NONE); // variants excepted
	assert_int_equal(world_try_set(&w, "r", NONE, 1, &err), -EEXIST);
	assert_string_equal(err.text, "routes \"r\": variant any: listed twice");
	xds_variants_commit(w.cache);
	assert_string_equal(world_dump(&w), "r 1 env=prod");
	LISTED(&w, world_set(&w, "r", PROD, 2)); // the next change is another
	assert_string_equal(world_dump(&w), "r 2 env=prod");
	world_fini(&w);
}

// TP2-T07
static void removal_takes_only_the_variant_it_names(void **state)
{
	struct world w;
	server_init(&w);
	LISTED(&w, world_set(&w, "r", PROD, 1), world_set(&w, "r", NONE, 2));
	LISTED(&w, world_remove(&w, "r", NONE)); // removed_resources
	assert_string_equal(world_dump(&w), "r 1 env=prod");
	LISTED(&w, world_remove(&w, "r", TEST), world_remove(&w, "alien", NONE)); // DL-06
	assert_string_equal(world_dump(&w), "r 1 env=prod");
	LISTED(&w, world_remove(&w, "r", PROD));
	assert_string_equal(world_dump(&w), "");
	assert_int_equal(counts(&w).n_names, 0);
	world_fini(&w);
}

// TP2-S01, TP2-P02, TP2-C11: the four variants of TP2 "Example", each of its nine pairs and {}.
static void each_subscription_of_the_example_sees_its_variant(void **state)
{
	static const char *const versions[] = {"v1", "v2", "v3"};
	static const char *const envs[] = {"prod", "canary", "test"};
	static const int expected[] = {4, 2, 2, 3, 1, 1, 3, 1, 1};
	struct world w;
	struct lb_err err = {""};
	server_init(&w);
	xds_variants_begin(w.cache, XDS_CHANGE_FULL);
	world_set(&w, "r", AND(NOT(PROD) "," NOT(V1)), 1);
	world_set(&w, "r", AND(PROD "," NOT(V1)), 2);
	world_set(&w, "r", AND(NOT(PROD) "," V1), 3);
	world_set(&w, "r", AND(PROD "," V1), 4);
	assert_int_equal(xds_variants_check(w.cache, NULL, &err), 0);
	xds_variants_commit(w.cache);
	struct xds_sub *subs[10];
	for (int i = 0; i < 9; i++) {
		char params[64];
		snprintf(params, sizeof(params), "env=%s version=%s zone=a", envs[i / 3],
			versions[i % 3]);
		subs[i] = world_sub(&w, "r", params);
		assert_int_equal(world_number(subs[i]->variant), expected[i]);
		assert_int_equal(subs[i]->n_matches, 1);
	}
	subs[9] = world_sub(&w, "r", "");
	assert_int_equal(world_number(subs[9]->variant), 1);
	assert_string_equal(world_news(&w), "");
	for (int i = 0; i < 10; i++)
		assert_true(xds_sub_put(w.cache, subs[i]));
	world_fini(&w);
}

// TP2-T08, TP2-S04, TP2-S05, TP2-P06: TP2 "Transition Scenarios", in both orders.
static void split_of_a_variant_is_one_update_to_those_it_concerns(void **state)
{
	for (int order = 0; order < 2; order++) {
		struct world w;
		cache_init(&w);
		struct xds_sub *one = world_sub(&w, "r", "env=prod version=v1");
		struct xds_sub *two = world_sub(&w, "r", "env=prod version=v2");
		struct xds_sub *test = world_sub(&w, "r", "env=test version=v1");
		struct xds_sub *other = world_sub(&w, "s", "env=prod version=v1");
		LISTED(&w, world_set(&w, "r", PROD, 1), world_set(&w, "r", TEST, 2));
		assert_string_equal(world_news(&w), "r{env=prod, version=v1}: 0 > 1; "
						    "r{env=prod, version=v2}: 0 > 1; "
						    "r{env=test, version=v1}: 0 > 2");
		xds_variants_begin(w.cache, XDS_CHANGE_LISTED);
		if (order == 0)
			world_remove(&w, "r", PROD);
		world_set(&w, "r", AND(PROD "," V1), 11);
		world_set(&w, "r", AND(PROD "," V2), 12);
		if (order == 1)
			world_remove(&w, "r", PROD);
		assert_int_equal(world_number(one->variant), 1); // nothing yet
		assert_string_equal(world_news(&w), "");
		xds_variants_commit(w.cache);
		assert_string_equal(world_news(&w),
			"r{env=prod, version=v1}: 1 > 11; r{env=prod, version=v2}: 1 > 12");
		xds_sub_put(w.cache, one);
		xds_sub_put(w.cache, two);
		xds_sub_put(w.cache, test);
		xds_sub_put(w.cache, other);
		world_fini(&w);
	}
}

// TP2-T09, TP2-S03
static void removal_without_a_matching_replacement_leaves_nothing(void **state)
{
	struct world w;
	cache_init(&w);
	struct xds_sub *s = world_sub(&w, "r", "env=prod");
	LISTED(&w, world_set(&w, "r", PROD, 1));
	assert_string_equal(world_news(&w), "r{env=prod}: 0 > 1");
	LISTED(&w, world_remove(&w, "r", PROD), world_set(&w, "r", TEST, 2));
	assert_string_equal(world_news(&w), "r{env=prod}: 1 > 0");
	assert_null(s->variant);
	assert_int_equal(s->n_matches, 0);
	LISTED(&w, world_set(&w, "r", PROD, 3)); // SW-15
	assert_string_equal(world_news(&w), "r{env=prod}: 0 > 3");
	xds_sub_put(w.cache, s);
	world_fini(&w);
}

// TP2-T10
static void sole_variant_is_that_of_a_name_with_no_other(void **state)
{
	struct world w;
	server_init(&w);
	assert_null(xds_variants_sole(w.cache, "r"));
	LISTED(&w, world_set(&w, "r", PROD, 1));
	assert_int_equal(world_number(xds_variants_sole(w.cache, "r")), 1);
	assert_string_equal(xds_variants_sole(w.cache, "r")->version, "v1");
	LISTED(&w, world_set(&w, "r", TEST, 2));
	assert_null(xds_variants_sole(w.cache, "r"));
	world_fini(&w);
}

// TP2-T12, first half: LDS and CDS in SotW.
static void full_change_removes_what_it_does_not_list(void **state)
{
	struct world w;
	cache_init(&w);
	struct xds_sub *r = world_sub(&w, "r", "env=prod version=v1");
	struct xds_sub *s = world_sub(&w, "s", "env=prod version=v1");
	FULL(&w, world_set(&w, "r", PROD, 1), world_set(&w, "s", NONE, 2));
	(void)world_news(&w);
	FULL(&w, world_set(&w, "r", AND(PROD "," V1), 3));
	assert_string_equal(
		world_news(&w), "r{env=prod, version=v1}: 1 > 3; s{env=prod, version=v1}: 2 > 0");
	assert_string_equal(world_dump(&w), "r 3 env=prod AND version=v1");
	FULL(&w, (void)0);
	assert_string_equal(world_news(&w), "r{env=prod, version=v1}: 3 > 0");
	xds_sub_put(w.cache, r);
	xds_sub_put(w.cache, s);
	world_fini(&w);
}

// SW-13: what is there but bad is not deleted.
static void kept_variants_stay_in_a_full_change(void **state)
{
	struct world w;
	server_init(&w);
	FULL(&w, world_set(&w, "r", PROD, 1), world_set(&w, "r", TEST, 2),
		world_set(&w, "s", PROD, 3), world_set(&w, "s", TEST, 4),
		world_set(&w, "t", PROD, 5));
	struct xds_sub *s = world_sub(&w, "r", "env=prod");
	FULL(&w, world_keep(&w, "r", PROD),
		assert_int_equal(xds_variants_keep_all(w.cache, "s"), 0),
		world_remove(&w, "s", TEST), world_keep(&w, "alien", PROD),
		assert_int_equal(xds_variants_keep_all(w.cache, "alien too"), 0));
	assert_string_equal(world_news(&w), "");
	assert_string_equal(world_dump(&w), "r 1 env=prod; s 3 env=prod");
	assert_int_equal(counts(&w).n_names, 2);
	FULL(&w, (void)0); // keeping was for that change only
	assert_string_equal(world_dump(&w), "");
	xds_sub_put(w.cache, s);
	world_fini(&w);
}

// TP2-T12, second half: RDS and EDS in SotW.
static void newly_matching_variant_replaces_the_old_one_where_the_newest_wins(void **state)
{
	struct world w;
	world_init(&w, false, true);
	struct xds_sub *one = world_sub(&w, "r", "env=prod version=v1");
	struct xds_sub *two = world_sub(&w, "r", "env=prod version=v2");
	LISTED(&w, world_set(&w, "r", PROD, 1));
	(void)world_news(&w);
	LISTED(&w, world_set(&w, "r", AND(PROD "," V1), 2));
	assert_string_equal(world_news(&w), "r{env=prod, version=v1}: 1 > 2");
	assert_int_equal(one->n_matches, 1); // the old one does not count any more
	assert_string_equal(world_dump(&w), "r 1 env=prod; r 2 env=prod AND version=v1");
	LISTED(&w, world_set(&w, "s", NONE, 9)); // nobody's
	LISTED(&w, world_set(&w, "r", AND(PROD "," V2), 3));
	assert_string_equal(world_news(&w), "r{env=prod, version=v2}: 1 > 3");
	assert_string_equal(world_dump(&w),
		"r 2 env=prod AND version=v1; r 3 env=prod AND version=v2"); // nobody sees 1
	// And back to one for both, without a removal.
	LISTED(&w, world_set(&w, "r", PROD, 4));
	assert_string_equal(
		world_news(&w), "r{env=prod, version=v1}: 2 > 4; r{env=prod, version=v2}: 3 > 4");
	assert_string_equal(world_dump(&w), "r 4 env=prod");
	assert_int_equal(counts(&w).n_ambiguous, 0);
	// Two at once are ambiguous here too: the one in use stays.
	LISTED(&w, world_set(&w, "r", V1, 5), world_set(&w, "r", PROD, 4));
	assert_string_equal(world_news(&w), "r{env=prod, version=v1}: 4 > 4!");
	xds_sub_put(w.cache, one);
	xds_sub_put(w.cache, two);
	world_fini(&w);
}

static void mark(void *ctx, struct xds_sub *s)
{
	s->owner = ctx;
}

// TP2-T13: errors concern the subscriptions whose parameters match.
static void subscriptions_are_found_by_constraints(void **state)
{
	struct world w;
	int token;
	cache_init(&w);
	struct xds_sub *prod = world_sub(&w, "r", "env=prod");
	struct xds_sub *test = world_sub(&w, "r", "env=test");
	struct xds_sub *other = world_sub(&w, "s", "env=prod");
	assert_ptr_not_equal(prod, test);
	struct xds_constraints *c = constraints_of(PROD);
	xds_variants_each_sub(w.cache, "r", c, mark, &token);
	assert_ptr_equal(prod->owner, &token);
	assert_null(test->owner);
	assert_null(other->owner);
	xds_variants_each_sub(w.cache, "alien", NULL, mark, &token);
	xds_variants_each_sub(w.cache, NULL, NULL, mark, &w);
	assert_true(prod->owner == &w && test->owner == &w && other->owner == &w);
	xds_constraints_put(c);
	xds_sub_put(w.cache, prod);
	xds_sub_put(w.cache, test);
	xds_sub_put(w.cache, other);
	world_fini(&w);
}

static int check_of(struct world *w, struct lb_err *err)
{
	int rc = xds_variants_check(w->cache, NULL, err);
	if (rc)
		xds_variants_abort(w->cache);
	else
		xds_variants_commit(w->cache);
	return rc;
}

// TP2-S06: TP2 "Adding a New Key on the Server First", and its remedy.
static void overlapping_variants_are_refused_with_an_example(void **state)
{
	struct world w;
	struct lb_err err = {""};
	server_init(&w);
	xds_variants_begin(w.cache, XDS_CHANGE_FULL);
	world_set(&w, "r", PROD, 1);
	world_set(&w, "s", PROD, 1);
	assert_int_equal(check_of(&w, &err), 0);
	xds_variants_begin(w.cache, XDS_CHANGE_LISTED);
	world_set(&w, "r", AND(PROD "," V1), 2);
	assert_int_equal(check_of(&w, &err), -EINVAL);
	assert_string_equal(err.text, "routes \"r\": variants env=prod and env=prod AND version=v1 "
				      "overlap: both match {env=prod, version=v1}");
	assert_string_equal(world_dump(&w), "r 1 env=prod; s 1 env=prod"); // as it was
	xds_variants_begin(w.cache, XDS_CHANGE_LISTED);
	world_remove(&w, "r", PROD);
	world_set(&w, "r", AND(PROD "," NOT(HAS_VERSION)), 1);
	world_set(&w, "r", AND(PROD "," V1), 2);
	assert_int_equal(check_of(&w, &err), 0);
	// A full change: what it does not list does not count.
	xds_variants_begin(w.cache, XDS_CHANGE_FULL);
	world_set(&w, "r", PROD, 1);
	assert_int_equal(check_of(&w, &err), 0);
	xds_variants_begin(w.cache, XDS_CHANGE_FULL);
	world_set(&w, "r", PROD, 2);
	world_set(&w, "r", NONE, 3);
	assert_int_equal(check_of(&w, &err), -EINVAL);
	assert_non_null(
		strstr(err.text, "variants env=prod and any overlap: both match {env=prod}"));
	// New content for known constraints is no new pair, and kept ones count.
	xds_variants_begin(w.cache, XDS_CHANGE_FULL);
	world_keep(&w, "r", PROD);
	world_set(&w, "r", V1, 3);
	assert_int_equal(check_of(&w, &err), -EINVAL);
	world_fini(&w);
}

// TP2-L03, PC-08
static void what_nobody_subscribed_to_is_not_taken_in(void **state)
{
	struct world w;
	cache_init(&w);
	struct xds_sub *s = world_sub(&w, "r", "env=prod");
	LISTED(&w, world_set(&w, "r", TEST, 1), world_set(&w, "alien", NONE, 2),
		world_set(&w, "r", PROD, 3));
	assert_string_equal(world_dump(&w), "r 3 env=prod");
	assert_string_equal(world_news(&w), "r{env=prod}: 0 > 3");
	assert_int_equal(counts(&w).n_unwanted, 2);
	assert_int_equal(counts(&w).n_names, 1);
	assert_int_equal(world_n_contents(), 1);
	xds_sub_put(w.cache, s);
	world_fini(&w);
}

// TP2-L04
static void ambiguity_is_stable_and_told_once(void **state)
{
	struct world w;
	cache_init(&w);
	struct xds_sub *s = world_sub(&w, "r", "env=prod version=v1");
	LISTED(&w, world_set(&w, "r", AND(PROD "," V1), 1));
	assert_string_equal(world_news(&w), "r{env=prod, version=v1}: 0 > 1");
	// The one in use stays, though the other encodes shorter.
	LISTED(&w, world_set(&w, "r", PROD, 2));
	assert_string_equal(world_news(&w), "r{env=prod, version=v1}: 1 > 1!");
	assert_int_equal(s->n_matches, 2);
	LISTED(&w, world_set(&w, "r", PROD, 3));
	assert_string_equal(world_news(&w), "");
	// New content of the one in use is still the one in use.
	LISTED(&w, world_set(&w, "r", AND(PROD "," V1), 4), world_set(&w, "r", PROD, 5));
	assert_string_equal(world_news(&w), "r{env=prod, version=v1}: 1 > 4");
	// Without one in use the smallest encoding counts, whatever the order.
	LISTED(&w, world_set(&w, "r", NOT(TEST), 6));
	LISTED(&w, world_remove(&w, "r", AND(PROD "," V1)));
	assert_string_equal(world_news(&w), "r{env=prod, version=v1}: 4 > 5");
	uint32_t n;
	struct xds_params *p = params_of("env=prod");
	assert_int_equal(world_number(xds_variants_match(w.cache, "r", p, &n)), 5);
	assert_int_equal(n, 2);
	assert_null(xds_variants_match(w.cache, "alien", p, &n));
	assert_int_equal(n, 0);
	xds_params_put(p);
	// Gone and back: counted, not told again.
	assert_int_equal(counts(&w).n_ambiguous, 1);
	LISTED(&w, world_remove(&w, "r", NOT(TEST)));
	LISTED(&w, world_set(&w, "r", NOT(TEST), 6));
	assert_string_equal(world_news(&w), "");
	assert_int_equal(counts(&w).n_ambiguous, 2);
	xds_sub_put(w.cache, s);
	world_fini(&w);
}

// TP2-T15
static void unconstrained_resource_serves_whatever_parameters(void **state)
{
	struct world w;
	cache_init(&w);
	struct xds_sub *s = world_sub(&w, "r", "env=prod version=v1");
	LISTED(&w, world_set(&w, "r", NONE, 1));
	assert_string_equal(world_news(&w), "r{env=prod, version=v1}: 0 > 1");
	xds_sub_put(w.cache, s);
	world_fini(&w);
}

// TP2-S02, TP2-P01, TP2-P02, TP2-P07: constraints of any nesting go along with what is seen.
static void what_is_seen_brings_its_constraints(void **state)
{
	struct world w;
	char deep[2048] = AND(PROD "," V1);
	for (int i = 0; i < 15; i++) { // pairs of NOT
		char inner[2048];
		strcpy(inner, deep);
		snprintf(deep, sizeof(deep), NOT(NOT("%s")), inner);
	}
	cache_init(&w);
	struct xds_sub *one = world_sub(&w, "r", "env=prod version=v1");
	struct xds_sub *two = world_sub(&w, "r", "env=prod version=v2");
	LISTED(&w, world_set(&w, "r", deep, 1), world_set(&w, "r", AND(PROD "," V2), 2));
	struct xds_constraints *c = constraints_of(deep), *v2 = constraints_of(AND(PROD "," V2));
	assert_true(xds_constraints_eq(one->variant->constraints, c));
	assert_true(xds_constraints_eq(two->variant->constraints, v2));
	assert_non_null(xds_constraints_message(one->variant->constraints));
	struct xds_variants_event e;
	assert_true(xds_variants_drain(w.cache, &e));
	assert_true(xds_constraints_eq(e.after->constraints, c));
	LISTED(&w, world_remove(&w, "r", deep));
	while (xds_variants_drain(w.cache, &e) && e.sub != one)
		;
	// Out of the cache, and still there for whoever has to name what is removed.
	assert_true(e.sub == one && !e.after && xds_constraints_eq(e.before->constraints, c));
	assert_null(xds_variants_find(w.cache, "r", c));
	xds_constraints_put(c);
	xds_constraints_put(v2);
	xds_sub_put(w.cache, one);
	xds_sub_put(w.cache, two);
	world_fini(&w);
}

// TP2-L05, TP2-T05, TP2-P04, TP2-P05
static void subscriptions_are_shared_and_new_ones_see_what_is_cached(void **state)
{
	struct world w;
	cache_init(&w);
	struct xds_params *p = params_of("env=prod"), *same = params_of("env=prod");
	struct xds_params *finer = params_of("env=prod version=v1"), *test = params_of("env=test");
	struct xds_sub *a, *b, *c, *d;
	bool is_new = false;
	assert_int_equal(xds_sub_get(w.cache, "r", p, &a, &is_new), 0);
	assert_true(is_new);
	assert_null(a->variant); // not yet
	LISTED(&w, world_set(&w, "r", PROD, 1));
	assert_string_equal(world_news(&w), "r{env=prod}: 0 > 1");
	assert_int_equal(xds_sub_get(w.cache, "r", same, &b, &is_new), 0);
	assert_false(is_new);
	assert_ptr_equal(a, b);
	assert_ptr_equal(xds_sub_find(w.cache, "r", same), a);
	assert_null(xds_sub_find(w.cache, "r", finer));
	assert_null(xds_sub_find(w.cache, "s", p));
	assert_int_equal(xds_sub_get(w.cache, "r", finer, &c, &is_new), 0);
	assert_true(is_new); // another one upstream
	assert_int_equal(world_number(c->variant), 1);
	assert_int_equal(xds_sub_get(w.cache, "r", test, &d, &is_new), 0);
	assert_null(d->variant);
	assert_string_equal(world_news(&w), "");
	assert_int_equal(counts(&w).n_subs, 3);

	assert_false(xds_sub_put(w.cache, b));
	assert_true(xds_sub_put(w.cache, a));
	assert_string_equal(world_dump(&w), "r 1 env=prod"); // c still wants it
	assert_true(xds_sub_put(w.cache, c));
	assert_string_equal(world_dump(&w), "");
	assert_int_equal(world_n_contents(), 0);
	assert_int_equal(counts(&w).n_names, 1);
	assert_true(xds_sub_put(w.cache, d));
	assert_int_equal(counts(&w).n_names, 0);
	xds_params_put(p);
	xds_params_put(same);
	xds_params_put(finer);
	xds_params_put(test);
	world_fini(&w);
}

static void database_keeps_what_nobody_subscribes_to(void **state)
{
	struct world w;
	server_init(&w);
	LISTED(&w, world_set(&w, "r", PROD, 1));
	struct xds_sub *s = world_sub(&w, "r", "env=prod");
	assert_int_equal(world_number(s->variant), 1);
	xds_sub_put(w.cache, s);
	assert_string_equal(world_dump(&w), "r 1 env=prod");
	assert_int_equal(counts(&w).n_unwanted, 0);
	world_fini(&w);
}

static void versions_are_shared_and_outlive_what_they_came_from(void **state)
{
	struct xds_variant *a = xds_variant_new(NULL, "v1"), *b = xds_variant_new(NULL, "v1");
	const char *version = xds_version_get(a->version);
	assert_ptr_not_equal(a->version, b->version); // each its own, but in a cache
	xds_variant_put(a);
	xds_variant_put(b);
	assert_string_equal(version, "v1");
	xds_version_put(version);

	struct world w;
	cache_init(&w);
	struct xds_sub *r = world_sub(&w, "r", "env=prod"), *s = world_sub(&w, "s", "env=prod");
	LISTED(&w, world_set(&w, "r", PROD, 1));
	LISTED(&w, world_set(&w, "s", PROD, 1));
	assert_ptr_equal(r->variant->version, s->variant->version);
	version = xds_version_get(r->variant->version);
	xds_sub_put(w.cache, r);
	xds_sub_put(w.cache, s);
	world_fini(&w);
	assert_string_equal(version, "v1");
	xds_version_put(version);
	xds_version_put(NULL);
}

// SW-16
static void same_content_again_tells_nobody_and_takes_the_version(void **state)
{
	struct world w;
	cache_init(&w);
	struct xds_sub *s = world_sub(&w, "r", "env=prod");
	LISTED(&w, world_set(&w, "r", PROD, 1));
	(void)world_news(&w);
	const struct xds_variant *v = s->variant;
	assert_string_equal(v->version, "v1");
	w.round = 7;
	LISTED(&w, world_set(&w, "r", PROD, 1));
	assert_string_equal(v->version, "v1.7");
	assert_string_equal(world_news(&w), "");
	assert_ptr_equal(s->variant, v);
	assert_int_equal(v->change, 2);
	assert_int_equal(world_n_contents(), 1);
	xds_sub_put(w.cache, s);
	world_fini(&w);
}

static void slow_subscriber_finds_one_difference(void **state)
{
	struct world w;
	cache_init(&w);
	struct xds_sub *s = world_sub(&w, "r", "env=prod");
	LISTED(&w, world_set(&w, "r", PROD, 1));
	(void)world_news(&w);
	LISTED(&w, world_set(&w, "r", PROD, 2));
	LISTED(&w, world_set(&w, "r", PROD, 3));
	assert_string_equal(world_news(&w), "r{env=prod}: 1 > 3");
	// There and back to nothing.
	LISTED(&w, world_remove(&w, "r", PROD));
	assert_string_equal(world_news(&w), "r{env=prod}: 3 > 0");
	LISTED(&w, world_set(&w, "r", PROD, 4));
	LISTED(&w, world_remove(&w, "r", PROD));
	assert_string_equal(world_news(&w), "");
	// A subscription that goes takes its news along.
	LISTED(&w, world_set(&w, "r", PROD, 5));
	xds_sub_put(w.cache, s);
	assert_string_equal(world_news(&w), "");
	world_fini(&w);
}

static void change_that_is_given_up_never_was(void **state)
{
	struct world w;
	server_init(&w);
	struct xds_sub *s = world_sub(&w, "r", "env=prod");
	LISTED(&w, world_set(&w, "r", PROD, 1));
	(void)world_news(&w);
	xds_variants_begin(w.cache, XDS_CHANGE_FULL);
	world_set(&w, "r", PROD, 2);
	world_set(&w, "new", NONE, 3);
	world_remove(&w, "other", NONE);
	xds_variants_abort(w.cache);
	assert_string_equal(world_news(&w), "");
	assert_string_equal(world_dump(&w), "r 1 env=prod");
	assert_int_equal(counts(&w).n_names, 1);
	assert_int_equal(counts(&w).n_changes, 1);
	xds_variants_begin(w.cache, XDS_CHANGE_LISTED); // and one that is freed with the cache
	world_set(&w, "r", PROD, 4);
	xds_sub_put(w.cache, s);
	world_fini(&w);
}

static void subscriptions_come_and_go_while_a_change_is_listed(void **state)
{
	struct world w;
	cache_init(&w);
	struct xds_sub *old = world_sub(&w, "r", "env=prod");
	LISTED(&w, world_set(&w, "r", PROD, 1));
	(void)world_news(&w);
	xds_variants_begin(w.cache, XDS_CHANGE_LISTED);
	world_set(&w, "r", PROD, 2);
	world_set(&w, "r", TEST, 3);
	xds_sub_put(w.cache, old); // evicts what the change replaces
	struct xds_sub *young = world_sub(&w, "r", "env=test");
	xds_variants_commit(w.cache);
	assert_string_equal(world_news(&w), "r{env=test}: 0 > 3");
	assert_string_equal(world_dump(&w), "r 3 env=test");
	xds_sub_put(w.cache, young);
	world_fini(&w);
}

static void name_has_a_bounded_number_of_variants(void **state)
{
	struct world w;
	struct lb_err err = {""};
	char json[128];
	int rc = 0, n = 0;
	server_init(&w);
	for (int change = 0; change < 3 && !rc; change++) {
		xds_variants_begin(w.cache, XDS_CHANGE_LISTED);
		for (int i = 0; i < XDS_VARIANTS_MAX && !rc; i++, n += !rc) {
			snprintf(json, sizeof(json), "{'constraint':{'key':'k','value':'%d'}}", n);
			rc = world_try_set(&w, "r", json, n + 1, &err);
		}
		xds_variants_commit(w.cache);
	}
	assert_int_equal(rc, -E2BIG);
	assert_int_equal(n, 2 * XDS_VARIANTS_MAX);
	assert_non_null(strstr(err.text, "routes \"r\": variant k=2000: the name has too many"));
	xds_variants_begin(w.cache, XDS_CHANGE_LISTED);
	world_set(&w, "s", NONE, 1);
	xds_variants_commit(w.cache);
	world_fini(&w);
}

RUN_SUITE("xds/variants", cmocka_unit_test(resource_is_a_name_with_constraints),
	cmocka_unit_test(same_name_and_constraints_twice_in_one_change_are_refused),
	cmocka_unit_test(removal_takes_only_the_variant_it_names),
	cmocka_unit_test(each_subscription_of_the_example_sees_its_variant),
	cmocka_unit_test(split_of_a_variant_is_one_update_to_those_it_concerns),
	cmocka_unit_test(removal_without_a_matching_replacement_leaves_nothing),
	cmocka_unit_test(sole_variant_is_that_of_a_name_with_no_other),
	cmocka_unit_test(full_change_removes_what_it_does_not_list),
	cmocka_unit_test(kept_variants_stay_in_a_full_change),
	cmocka_unit_test(newly_matching_variant_replaces_the_old_one_where_the_newest_wins),
	cmocka_unit_test(subscriptions_are_found_by_constraints),
	cmocka_unit_test(overlapping_variants_are_refused_with_an_example),
	cmocka_unit_test(what_nobody_subscribed_to_is_not_taken_in),
	cmocka_unit_test(ambiguity_is_stable_and_told_once),
	cmocka_unit_test(unconstrained_resource_serves_whatever_parameters),
	cmocka_unit_test(what_is_seen_brings_its_constraints),
	cmocka_unit_test(subscriptions_are_shared_and_new_ones_see_what_is_cached),
	cmocka_unit_test(database_keeps_what_nobody_subscribes_to),
	cmocka_unit_test(versions_are_shared_and_outlive_what_they_came_from),
	cmocka_unit_test(same_content_again_tells_nobody_and_takes_the_version),
	cmocka_unit_test(slow_subscriber_finds_one_difference),
	cmocka_unit_test(change_that_is_given_up_never_was),
	cmocka_unit_test(subscriptions_come_and_go_while_a_change_is_listed),
	cmocka_unit_test(name_has_a_bounded_number_of_variants))
