// SPDX-License-Identifier: Apache-2.0
#include "lb/base/rand.h"
#include "lb/pick/inflight.h"
#include "tests/support/check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct lb_inflight *asked(uint32_t limit)
{
	static struct lb_inflight_query q;
	struct lb_inflight *f = lb_inflight_new();
	assert_non_null(f);
	q.limit = limit;
	lb_inflight_ask(f, &q);
	return f;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

// OPS-61: a naive twin sorts them all.
static void the_oldest_are_kept_whatever_their_order(void **state)
{
	struct rand rand;
	rand_init(&rand, 11);
	for (int round = 0; round < 300; round++) {
		uint32_t limit = 1 + rand_below(&rand, round % 3 ? 20 : LB_INFLIGHT_ROWS);
		uint32_t n = rand_below(&rand, 3 * limit);
		uint64_t all[3 * LB_INFLIGHT_ROWS], kept[LB_INFLIGHT_ROWS];
		struct lb_inflight *f = asked(limit);
		for (uint32_t i = 0; i < n; i++) {
			all[i] = rand_below(&rand, 1000); // some are of one age
			struct lb_inflight_row *row = lb_inflight_find_place(f, all[i]);
			if (row)
				row->bytes_in = ~all[i];
		}
		qsort(all, n, sizeof(all[0]), by_number);
		assert_int_equal(f->n_matching, n);
		assert_int_equal(f->n_rows, n < limit ? n : limit);
		for (uint32_t i = 0; i < f->n_rows; i++) {
			kept[i] = f->rows[i].began_ns;
			assert_int_equal(f->rows[i].bytes_in, ~kept[i]);
		}
		qsort(kept, f->n_rows, sizeof(kept[0]), by_number);
		assert_memory_equal(kept, all, f->n_rows * sizeof(kept[0]));
		lb_inflight_free(f);
	}
}

static void states_have_names_and_an_end(void **state)
{
	assert_string_equal(
		lb_inflight_state_name(LB_INFLIGHT_REQUESTS, LB_REQUEST_paused), "paused");
	assert_string_equal(lb_inflight_state_name(LB_INFLIGHT_CONNS, LB_CONN_closing), "closing");
	assert_null(lb_inflight_state_name(LB_INFLIGHT_REQUESTS, LB_N_REQUEST_STATES));
	assert_null(lb_inflight_state_name(LB_INFLIGHT_CONNS, LB_N_CONN_STATES));
}

static void texts_are_cut_to_their_room(void **state)
{
	char room[4] = "xyz";
	lb_inflight_put(room, sizeof(room), (struct str){NULL, 0});
	assert_string_equal(room, "");
	lb_inflight_put(room, sizeof(room), STR("abc"));
	assert_string_equal(room, "abc");
	lb_inflight_put(room, sizeof(room), STR("defg"));
	assert_string_equal(room, "def");
}

#define ROUNDS 200

static void *answer_all(void *arg)
{
	struct lb_inflight *f = arg;
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		while (lb_inflight_is_free(f))
			;
		for (uint64_t i = 0; i < 50; i++)
			lb_inflight_find_place(f, i)->bytes_out = round * 100 + i;
		f->n_all = round;
		lb_inflight_done(f);
	}
	return NULL;
}

// It is one side's at a time, so nobody sees a part of an answer.
static void an_answer_is_seen_whole(void **state)
{
	struct lb_inflight *f = lb_inflight_new();
	static struct lb_inflight_query q = {.limit = 100};
	pthread_t worker;
	assert_int_equal(pthread_create(&worker, NULL, answer_all, f), 0);
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		q.before_ns = round;
		lb_inflight_ask(f, &q);
		while (!lb_inflight_is_free(f))
			;
		assert_int_equal(f->n_all, round);
		assert_int_equal(f->n_rows, 50);
		for (uint32_t i = 0; i < f->n_rows; i++)
			assert_int_equal(f->rows[i].bytes_out, round * 100 + f->rows[i].began_ns);
	}
	pthread_join(worker, NULL);
	lb_inflight_free(f);
}

RUN_SUITE("lb/inflight", cmocka_unit_test(the_oldest_are_kept_whatever_their_order),
	cmocka_unit_test(states_have_names_and_an_end),
	cmocka_unit_test(texts_are_cut_to_their_room), cmocka_unit_test(an_answer_is_seen_whole))
