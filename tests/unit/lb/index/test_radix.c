// SPDX-License-Identifier: Apache-2.0
#include "lb/base/rand.h"
#include "lb/index/radix.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <ctype.h>

#define MAX_KEYS 64

struct tree {
	struct lb_radix *r;
	struct str keys[MAX_KEYS];
	uint32_t n;
	void *values[MAX_KEYS];
};

static void build(struct tree *t, int flags)
{
	t->r = lb_radix_new(t->keys, t->n, flags, 8, t->values);
	assert_non_null(t->r);
}

static void empty_tree_finds_nothing(void **state)
{
	(void)state;
	struct tree t = {.n = 0};
	build(&t, 0);
	struct lb_radix_hit hit = lb_radix_find(t.r, STR("x"));
	assert_null(hit.longest);
	assert_false(hit.is_whole);
	assert_null(lb_radix_find(t.r, (struct str){0}).longest);
	assert_null(lb_radix_next(t.r, NULL));
	assert_int_equal(lb_radix_count(t.r), 0);
	lb_radix_free(t.r);
	lb_radix_free(NULL);
}

static void keys_come_in_byte_order_and_know_the_shorter_one(void **state)
{
	(void)state;
	struct tree t = {
		.keys = {STR("b"), STR("abc"), {0}, STR("ab"), STR("abc"), STR("ac")}, .n = 6};
	build(&t, 0);
	assert_int_equal(lb_radix_count(t.r), 5);
	static const int order[] = {2, 3, 1, 5, 0}, up[] = {-1, 2, 3, 2, 2};
	void *value = NULL;
	for (int i = 0; i < 5; i++) {
		value = lb_radix_next(t.r, value);
		assert_ptr_equal(value, t.values[order[i]]);
		assert_ptr_equal(lb_radix_up(t.r, value), up[i] < 0 ? NULL : t.values[up[i]]);
		assert_memory_equal(value, "\0\0\0\0\0\0\0\0", 8);
		memset(value, 0xff, 8);
	}
	assert_null(lb_radix_next(t.r, value));
	assert_ptr_equal(t.values[1], t.values[4]);
	struct lb_radix_hit hit = lb_radix_find(t.r, STR("abcd"));
	assert_ptr_equal(hit.longest, t.values[1]);
	assert_false(hit.is_whole);
	assert_true(lb_radix_find(t.r, STR("ab")).is_whole);
	assert_ptr_equal(lb_radix_find(t.r, STR("a")).longest, t.values[2]);
	assert_false(lb_radix_find(t.r, STR("a")).is_whole);
	assert_true(lb_radix_find(t.r, (struct str){0}).is_whole);
	lb_radix_free(t.r);
}

static uint8_t byte_at(struct str s, size_t i, int flags)
{
	uint8_t c = (uint8_t)s.p[flags & LB_RADIX_BACKWARDS ? s.len - 1 - i : i];
	return flags & LB_RADIX_FOLD && c < 128 ? (uint8_t)tolower(c) : c;
}

static bool starts(struct str s, struct str key, int flags)
{
	if (key.len > s.len)
		return false;
	for (size_t i = 0; i < key.len; i++)
		if (byte_at(s, i, flags) != byte_at(key, i, flags))
			return false;
	return true;
}

// The longest key that is shorter than s, or as long if `whole`; -1 = none.
static int twin(const struct tree *t, struct str s, int flags, bool whole)
{
	int best = -1;
	for (uint32_t i = 0; i < t->n; i++) {
		struct str key = t->keys[i];
		if (!starts(s, key, flags) || (key.len == s.len && !whole))
			continue;
		if (best < 0 || key.len > t->keys[best].len)
			best = (int)i;
	}
	return best;
}

static const void *value_of(const struct tree *t, int i)
{
	return i < 0 ? NULL : t->values[i];
}

static void random_text(struct rand *r, char *to, size_t max, struct str *ret)
{
	static const char alphabet[] = "aAbB/\0\xff\xc1";
	*ret = (struct str){to, rand_below(r, max + 1)};
	size_t kinds = 2 + rand_below(r, 7);
	for (size_t i = 0; i < ret->len; i++)
		to[i] = alphabet[rand_below(r, kinds)];
}

static void check_tree(struct tree *t, struct rand *r, int flags)
{
	build(t, flags);
	for (uint32_t i = 0; i < t->n; i++) {
		for (uint32_t k = 0; k < i; k++)
			assert_int_equal(t->values[i] == t->values[k],
				t->keys[i].len == t->keys[k].len &&
					starts(t->keys[i], t->keys[k], flags));
		assert_ptr_equal(lb_radix_up(t->r, t->values[i]),
			value_of(t, twin(t, t->keys[i], flags, false)));
	}
	uint32_t n = 0;
	for (void *v = lb_radix_next(t->r, NULL); v; v = lb_radix_next(t->r, v), n++)
		assert_true((const void *)v > lb_radix_up(t->r, v));
	assert_int_equal(n, lb_radix_count(t->r));
	for (int i = 0; i < 100; i++) {
		char text[16];
		struct str s;
		random_text(r, text, 12, &s);
		struct lb_radix_hit hit = lb_radix_find(t->r, s);
		int longest = twin(t, s, flags, true);
		assert_ptr_equal(hit.longest, value_of(t, longest));
		assert_int_equal(hit.is_whole, longest >= 0 && t->keys[longest].len == s.len);
	}
	lb_radix_free(t->r);
}

static void random_trees_agree_with_a_scan(void **state)
{
	(void)state;
	struct rand r;
	rand_init(&r, 5);
	for (int round = 0; round < 6000; round++) {
		char texts[MAX_KEYS][12];
		struct tree t = {.n = (uint32_t)rand_below(&r, MAX_KEYS + 1)};
		for (uint32_t i = 0; i < t.n; i++)
			random_text(&r, texts[i], rand_below(&r, 12), &t.keys[i]);
		check_tree(&t, &r, (int)rand_below(&r, 4));
	}
}

static void a_node_may_have_all_256_children(void **state)
{
	(void)state;
	static char bytes[256];
	static struct str keys[256];
	static void *values[256];
	for (int i = 0; i < 256; i++) {
		bytes[i] = (char)i;
		keys[i] = (struct str){&bytes[i], 1};
	}
	struct lb_radix *r = lb_radix_new(keys, 256, 0, 4, values);
	assert_non_null(r);
	for (int i = 0; i < 256; i++) {
		struct lb_radix_hit hit = lb_radix_find(r, keys[i]);
		assert_ptr_equal(hit.longest, values[i]);
		assert_true(hit.is_whole);
	}
	lb_radix_free(r);
}

static void keys_may_be_very_long(void **state)
{
	(void)state;
	static char text[200001];
	memset(text, 'x', sizeof(text));
	struct tree t = {.n = 5};
	static const size_t lens[] = {200000, 32767, 32768, 65535, 131071};
	for (uint32_t i = 0; i < t.n; i++)
		t.keys[i] = (struct str){text, lens[i]};
	build(&t, 0);
	assert_int_equal(lb_radix_count(t.r), 5);
	for (size_t len = 0; len <= sizeof(text); len += len < 32700 ? 32700 : 1 + len % 77) {
		struct str s = {text, len};
		int longest = twin(&t, s, 0, true);
		struct lb_radix_hit hit = lb_radix_find(t.r, s);
		assert_ptr_equal(hit.longest, value_of(&t, longest));
		assert_int_equal(hit.is_whole, longest >= 0 && t.keys[longest].len == len);
	}
	lb_radix_free(t.r);
}

static void each_failed_allocation_is_survived(void **state)
{
	(void)state;
	struct tree t = {.keys = {STR("a"), STR("ab"), STR("b")}, .n = 3};
	ALLOC_FAIL_EACH(t.r = lb_radix_new(t.keys, t.n, LB_RADIX_FOLD, 4, t.values), !t.r,
		lb_radix_free(t.r));
}

RUN_SUITE("lb/radix", cmocka_unit_test(empty_tree_finds_nothing),
	cmocka_unit_test(keys_come_in_byte_order_and_know_the_shorter_one),
	cmocka_unit_test(random_trees_agree_with_a_scan),
	cmocka_unit_test(a_node_may_have_all_256_children), cmocka_unit_test(keys_may_be_very_long),
	cmocka_unit_test(each_failed_allocation_is_survived))
