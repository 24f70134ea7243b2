// SPDX-License-Identifier: Apache-2.0
#include "lb/base/spsc.h"
#include "tests/support/check.h"

#include <pthread.h>
#include <sched.h>

struct item {
	uint64_t number, check;
};

static void a_full_ring_refuses_and_an_empty_one_gives_nothing(void **state)
{
	struct spsc r;
	struct item item = {0};
	assert_int_equal(spsc_init(&r, sizeof(item), 3), 0); // rounded up to 4
	assert_false(spsc_read(&r, &item));
	for (uint64_t i = 0; i < 4; i++)
		assert_true(spsc_write(&r, &(struct item){i, ~i}));
	assert_false(spsc_write(&r, &(struct item){9, 9}));
	for (uint64_t i = 0; i < 4; i++) {
		assert_true(spsc_read(&r, &item));
		assert_int_equal(item.number, i);
	}
	assert_false(spsc_read(&r, &item));
	spsc_fini(&r);
}

static void an_item_that_is_peeked_at_keeps_its_place_until_it_is_passed(void **state)
{
	struct spsc r;
	assert_int_equal(spsc_init(&r, sizeof(struct item), 2), 0);
	assert_null(spsc_peek(&r));
	for (uint64_t i = 1; i < 6; i++) {
		assert_true(spsc_write(&r, &(struct item){i, ~i}));
		assert_true(spsc_write(&r, &(struct item){9, 9}));
		const struct item *item = spsc_peek(&r);
		assert_false(spsc_write(&r, &(struct item){7, 7}));
		assert_ptr_equal(spsc_peek(&r), item);
		assert_int_equal(item->number, i);
		assert_int_equal(item->check, ~i);
		spsc_pass(&r);
		assert_int_equal(((const struct item *)spsc_peek(&r))->number, 9);
		spsc_pass(&r);
		assert_null(spsc_peek(&r));
	}
	spsc_fini(&r);
}

static void counters_may_wrap(void **state)
{
	struct spsc r;
	struct item item;
	assert_int_equal(spsc_init(&r, sizeof(item), 4), 0);
	r.head = r.tail = r.staged = r.seen_tail = UINT32_MAX - 5;
	for (uint64_t i = 0; i < 20; i++) {
		assert_true(spsc_write(&r, &(struct item){i, ~i}));
		assert_true(spsc_read(&r, &item));
		assert_int_equal(item.number, i);
	}
	spsc_fini(&r);
}

static void staged_items_are_seen_when_published(void **state)
{
	struct spsc r;
	struct item items[4];
	assert_int_equal(spsc_init(&r, sizeof(items[0]), 4), 0);
	for (uint64_t i = 0; i < 3; i++)
		assert_true(spsc_stage(&r, &(struct item){i, ~i}));
	assert_true(spsc_is_empty(&r));
	assert_int_equal(spsc_read_many(&r, items, 4), 0);
	assert_int_equal(spsc_room(&r), 1);
	assert_true(spsc_stage(&r, &(struct item){3, ~UINT64_C(3)}));
	assert_false(spsc_stage(&r, &(struct item){4, ~UINT64_C(4)}));
	spsc_publish(&r);
	assert_false(spsc_is_empty(&r));
	assert_int_equal(spsc_read_many(&r, items, 3), 3);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(items[i].number, i);
	assert_int_equal(spsc_read_many(&r, items, 3), 1);
	assert_int_equal(items[0].number, 3);
	spsc_fini(&r);
}

#define N_ITEMS 300000

static void *write_all(void *arg)
{
	struct spsc *r = arg;
	for (uint64_t i = 0; i < N_ITEMS; i++)
		while (!spsc_write(r, &(struct item){i, ~i}))
			sched_yield();
	return NULL;
}

static void between_two_threads_every_item_arrives_whole_and_in_order(void **state)
{
	struct spsc r;
	pthread_t writer;
	assert_int_equal(spsc_init(&r, sizeof(struct item), 64), 0);
	assert_int_equal(pthread_create(&writer, NULL, write_all, &r), 0);
	for (uint64_t i = 0; i < N_ITEMS; i++) {
		struct item item;
		while (!spsc_read(&r, &item))
			sched_yield();
		assert_int_equal(item.number, i);
		assert_int_equal(item.check, ~i);
	}
	assert_int_equal(pthread_join(writer, NULL), 0);
	spsc_fini(&r);
}

RUN_SUITE("base/spsc", cmocka_unit_test(a_full_ring_refuses_and_an_empty_one_gives_nothing),
	cmocka_unit_test(an_item_that_is_peeked_at_keeps_its_place_until_it_is_passed),
	cmocka_unit_test(counters_may_wrap), cmocka_unit_test(staged_items_are_seen_when_published),
	cmocka_unit_test(between_two_threads_every_item_arrives_whole_and_in_order))
