// SPDX-License-Identifier: Apache-2.0
#include "lb/base/rand.h"
#include "lb/index/hash.h"
#include "lb/pick/ring.h"
#include "tests/support/check.h"

#include <stdio.h>

#define MAX 100

struct items {
	struct lb_ring_item list[MAX];
	char keys[MAX][24];
	uint32_t n;
};

static void add(struct items *s, uint32_t number, uint32_t weight)
{
	char *key = s->keys[s->n];
	snprintf(key, sizeof(s->keys[0]), "10.0.0.%u:80", number);
	s->list[s->n++] = (struct lb_ring_item){str_from(key), weight};
}

static void count(const struct lb_ring *r, uint32_t *counts)
{
	for (uint32_t i = 0; i < lb_ring_size(r); i++)
		counts[lb_ring_item_at(r, i)]++;
}

static void weights_1_1_2_with_min_5_get_2_2_and_4_entries(void **state) // RH-02
{
	struct items s = {0};
	add(&s, 1, 1);
	add(&s, 2, 1);
	add(&s, 3, 2);
	struct lb_ring *r = lb_ring_new(s.list, s.n, 5, 4096);
	uint32_t counts[3] = {0};
	count(r, counts);
	assert_int_equal(lb_ring_size(r), 8);
	assert_int_equal(counts[0], 2);
	assert_int_equal(counts[1], 2);
	assert_int_equal(counts[2], 4);
	lb_ring_free(r);
}

static void the_largest_size_holds(void **state) // RH-02, RH-03
{
	struct items s = {0};
	for (uint32_t i = 0; i < MAX; i++)
		add(&s, i, 1 + i % 7);
	struct lb_ring *r = lb_ring_new(s.list, s.n, 1024, 4096);
	assert_in_range(lb_ring_size(r), 1024, 4096);
	lb_ring_free(r);
	r = lb_ring_new(s.list, s.n, 64, 64); // fewer entries than items
	assert_in_range(lb_ring_size(r), 64, 65);
	lb_ring_free(r);
}

static void an_entry_is_the_hash_of_key_and_number(void **state) // RH-01
{
	struct items s = {0};
	add(&s, 1, 1);
	struct lb_ring *r = lb_ring_new(s.list, 1, 3, 3);
	for (uint32_t i = 0; i < 3; i++) {
		char text[32];
		int len = snprintf(text, sizeof(text), "10.0.0.1:80_%u", i);
		uint64_t hash = lb_xxh64(text, (size_t)len);
		uint32_t place = lb_ring_find(r, hash);
		// One more is beyond it: the next place, or the first.
		assert_int_equal(lb_ring_find(r, hash + 1), (place + 1) % 3);
	}
	lb_ring_free(r);
}

static void a_hash_beyond_the_last_entry_wraps_to_the_first(void **state) // RH-04
{
	struct items s = {0};
	add(&s, 1, 1);
	add(&s, 2, 1);
	struct lb_ring *r = lb_ring_new(s.list, s.n, 10, 10);
	assert_int_equal(lb_ring_find(r, UINT64_MAX), 0);
	assert_int_equal(lb_ring_find(r, 0), 0);
	lb_ring_free(r);
}

// Who leaves takes nothing but its own requests along.
static void removing_one_item_moves_only_its_own_hashes(void **state)
{
	struct items all = {0}, fewer = {0};
	for (uint32_t i = 0; i < 10; i++) {
		add(&all, i, 1);
		if (i != 4)
			add(&fewer, i, 1);
	}
	struct lb_ring *a = lb_ring_new(all.list, all.n, 1000, 1000);
	struct lb_ring *b = lb_ring_new(fewer.list, fewer.n, 900, 900);
	struct rand rand;
	rand_init(&rand, 3);
	uint32_t n_moved = 0;
	for (uint32_t i = 0; i < 20000; i++) {
		uint64_t hash = rand_u64(&rand);
		uint32_t before = lb_ring_item_at(a, lb_ring_find(a, hash));
		uint32_t after = lb_ring_item_at(b, lb_ring_find(b, hash));
		if (before == 4)
			n_moved++;
		else
			assert_int_equal(after, before > 4 ? before - 1 : before);
	}
	assert_in_range(n_moved, 1400, 2600);
	lb_ring_free(a);
	lb_ring_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights_1_1_2_with_min_5_get_2_2_and_4_entries),
		cmocka_unit_test(the_largest_size_holds),
		cmocka_unit_test(an_entry_is_the_hash_of_key_and_number),
		cmocka_unit_test(a_hash_beyond_the_last_entry_wraps_to_the_first),
		cmocka_unit_test(removing_one_item_moves_only_its_own_hashes),
	};
	return cmocka_run_group_tests_name("lb/ring", tests, NULL, NULL);
}
