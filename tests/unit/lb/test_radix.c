// SPDX-License-Identifier: Apache-2.0
#include "lb/base/rand.h"
#include "lb/radix.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <ctype.h>

#define MAX_KEYS 64

struct tree {
	struct lb_radix *r;
	struct str keys[MAX_KEYS];
	uint32_t n;
	uint32_t numbers[MAX_KEYS], up[MAX_KEYS];
};

static void build(struct tree *t, int flags)
{
	t->r = lb_radix_new(t->keys, t->n, flags, t->numbers, t->up);
	assert_non_null(t->r);
}

static void empty_tree_finds_nothing(void **state)
{
	(void)state;
	struct tree t = {.n = 0};
	build(&t, 0);
	struct lb_radix_hit hit = lb_radix_find(t.r, STR("x"));
	assert_int_equal(hit.longest, LB_RADIX_NONE);
	assert_int_equal(hit.whole, LB_RADIX_NONE);
	assert_int_equal(lb_radix_find(t.r, (struct str){0}).whole, LB_RADIX_NONE);
	assert_int_equal(lb_radix_count(t.r), 0);
	lb_radix_free(t.r);
	lb_radix_free(NULL);
}

static void keys_are_numbered_in_byte_order_and_know_the_shorter_one(void **state)
{
	(void)state;
	struct tree t = {
		.keys = {STR("b"), STR("abc"), {0}, STR("ab"), STR("abc"), STR("ac")}, .n = 6};
	build(&t, 0);
	assert_int_equal(lb_radix_count(t.r), 5);
	static const uint32_t numbers[] = {4, 2, 0, 1, 2, 3};
	static const uint32_t up[] = {LB_RADIX_NONE, 0, 1, 0, 0};
	assert_memory_equal(t.numbers, numbers, sizeof(numbers));
	assert_memory_equal(t.up, up, sizeof(up));
	struct lb_radix_hit hit = lb_radix_find(t.r, STR("abcd"));
	assert_int_equal(hit.longest, 2);
	assert_int_equal(hit.whole, LB_RADIX_NONE);
	assert_int_equal(lb_radix_find(t.r, STR("ab")).whole, 1);
	assert_int_equal(lb_radix_find(t.r, STR("a")).longest, 0);
	assert_int_equal(lb_radix_find(t.r, STR("a")).whole, LB_RADIX_NONE);
	assert_int_equal(lb_radix_find(t.r, (struct str){0}).whole, 0);
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

static uint32_t number_of(const struct tree *t, int i)
{
	return i < 0 ? LB_RADIX_NONE : t->numbers[i];
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
			assert_int_equal(t->numbers[i] == t->numbers[k],
				t->keys[i].len == t->keys[k].len &&
					starts(t->keys[i], t->keys[k], flags));
		uint32_t up = t->up[t->numbers[i]];
		assert_int_equal(up, number_of(t, twin(t, t->keys[i], flags, false)));
		assert_true(up == LB_RADIX_NONE || up < t->numbers[i]);
	}
	for (int i = 0; i < 100; i++) {
		char text[16];
		struct str s;
		random_text(r, text, 12, &s);
		struct lb_radix_hit hit = lb_radix_find(t->r, s);
		int longest = twin(t, s, flags, true);
		bool whole = longest >= 0 && t->keys[longest].len == s.len;
		assert_int_equal(hit.longest, number_of(t, longest));
		assert_int_equal(hit.whole, number_of(t, whole ? longest : -1));
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
	static uint32_t numbers[256], up[256];
	for (int i = 0; i < 256; i++) {
		bytes[i] = (char)i;
		keys[i] = (struct str){&bytes[i], 1};
	}
	struct lb_radix *r = lb_radix_new(keys, 256, 0, numbers, up);
	assert_non_null(r);
	for (int i = 0; i < 256; i++)
		assert_int_equal(lb_radix_find(r, keys[i]).whole, i);
	lb_radix_free(r);
}

// Labels have 15 bits for their length.
static void keys_may_be_longer_than_a_label(void **state)
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
		assert_int_equal(hit.longest, number_of(&t, longest));
		bool whole = longest >= 0 && t.keys[longest].len == len;
		assert_int_equal(hit.whole, number_of(&t, whole ? longest : -1));
	}
	lb_radix_free(t.r);
}

static void each_failed_allocation_is_survived(void **state)
{
	(void)state;
	struct tree t = {.keys = {STR("a"), STR("ab"), STR("b")}, .n = 3};
	ALLOC_FAIL_EACH(t.r = lb_radix_new(t.keys, t.n, LB_RADIX_FOLD, t.numbers, t.up), !t.r,
		lb_radix_free(t.r));
}

RUN_SUITE("lb/radix", cmocka_unit_test(empty_tree_finds_nothing),
	cmocka_unit_test(keys_are_numbered_in_byte_order_and_know_the_shorter_one),
	cmocka_unit_test(random_trees_agree_with_a_scan),
	cmocka_unit_test(a_node_may_have_all_256_children),
	cmocka_unit_test(keys_may_be_longer_than_a_label),
	cmocka_unit_test(each_failed_allocation_is_survived))
