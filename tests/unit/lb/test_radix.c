// SPDX-License-Identifier: Apache-2.0
#include "lb/base/rand.h"
#include "lb/radix.h"
#include "lb/strmap.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <ctype.h>
#include <stdio.h>

static void empty_tree_finds_nothing(void **state)
{
	(void)state;
	struct lb_radix *r = lb_radix_new(NULL, 0, 0);
	struct lb_radix_hit hit = lb_radix_find(r, STR("x"));
	assert_int_equal(hit.smallest, LB_RADIX_NONE);
	assert_int_equal(hit.longest, LB_RADIX_NONE);
	assert_int_equal(hit.whole, LB_RADIX_NONE);
	assert_int_equal(lb_radix_find(r, (struct str){0}).whole, LB_RADIX_NONE);
	lb_radix_free(r);
	lb_radix_free(NULL);
}

static void empty_key_starts_every_text(void **state)
{
	(void)state;
	const struct lb_radix_entry entries[] = {{{0}, 5}, {STR("ab"), 3}, {STR("abc"), 4}};
	struct lb_radix *r = lb_radix_new(entries, 3, 0);
	struct lb_radix_hit hit = lb_radix_find(r, STR("abcd"));
	assert_int_equal(hit.smallest, 3);
	assert_int_equal(hit.longest, 4);
	assert_int_equal(hit.whole, LB_RADIX_NONE);
	assert_int_equal(lb_radix_find(r, (struct str){0}).whole, 5);
	assert_int_equal(lb_radix_find(r, STR("ab")).whole, 3);
	assert_int_equal(lb_radix_find(r, STR("a")).smallest, 5);
	lb_radix_free(r);
}

static char normal(struct str s, size_t i, int flags)
{
	char c = flags & LB_RADIX_BACKWARDS ? s.p[s.len - 1 - i] : s.p[i];
	return flags & LB_RADIX_FOLD ? (char)tolower((unsigned char)c) : c;
}

static void twin_add(struct lb_radix_hit *hit, size_t *longest, const struct lb_radix_entry *e,
	struct str text, int flags)
{
	if (e->key.len > text.len)
		return;
	for (size_t i = 0; i < e->key.len; i++)
		if (normal(e->key, i, flags) != normal(text, i, flags))
			return;
	if (e->value < hit->smallest)
		hit->smallest = e->value;
	if (hit->longest == LB_RADIX_NONE || e->key.len > *longest ||
		(e->key.len == *longest && e->value < hit->longest)) {
		hit->longest = e->value;
		*longest = e->key.len;
	}
	if (e->key.len == text.len && e->value < hit->whole)
		hit->whole = e->value;
}

static size_t random_bytes(struct rand *r, char *to, size_t max, int spread)
{
	size_t len = rand_below(r, max + 1);
	for (size_t i = 0; i < len; i++)
		to[i] = (char)('A' + rand_below(r, 2) * 0x20 + rand_below(r, (uint64_t)spread));
	return len;
}

static void random_keys_agree_with_comparing_each(void **state)
{
	(void)state;
	struct rand r;
	rand_init(&r, 5);
	for (int round = 0; round < 3000; round++) {
		char bytes[60][10];
		struct lb_radix_entry entries[60];
		uint32_t n = (uint32_t)rand_below(&r, 60);
		int flags = (int)rand_below(&r, 4), spread = rand_below(&r, 4) ? 3 : 200;
		for (uint32_t i = 0; i < n; i++)
			entries[i] = (struct lb_radix_entry){
				{bytes[i], random_bytes(&r, bytes[i], 8, spread)},
				(uint32_t)rand_below(&r, 100)};
		struct lb_radix *tree = lb_radix_new(entries, n, flags);
		assert_non_null(tree);
		for (int k = 0; k < 40; k++) {
			char text[12];
			struct str s = {text, random_bytes(&r, text, 10, spread)};
			struct lb_radix_hit expected = {
				LB_RADIX_NONE, LB_RADIX_NONE, LB_RADIX_NONE};
			size_t longest = 0;
			for (uint32_t i = 0; i < n; i++)
				twin_add(&expected, &longest, &entries[i], s, flags);
			struct lb_radix_hit hit = lb_radix_find(tree, s);
			assert_memory_equal(&hit, &expected, sizeof(hit));
		}
		lb_radix_free(tree);
	}
}

static void node_may_have_a_child_for_every_byte(void **state)
{
	(void)state;
	char bytes[256];
	struct lb_radix_entry entries[256];
	for (int i = 0; i < 256; i++) {
		bytes[i] = (char)i;
		entries[i] = (struct lb_radix_entry){{&bytes[i], 1}, (uint32_t)i};
	}
	struct lb_radix *r = lb_radix_new(entries, 256, 0);
	for (uint32_t i = 0; i < 256; i++)
		assert_int_equal(lb_radix_find(r, (struct str){&bytes[i], 1}).whole, i);
	lb_radix_free(r);
}

static void map_finds_each_key_and_no_other(void **state)
{
	(void)state;
	enum { N = 3000 };
	static char names[2 * N][16];
	static struct lb_strmap_entry entries[N];
	for (int i = 0; i < 2 * N; i++)
		snprintf(names[i], sizeof(names[i]), "/svc/%x", i * 7);
	for (uint32_t i = 0; i < N; i++)
		entries[i] = (struct lb_strmap_entry){str_from(names[i]), i};
	struct lb_strmap *m = lb_strmap_new(entries, N);
	for (uint32_t i = 0; i < 2 * N; i++)
		assert_int_equal(lb_strmap_find(m, str_from(names[i])), i < N ? i : LB_STRMAP_NONE);
	assert_int_equal(lb_strmap_find(m, (struct str){0}), LB_STRMAP_NONE);
	lb_strmap_free(m);
}

static void map_keeps_the_smallest_value_of_equal_keys(void **state)
{
	(void)state;
	const struct lb_strmap_entry entries[] = {
		{STR("a"), 7}, {STR("a"), 3}, {STR("a"), 9}, {{0}, 4}};
	struct lb_strmap *m = lb_strmap_new(entries, 4);
	assert_int_equal(lb_strmap_find(m, STR("a")), 3);
	assert_int_equal(lb_strmap_find(m, (struct str){0}), 4);
	lb_strmap_free(m);
	m = lb_strmap_new(NULL, 0);
	assert_int_equal(lb_strmap_find(m, STR("a")), LB_STRMAP_NONE);
	lb_strmap_free(m);
}

static void each_failed_allocation_is_survived(void **state)
{
	(void)state;
	const struct lb_radix_entry entries[] = {{STR("a"), 1}, {STR("ab"), 2}};
	const struct lb_strmap_entry names[] = {{STR("a"), 1}};
	struct lb_radix *r = NULL;
	ALLOC_FAIL_EACH(r = lb_radix_new(entries, 2, 0), !r, lb_radix_free(r));
	struct lb_strmap *m = NULL;
	ALLOC_FAIL_EACH(m = lb_strmap_new(names, 1), !m, lb_strmap_free(m));
}

RUN_SUITE("lb/radix", cmocka_unit_test(empty_tree_finds_nothing),
	cmocka_unit_test(empty_key_starts_every_text),
	cmocka_unit_test(random_keys_agree_with_comparing_each),
	cmocka_unit_test(node_may_have_a_child_for_every_byte),
	cmocka_unit_test(map_finds_each_key_and_no_other),
	cmocka_unit_test(map_keeps_the_smallest_value_of_equal_keys),
	cmocka_unit_test(each_failed_allocation_is_survived))
