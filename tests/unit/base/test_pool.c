// SPDX-License-Identifier: Apache-2.0
#include "lb/base/pool.h"
#include "lb/base/rand.h"
#include "tests/support/check.h"

#include <string.h>

static void gives_each_object_once_and_null_when_all_are_out(void **state)
{
	struct pool p;
	void *out[5];
	assert_int_equal(pool_init(&p, 20, 5), 0);
	for (unsigned i = 0; i < 5; i++) {
		out[i] = pool_take(&p);
		assert_non_null(out[i]);
		memset(out[i], 0xff, 20);
		assert_int_equal((uintptr_t)out[i] % 16, 0);
		for (unsigned k = 0; k < i; k++)
			assert_ptr_not_equal(out[i], out[k]);
	}
	assert_null(pool_take(&p));
	assert_int_equal(pool_left(&p), 0);
	pool_put(&p, out[3]);
	pool_put(&p, NULL);
	assert_int_equal(pool_left(&p), 1);
	assert_ptr_equal(pool_take(&p), out[3]);
	assert_int_equal(p.n_peak, 5);
	pool_fini(&p);
}

static void an_empty_pool_has_nothing_to_give(void **state)
{
	struct pool p;
	assert_int_equal(pool_init(&p, 64, 0), 0);
	assert_null(pool_take(&p));
	pool_fini(&p);
}

static void random_use_never_hands_out_an_object_twice(void **state)
{
	enum { N = 64 };
	struct pool p;
	struct rand r;
	uint64_t *held[N] = {0};
	unsigned n_held = 0;
	rand_init(&r, 1);
	assert_int_equal(pool_init(&p, sizeof(uint64_t), N), 0);
	for (unsigned step = 0; step < 100000; step++) {
		unsigned i = (unsigned)rand_below(&r, N);
		if (held[i]) {
			assert_int_equal(*held[i], i); // nobody else wrote to it
			pool_put(&p, held[i]);
			held[i] = NULL;
			n_held--;
		} else {
			held[i] = pool_take(&p);
			assert_non_null(held[i]);
			*held[i] = i;
			n_held++;
		}
		assert_int_equal(p.n_used, n_held);
	}
	pool_fini(&p);
}

static void a_list_shows_what_is_used_now_and_was_at_most(void **state)
{
	struct pool p;
	struct pool_list list = {0};
	uint32_t used = 3, peak = 4;
	assert_int_equal(pool_init(&p, 20, 5), 0);
	pool_list_add(&list, "objects", &p);
	pool_list_add_view(&list, &(struct pool_view){"others", 7, 9, &used, &peak});
	void *out[] = {pool_take(&p), pool_take(&p)};
	pool_put(&p, out[0]);
	assert_int_equal(list.n, 2);
	assert_string_equal(list.views[0].name, "objects");
	assert_int_equal(list.views[0].size, 32);
	assert_int_equal(list.views[0].n_total, 5);
	assert_int_equal(*list.views[0].n_used, 1);
	assert_int_equal(*list.views[0].n_peak, 2);
	assert_int_equal(*list.views[1].n_used, 3);
	pool_put(&p, out[1]);
	assert_int_equal(*list.views[0].n_used, 0);
	pool_fini(&p);
}

RUN_SUITE("base/pool", cmocka_unit_test(gives_each_object_once_and_null_when_all_are_out),
	cmocka_unit_test(an_empty_pool_has_nothing_to_give),
	cmocka_unit_test(random_use_never_hands_out_an_object_twice),
	cmocka_unit_test(a_list_shows_what_is_used_now_and_was_at_most))
