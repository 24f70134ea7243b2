// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/regex_cache.h"
#include "tests/support/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX 400

struct list {
	char texts[MAX][64];
	struct str patterns[MAX];
	struct lb_regex_ref refs[MAX];
	uint32_t n;
};

static void add(struct list *l, const char *format, uint32_t number)
{
	snprintf(l->texts[l->n], sizeof(l->texts[0]), format, number);
	l->patterns[l->n] = str_from(l->texts[l->n]);
	l->n++;
}

static int ask(struct regex_cache *c, enum regex_cache_use use, struct list *l)
{
	struct lb_err err = {0};
	int rc = regex_cache_ask(c, use, l->patterns, l->n, l->refs, &err);
	assert_true(rc == 0 || rc == -EAGAIN || err.text[0]);
	return rc;
}

static struct regex_cache *synchronous(void)
{
	struct regex_cache *c = regex_cache_new(&(struct regex_cache_conf){.synchronous = true});
	assert_non_null(c);
	return c;
}

static bool hits(struct lb_regex_ref ref, const char *text)
{
	struct lb_regex_scratches *s = lb_regex_scratches_fit(NULL, 1, ref.set);
	uint64_t found = lb_regex_set_match(ref.set, s, 0, str_from(text));
	lb_regex_scratches_put(s);
	return found >> ref.bit & 1;
}

static void each_pattern_is_where_its_reference_says(void **state)
{
	struct regex_cache *c = synchronous();
	struct list l = {0};
	for (uint32_t i = 0; i < 40; i++)
		add(&l, "/items/[a-z]*%u", i);
	add(&l, ".*/%u", 7);
	add(&l, "/items/[a-z]*%u", 3); // once more
	assert_int_equal(ask(c, REGEX_OF_PATHS, &l), 0);
	for (uint32_t i = 0; i < 40; i++) {
		char text[64];
		snprintf(text, sizeof(text), "/items/abc%u", i);
		assert_true(hits(l.refs[i], text));
		assert_false(hits(l.refs[(i + 1) % 40], text));
	}
	assert_true(hits(l.refs[40], "/x/7"));
	assert_true(l.refs[41].set == l.refs[3].set && l.refs[41].bit == l.refs[3].bit);
	regex_cache_free(c);
}

static void paths_are_cut_by_their_literal_start(void **state)
{
	struct regex_cache *c = synchronous();
	struct list l = {0};
	for (uint32_t i = 0; i < 30; i++)
		add(&l, "/v1/service%u/[0-9]+", i);
	add(&l, "/v1/service%u/[a-z]+", 7);
	assert_int_equal(ask(c, REGEX_OF_PATHS, &l), 0);
	assert_int_equal(regex_cache_count(c).n_sets, 30);
	assert_ptr_equal(l.refs[7].set, l.refs[30].set);
	assert_true(str_eq(lb_regex_set_prefix(l.refs[7].set), STR("/v1/service7/")));
	regex_cache_free(c);
}

static void one_more_pattern_makes_one_set_anew(void **state)
{
	struct regex_cache *c = synchronous();
	struct list l = {0};
	for (uint32_t i = 0; i < 150; i++)
		add(&l, "[a-z]+%u", i);
	assert_int_equal(ask(c, REGEX_OF_HEADERS, &l), 0);
	uint64_t before = regex_cache_count(c).n_compiled;
	assert_in_range(before, 150 / 16 + 1, 150 / 4);
	add(&l, "[a-z]+%u", 1000);
	assert_int_equal(ask(c, REGEX_OF_HEADERS, &l), 0);
	assert_in_range(regex_cache_count(c).n_compiled, before + 1, before + 2);
	before = regex_cache_count(c).n_compiled;
	// The order says nothing.
	struct str first = l.patterns[0];
	l.patterns[0] = l.patterns[150];
	l.patterns[150] = first;
	assert_int_equal(ask(c, REGEX_OF_HEADERS, &l), 0);
	assert_int_equal(regex_cache_count(c).n_compiled, before);
	for (uint32_t i = 0; i < l.n; i++)
		assert_non_null(l.refs[i].set);
	regex_cache_free(c);
}

// However the list grows, each step costs no more than two sets.
static void growth_never_makes_all_sets_anew(void **state)
{
	struct regex_cache *c = synchronous();
	struct list l = {0};
	for (uint32_t i = 0; i < 70; i++) {
		uint64_t before = regex_cache_count(c).n_compiled;
		add(&l, "/p/[a-z]+%u", i);
		assert_int_equal(ask(c, REGEX_OF_PATHS, &l), 0);
		assert_in_range(regex_cache_count(c).n_compiled, before + 1, before + 2);
	}
	regex_cache_free(c);
}

static void sets_in_use_stay_and_others_go(void **state)
{
	struct regex_cache *c = synchronous();
	struct list kept = {0}, left = {0};
	add(&kept, "/kept/.*%u", 1);
	add(&left, "/left/.*%u", 1);
	assert_int_equal(ask(c, REGEX_OF_PATHS, &kept), 0);
	assert_int_equal(ask(c, REGEX_OF_PATHS, &left), 0);
	struct lb_regex_set *held = lb_regex_set_get(kept.refs[0].set);
	assert_true(regex_cache_count(c).n_bytes > 0);
	regex_cache_sweep(c);
	regex_cache_sweep(c);
	assert_int_equal(regex_cache_count(c).n_sets, 2); // for who comes back soon
	regex_cache_sweep(c);
	assert_int_equal(regex_cache_count(c).n_sets, 1);
	for (int i = 0; i < 5; i++)
		regex_cache_sweep(c);
	assert_int_equal(ask(c, REGEX_OF_PATHS, &kept), 0);
	assert_ptr_equal(kept.refs[0].set, held);
	lb_regex_set_put(held);
	for (int i = 0; i < 4; i++)
		regex_cache_sweep(c);
	assert_int_equal(regex_cache_count(c).n_sets, 0);
	assert_int_equal(regex_cache_count(c).n_bytes, 0);
	regex_cache_free(c);
}

static void a_nul_in_a_pattern_is_a_byte_of_it(void **state) // RX-10
{
	struct regex_cache *c = synchronous();
	static const char *const texts[] = {"a\0b", "a\1b", "a\2b"};
	struct lb_regex_ref refs[3];
	struct lb_err err = {0};
	for (int i = 0; i < 3; i++) {
		struct str p = {texts[i], 3};
		assert_int_equal(regex_cache_ask(c, REGEX_OF_PATHS, &p, 1, &refs[i], &err), 0);
		lb_regex_set_get(refs[i].set);
	}
	assert_int_equal(regex_cache_count(c).n_sets, 3);
	for (int i = 0; i < 3; i++) {
		struct lb_regex_scratches *s = lb_regex_scratches_fit(NULL, 0, refs[i].set);
		for (int k = 0; k < 3; k++) {
			struct str text = {texts[k], 3};
			assert_int_equal(lb_regex_set_match(refs[i].set, s, 0, text), i == k);
		}
		lb_regex_scratches_put(s);
		lb_regex_set_put(refs[i].set);
	}
	regex_cache_free(c);
}

static void nothing_asked_is_answered(void **state)
{
	struct regex_cache *c = synchronous();
	assert_int_equal(regex_cache_ask(c, REGEX_OF_PATHS, NULL, 0, NULL, NULL), 0);
	regex_cache_free(c);
}

static void poll_until(struct regex_cache *c, struct list *l)
{
	for (int i = 0; i < 20000; i++) {
		if (regex_cache_poll(c) && ask(c, REGEX_OF_PATHS, l) == 0)
			return;
		usleep(1000);
	}
	fail_msg("nothing was compiled in 20 s");
}

// TH-59
static void the_thread_compiles_while_others_wait_for_nothing(void **state)
{
	struct regex_cache *c = regex_cache_new(&(struct regex_cache_conf){0});
	struct list l = {0};
	for (uint32_t i = 0; i < 20; i++)
		add(&l, "/t%u/[a-z]+", i);
	assert_int_equal(ask(c, REGEX_OF_PATHS, &l), -EAGAIN);
	assert_int_equal(regex_cache_count(c).n_pending, 20);
	assert_int_equal(ask(c, REGEX_OF_PATHS, &l), -EAGAIN); // and no second time
	regex_cache_sweep(c);
	poll_until(c, &l);
	assert_int_equal(regex_cache_count(c).n_compiled, 20);
	assert_int_equal(regex_cache_count(c).n_pending, 0);
	assert_true(hits(l.refs[11], "/t11/abc"));
	regex_cache_free(c);
}

// What a corrected configuration wants is not behind all of what the bad one wanted.
static void what_nobody_asks_for_any_more_is_not_compiled(void **state)
{
	struct regex_cache *c = regex_cache_new(&(struct regex_cache_conf){0});
	struct list old = {0}, new = {0};
	for (uint32_t i = 0; i < MAX; i++)
		add(&old, "/old%u/([a-z]+[0-9]{1,90}x){1,4}", i);
	add(&new, "/new%u/[a-z]+", 1);
	assert_int_equal(ask(c, REGEX_OF_PATHS, &old), -EAGAIN);
	regex_cache_forget_unasked(c); // asked for since the beginning
	assert_int_equal(regex_cache_count(c).n_pending, MAX);
	assert_int_equal(ask(c, REGEX_OF_PATHS, &new), -EAGAIN);
	regex_cache_forget_unasked(c);
	assert_in_range(regex_cache_count(c).n_pending, 1, MAX / 2);
	assert_int_equal(regex_cache_count(c).n_sets, regex_cache_count(c).n_pending);
	poll_until(c, &new);
	assert_true(hits(new.refs[0], "/new1/abc"));
	assert_in_range(regex_cache_count(c).n_compiled, 1, MAX / 2);
	// Who comes back is served again.
	old.n = 10;
	assert_int_equal(ask(c, REGEX_OF_PATHS, &old), -EAGAIN);
	poll_until(c, &old);
	assert_true(hits(old.refs[9], "/old9/ab12x"));
	regex_cache_free(c);
}

static void it_can_be_freed_while_the_thread_compiles(void **state)
{
	struct regex_cache *c = regex_cache_new(&(struct regex_cache_conf){0});
	struct list l = {0};
	for (uint32_t i = 0; i < 50; i++)
		add(&l, "/t%u/[a-z]+", i);
	assert_int_equal(ask(c, REGEX_OF_PATHS, &l), -EAGAIN);
	regex_cache_free(c);
	regex_cache_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_pattern_is_where_its_reference_says),
		cmocka_unit_test(paths_are_cut_by_their_literal_start),
		cmocka_unit_test(one_more_pattern_makes_one_set_anew),
		cmocka_unit_test(growth_never_makes_all_sets_anew),
		cmocka_unit_test(sets_in_use_stay_and_others_go),
		cmocka_unit_test(a_nul_in_a_pattern_is_a_byte_of_it),
		cmocka_unit_test(nothing_asked_is_answered),
		cmocka_unit_test(the_thread_compiles_while_others_wait_for_nothing),
		cmocka_unit_test(what_nobody_asks_for_any_more_is_not_compiled),
		cmocka_unit_test(it_can_be_freed_while_the_thread_compiles),
	};
	return cmocka_run_group_tests_name("ctrl/regex_cache", tests, NULL, NULL);
}
