// SPDX-License-Identifier: Apache-2.0
// Names, wildcards and what was sent; compared with a naive list on random input.
#include "lb/base/rand.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tools/shunt-xds/subscription.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_NAMES 12

static struct resource_set *set_of(const char *names)
{
	struct resource_set *set = resource_set_new();
	for (const char *c = names; *c; c++) {
		char name[2] = {*c, '\0'};
		struct resource *r = resource_new(RESOURCE_CLUSTER, name, "f", NULL, 0);
		assert_int_equal(resource_set_add(set, r), 0);
	}
	assert_int_equal(resource_set_seal(set, NULL, NULL), 0);
	return set;
}

// One-letter names.
static void set_names(struct subscription *s, const char *letters, bool empty_is_wildcard)
{
	char text[32][2];
	char *names[32];
	size_t n = 0;
	for (; letters[n]; n++) {
		text[n][0] = letters[n];
		text[n][1] = '\0';
		names[n] = text[n];
	}
	assert_int_equal(subscription_set_names(s, names, n, empty_is_wildcard), 0);
}

static const char *names_of(const struct subscription *s)
{
	static char text[64];
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++)
		text[n++] = s->entries[i].name[0];
	text[n] = '\0';
	return text;
}

static void list_replaces_the_one_before(void **state)
{
	struct subscription s = {0};
	set_names(&s, "cabac", true);
	assert_string_equal(names_of(&s), "abc");
	set_names(&s, "bd", true);
	assert_string_equal(names_of(&s), "bd");
	assert_false(s.wildcard);
	subscription_fini(&s);
}

// SW-09, SW-10.
static void empty_list_is_a_wildcard_until_a_name_was_given(void **state)
{
	struct subscription s = {0};
	set_names(&s, "", true);
	assert_true(s.wildcard);
	set_names(&s, "", true);
	assert_true(s.wildcard);
	set_names(&s, "a", true);
	assert_false(s.wildcard);
	set_names(&s, "", true);
	assert_false(s.wildcard);
	assert_int_equal(s.n, 0);
	subscription_fini(&s);
}

static void empty_list_of_other_types_is_nothing(void **state)
{
	struct subscription s = {0};
	set_names(&s, "", false);
	assert_false(s.wildcard);
	subscription_fini(&s);
}

static void star_is_a_wildcard_beside_names(void **state)
{
	struct resource_set *set = set_of("ab");
	struct subscription s = {0};
	set_names(&s, "*x", true);
	assert_true(s.wildcard);
	assert_int_equal(subscription_refresh(&s, set, RESOURCE_CLUSTER), 0);
	assert_string_equal(names_of(&s), "abx");
	set_names(&s, "x", true); // what came through the wildcard goes with it
	assert_false(s.wildcard);
	assert_string_equal(names_of(&s), "x");
	set_names(&s, "*", true);
	assert_int_equal(subscription_refresh(&s, set, RESOURCE_CLUSTER), 0);
	assert_string_equal(names_of(&s), "ab");
	subscription_fini(&s);
	resource_set_free(set);
}

static void wildcard_keeps_what_the_client_still_holds(void **state)
{
	struct resource_set *ab = set_of("ab"), *b = set_of("b");
	struct subscription s = {0};
	set_names(&s, "", true);
	assert_int_equal(subscription_refresh(&s, ab, RESOURCE_CLUSTER), 0);
	subscription_sent(&s.entries[0], s.entries[0].current);
	assert_int_equal(subscription_refresh(&s, b, RESOURCE_CLUSTER), 0);
	assert_string_equal(names_of(&s), "ab");
	assert_null(s.entries[0].current);
	subscription_sent(&s.entries[0], NULL);
	assert_int_equal(subscription_refresh(&s, b, RESOURCE_CLUSTER), 0);
	assert_string_equal(names_of(&s), "b");
	subscription_fini(&s);
	resource_set_free(ab);
	resource_set_free(b);
}

static void name_that_comes_back_was_not_sent(void **state)
{
	struct resource_set *set = set_of("ab");
	struct subscription s = {0};
	set_names(&s, "ab", true);
	assert_int_equal(subscription_refresh(&s, set, RESOURCE_CLUSTER), 0);
	for (size_t i = 0; i < s.n; i++)
		subscription_sent(&s.entries[i], s.entries[i].current);
	set_names(&s, "b", true);
	set_names(&s, "ab", true);
	assert_null(s.entries[0].sent);
	assert_non_null(s.entries[1].sent);
	subscription_forget(&s);
	assert_null(s.entries[1].sent);
	subscription_fini(&s);
	resource_set_free(set);
}

// Nothing has changed after a change that failed: the expected names stand there still.
static void change_without_memory_changes_nothing(void **state)
{
	struct resource_set *set = set_of("acxy");
	struct subscription s = {0};
	char names[][2] = {"a", "b", "*", "d"};
	char *list[] = {names[0], names[1], names[2], names[3]};
	int r;
	set_names(&s, "bce", true);
	ALLOC_FAIL_EACH(
		{
			r = subscription_set_names(&s, list, 4, true);
			if (r < 0)
				assert_string_equal(names_of(&s), "bce");
		},
		r < 0, assert_string_equal(names_of(&s), "abcde"));
	ALLOC_FAIL_EACH(
		{
			r = subscription_refresh(&s, set, RESOURCE_CLUSTER);
			if (r < 0)
				assert_string_equal(names_of(&s), "abcde");
		},
		r < 0, assert_string_equal(names_of(&s), "abcdxy"));
	subscription_fini(&s);
	resource_set_free(set);
}

// The naive twin: flags by letter.
struct twin {
	bool named[N_NAMES], there[N_NAMES], sent[N_NAMES];
	bool wildcard, ever_named;
};

static void random_letters(struct rand *rand, bool *flags, char *letters)
{
	size_t n = 0;
	memset(flags, 0, N_NAMES * sizeof(bool));
	for (uint64_t left = rand_below(rand, 8); left > 0; left--) {
		size_t i = rand_below(rand, N_NAMES);
		flags[i] = true;
		letters[n++] = (char)('a' + i);
	}
	letters[n] = '\0';
}

static void unique_letters(const bool *flags, char *letters)
{
	size_t n = 0;
	for (size_t i = 0; i < N_NAMES; i++)
		if (flags[i])
			letters[n++] = (char)('a' + i);
	letters[n] = '\0';
}

static void expect(const struct subscription *s, const struct twin *t)
{
	size_t at = 0;
	for (size_t i = 0; i < N_NAMES; i++) {
		bool here = t->named[i] || (t->wildcard && (t->there[i] || t->sent[i]));
		if (!here)
			continue;
		assert_true(at < s->n);
		assert_int_equal(s->entries[at].name[0], 'a' + (int)i);
		assert_int_equal(s->entries[at].named, t->named[i]);
		assert_int_equal(s->entries[at].current != NULL, t->there[i]);
		assert_int_equal(s->entries[at].sent != NULL, t->sent[i]);
		at++;
	}
	assert_int_equal(at, s->n);
}

static void random_changes_agree_with_the_naive_twin(void **state)
{
	struct rand rand;
	rand_init(&rand, 7);
	struct twin t = {0};
	struct subscription s = {0};
	struct resource_set *set = set_of("");
	for (int round = 0; round < 3000; round++) {
		char letters[32];
		bool flags[N_NAMES];
		random_letters(&rand, flags, letters);
		if (rand_below(&rand, 2)) {
			bool star = rand_below(&rand, 4) == 0;
			if (star)
				strcat(letters, "*");
			set_names(&s, letters, true);
			t.wildcard = star || (letters[0] == '\0' && !t.ever_named);
			t.ever_named |= letters[0] != '\0';
			memcpy(t.named, flags, sizeof(flags));
			for (size_t i = 0; i < N_NAMES; i++)
				t.sent[i] &= t.named[i] || t.wildcard;
		} else {
			struct resource_set *before = set;
			unique_letters(flags, letters);
			set = set_of(letters);
			memcpy(t.there, flags, sizeof(flags));
			assert_int_equal(subscription_refresh(&s, set, RESOURCE_CLUSTER), 0);
			resource_set_free(before);
		}
		assert_int_equal(subscription_refresh(&s, set, RESOURCE_CLUSTER), 0);
		expect(&s, &t);
		for (size_t i = 0; i < s.n; i++) {
			if (rand_below(&rand, 3))
				continue;
			subscription_sent(&s.entries[i], s.entries[i].current);
			t.sent[s.entries[i].name[0] - 'a'] = s.entries[i].current != NULL;
		}
	}
	subscription_fini(&s);
	resource_set_free(set);
}

RUN_SUITE("shunt-xds/subscription", cmocka_unit_test(list_replaces_the_one_before),
	cmocka_unit_test(empty_list_is_a_wildcard_until_a_name_was_given),
	cmocka_unit_test(empty_list_of_other_types_is_nothing),
	cmocka_unit_test(star_is_a_wildcard_beside_names),
	cmocka_unit_test(wildcard_keeps_what_the_client_still_holds),
	cmocka_unit_test(name_that_comes_back_was_not_sent),
	cmocka_unit_test(change_without_memory_changes_nothing),
	cmocka_unit_test(random_changes_agree_with_the_naive_twin))
