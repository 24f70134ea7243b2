// SPDX-License-Identifier: Apache-2.0
// Whose turn it is on a handshake thread.
#include "lb/base/time.h"
#include "tests/support/check.h"
#include "tlshs/queue.h"

#define NOW (3600 * NS_PER_SECOND)
#define HELLO 500 // bytes
#define CHAIN 50000

static struct tlshs_queue queue;

static int setup(void **state)
{
	(void)state;
	queue = (struct tlshs_queue){0};
	tlshs_queue_init(&queue);
	return 0;
}

static struct tlshs_seat seat(uint32_t source, uint64_t n_bytes)
{
	return (struct tlshs_seat){.source = source, .n_unanswered = n_bytes};
}

// TH-128
static void who_came_first_is_first(void **state)
{
	(void)state;
	struct tlshs_seat s[3] = {seat(1, HELLO), seat(2, HELLO), seat(3, HELLO)};
	for (unsigned i = 0; i < 3; i++)
		tlshs_queue_add(&queue, &s[i], NOW + i);
	tlshs_queue_add(&queue, &s[0], NOW + 9); // keeps its place
	for (unsigned i = 0; i < 3; i++)
		assert_ptr_equal(tlshs_queue_take(&queue, NOW + 10), &s[i]);
	assert_null(tlshs_queue_take(&queue, NOW + 10));
}

// TH-128, TH-117
static void what_costs_much_waits_for_what_costs_little_but_not_for_ever(void **state)
{
	(void)state;
	struct tlshs_seat chain = seat(1, CHAIN), early = seat(2, HELLO), late = seat(3, HELLO);
	tlshs_queue_add(&queue, &chain, NOW);
	tlshs_queue_add(&queue, &early, NOW + 10 * NS_PER_MS);
	assert_ptr_equal(tlshs_queue_take(&queue, NOW + 11 * NS_PER_MS), &early);
	tlshs_queue_add(&queue, &late, NOW + 100 * NS_PER_MS);
	assert_ptr_equal(tlshs_queue_take(&queue, NOW + 101 * NS_PER_MS), &chain);
}

// TH-128
static void a_source_waits_for_what_it_has_spent(void **state)
{
	(void)state;
	struct tlshs_seat greedy = seat(1, HELLO), other = seat(2, HELLO);
	for (unsigned i = 0; i < 100; i++) // more than it is ever charged
		tlshs_queue_charge(&queue, 1, 20 * NS_PER_MS, NOW);
	tlshs_queue_add(&queue, &greedy, NOW);
	tlshs_queue_add(&queue, &other, NOW + 900 * NS_PER_MS);
	assert_ptr_equal(tlshs_queue_take(&queue, NOW + 900 * NS_PER_MS), &greedy);
	assert_ptr_equal(tlshs_queue_take(&queue, NOW + 900 * NS_PER_MS), &other);
	tlshs_queue_charge(&queue, 1, NS_PER_SECOND, NOW + 900 * NS_PER_MS);
	tlshs_queue_add(&queue, &greedy, NOW + 900 * NS_PER_MS);
	tlshs_queue_add(&queue, &other, NOW + 1000 * NS_PER_MS);
	assert_ptr_equal(tlshs_queue_take(&queue, NOW + 1000 * NS_PER_MS), &other);
	assert_ptr_equal(tlshs_queue_take(&queue, NOW + 1000 * NS_PER_MS), &greedy);
}

// TH-128
static void what_was_spent_is_forgiven_with_time(void **state)
{
	(void)state;
	struct tlshs_seat once = seat(1, HELLO), other = seat(2, HELLO);
	tlshs_queue_charge(&queue, 1, 10 * NS_PER_MS, NOW);
	tlshs_queue_add(&queue, &once, NOW + 79 * NS_PER_MS);
	tlshs_queue_add(&queue, &other, NOW + 79 * NS_PER_MS + 1);
	assert_ptr_equal(tlshs_queue_take(&queue, NOW + 79 * NS_PER_MS + 2), &other);
	tlshs_queue_add(&queue, &other, NOW + 80 * NS_PER_MS);
	assert_ptr_equal(tlshs_queue_take(&queue, NOW + 80 * NS_PER_MS), &once);
}

RUN_SUITE("tlshs/queue", cmocka_unit_test_setup(who_came_first_is_first, setup),
	cmocka_unit_test_setup(what_costs_much_waits_for_what_costs_little_but_not_for_ever, setup),
	cmocka_unit_test_setup(a_source_waits_for_what_it_has_spent, setup),
	cmocka_unit_test_setup(what_was_spent_is_forgiven_with_time, setup))
