// SPDX-License-Identifier: Apache-2.0
#include "lb/base/rand.h"
#include "lb/leaf/child_names.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#define MAX 16

struct list {
	struct str localities[MAX][MAX];
	struct lb_child_names_priority priorities[MAX];
};

struct fixture {
	struct lb_child_names *names;
	struct list lists[2]; // of these, and of the next ones
	uint32_t at; // of these
	uint64_t exists; // bit = number
};

static bool exists(void *ctx, uint32_t number)
{
	return ((struct fixture *)ctx)->exists >> (number % 64) & 1;
}

// One text a priority, its localities with blanks between.
static struct lb_child_names *next(struct fixture *f, const char *const *list, uint32_t n)
{
	struct list *l = &f->lists[1 - f->at];
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = 0;
		for (const char *at = list[i]; *at; at += strspn(at, " ")) {
			l->localities[i][k++] = (struct str){at, strcspn(at, " ")};
			at += strcspn(at, " ");
		}
		l->priorities[i] = (struct lb_child_names_priority){l->localities[i], k};
	}
	return lb_child_names_new(
		f->names, f->lists[f->at].priorities, l->priorities, n, exists, f);
}

static void update(struct fixture *f, const char *const *list, uint32_t n)
{
	struct lb_child_names *names = next(f, list, n);
	assert_non_null(names);
	lb_child_names_free(f->names);
	f->names = names;
	f->at = 1 - f->at;
}

#define UPDATE(f, ...)                                                                             \
	update(f, (const char *const[]){__VA_ARGS__},                                              \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void expect(const struct fixture *f, const uint32_t *numbers, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(lb_child_names_at(f->names, i), numbers[i]);
}

#define EXPECT(f, ...)                                                                             \
	expect(f, (const uint32_t[]){__VA_ARGS__},                                                 \
		sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

// A74-C03
static void swapped_priorities_swap_their_names(void **state)
{
	struct fixture f = {0};
	UPDATE(&f, "aa bb", "cc");
	EXPECT(&f, 0, 1);
	UPDATE(&f, "cc", "aa bb");
	EXPECT(&f, 1, 0);
	lb_child_names_free(f.names);
}

// A74-C04
static void priority_of_unknown_localities_gets_a_number_never_used(void **state)
{
	struct fixture f = {0};
	UPDATE(&f, "aa", "bb", "cc");
	UPDATE(&f, "aa");
	EXPECT(&f, 0);
	UPDATE(&f, "aa", "bb");
	EXPECT(&f, 0, 3);
	UPDATE(&f, "dd", "bb", "aa");
	EXPECT(&f, 4, 3, 0);
	lb_child_names_free(f.names);
}

// A74-C04
static void split_priority_hands_its_name_to_one_heir(void **state)
{
	struct fixture f = {0};
	UPDATE(&f, "aa bb");
	UPDATE(&f, "bb", "aa");
	EXPECT(&f, 0, 1);
	lb_child_names_free(f.names);
}

// A74-C05
static void child_that_exists_is_kept_by_a_merge(void **state)
{
	struct fixture f = {.exists = 1};
	UPDATE(&f, "bb cc", "aa dd");
	UPDATE(&f, "aa bb cc", "dd");
	EXPECT(&f, 0, 1);
	lb_child_names_free(f.names);
	// The other way round too: only the lower one exists.
	f = (struct fixture){.exists = 2};
	UPDATE(&f, "bb cc", "aa dd");
	UPDATE(&f, "aa bb cc", "dd");
	EXPECT(&f, 1, 2);
	lb_child_names_free(f.names);
}

// A74-C05
static void of_children_that_exist_the_same_rank_is_kept_then_the_first_locality(void **state)
{
	struct fixture f = {.exists = 7};
	UPDATE(&f, "bb", "aa", "cc");
	UPDATE(&f, "aa bb cc");
	EXPECT(&f, 0);
	lb_child_names_free(f.names);
	f.names = NULL;
	UPDATE(&f, "zz", "bb", "aa");
	UPDATE(&f, "bb aa");
	EXPECT(&f, 2);
	lb_child_names_free(f.names);
}

// A74-C08: the one priority of a cluster without endpoints is not made anew by each update.
static void empty_priority_stays_itself(void **state)
{
	struct fixture f = {0};
	UPDATE(&f, "");
	EXPECT(&f, 0);
	UPDATE(&f, "");
	EXPECT(&f, 0);
	UPDATE(&f, "aa");
	EXPECT(&f, 1);
	lb_child_names_free(f.names);
}

// A52-L03
static void locality_of_two_priorities_speaks_for_both(void **state)
{
	struct fixture f = {0};
	UPDATE(&f, "aa", "aa");
	EXPECT(&f, 0, 1);
	UPDATE(&f, "bb", "aa", "aa");
	EXPECT(&f, 2, 1, 0);
	lb_child_names_free(f.names);
}

// Whatever is updated: numbers are unique, new ones are new, and an inherited one has a locality in
// common with its former bearer.
static void random_updates_keep_the_rule(void **state)
{
	static const char *const all[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	struct fixture f = {.exists = UINT64_MAX};
	struct rand rand;
	uint8_t held[20000] = {0};
	uint32_t first_new = 0;
	rand_init(&rand, 42);
	for (int round = 0; round < 2000; round++) {
		static char both[2][4][32]; // the ones before are still viewed
		char(*texts)[32] = both[round % 2];
		const char *list[4];
		uint8_t sets[4] = {0};
		uint32_t n = 1 + (uint32_t)rand_below(&rand, 4), next_new = first_new;
		for (uint32_t i = 0; i < n; i++) {
			texts[i][0] = 0;
			list[i] = texts[i];
		}
		for (int k = 0; k < 8; k++) {
			uint32_t i = (uint32_t)rand_below(&rand, n + 2);
			if (i >= n)
				continue;
			strcat(strcat(texts[i], all[k]), " ");
			sets[i] |= (uint8_t)(1 << k);
		}
		update(&f, list, n);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t x = lb_child_names_at(f.names, i);
			for (uint32_t j = 0; j < i; j++)
				assert_int_not_equal(x, lb_child_names_at(f.names, j));
			if (x >= first_new)
				next_new = x >= next_new ? x + 1 : next_new;
			else
				assert_true((held[x] & sets[i]) || (!held[x] && !sets[i]));
		}
		memset(held, 0, sizeof(held));
		for (uint32_t i = 0; i < n; i++)
			held[lb_child_names_at(f.names, i)] = sets[i];
		first_new = next_new;
	}
	lb_child_names_free(f.names);
}

static void each_allocation_that_fails_gives_nothing(void **state)
{
	struct fixture f = {0};
	static const char *const list[] = {"aa", "bb cc"};
	struct lb_child_names *names;
	UPDATE(&f, "aa bb", "cc");
	ALLOC_FAIL_EACH(names = next(&f, list, 2), !names, lb_child_names_free(names));
	EXPECT(&f, 0, 1);
	lb_child_names_free(f.names);
}

RUN_SUITE("lb/child_names", cmocka_unit_test(swapped_priorities_swap_their_names),
	cmocka_unit_test(priority_of_unknown_localities_gets_a_number_never_used),
	cmocka_unit_test(split_priority_hands_its_name_to_one_heir),
	cmocka_unit_test(child_that_exists_is_kept_by_a_merge),
	cmocka_unit_test(of_children_that_exist_the_same_rank_is_kept_then_the_first_locality),
	cmocka_unit_test(empty_priority_stays_itself),
	cmocka_unit_test(locality_of_two_priorities_speaks_for_both),
	cmocka_unit_test(random_updates_keep_the_rule),
	cmocka_unit_test(each_allocation_that_fails_gives_nothing))
