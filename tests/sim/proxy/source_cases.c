// SPDX-License-Identifier: Apache-2.0
// What all connections of one source cost together (TH-83, TH-133), one situation a test.
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <string.h>

#define BURST 4000 // of a source
#define OWN 900 // of a connection, within its own burst
#define ROUND 20 // streams at a time
#define LARGE 2000 // bytes of a field that the client's table takes
#define TIMES 7 // that a request names it
#define NAMING 100 // such requests: some 850 KB beyond what is free

static void come(struct world *w, uint32_t client, uint8_t source)
{
	w->clients[client].source = source;
	world_open_client(w, client, 0);
	world_run(w, 5 * MS);
}

static void begin_round(struct world *w) // all requests are over: their places serve again
{
	w->n_asks = 0;
	memset(w->seen, 0, sizeof(w->seen));
}

// Requests that are reset at once; fewer than n if the connection ends.
static void reset(struct world *w, uint32_t client, uint32_t n)
{
	struct client *c = &w->clients[client];
	for (uint32_t i = 0; i < n && !c->over && !c->goaway; i++) {
		if (i % ROUND == 0)
			begin_round(w);
		struct ask *a = world_ask(w, "one", KIND_HANG, 0);
		client_ask(c, a);
		client_cancel(a);
		if (i % ROUND == ROUND - 1)
			world_run(w, MS);
	}
	world_run(w, 5 * MS);
}

// Requests that name one large field of the table again and again, likewise.
static void name(struct world *w, uint32_t client, uint32_t n)
{
	static char large[LARGE];
	memset(large, 'l', sizeof(large));
	struct client *c = &w->clients[client];
	for (uint32_t i = 0; i < n && !c->over && !c->goaway; i++) {
		begin_round(w);
		struct ask *a = world_ask(w, "one", KIND_TRAILERS_ONLY, 0);
		for (int k = 0; k < TIMES; k++)
			a->extra[k] = (struct field){
				.name = STR("x-large"), .value = {large, sizeof(large)}};
		client_ask(c, a);
		finish_of(w, a);
	}
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

typedef void cost(struct world *w, uint32_t client, uint32_t n);

// Returns how many connections of the source, each of which costs n, were taken before one was
// refused.
static uint32_t burn(struct world *w, uint32_t client, uint8_t source, cost *spend, uint32_t n)
{
	uint32_t n_taken = 0;
	for (; n_taken < 20; n_taken++) {
		come(w, client, source);
		if (w->clients[client].over)
			break;
		spend(w, client, n);
		client_abort(&w->clients[client]);
		world_run(w, MS);
	}
	return n_taken;
}

// TH-83
static void th_83_new_connections_refill_no_budget(void **state)
{
	struct world *w = with_victim(3);
	assert_in_range(burn(w, 1, 9, reset, OWN), BURST / OWN, BURST / OWN + 2);
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
	burn(w, 1, 9, reset, OWN);
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

// TH-133
static void th_133_new_connections_refill_no_budget_of_headers(void **state)
{
	struct world *w = with_victim(6);
	assert_in_range(burn(w, 1, 9, name, NAMING), 5, 7);
	assert_true(world_counter(w, "clients_over_budget") > 0);
	check_served(w, 0);
	come(w, 2, 8);
	name(w, 2, 10); // another source has its own
	check_served(w, 2);
	world_run(w, SECOND);
	come(w, 1, 9);
	name(w, 1, 20); // of some 40
	assert_false(w->clients[1].goaway);
	check_served(w, 1);
	world_free(w);
}

#define CASE(name) cmocka_unit_test(name)

RUN_SUITE("proxy/source", CASE(th_83_new_connections_refill_no_budget),
	CASE(th_83_a_budget_comes_back_with_time),
	CASE(th_83_a_connection_of_a_source_over_its_budget_ends),
	CASE(th_133_new_connections_refill_no_budget_of_headers))
