// SPDX-License-Identifier: Apache-2.0
// Which handshakes give way to newcomers.
#include "lb/base/time.h"
#include "tests/support/check.h"
#include "tlshs/owing.h"

#define NOW (3600 * NS_PER_SECOND)
#define PATIENCE (1500 * NS_PER_MS)
#define LATE (NOW + PATIENCE)
#define PLACES 8 // of the link

static struct tlshs_owing owing;
static struct tlshs_census census;
static struct tlshs_seat seats[40];

static int setup(void **state)
{
	census = (struct tlshs_census){0};
	tlshs_owing_init(&owing, PLACES, PATIENCE);
	return 0;
}

static struct tlshs_seat *begin(unsigned i, uint64_t source, uint64_t now_ns)
{
	seats[i] = (struct tlshs_seat){.source = source};
	tlshs_owing_add(&owing, &seats[i], now_ns);
	census.open++;
	sketch_add(&census.of_source, source);
	return &seats[i];
}

static void end(struct tlshs_seat *s)
{
	tlshs_owing_remove(s);
	census.open--;
	sketch_remove(&census.of_source, s->source);
}

// Each of a source of its own, a millisecond after the one before.
static void begin_some(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		begin(i, i, NOW + i * NS_PER_MS);
}

static struct tlshs_seat *find(uint64_t now_ns)
{
	return tlshs_owing_find(&owing, &census, now_ns);
}

static void th_140_nobody_gives_way_while_half_of_the_places_are_free(void **state)
{
	begin_some(PLACES / 2);
	assert_null(find(LATE + 10 * NS_PER_SECOND));
	begin(PLACES / 2, PLACES, LATE);
	assert_ptr_equal(find(LATE + 10 * NS_PER_SECOND), &seats[0]);
}

static void th_140_who_has_owed_longest_gives_way_until_half_is_free(void **state)
{
	begin_some(PLACES);
	assert_null(find(LATE - 1));
	assert_ptr_equal(find(LATE), &seats[0]);
	end(&seats[0]);
	assert_null(find(LATE));
	for (unsigned i = 1; i < PLACES / 2; i++) {
		assert_ptr_equal(find(LATE + NS_PER_SECOND), &seats[i]);
		end(&seats[i]);
	}
	assert_null(find(LATE + NS_PER_SECOND));
}

static void th_140_an_answer_of_ours_gives_the_peer_its_time_anew(void **state)
{
	begin_some(PLACES);
	tlshs_owing_renew(&seats[0], NOW + NS_PER_SECOND);
	assert_ptr_equal(find(LATE + NS_PER_MS), &seats[1]);
	for (unsigned i = 1; i < PLACES; i++)
		tlshs_owing_renew(&seats[i], NOW + 2 * NS_PER_SECOND);
	assert_null(find(LATE + NS_PER_SECOND - 1));
	assert_ptr_equal(find(LATE + NS_PER_SECOND), &seats[0]);
}

static void th_140_who_waits_for_us_does_not_give_way(void **state)
{
	struct list_link ready;
	list_init(&ready);
	begin_some(PLACES);
	list_append(&ready, &seats[0].ready);
	list_append(&ready, &seats[1].ready);
	assert_ptr_equal(find(LATE + NS_PER_SECOND), &seats[2]);
	list_remove(&seats[0].ready); // it was run, and has nothing to say
	assert_ptr_equal(find(LATE + NS_PER_SECOND), &seats[0]);
}

// However many of them are the first.
static void th_140_who_waits_for_us_shields_nobody_behind(void **state)
{
	struct list_link ready;
	list_init(&ready);
	begin_some(38);
	for (int i = 0; i < 20; i++)
		list_append(&ready, &seats[i].ready);
	assert_ptr_equal(find(LATE + NS_PER_SECOND), &seats[20]);
}

static void th_140_of_those_that_are_late_the_largest_source_gives_way_first(void **state)
{
	begin_some(PLACES);
	end(&seats[3]);
	begin(3, 2, NOW + PLACES * NS_PER_MS); // source 2 has two now
	assert_ptr_equal(find(LATE), &seats[0]); // nobody else is late yet
	assert_ptr_equal(find(LATE + NS_PER_SECOND), &seats[2]);
	end(&seats[2]);
	assert_ptr_equal(find(LATE + NS_PER_SECOND), &seats[0]);
}

static void th_140_sixteen_of_the_late_are_compared(void **state)
{
	begin_some(38);
	begin(38, 39, NOW + NS_PER_SECOND);
	begin(39, 39, NOW + NS_PER_SECOND); // the largest, and far behind
	assert_ptr_equal(find(LATE + NS_PER_SECOND), &seats[0]);
	for (unsigned i = 0; i < 24; i++)
		end(&seats[i]);
	assert_ptr_equal(find(LATE + NS_PER_SECOND), &seats[38]);
}

static void th_140_half_of_all_that_may_be_open_is_left_free_as_well(void **state)
{
	census.max = 12;
	begin_some(2);
	census.open = 6; // with other links, or backends
	assert_null(find(LATE + NS_PER_SECOND));
	census.open = 7;
	assert_ptr_equal(find(LATE + NS_PER_SECOND), &seats[0]);
	end(&seats[0]);
	assert_null(find(LATE + NS_PER_SECOND));
}

static void th_140_with_a_backend_or_over_nobody_owes_anything(void **state)
{
	struct tlshs_seat backend = {0};
	tlshs_owing_renew(&backend, NOW);
	tlshs_owing_remove(&backend);
	begin_some(1);
	end(&seats[0]);
	tlshs_owing_renew(&seats[0], NOW);
	assert_int_equal(owing.n, 0);
	assert_true(list_empty(&owing.seats));
}

RUN_SUITE("tlshs/owing",
	cmocka_unit_test_setup(th_140_nobody_gives_way_while_half_of_the_places_are_free, setup),
	cmocka_unit_test_setup(th_140_who_has_owed_longest_gives_way_until_half_is_free, setup),
	cmocka_unit_test_setup(th_140_an_answer_of_ours_gives_the_peer_its_time_anew, setup),
	cmocka_unit_test_setup(th_140_who_waits_for_us_does_not_give_way, setup),
	cmocka_unit_test_setup(th_140_who_waits_for_us_shields_nobody_behind, setup),
	cmocka_unit_test_setup(
		th_140_of_those_that_are_late_the_largest_source_gives_way_first, setup),
	cmocka_unit_test_setup(th_140_sixteen_of_the_late_are_compared, setup),
	cmocka_unit_test_setup(th_140_half_of_all_that_may_be_open_is_left_free_as_well, setup),
	cmocka_unit_test_setup(th_140_with_a_backend_or_over_nobody_owes_anything, setup))
