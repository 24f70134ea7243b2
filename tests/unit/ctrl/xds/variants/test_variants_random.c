// SPDX-License-Identifier: Apache-2.0
// Random changes and subscriptions against a naive twin of the cache, and each allocation of a life
// failed once.
#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/variants/params.h"
#include "lb/base/rand.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/variants/variants_fixture.h"
#include "tests/unit/ctrl/xds/variants/variants_world.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define N_NAMES 3
#define N_CONS 8
#define N_PARAMS 6
#define N_STEPS 20000

#define PROD "{'constraint':{'key':'env','value':'prod'}}"
#define V1 "{'constraint':{'key':'version','value':'v1'}}"
#define V2 "{'constraint':{'key':'version','value':'v2'}}"
#define NOT(x) "{'not_constraints':" x "}"
#define AND(x) "{'and_constraints':{'constraints':[" x "]}}"

static const char *const names[N_NAMES] = {"a", "b", "c"};
// From the smallest encoding to the largest.
static const char *const constraints[N_CONS] = {
	"{}", PROD, V1, V2, NOT(PROD), NOT(V1), AND(PROD "," V1), AND(PROD "," NOT(V1))};
static const char *const params[N_PARAMS] = {"", "env=prod", "env=prod version=v1",
	"env=prod version=v2", "env=test version=v1", "env=test"};

static struct xds_constraints *con[N_CONS];
static struct xds_params *par[N_PARAMS];

static int group_setup(void **state)
{
	for (int c = 0; c < N_CONS; c++)
		con[c] = constraints_of(constraints[c]);
	for (int p = 0; p < N_PARAMS; p++)
		par[p] = params_of(params[p]);
	return 0;
}

static int group_teardown(void **state)
{
	for (int c = 0; c < N_CONS; c++)
		xds_constraints_put(con[c]);
	for (int p = 0; p < N_PARAMS; p++)
		xds_params_put(par[p]);
	return 0;
}

struct twin_variant {
	bool is_there;
	int number; // its content
	unsigned object; // changes when it is replaced
	unsigned change;
};

struct twin_sub {
	unsigned n_refs;
	int sees; // constraints; -1 = none
	struct twin_variant what; // as it is seen; all zero = nothing
	unsigned n_matches;
	bool is_changed, was_ambiguous, newly_ambiguous;
	struct twin_variant told;
	struct xds_sub *real;
};

struct twin_edit {
	enum { NOTHING, SET, REMOVE, KEEP } kind;
	int number;
};

struct twin_cache {
	bool keeps_all, newest_wins;
	bool matches[N_CONS][N_PARAMS];
	struct twin_variant variants[N_NAMES][N_CONS];
	struct twin_sub subs[N_NAMES][N_PARAMS];
	unsigned n_objects, n_changes, n_aged;
};

static unsigned rank(const struct twin_cache *t, const struct twin_variant *v)
{
	return t->newest_wins ? v->change : v->change > t->n_aged;
}

static int choose(const struct twin_cache *t, int name, int p, int in_use, unsigned *ret_n)
{
	unsigned highest = 0;
	*ret_n = 0;
	for (int c = 0; c < N_CONS; c++) {
		const struct twin_variant *v = &t->variants[name][c];
		if (v->is_there && t->matches[c][p] && rank(t, v) > highest)
			highest = rank(t, v);
	}
	int first = -1;
	bool in_use_counts = false;
	for (int c = 0; c < N_CONS; c++) {
		const struct twin_variant *v = &t->variants[name][c];
		if (!v->is_there || !t->matches[c][p])
			continue;
		if (rank(t, v) != highest)
			continue;
		++*ret_n;
		first = first < 0 ? c : first;
		in_use_counts = in_use_counts || c == in_use;
	}
	return in_use_counts ? in_use : first;
}

static void look(struct twin_cache *t, int name, int p, bool is_new)
{
	struct twin_sub *s = &t->subs[name][p];
	unsigned n_before = s->n_matches;
	struct twin_variant before = s->what;
	s->sees = choose(t, name, p, is_new ? -1 : s->sees, &s->n_matches);
	s->what = s->sees < 0 ? (struct twin_variant){0} : t->variants[name][s->sees];
	bool newly = s->n_matches > 1 && n_before < 2 && !s->was_ambiguous;
	s->was_ambiguous = s->was_ambiguous || s->n_matches > 1;
	if (is_new)
		return;
	s->newly_ambiguous = s->newly_ambiguous || newly;
	if ((before.object != s->what.object || newly) && !s->is_changed) {
		s->is_changed = true;
		s->told = before;
	}
}

static void evict(struct twin_cache *t, int name)
{
	for (int c = 0; c < N_CONS && !t->keeps_all; c++) {
		bool is_wanted = false;
		for (int p = 0; p < N_PARAMS; p++) {
			const struct twin_sub *s = &t->subs[name][p];
			if (!s->n_refs || s->sees < 0)
				continue;
			const struct twin_variant *seen = &t->variants[name][s->sees];
			bool is_old =
				t->newest_wins || rank(t, &t->variants[name][c]) < rank(t, seen);
			is_wanted = is_wanted || s->sees == c || (!is_old && t->matches[c][p]);
		}
		if (!is_wanted)
			t->variants[name][c].is_there = false;
	}
}

static void commit(struct twin_cache *t, bool is_full, struct twin_edit edits[N_NAMES][N_CONS],
	const bool keeps_rest[N_NAMES])
{
	t->n_changes++;
	for (int n = 0; n < N_NAMES; n++) {
		bool is_touched = is_full || keeps_rest[n];
		for (int c = 0; c < N_CONS; c++) {
			struct twin_variant *v = &t->variants[n][c];
			const struct twin_edit *e = &edits[n][c];
			is_touched = is_touched || e->kind != NOTHING;
			if (e->kind == REMOVE || (e->kind == NOTHING && is_full && !keeps_rest[n]))
				v->is_there = false;
			if (e->kind != SET)
				continue;
			if (!v->is_there || v->number != e->number)
				v->object = ++t->n_objects;
			v->is_there = true;
			v->number = e->number;
			v->change = t->n_changes;
		}
		for (int p = 0; p < N_PARAMS; p++)
			if (t->subs[n][p].n_refs && is_touched)
				look(t, n, p, false);
		evict(t, n);
	}
}

static void change_both(struct twin_cache *t, struct world *w, struct rand *r)
{
	struct twin_edit edits[N_NAMES][N_CONS] = {0};
	bool keeps_rest[N_NAMES] = {false};
	bool is_full = rand_below(r, 3) == 0 && !t->newest_wins;
	struct lb_err err = {""};
	xds_variants_begin(w->cache, is_full ? XDS_CHANGE_FULL : XDS_CHANGE_LISTED);
	for (uint64_t i = rand_below(r, 8); i > 0; i--) {
		int n = (int)rand_below(r, N_NAMES), c = (int)rand_below(r, N_CONS);
		struct twin_edit *e = &edits[n][c];
		uint64_t draw = rand_below(r, 10);
		int number = 1 + (int)rand_below(r, 2), rc = 0;
		bool is_listed = e->kind != NOTHING;
		if (draw < 6)
			rc = world_try_set_of(w, names[n], con[c], number, &err);
		else if (draw < 8)
			rc = xds_variants_remove(w->cache, names[n], con[c], &err);
		else if (draw < 9)
			rc = xds_variants_keep(w->cache, names[n], con[c], &err);
		else
			assert_int_equal(xds_variants_keep_all(w->cache, names[n]), 0);
		if (draw == 9) {
			keeps_rest[n] = true;
			continue;
		}
		assert_int_equal(rc, is_listed ? -EEXIST : 0);
		if (!is_listed)
			*e = (struct twin_edit){draw < 6 ? SET : draw < 8 ? REMOVE : KEEP, number};
	}
	if (rand_below(r, 5) == 0) {
		xds_variants_abort(w->cache);
		return;
	}
	xds_variants_commit(w->cache);
	commit(t, is_full, edits, keeps_rest);
}

static void subscribe_both(struct twin_cache *t, struct world *w, struct rand *r)
{
	int n = (int)rand_below(r, N_NAMES), p = (int)rand_below(r, N_PARAMS);
	struct twin_sub *s = &t->subs[n][p];
	if (s->n_refs < 2 && rand_below(r, 2)) {
		struct xds_sub *real = world_sub(w, names[n], params[p]);
		assert_true(!s->n_refs || real == s->real);
		if (s->n_refs++ == 0) {
			*s = (struct twin_sub){.n_refs = 1, .real = real, .sees = -1};
			look(t, n, p, true);
		}
	} else if (s->n_refs) {
		s->n_refs--;
		assert_int_equal(xds_sub_put(w->cache, s->real), s->n_refs == 0);
		if (s->n_refs)
			return;
		*s = (struct twin_sub){.sees = -1};
		evict(t, n);
	}
}

static void drain_both(struct twin_cache *t, struct world *w)
{
	struct xds_variants_event e;
	while (xds_variants_drain(w->cache, &e)) {
		struct twin_sub *s = NULL;
		for (int n = 0; n < N_NAMES; n++)
			for (int p = 0; p < N_PARAMS; p++)
				if (t->subs[n][p].n_refs && t->subs[n][p].real == e.sub)
					s = &t->subs[n][p];
		assert_non_null(s);
		assert_true(s->is_changed);
		assert_int_equal(world_number(e.before), s->told.number);
		assert_int_equal(world_number(e.after), s->what.number);
		assert_int_equal(e.before != e.after, s->told.object != s->what.object);
		assert_int_equal(e.newly_ambiguous, s->newly_ambiguous);
		assert_true(e.before != e.after || e.newly_ambiguous);
		s->is_changed = s->newly_ambiguous = false;
	}
	for (int n = 0; n < N_NAMES; n++) {
		for (int p = 0; p < N_PARAMS; p++) {
			struct twin_sub *s = &t->subs[n][p];
			// Left over: there and back, which nobody is told.
			if (s->is_changed)
				assert_int_equal(s->told.object, s->what.object);
			assert_false(s->newly_ambiguous);
			s->is_changed = false;
		}
	}
}

static void compare(const struct twin_cache *t, struct world *w)
{
	char expected[WORLD_TEXT] = "";
	unsigned n_variants = 0, n_subs = 0;
	for (int n = 0; n < N_NAMES; n++) {
		for (int c = 0; c < N_CONS; c++) {
			const struct twin_variant *v = &t->variants[n][c];
			const struct xds_variant *real =
				xds_variants_find(w->cache, names[n], con[c]);
			assert_int_equal(real != NULL, v->is_there);
			n_variants += v->is_there;
			if (!real)
				continue;
			assert_int_equal(world_number(real), v->number);
			assert_int_equal(real->change, v->change);
			snprintf(expected, sizeof(expected), "v%d.%u", v->number, v->change);
			assert_string_equal(real->version, expected);
		}
		for (int p = 0; p < N_PARAMS; p++) {
			const struct twin_sub *s = &t->subs[n][p];
			assert_ptr_equal(xds_sub_find(w->cache, names[n], par[p]),
				s->n_refs ? s->real : NULL);
			n_subs += s->n_refs > 0;
			if (!s->n_refs)
				continue;
			assert_int_equal(world_number(s->real->variant), s->what.number);
			assert_int_equal(s->real->n_matches, s->n_matches);
		}
	}
	struct xds_variants_counts counts;
	xds_variants_counts(w->cache, &counts);
	assert_int_equal(counts.n_variants, n_variants);
	assert_int_equal(counts.n_subs, n_subs);
	assert_true(counts.n_names <= N_NAMES);
	assert_int_equal(counts.n_changes, t->n_changes);
}

static void constraints_here_are_in_order_of_their_encoding(void **state)
{
	for (int c = 1; c < N_CONS; c++) {
		size_t len_a, len_b;
		const uint8_t *bytes_a = xds_constraints_bytes(con[c - 1], &len_a);
		const uint8_t *bytes_b = xds_constraints_bytes(con[c], &len_b);
		assert_true(
			len_a < len_b || (len_a == len_b && memcmp(bytes_a, bytes_b, len_a) < 0));
	}
}

static void random_lives_go_as_the_naive_twin_says(void **state)
{
	for (int i = 0; i < 3; i++) {
		struct twin_cache t = {.keeps_all = i == 0, .newest_wins = i == 2};
		struct world w;
		struct rand r;
		rand_init(&r, 20260103 + (uint64_t)i);
		world_init(&w, t.keeps_all, t.newest_wins);
		for (int c = 0; c < N_CONS; c++)
			for (int p = 0; p < N_PARAMS; p++)
				t.matches[c][p] = xds_constraints_match(con[c], par[p]);
		for (int step = 0; step < N_STEPS; step++) {
			w.round = (int)t.n_changes + 1;
			if (rand_below(&r, 3))
				change_both(&t, &w, &r);
			else
				subscribe_both(&t, &w, &r);
			if (rand_below(&r, 20) == 0) {
				xds_variants_age(w.cache);
				t.n_aged = t.n_changes;
			}
			if (rand_below(&r, 3) == 0)
				drain_both(&t, &w);
			compare(&t, &w);
		}
		for (int n = 0; n < N_NAMES; n++)
			for (int p = 0; p < N_PARAMS; p++)
				while (t.subs[n][p].n_refs && t.subs[n][p].n_refs--)
					(void)xds_sub_put(w.cache, t.subs[n][p].real);
		world_fini(&w);
	}
}

#define ENV(v) "{'constraint':{'key':'env','value':'" v "'}}"

// What has no memory changes nothing and can be done again: the end is the same. False = that call
// has not so many allocations.
static bool life_with_failure(unsigned victim, size_t nth, unsigned *ret_n_calls)
{
	struct world w;
	struct xds_sub *subs[20] = {NULL};
	struct lb_err err;
	unsigned n_calls = 0;
	bool hit = false;
	world_init(&w, false, false);
#define TRY(call)                                                                                  \
	do {                                                                                       \
		int rc;                                                                            \
		bool turn = n_calls++ == victim;                                                   \
		if (turn)                                                                          \
			alloc_fail_arm(nth);                                                       \
		rc = call;                                                                         \
		if (turn && (hit = alloc_fail_disarm()) && rc) {                                   \
			assert_int_equal(rc, -ENOMEM);                                             \
			rc = call;                                                                 \
		}                                                                                  \
		assert_int_equal(rc, 0);                                                           \
	} while (0)
	struct xds_params *p[20];
	bool is_new;
	for (int i = 0; i < 20; i++) { // the table of subscriptions grows
		char text[32];
		snprintf(text, sizeof(text), "env=prod n=%d", i);
		p[i] = params_of(text);
		TRY(xds_sub_get(w.cache, "r", p[i], &subs[i], &is_new));
	}
	struct xds_constraints *prod = constraints_of(ENV("prod")),
			       *test = constraints_of(ENV("test"));
	for (int round = 0; round < 2; round++) {
		xds_variants_begin(w.cache, XDS_CHANGE_FULL);
		TRY(xds_variants_keep_all(w.cache, "s"));
		TRY(xds_variants_remove(w.cache, "r", test, &err));
		TRY(xds_variants_keep(w.cache, "r", NULL, &err));
		TRY(world_try_set_of(&w, "r", prod, round + 1, &err));
		TRY(xds_variants_check(w.cache, NULL, &err));
		xds_variants_commit(w.cache);
	}
	assert_string_equal(world_dump(&w), "r 2 env=prod");
	for (int i = 0; i < 20; i++) {
		assert_int_equal(world_number(subs[i]->variant), 2);
		(void)xds_sub_put(w.cache, subs[i]);
		xds_params_put(p[i]);
	}
	xds_constraints_put(prod);
	xds_constraints_put(test);
	world_fini(&w);
	*ret_n_calls = n_calls;
	return hit;
}

static void each_allocation_may_fail(void **state)
{
	if (!alloc_fail_works())
		skip();
	size_t n_failed = 0;
	unsigned n_calls = 1;
	for (unsigned victim = 0; victim < n_calls; victim++)
		for (size_t nth = 0; life_with_failure(victim, nth, &n_calls); nth++)
			n_failed++;
	assert_in_range(n_failed, 40, 1000);
}

int main(void)
{
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(constraints_here_are_in_order_of_their_encoding),
		cmocka_unit_test(random_lives_go_as_the_naive_twin_says),
		cmocka_unit_test(each_allocation_may_fail),
	};
	return cmocka_run_group_tests_name(
		"xds/variants_random", suite, group_setup, group_teardown);
}
