// SPDX-License-Identifier: Apache-2.0
// Clients that break off requests beside one that does not: backends that close a connection on
// which too many streams are reset never have a reason to (TH-90, TH-91).
#include "lb/pick/cause.h"
#include "lb/pick/link.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#define N_ATTACKERS 6
#define N_EACH 900
#define N_AT_ONCE 10

// The first client is the victim; the others come from so many sources.
static struct world *attacked_world(
	uint64_t seed, uint32_t max_resets, uint32_t per_second, uint32_t n_sources)
{
	struct world_conf conf = world_conf_default(seed);
	conf.n_clients = N_ATTACKERS + 1;
	conf.n_backends = 1;
	conf.max_conns_per_endpoint = 10;
	struct world *w = world_new(&conf);
	w->backends[0].max_resets = max_resets;
	w->backends[0].resets_per_second = per_second;
	use_backends(w, 0x1);
	for (uint32_t i = 0; i <= N_ATTACKERS; i++) {
		w->clients[i].source = (uint8_t)(i ? 2 + i % n_sources : 1);
		world_open_client(w, i, 0);
	}
	world_run(w, 100 * MS);
	return w;
}

static struct ask *ask_of(
	struct world *w, uint32_t client, enum kind kind, uint32_t size, const char *timeout)
{
	struct ask *a = world_ask(w, "one", kind, size);
	a->timeout = timeout;
	client_ask(&w->clients[client], a);
	return a;
}

// Each attacker begins some requests, and ends them by reset or by a deadline of 1 ms.
static void attack(struct world *w, const char *timeout)
{
	struct ask *begun[N_ATTACKERS][N_AT_ONCE];
	for (uint32_t i = 0; i < N_ATTACKERS; i++)
		for (uint32_t j = 0; j < N_AT_ONCE; j++)
			begun[i][j] = ask_of(w, 1 + i, KIND_HANG, 0, timeout);
	world_run(w, 5 * MS);
	for (uint32_t i = 0; i < N_ATTACKERS; i++)
		for (uint32_t j = 0; j < N_AT_ONCE; j++)
			if (!timeout)
				client_cancel(begun[i][j]);
}

// The victim has a request that lasts, and one after another that does not.
static void check_victim_beside(struct world *w, const char *timeout)
{
	struct ask *quick[N_EACH / N_AT_ONCE];
	struct ask *slow = ask_of(w, 0, KIND_STALL, 150, NULL);
	world_run(w, 50 * MS);
	for (uint32_t i = 0; i < N_EACH / N_AT_ONCE; i++) {
		quick[i] = ask_of(w, 0, KIND_ECHO, 100, NULL);
		attack(w, timeout);
		world_run(w, 5 * MS);
	}
	world_run(w, SECOND);
	for (uint32_t i = 0; i < N_EACH / N_AT_ONCE; i++) {
		assert_ok(w, quick[i]);
		assert_in_range(took_ns(quick[i]), 0, 50 * MS);
	}
	assert_false(slow->closed);
	assert_int_equal(slow->received, 150);
	assert_int_equal(w->backends[0].n_angry, 0);
	client_cancel(slow);
	world_run(w, 100 * MS);
}

// TH-90
static void th_90_resets_of_many_clients_end_no_shared_connection(void **state)
{
	struct world *w = attacked_world(1, 1000, 33, N_ATTACKERS);
	check_victim_beside(w, NULL);
	assert_int_equal(world_ended(w, LB_CAUSE_CLIENT_RESET), N_ATTACKERS * N_EACH + 1);
	// One connection in a hundred resets, and none is left over.
	assert_in_range(world_counter(w, "upstreams_retired_resets"), 30, 60);
	world_run(w, 40 * SECOND);
	assert_in_range(w->link->endpoints[0].connections, 1, 2);
	world_free(w);
}

// TH-90: Netty lets 200 pass in half a minute.
static void th_90_backends_that_let_few_resets_pass_are_spared(void **state)
{
	struct world *w = attacked_world(2, 200, 0, N_ATTACKERS);
	check_victim_beside(w, NULL);
	world_free(w);
}

// TH-90
static void th_90_short_timeouts_end_no_shared_connection(void **state)
{
	struct world *w = attacked_world(3, 1000, 33, N_ATTACKERS);
	check_victim_beside(w, "1m");
	assert_int_equal(world_ended(w, LB_CAUSE_TIMEOUT), N_ATTACKERS * N_EACH);
	assert_in_range(world_counter(w, "upstreams_retired_resets"), 30, 60);
	world_free(w);
}

// Each attacker has 250 requests, which stay within what its connection may reset.
static void break_off(struct world *w, bool beside_good_ones)
{
	for (uint32_t i = 0; i < 250 / N_AT_ONCE; i++) {
		if (beside_good_ones)
			for (uint32_t j = 0; j < N_ATTACKERS * N_AT_ONCE; j++)
				ask_of(w, 1 + j % N_ATTACKERS, KIND_ECHO, 10, NULL);
		attack(w, NULL);
		world_run(w, 2 * MS);
	}
	world_run(w, 10 * MS);
}

static void check_served(struct world *w, uint32_t client)
{
	struct ask *a = ask_of(w, client, KIND_ECHO, 100, NULL);
	finish_of(w, a);
	assert_ok(w, a);
}

// TH-91
static void th_91_a_source_that_only_breaks_off_is_refused_for_a_while(void **state)
{
	struct world *w = attacked_world(4, 1000, 33, 1);
	break_off(w, false);
	uint64_t refused = world_counter(w, "refused_early_ends");
	assert_in_range(refused, 400, 500);
	assert_int_equal(world_ended(w, LB_CAUSE_OVER_SHARE), refused);
	check_served(w, 0);
	world_run(w, SECOND);
	check_served(w, 1);
	world_free(w);
}

// TH-91: as hedged calls do.
static void th_91_who_lets_as_many_end_well_is_never_refused(void **state)
{
	struct world *w = attacked_world(5, 1000, 33, 1);
	break_off(w, true);
	finish(w);
	assert_int_equal(world_counter(w, "refused_early_ends"), 0);
	assert_int_equal(world_ended(w, LB_CAUSE_OK), 1500);
	assert_int_equal(w->backends[0].n_angry, 0);
	world_free(w);
}

// TH-91: there is nobody whom it would harm.
static void th_91_a_source_that_is_alone_is_never_refused(void **state)
{
	struct world *w = attacked_world(6, 1000, 33, 1);
	client_abort(&w->clients[0]);
	world_run(w, 100 * MS);
	break_off(w, false);
	assert_int_equal(world_counter(w, "refused_early_ends"), 0);
	assert_int_equal(world_ended(w, LB_CAUSE_CLIENT_RESET), 1500);
	world_free(w);
}

// More than leaves a margin for resets (docs/decisions/resets.md).
static void a_full_set_of_connections_takes_what_the_backend_allows(void **state)
{
	struct world_conf conf = world_conf_default(8);
	conf.n_clients = MAX_CLIENTS; // of 100 streams each
	conf.n_backends = 1;
	conf.max_conns_per_endpoint = 1;
	conf.backend_streams = 5000;
	struct world *w = world_new(&conf);
	use_backends(w, 0x1);
	for (uint32_t i = 0; i < MAX_CLIENTS; i++)
		world_open_client(w, i, 0);
	world_run(w, 100 * MS);
	for (uint32_t i = 0; i < 950; i++)
		ask_of(w, i % MAX_CLIENTS, KIND_HANG, 0, NULL);
	world_run(w, SECOND);
	assert_int_equal(w->backends[0].n_served, 950);
	assert_int_equal(w->backends[0].n_accepted, 1);
	abandon(w);
}

#define CASE(name) cmocka_unit_test(name)

RUN_SUITE("proxy/reset", CASE(th_90_resets_of_many_clients_end_no_shared_connection),
	CASE(th_90_backends_that_let_few_resets_pass_are_spared),
	CASE(th_90_short_timeouts_end_no_shared_connection),
	CASE(th_91_a_source_that_only_breaks_off_is_refused_for_a_while),
	CASE(th_91_who_lets_as_many_end_well_is_never_refused),
	CASE(th_91_a_source_that_is_alone_is_never_refused),
	CASE(a_full_set_of_connections_takes_what_the_backend_allows))
