// SPDX-License-Identifier: Apache-2.0
// Whose turn it is on a handshake thread.
#include "lb/base/time.h"
#include "tests/support/check.h"
#include "tlshs/queue.h"

#define NOW (3600 * NS_PER_SECOND)
#define HELLO 500 // bytes
#define CHAIN 50000
#define CHAIN_NS (15 * NS_PER_MS)
#define MANY 200

static struct tlshs_queue queue;

static int setup(void **state)
{
	(void)state;
	queue = (struct tlshs_queue){0};
	tlshs_queue_init(&queue);
	return 0;
}

static struct tlshs_seat seat(uint64_t source, uint64_t n_bytes)
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
		assert_ptr_equal(tlshs_queue_take(&queue), &s[i]);
	assert_null(tlshs_queue_take(&queue));
}

// TH-128, TH-117
static void what_costs_much_waits_for_what_costs_little_but_not_for_ever(void **state)
{
	(void)state;
	struct tlshs_seat chain = seat(1, CHAIN), early = seat(2, HELLO), late = seat(3, HELLO);
	tlshs_queue_add(&queue, &chain, NOW);
	tlshs_queue_add(&queue, &early, NOW + 10 * NS_PER_MS);
	assert_ptr_equal(tlshs_queue_take(&queue), &early);
	tlshs_queue_add(&queue, &late, NOW + 100 * NS_PER_MS);
	assert_ptr_equal(tlshs_queue_take(&queue), &chain);
}

// TH-128
static void a_source_waits_for_what_it_has_spent(void **state)
{
	(void)state;
	struct tlshs_seat greedy = seat(1, HELLO), other = seat(2, HELLO);
	for (unsigned i = 0; i < 100; i++) // more than it is ever charged
		tlshs_queue_charge(&queue, 1, 20 * NS_PER_MS, NOW);
	tlshs_queue_add(&queue, &greedy, NOW);
	tlshs_queue_add(&queue, &other, NOW + 999 * NS_PER_MS);
	assert_ptr_equal(tlshs_queue_take(&queue), &other);
	tlshs_queue_add(&queue, &other, NOW + 1000 * NS_PER_MS);
	assert_ptr_equal(tlshs_queue_take(&queue), &greedy);
	assert_ptr_equal(tlshs_queue_take(&queue), &other);
}

// TH-128: but for all of a hash nobody waits for what another one has spent.
static void a_source_does_not_wait_for_one_of_a_hash_like_its_own(void **state)
{
	struct tlshs_seat greedy = seat(1, HELLO), other = seat(1 | UINT64_C(1) << 48, HELLO);
	tlshs_queue_charge(&queue, 1, 20 * NS_PER_MS, NOW);
	tlshs_queue_add(&queue, &greedy, NOW);
	tlshs_queue_add(&queue, &other, NOW + 1);
	assert_ptr_equal(tlshs_queue_take(&queue), &other);
}

// TH-128: of those who share an address nobody is passed by for ever.
static void a_source_in_debt_is_served_in_order(void **state)
{
	(void)state;
	struct tlshs_seat chain = seat(1, CHAIN), late = seat(1, HELLO);
	tlshs_queue_charge(&queue, 1, NS_PER_SECOND, NOW);
	tlshs_queue_add(&queue, &chain, NOW);
	tlshs_queue_add(&queue, &late, NOW + NS_PER_MS);
	assert_ptr_equal(tlshs_queue_take(&queue), &chain);
}

static struct tlshs_seat seats[MANY];

// Serves so many, each of which costs as much. Returns when that is done.
static uint64_t serve(unsigned n, uint64_t each_ns, uint64_t now_ns)
{
	for (unsigned i = 0; i < n; i++, now_ns += each_ns)
		tlshs_queue_charge(&queue, tlshs_queue_take(&queue)->source, each_ns, now_ns);
	return now_ns;
}

// TH-128: a second and a half of it is served, as much again waits.
static void a_backlog_of_one_source_is_behind_whoever_comes(void **state)
{
	(void)state;
	struct tlshs_seat other = seat(2, HELLO);
	for (unsigned i = 0; i < MANY; i++) {
		seats[i] = seat(1, HELLO);
		tlshs_queue_add(&queue, &seats[i], NOW);
	}
	uint64_t now_ns = serve(MANY / 2, CHAIN_NS, NOW);
	assert_int_equal(now_ns, NOW + 1500 * NS_PER_MS);
	tlshs_queue_add(&queue, &other, now_ns);
	assert_ptr_equal(tlshs_queue_take(&queue), &other);
}

// TH-128: each of them puts off its own.
static void of_the_backlogs_of_many_sources_one_each_is_before_whoever_comes(void **state)
{
	(void)state;
	enum { N_SOURCES = 20 };
	struct tlshs_seat other = seat(N_SOURCES, HELLO);
	for (unsigned i = 0; i < MANY; i++) {
		seats[i] = seat(i / (MANY / N_SOURCES), HELLO);
		tlshs_queue_add(&queue, &seats[i], NOW);
	}
	uint64_t now_ns = serve(MANY / 2, CHAIN_NS, NOW);
	tlshs_queue_add(&queue, &other, now_ns);
	for (unsigned i = 0; i < N_SOURCES; i++) {
		struct tlshs_seat *s = tlshs_queue_take(&queue);
		if (s == &other)
			return;
		tlshs_queue_charge(&queue, s->source, CHAIN_NS, now_ns);
		now_ns += CHAIN_NS;
	}
	fail();
}

// Of its backlog, in 160 ms, of each eight of which others take so many: all from new sources.
static unsigned served_beside(unsigned of_eight)
{
	static struct tlshs_seat others[160];
	unsigned n_served = 0;
	for (unsigned i = 0; i < MANY; i++) {
		seats[i] = seat(1000, HELLO);
		tlshs_queue_add(&queue, &seats[i], NOW);
	}
	for (unsigned i = 0; i < 160; i++) {
		others[i] = seat(i, HELLO);
		if (i % 8 < of_eight)
			tlshs_queue_add(&queue, &others[i], NOW + i * NS_PER_MS);
		uint64_t source = tlshs_queue_take(&queue)->source;
		n_served += source == 1000;
		tlshs_queue_charge(&queue, source, NS_PER_MS, NOW + i * NS_PER_MS);
	}
	return n_served;
}

// TH-128: an eighth, and less when there is more to do than can be done.
static void a_backlog_is_served_whoever_comes(void **state)
{
	assert_in_range(served_beside(7), 19, 20);
	setup(state);
	assert_in_range(served_beside(8), 10, 20);
}

// TH-128
static void what_was_spent_is_forgiven_with_time(void **state)
{
	(void)state;
	struct tlshs_seat once = seat(1, HELLO), other = seat(2, HELLO);
	tlshs_queue_charge(&queue, 1, 10 * NS_PER_MS, NOW);
	tlshs_queue_add(&queue, &once, NOW + 79 * NS_PER_MS);
	tlshs_queue_add(&queue, &other, NOW + 79 * NS_PER_MS + 1);
	assert_ptr_equal(tlshs_queue_take(&queue), &other);
	tlshs_queue_add(&queue, &other, NOW + 80 * NS_PER_MS);
	assert_ptr_equal(tlshs_queue_take(&queue), &once);
}

RUN_SUITE("tlshs/queue", cmocka_unit_test_setup(who_came_first_is_first, setup),
	cmocka_unit_test_setup(what_costs_much_waits_for_what_costs_little_but_not_for_ever, setup),
	cmocka_unit_test_setup(a_source_waits_for_what_it_has_spent, setup),
	cmocka_unit_test_setup(a_source_does_not_wait_for_one_of_a_hash_like_its_own, setup),
	cmocka_unit_test_setup(a_source_in_debt_is_served_in_order, setup),
	cmocka_unit_test_setup(a_backlog_of_one_source_is_behind_whoever_comes, setup),
	cmocka_unit_test_setup(
		of_the_backlogs_of_many_sources_one_each_is_before_whoever_comes, setup),
	cmocka_unit_test_setup(a_backlog_is_served_whoever_comes, setup),
	cmocka_unit_test_setup(what_was_spent_is_forgiven_with_time, setup))
