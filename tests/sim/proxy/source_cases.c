// SPDX-License-Identifier: Apache-2.0
// What all connections of one source cost together (TH-83), one situation a test.
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <string.h>

#define BURST 4000 // of a source
#define OWN 900 // of a connection, within its own burst
#define ROUND 20 // streams at a time

static void come(struct world *w, uint32_t client, uint8_t source)
{
	w->clients[client].source = source;
	world_open_client(w, client, 0);
	world_run(w, 5 * MS);
}

// Requests that are reset at once; fewer than n if the connection ends.
static void reset(struct world *w, uint32_t client, uint32_t n)
{
	struct client *c = &w->clients[client];
	for (uint32_t i = 0; i < n && !c->over && !c->goaway; i++) {
		if (i % ROUND == 0) { // all of them are over: their places serve again
			w->n_asks = 0;
			memset(w->seen, 0, sizeof(w->seen));
		}
		struct ask *a = world_ask(w, "one", KIND_HANG, 0);
		client_ask(c, a);
		client_cancel(a);
		if (i % ROUND == ROUND - 1)
			world_run(w, MS);
	}
	world_run(w, 5 * MS);
}

static void check_served(struct world *w, uint32_t client)
{
	struct ask *a = world_ask(w, "one", KIND_TRAILERS_ONLY, 0);
	client_ask(&w->clients[client], a);
	finish_of(w, a);
	assert_true(a->got_end);
	assert_int_equal(a->grpc_status, 5);
}

static struct world *with_victim(uint64_t seed)
{
	struct world_conf conf = world_conf_default(seed);
	conf.n_clients = 8;
	conf.n_backends = MAX_BACKENDS; // none of them minds its part of the resets
	struct world *w = world_new(&conf);
	use_backends(w, 0xff);
	come(w, 0, 7);
	check_served(w, 0);
	return w;
}

// Returns how many connections of the source were taken before one was refused.
static uint32_t burn(struct world *w, uint32_t client, uint8_t source)
{
	uint32_t n_taken = 0;
	for (; n_taken < 20; n_taken++) {
		come(w, client, source);
		if (w->clients[client].over)
			break;
		reset(w, client, OWN);
		client_abort(&w->clients[client]);
		world_run(w, MS);
	}
	return n_taken;
}

// TH-83
static void th_83_new_connections_refill_no_budget(void **state)
{
	struct world *w = with_victim(3);
	assert_in_range(burn(w, 1, 9), BURST / OWN, BURST / OWN + 2);
	assert_true(world_counter(w, "clients_over_budget") > 0);
	assert_int_equal(world_counter(w, "clients_refused"), 0);
	check_served(w, 0);
	come(w, 2, 8);
	check_served(w, 2);
	world_free(w);
}

// TH-83
static void th_83_a_budget_comes_back_with_time(void **state)
{
	struct world *w = with_victim(4);
	burn(w, 1, 9);
	world_run(w, SECOND);
	come(w, 1, 9);
	assert_false(w->clients[1].over);
	check_served(w, 1);
	reset(w, 1, 100); // of 133
	assert_false(w->clients[1].goaway);
	world_free(w);
}

// TH-83
static void th_83_a_connection_of_a_source_over_its_budget_ends(void **state)
{
	struct world *w = with_victim(5);
	for (uint32_t i = 1; i < 6; i++)
		come(w, i, 9);
	for (uint32_t i = 1; i < 6; i++)
		reset(w, i, OWN);
	for (uint32_t i = 1; i < 5; i++)
		assert_false(w->clients[i].goaway);
	assert_true(w->clients[5].goaway);
	check_served(w, 0);
	world_free(w);
}

#define CASE(name) cmocka_unit_test(name)

RUN_SUITE("proxy/source", CASE(th_83_new_connections_refill_no_budget),
	CASE(th_83_a_budget_comes_back_with_time),
	CASE(th_83_a_connection_of_a_source_over_its_budget_ends))
