// SPDX-License-Identifier: Apache-2.0
// Names, parameters, wildcards and what was told; compared with a naive list on random input.
#include "ctrl/xds/variants/params.h"
#include "lb/base/rand.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/shunt-xds/stream_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_NAMES 12
#define N_PARAMS 2 // none, and {p=1}

struct world {
	struct server server;
	struct catalog_type *type;
	struct xds_params *params[N_PARAMS];
	struct subscription s;
	char text[256];
};

static int setup(void **state)
{
	static const struct xds_param param = {"p", "1"};
	struct world *w = calloc(1, sizeof(*w));
	server_init(&w->server, false);
	w->type = &w->server.catalog->types[RESOURCE_CLUSTER];
	assert_int_equal(xds_params_new(&param, 1, &w->params[1]), 0);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	subscription_fini(&w->s, w->type);
	xds_params_put(w->params[1]);
	server_fini(&w->server);
	free(w);
	return 0;
}

// Clusters with one-letter names.
static void publish(struct world *w, const char *letters)
{
	char words[256] = "";
	for (const char *c = letters; *c; c++)
		snprintf(words + strlen(words), sizeof(words) - strlen(words), "C:%c=1 ", *c);
	server_publish(&w->server, words);
}

struct locators {
	struct locator list[64];
	char names[64][2];
	size_t n;
};

// One-letter names; capitals are the same with parameters, '+' is "*" with them.
static void list_locators(struct world *w, struct locators *ret, const char *letters)
{
	for (ret->n = 0; letters[ret->n]; ret->n++) {
		char c = letters[ret->n];
		bool has_params = c == '+' || (c >= 'A' && c <= 'Z');
		ret->names[ret->n][0] = c == '+' ? '*' : has_params ? (char)(c - 'A' + 'a') : c;
		ret->names[ret->n][1] = '\0';
		ret->list[ret->n] = (struct locator){ret->names[ret->n], w->params[has_params]};
	}
}

static int try_set(struct world *w, const char *letters, bool empty_is_wildcard)
{
	struct locators list;
	list_locators(w, &list, letters);
	return subscription_set(&w->s, w->type, list.list, list.n, empty_is_wildcard);
}

static void set(struct world *w, const char *letters, bool empty_is_wildcard)
{
	assert_int_equal(try_set(w, letters, empty_is_wildcard), 0);
}

static int try_change(struct world *w, const char *add, const char *remove)
{
	struct locators more, less;
	list_locators(w, &more, add);
	list_locators(w, &less, remove);
	return subscription_change(&w->s, w->type, more.list, more.n, less.list, less.n);
}

static void change(struct world *w, const char *add, const char *remove)
{
	assert_int_equal(try_change(w, add, remove), 0);
}

static void refresh(struct world *w)
{
	assert_int_equal(subscription_refresh(&w->s, w->type), 0);
}

static char letter_of(const struct subscription_entry *e)
{
	char c = e->sub->name[0];
	return e->sub->params ? (char)(c - 'a' + 'A') : c;
}

// The entries, with "?" after those that an answer is owed for.
static const char *entries(struct world *w)
{
	size_t n = 0;
	for (size_t i = 0; i < w->s.n; i++) {
		w->text[n++] = letter_of(&w->s.entries[i]);
		if (w->s.entries[i].asked)
			w->text[n++] = '?';
	}
	w->text[n] = '\0';
	return w->text;
}

static void tell_all(struct world *w)
{
	for (size_t i = 0; i < w->s.n; i++)
		subscription_told(&w->s.entries[i], w->s.entries[i].sub->variant);
}

static void list_replaces_the_one_before(void **state)
{
	struct world *w = *state;
	set(w, "cabAc", true);
	assert_string_equal(entries(w), "aAbc");
	set(w, "bdA", true);
	assert_string_equal(entries(w), "Abd");
	assert_int_equal(w->s.n_wild, 0);
}

// SW-09, SW-10.
static void empty_list_is_a_wildcard_until_a_name_was_given(void **state)
{
	struct world *w = *state;
	set(w, "", true);
	assert_int_equal(w->s.n_wild, 1);
	set(w, "", true);
	assert_int_equal(w->s.n_wild, 1);
	set(w, "a", true);
	assert_int_equal(w->s.n_wild, 0);
	set(w, "", true);
	assert_int_equal(w->s.n_wild, 0);
	assert_int_equal(w->s.n, 0);
}

static void empty_list_of_other_types_is_nothing(void **state)
{
	struct world *w = *state;
	set(w, "", false);
	assert_int_equal(w->s.n_wild, 0);
}

static void star_is_a_wildcard_beside_names(void **state)
{
	struct world *w = *state;
	publish(w, "ab");
	set(w, "x*", true);
	refresh(w);
	assert_string_equal(entries(w), "abx");
	set(w, "x", true); // what came through the wildcard goes with it
	assert_string_equal(entries(w), "x");
	set(w, "+*", true);
	refresh(w);
	assert_string_equal(entries(w), "aAbB");
	set(w, "+a", true);
	refresh(w);
	assert_string_equal(entries(w), "aAB");
}

static void wildcard_keeps_what_the_client_still_holds(void **state)
{
	struct world *w = *state;
	publish(w, "ab");
	set(w, "", true);
	refresh(w);
	tell_all(w);
	publish(w, "b");
	refresh(w);
	assert_string_equal(entries(w), "ab");
	assert_null(w->s.entries[0].sub->variant);
	tell_all(w);
	publish(w, "bc");
	refresh(w);
	assert_string_equal(entries(w), "bc");
}

static void name_that_comes_back_was_not_sent(void **state)
{
	struct world *w = *state;
	publish(w, "ab");
	set(w, "ab", true);
	tell_all(w);
	set(w, "b", true);
	set(w, "ab", true);
	assert_null(w->s.entries[0].sent);
	assert_non_null(w->s.entries[1].sent);
	subscription_forget(&w->s);
	assert_null(w->s.entries[1].sent);
}

static void changes_add_and_take_away(void **state)
{
	struct world *w = *state;
	publish(w, "ab");
	change(w, "bBa", "");
	assert_string_equal(entries(w), "a?b?B?");
	tell_all(w);
	change(w, "ac", "abx");
	assert_string_equal(entries(w), "a?Bc?"); // in both: asked for anew
	tell_all(w);
	change(w, "*", "");
	refresh(w);
	assert_string_equal(entries(w), "a?bBc"); // a wildcard asks for all there is
	tell_all(w);
	change(w, "", "a"); // the wildcard has it still (DL-10)
	assert_string_equal(entries(w), "a?bBc");
	change(w, "", "*");
	refresh(w);
	assert_string_equal(entries(w), "Bc");
}

static void holdings_are_matched_by_name(void **state)
{
	struct world *w = *state;
	publish(w, "ab");
	change(w, "ac", "");
	struct holding list[] = {{"c", "1"}, {"a", "2"}, {"x", "3"}, {"a", "2"}};
	assert_int_equal(subscription_hold(&w->s, w->type, list, 4), 0);
	assert_string_equal(entries(w), "ac");
	assert_string_equal(w->s.entries[0].sent->version, "2");
	assert_string_equal(w->s.entries[1].sent->version, "1");
	change(w, "*", "");
	struct holding more[] = {{"x", "3"}};
	assert_int_equal(subscription_hold(&w->s, w->type, more, 1), 0);
	refresh(w);
	assert_string_equal(entries(w), "a?bc?x"); // a wildcard asks for all there is
}

static void too_many_are_refused(void **state)
{
	struct world *w = *state;
	size_t n = SUBSCRIPTION_MAX + 1;
	struct locator *list = malloc(n * sizeof(*list));
	char(*names)[8] = malloc(n * sizeof(*names));
	assert_true(list && names);
	for (size_t i = 0; i < n; i++) {
		snprintf(names[i], sizeof(names[i]), "%zu", i);
		list[i] = (struct locator){names[i], NULL};
	}
	set(w, "a", true);
	assert_int_equal(subscription_set(&w->s, w->type, list, n, true), -E2BIG);
	assert_string_equal(entries(w), "a");
	// As many as may be, and then in the answer once more.
	set(w, "", false);
	for (int round = 0; round < 2; round++)
		assert_int_equal(subscription_set(&w->s, w->type, list, n - 1, false), 0);
	assert_int_equal(w->s.n, n - 1);
	free(list);
	free(names);
}

static int step(struct world *w, int what)
{
	struct holding list[] = {{"a", "1"}};
	switch (what) {
	case 0:
		return try_set(w, "adbce*", true);
	case 1:
		return subscription_refresh(&w->s, w->type);
	case 2:
		return try_change(w, "B", "bde*");
	default:
		return subscription_hold(&w->s, w->type, list, 1);
	}
}

static void change_without_memory_changes_nothing(void **state)
{
	struct world *w = *state;
	static const char *const after[] = {"abcde", "abcdexy", "aB?c", "aB?c"};
	publish(w, "acxy");
	set(w, "bce", true);
	for (int what = 0; what < 4; what++) {
		char before[256];
		snprintf(before, sizeof(before), "%s", entries(w));
		int r = -ENOMEM;
		for (size_t nth = 0; r < 0; nth++) {
			assert_string_equal(entries(w), before);
			alloc_fail_arm(nth);
			r = step(w, what);
			bool was_hit = alloc_fail_disarm();
			assert_int_equal(r, was_hit ? -ENOMEM : 0);
		}
		assert_string_equal(entries(w), after[what]);
	}
}

// The naive twin: flags by letter and parameters.
struct twin {
	bool named[N_NAMES][N_PARAMS], sent[N_NAMES][N_PARAMS], asked[N_NAMES][N_PARAMS];
	bool left[N_NAMES][N_PARAMS];
	bool there[N_NAMES], wild[N_PARAMS], ever_named;
};

static void random_letters(struct rand *rand, char *letters)
{
	size_t n = 0;
	for (uint64_t left = rand_below(rand, 8); left > 0; left--)
		letters[n++] =
			(char)((rand_below(rand, 2) ? 'a' : 'A') + rand_below(rand, N_NAMES));
	if (rand_below(rand, 4) == 0)
		letters[n++] = rand_below(rand, 2) ? '*' : '+';
	letters[n] = '\0';
}

static bool is_letter(char c)
{
	return c != '*' && c != '+';
}

static void drop_unwanted(struct twin *t)
{
	for (int i = 0; i < N_NAMES; i++) {
		for (int k = 0; k < N_PARAMS; k++) {
			t->sent[i][k] &= t->named[i][k] || t->wild[k] || t->left[i][k];
			t->asked[i][k] &= t->named[i][k] || t->wild[k];
		}
	}
}

static void twin_set(struct twin *t, const char *letters)
{
	bool was_wild[N_PARAMS] = {t->wild[0], t->wild[1]};
	memset(t->named, 0, sizeof(t->named));
	t->wild[0] = strchr(letters, '*') || (letters[0] == '\0' && !t->ever_named);
	t->wild[1] = strchr(letters, '+') != NULL;
	t->ever_named |= letters[0] != '\0';
	for (const char *c = letters; *c; c++)
		if (is_letter(*c))
			t->named[(*c | 0x20) - 'a'][*c < 'a'] = true;
	for (int i = 0; i < N_NAMES; i++)
		for (int k = 0; k < N_PARAMS; k++)
			t->asked[i][k] |= t->wild[k] && !was_wild[k] && t->sent[i][k];
	drop_unwanted(t);
}

static bool is_here(const struct twin *t, int i, int k)
{
	return t->named[i][k] || t->left[i][k] ||
	       (t->wild[k] && (t->there[i] || t->sent[i][k] || t->asked[i][k]));
}

// What ends, but is kept by what stays, which was sent nothing itself.
static void leave(struct twin *t)
{
	for (int i = 0; i < N_NAMES; i++) {
		for (int k = 0; k < N_PARAMS; k++) {
			bool ends = !t->named[i][k] && !t->wild[k];
			bool other_stays = t->named[i][!k] || t->wild[!k];
			t->left[i][k] = ends && t->sent[i][k] && other_stays && !t->sent[i][!k];
		}
	}
}

static void twin_change(struct twin *t, const char *add, const char *remove)
{
	bool was_wild[N_PARAMS];
	for (int k = 0; k < N_PARAMS; k++) {
		const char star = k ? '+' : '*';
		was_wild[k] = t->wild[k];
		t->wild[k] = strchr(add, star) || (t->wild[k] && !strchr(remove, star));
	}
	for (const char *c = remove; *c; c++) {
		int k = *c < 'a', i = (*c | 0x20) - 'a';
		if (!is_letter(*c))
			continue;
		bool was_here = t->named[i][k] || t->left[i][k] ||
		                (was_wild[k] && (t->there[i] || t->sent[i][k] || t->asked[i][k]));
		if (!was_here)
			continue;
		t->named[i][k] = false;
		t->asked[i][k] = t->wild[k];
	}
	for (int k = 0; k < N_PARAMS; k++)
		for (int i = 0; i < N_NAMES; i++)
			t->asked[i][k] |= (was_wild[k] || t->named[i][k] || t->left[i][k]) &&
			                  strchr(add, k ? '+' : '*') &&
			                  (t->there[i] || t->sent[i][k]);
	for (const char *c = add; *c; c++) {
		int k = *c < 'a', i = (*c | 0x20) - 'a';
		if (!is_letter(*c))
			continue;
		t->named[i][k] = t->asked[i][k] = true;
	}
	leave(t);
	drop_unwanted(t);
}

static void expect(const struct subscription *s, const struct twin *t)
{
	size_t at = 0;
	for (int i = 0; i < N_NAMES; i++) {
		for (int k = 0; k < N_PARAMS; k++) {
			if (!is_here(t, i, k))
				continue;
			assert_true(at < s->n);
			const struct subscription_entry *e = &s->entries[at++];
			assert_int_equal(letter_of(e), (k ? 'A' : 'a') + i);
			assert_int_equal(e->named, t->named[i][k]);
			assert_int_equal(e->asked, t->asked[i][k]);
			assert_int_equal(e->left, t->left[i][k]);
			assert_int_equal(e->sub->variant != NULL, t->there[i]);
			assert_int_equal(e->sent != NULL, t->sent[i][k]);
		}
	}
	assert_int_equal(at, s->n);
}

static void random_publish(struct world *w, struct twin *t, struct rand *rand)
{
	char letters[N_NAMES + 1];
	size_t n = 0;
	for (int i = 0; i < N_NAMES; i++) {
		t->there[i] = rand_below(rand, 3) == 0;
		if (t->there[i])
			letters[n++] = (char)('a' + i);
	}
	letters[n] = '\0';
	publish(w, letters);
}

static void tell_some(struct subscription *s, struct twin *t, struct rand *rand)
{
	for (size_t i = 0; i < s->n; i++) {
		struct subscription_entry *e = &s->entries[i];
		if (rand_below(rand, 3))
			continue;
		struct xds_variant *v = e->left ? NULL : e->sub->variant;
		subscription_told(e, v);
		int k = e->sub->params != NULL, letter = e->sub->name[0] - 'a';
		t->sent[letter][k] = v != NULL;
		t->asked[letter][k] = t->left[letter][k] = false;
	}
	// What was told to be gone is gone from the list at the next look, if a wildcard had it.
	s->wild_is_stale = true;
}

static void compare_with_twin(struct world *w, bool is_delta, uint64_t seed)
{
	struct rand rand;
	struct twin t = {.ever_named = false};
	rand_init(&rand, seed);
	for (int round = 0; round < 5000; round++) {
		char add[32], remove[32];
		random_letters(&rand, add);
		random_letters(&rand, remove);
		refresh(w);
		if (rand_below(&rand, 3) == 0) {
			random_publish(w, &t, &rand);
		} else if (is_delta) {
			change(w, add, remove);
			twin_change(&t, add, remove);
		} else {
			set(w, add, true);
			twin_set(&t, add);
		}
		refresh(w);
		expect(&w->s, &t);
		tell_some(&w->s, &t, &rand);
	}
}

static void random_lists_agree_with_the_naive_twin(void **state)
{
	compare_with_twin(*state, false, 7);
}

static void random_changes_agree_with_the_naive_twin(void **state)
{
	compare_with_twin(*state, true, 8);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

RUN_SUITE("shunt-xds/subscription", CASE(list_replaces_the_one_before),
	CASE(empty_list_is_a_wildcard_until_a_name_was_given),
	CASE(empty_list_of_other_types_is_nothing), CASE(star_is_a_wildcard_beside_names),
	CASE(wildcard_keeps_what_the_client_still_holds), CASE(name_that_comes_back_was_not_sent),
	CASE(changes_add_and_take_away), CASE(holdings_are_matched_by_name),
	CASE(too_many_are_refused), CASE(change_without_memory_changes_nothing),
	CASE(random_lists_agree_with_the_naive_twin),
	CASE(random_changes_agree_with_the_naive_twin))
