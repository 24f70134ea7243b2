// SPDX-License-Identifier: Apache-2.0
// Rings between workers: order, bounds, what is left at the end, and that nobody sleeps through a
// frame.
#include "dataplane/handover.h"
#include "tests/support/check.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>

static int marks[4096];

static struct handover_item mark(uint32_t i)
{
	return (struct handover_item){.frame = &marks[i], .port = i % 8, .is_copy = i % 3 == 0};
}

static uint64_t count(const struct handover_end *e, const char *name)
{
	struct counter_set set = handover_counters(e);
	for (uint32_t i = 0; i < set.n; i++)
		if (strcmp(set.names[i], name) == 0)
			return counter_read(&set.values[i]);
	fail_msg("no counter %s", name);
	return 0;
}

static uint32_t n_dropped;

static void drop(void *frame)
{
	assert_non_null(frame);
	n_dropped++;
}

static void frames_come_in_order_once_flushed(void **state)
{
	struct handover *h = handover_new(3, false);
	struct handover_end *from = handover_end(h, 2), *to = handover_end(h, 0);
	struct handover_item items[HANDOVER_BATCH];
	for (uint32_t i = 0; i < 40; i++) {
		struct handover_item item = mark(i);
		assert_true(handover_give(from, 0, &item));
	}
	assert_int_equal(handover_take(to, items, HANDOVER_BATCH), 0);
	handover_flush(from);
	assert_int_equal(handover_take(handover_end(h, 1), items, HANDOVER_BATCH), 0);
	assert_int_equal(handover_take(to, items, HANDOVER_BATCH), HANDOVER_BATCH);
	for (uint32_t i = 0; i < HANDOVER_BATCH; i++) {
		assert_ptr_equal(items[i].frame, &marks[i]);
		assert_int_equal(items[i].port, i % 8);
		assert_int_equal(items[i].is_copy, i % 3 == 0);
	}
	assert_int_equal(handover_take(to, items, HANDOVER_BATCH), 40 - HANDOVER_BATCH);
	assert_int_equal(count(from, "given") + count(from, "copies_given"), 40);
	assert_int_equal(count(from, "copies_given"), 14);
	assert_int_equal(count(to, "taken"), 40);
	handover_free(h, drop);
}

// TH-48: A storm of ARP on the link costs copies, not segments.
static void copies_leave_room_for_segments(void **state)
{
	struct handover *h = handover_new(2, false);
	struct handover_end *from = handover_end(h, 0);
	struct handover_item copy = {.frame = &marks[0], .is_copy = true};
	struct handover_item segment = {.frame = &marks[1]};
	uint32_t n_copies = 0, n_segments = 0;
	while (handover_give(from, 1, &copy))
		n_copies++;
	while (handover_give(from, 1, &segment))
		n_segments++;
	assert_true(n_copies > 0);
	assert_int_equal(n_segments, n_copies);
	assert_int_equal(count(from, "ring_full"), 2);
	handover_flush(from);
	for (uint32_t i = 0; i < n_copies; i++) {
		assert_false(handover_give(from, 1, &copy));
		assert_int_equal(handover_take(handover_end(h, 1), &segment, 1), 1);
	}
	assert_false(handover_give(from, 1, &copy));
	assert_int_equal(handover_take(handover_end(h, 1), &segment, 1), 1);
	assert_true(handover_give(from, 1, &copy));
	handover_free(h, drop);
}

static void full_ring_refuses_and_the_end_gives_back(void **state)
{
	struct handover *h = handover_new(2, true);
	struct handover_end *from = handover_end(h, 0);
	uint32_t n = 0;
	struct handover_item item = mark(1); // no copy
	while (handover_give(from, 1, &item))
		n++;
	assert_in_range(n, 256, 4096);
	assert_int_equal(count(from, "ring_full"), 1);
	handover_flush(from);
	assert_int_equal(handover_take(handover_end(h, 1), &(struct handover_item){0}, 1), 1);
	assert_true(handover_give(from, 1, &item)); // not flushed: given back all the same
	n_dropped = 0;
	handover_free(h, drop);
	assert_int_equal(n_dropped, n);
}

static void those_who_give_are_served_in_turn(void **state)
{
	struct handover *h = handover_new(3, false);
	struct handover_item items[8];
	for (uint32_t i = 0; i < 32; i++) {
		struct handover_item a = mark(i), b = mark(100 + i);
		assert_true(handover_give(handover_end(h, 1), 0, &a));
		assert_true(handover_give(handover_end(h, 2), 0, &b));
	}
	handover_flush(handover_end(h, 1));
	handover_flush(handover_end(h, 2));
	uint32_t n_first = 0;
	for (int round = 0; round < 4; round++) {
		assert_int_equal(handover_take(handover_end(h, 0), items, 8), 8);
		for (int i = 0; i < 8; i++)
			n_first += (int *)items[i].frame < &marks[100];
	}
	assert_int_equal(n_first, 16);
	handover_free(h, drop);
}

static void sleep_is_refused_while_something_waits(void **state)
{
	struct handover *h = handover_new(2, true);
	struct handover_item item = mark(1);
	assert_true(handover_give(handover_end(h, 0), 1, &item));
	handover_flush(handover_end(h, 0));
	assert_false(handover_sleep(handover_end(h, 1)));
	assert_int_equal(handover_take(handover_end(h, 1), &item, 1), 1);
	assert_true(handover_sleep(handover_end(h, 1)));
	handover_awake(handover_end(h, 1));
	handover_free(h, drop);
}

static bool is_readable(const struct handover_end *e)
{
	struct pollfd p = {.fd = handover_wait_fd(e), .events = POLLIN};
	return poll(&p, 1, 0) == 1;
}

static void sleeper_is_woken_once(void **state)
{
	struct handover *h = handover_new(2, true);
	struct handover_end *from = handover_end(h, 0), *to = handover_end(h, 1);
	struct handover_item item = mark(1);
	assert_true(handover_sleep(to));
	assert_false(is_readable(to));
	for (int i = 0; i < 3; i++) {
		assert_true(handover_give(from, 1, &item));
		handover_flush(from);
	}
	assert_true(is_readable(to));
	assert_int_equal(count(from, "wake_ups"), 1);
	handover_awake(to);
	assert_false(is_readable(to));
	handover_free(h, drop);
}

// Each of the two hands one frame over and sleeps without a limit until it comes back: if a wake-up
// is ever lost, both sleep for ever and the test runs into its bound.
#define N_ROUNDS 20000

struct player {
	struct handover *h;
	uint32_t worker;
};

static struct handover_item wait_for_one(struct handover_end *e)
{
	struct handover_item item;
	while (handover_take(e, &item, 1) == 0) {
		if (!handover_sleep(e))
			continue;
		struct pollfd p = {.fd = handover_wait_fd(e), .events = POLLIN};
		poll(&p, 1, -1);
		handover_awake(e);
	}
	return item;
}

static void *play(void *arg)
{
	struct player *p = arg;
	struct handover_end *e = handover_end(p->h, p->worker);
	for (int i = 0; i < N_ROUNDS; i++) {
		struct handover_item item = wait_for_one(e);
		(*(int *)item.frame)++;
		if (!handover_give(e, !p->worker, &item))
			return (void *)1;
		handover_flush(e);
	}
	return NULL;
}

static void no_wake_up_is_lost(void **state)
{
	struct handover *h = handover_new(2, true);
	struct player players[2] = {{h, 0}, {h, 1}};
	pthread_t threads[2];
	marks[0] = 0;
	struct handover_item first = {.frame = &marks[0]};
	assert_true(handover_give(handover_end(h, 0), 1, &first));
	handover_flush(handover_end(h, 0));
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, play, &players[i]), 0);
	for (int i = 0; i < 2; i++) {
		void *failed;
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_int_equal(marks[0], 2 * N_ROUNDS);
	handover_free(h, drop);
}

RUN_SUITE("dataplane/handover", cmocka_unit_test(frames_come_in_order_once_flushed),
	cmocka_unit_test(copies_leave_room_for_segments),
	cmocka_unit_test(full_ring_refuses_and_the_end_gives_back),
	cmocka_unit_test(those_who_give_are_served_in_turn),
	cmocka_unit_test(sleep_is_refused_while_something_waits),
	cmocka_unit_test(sleeper_is_woken_once), cmocka_unit_test(no_wake_up_is_lost))
