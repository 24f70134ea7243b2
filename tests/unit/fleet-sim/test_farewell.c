// SPDX-License-Identifier: Apache-2.0
#include "lb/base/time.h"
#include "tests/support/check.h"
#include "tools/fleet-sim/clients.h"
#include "tools/fleet-sim/farewell.h"

#define N_HOSTS 10
#define N_CONNECTIONS 50000
#define FAREWELL_S 100

struct world {
	bool is_leaving[N_HOSTS];
	uint32_t before[N_HOSTS], after[N_HOSTS];
	struct fleet *fleet;
	struct clients *clients;
	struct farewell farewell;
};

// Two of the hosts say farewell, in time 0.
static void init(struct world *w, uint32_t stream_s, uint32_t age_s)
{
	const struct fleet_conf fleet = {1, N_HOSTS, N_CONNECTIONS, TIER_MAGLEV};
	const struct farewell_conf conf = {1, FAREWELL_S, 30, stream_s};
	*w = (struct world){.is_leaving = {[2] = true, [3] = true}};
	w->fleet = fleet_new(&fleet, NULL);
	w->clients = clients_new(w->fleet, age_s);
	assert_non_null(w->clients);
	fleet_count(w->fleet, w->before);
	farewell_begin(&w->farewell, &conf, w->is_leaving, 0);
}

static void pass(struct world *w, uint64_t until_ns)
{
	clients_pass(w->clients, &w->farewell, until_ns);
	fleet_count(w->fleet, w->after);
}

static void fini(struct world *w)
{
	clients_free(w->clients);
	fleet_free(w->fleet);
}

// FL-41, FL-155: half of them in half of the first tenth; a fifth of those comes back to one of the
// two, and is told again.
static void all_are_told_and_gone_before_the_drain(void **state)
{
	(void)state;
	struct world w;
	init(&w, 10, 0);
	uint32_t n = w.before[2] + w.before[3];
	pass(&w, FAREWELL_S * NS_PER_SECOND / 20);
	assert_in_range(w.farewell.n_told, n * 48 / 100, n * 56 / 100);
	pass(&w, w.farewell.until_ns);
	assert_in_range(w.farewell.n_told, n * 12 / 10, n * 13 / 10);
	assert_int_equal(w.after[2] + w.after[3], 0);
	fini(&w);
}

// FL-156
static void who_comes_in_the_hush_or_the_drain_is_not_told(void **state)
{
	(void)state;
	struct world w;
	init(&w, 10, 200);
	pass(&w, w.farewell.hush_ns - 1);
	uint64_t n_told = w.farewell.n_told;
	pass(&w, w.farewell.cut_ns);
	// Of four fifths, who were not told, a 200th connects anew each second, for four, and a
	// fifth of these comes here.
	uint32_t n = N_CONNECTIONS * 4 / 5 * 4 / 200 / 5;
	assert_in_range(w.after[2] + w.after[3], n * 7 / 10, n * 13 / 10);
	assert_in_range(w.farewell.n_told - n_told, 0, n / 10);
	fini(&w);
}

static void the_drain_ends_with_the_last_stream_or_cuts_it(void **state)
{
	(void)state;
	struct world w;
	init(&w, 1, 0); // e^-90 of them outlive it
	pass(&w, w.farewell.until_ns);
	assert_int_equal(w.farewell.n_streams_cut, 0);
	assert_true(farewell_ends_at(&w.farewell) == w.farewell.until_ns);
	fini(&w);
	init(&w, 50, 0);
	pass(&w, w.farewell.until_ns);
	// e^-(98/50) = 14 %, as they are told at 5 s on the average.
	assert_in_range(w.farewell.n_streams_cut, w.farewell.n_told * 13 / 100,
		w.farewell.n_told * 16 / 100);
	assert_true(
		farewell_ends_at(&w.farewell) == (FAREWELL_S + 3) * NS_PER_SECOND); // not drain_s
	fini(&w);
}

RUN_SUITE("fleet-sim/farewell", cmocka_unit_test(all_are_told_and_gone_before_the_drain),
	cmocka_unit_test(who_comes_in_the_hush_or_the_drain_is_not_told),
	cmocka_unit_test(the_drain_ends_with_the_last_stream_or_cuts_it))
