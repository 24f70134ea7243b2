// SPDX-License-Identifier: Apache-2.0
// Clients that send more than a turn can serve, beside others (TH-84, dataplane/proxy/work.h). The
// wire delays all alike, so that what is sent at one instant comes in one turn.
#include "dataplane/proxy/work_turn.h"
#include "lb/pick/link.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

// Clients send in the order of their numbers, attackers first.
#define MODEST(w) ((w)->conf.n_clients - 2) // sends some quanta at once
#define VICTIM(w) ((w)->conf.n_clients - 1)
#define N_FEW 8 // clients
#define N_MODEST 40
#define N_EACH 90
#define N_BURST 250
// No request costs less (dataplane/h2/feed.c).
#define REQUEST_WORK 4608
#define FLOOD_WORK (REQUEST_WORK + 2048) // with its reset
// What is served from the line, and a quantum of each of four sources.
#define MOST_IN_LINE ((PROXY_WORK_LINE + 4 * PROXY_WORK_QUANTUM) / REQUEST_WORK + 8)
// And as it comes.
#define MOST_IN_TURN (PROXY_WORK_TURN / REQUEST_WORK + MOST_IN_LINE)

// Attackers share so many sources.
static struct world *flooded_world(uint64_t seed, uint32_t n_clients, uint32_t n_sources)
{
	struct world_conf conf = world_conf_default(seed);
	conf.n_clients = n_clients;
	conf.n_backends = MAX_BACKENDS;
	conf.max_conns_per_endpoint = 10;
	conf.backend_streams = 1000; // nobody waits for one
	struct world *w = world_new(&conf);
	w->wire.jitter_ns = 0;
	use_backends(w, 0xff);
	for (uint32_t i = 0; i < n_clients; i++) {
		w->clients[i].source = (uint8_t)(i < MODEST(w) ? 10 + i % n_sources : 200 + i);
		world_open_client(w, i, 0);
	}
	world_run(w, 50 * MS);
	return w;
}

static struct ask *ask_of(struct world *w, uint32_t client, enum kind kind, uint32_t size)
{
	struct ask *a = world_ask(w, "one", kind, size);
	client_ask(&w->clients[client], a);
	return a;
}

// Requests to a cluster of their own, which fails them at once.
static void ask_apart(struct world *w, uint32_t client, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		client_ask(&w->clients[client], world_ask(w, "down", KIND_TRAILERS_ONLY, 0));
}

static uint64_t n_begun_apart(const struct world *w)
{
	return w->link->clusters[2].started;
}

// Requests of the attackers that are reset at once.
static void flood(struct world *w)
{
	for (uint32_t i = 0; i < MODEST(w); i++)
		for (uint32_t n = 0; n < N_BURST; n++)
			client_cancel(ask_of(w, i, KIND_HANG, 0));
}

// Returns how many requests began in the next turn in which some do; 0 = none did until then.
static uint64_t next_turn(struct world *w, uint64_t until_ns)
{
	uint64_t before = w->link->counters.requests;
	while (w->wire.now_ns < until_ns && w->link->counters.requests == before)
		wire_step(&w->wire, until_ns);
	return w->link->counters.requests - before;
}

// The most of a turn.
static uint64_t run_by_turns(struct world *w, uint64_t for_ns)
{
	uint64_t until = w->wire.now_ns + for_ns, most = 0, n;
	while ((n = next_turn(w, until)))
		most = n > most ? n : most;
	return most;
}

// TH-84: what comes while sources stand in line is bounded by the line's part.
static void th_84_a_flood_that_goes_on_has_short_turns(void **state)
{
	struct world *w = flooded_world(1, N_FEW, 2);
	flood(w);
	next_turn(w, w->wire.now_ns + SECOND);
	assert_in_range(run_by_turns(w, 50 * MS), MOST_IN_LINE / 4, MOST_IN_LINE);
	assert_true(world_counter(w, "inputs_put_off") > 0);
	world_free(w);
}

// TH-84
static void th_84_a_flood_holds_up_no_other_source(void **state)
{
	struct world *w = flooded_world(1, N_FEW, 2);
	uint64_t most = 0;
	for (uint32_t round = 1; round <= 3; round++) { // TCP takes two to come up to speed
		flood(w);
		ask_apart(w, MODEST(w), N_MODEST);
		ask_apart(w, VICTIM(w), 1);
		uint64_t first = next_turn(w, w->wire.now_ns + SECOND);
		assert_int_equal(n_begun_apart(w), round * (N_MODEST + 1));
		uint64_t later = run_by_turns(w, 50 * MS);
		most = first > most ? first : most;
		most = later > most ? later : most;
	}
	assert_in_range(most, MOST_IN_TURN / 2, MOST_IN_TURN);
	assert_true(world_counter(w, "inputs_put_off") > 0);
	assert_int_equal(w->link->counters.requests, w->n_asks); // none was lost on the way
	world_free(w);
}

// TH-84: more sources stand in line than get a quantum in one turn.
static void th_84_a_line_of_many_sources_holds_up_no_other(void **state)
{
	struct world *w = flooded_world(4, MAX_CLIENTS, MAX_CLIENTS);
	for (uint32_t i = 0; i < MODEST(w); i++)
		for (uint32_t n = 0; n < N_EACH; n++)
			ask_of(w, i, KIND_TRAILERS_ONLY, 0);
	ask_apart(w, VICTIM(w), 1);
	assert_in_range(next_turn(w, w->wire.now_ns + SECOND), MOST_IN_TURN / 2, w->n_asks / 2);
	assert_int_equal(n_begun_apart(w), 1);
	run_by_turns(w, 50 * MS);
	assert_int_equal(w->link->counters.requests, w->n_asks);
	world_free(w);
}

// TH-84: what waits is left with TCP, whose windows close and open again.
static void th_84_input_that_waits_is_neither_lost_nor_mixed_up(void **state)
{
	struct world *w = flooded_world(2, N_FEW, 2);
	struct ask *asks[N_FEW][N_EACH];
	for (uint32_t i = 0; i < N_FEW; i++)
		for (uint32_t n = 0; n < N_EACH; n++)
			asks[i][n] = ask_of(w, i, KIND_ECHO, 2000);
	run_by_turns(w, SECOND);
	for (uint32_t i = 0; i < N_FEW; i++)
		for (uint32_t n = 0; n < N_EACH; n++)
			assert_ok(w, asks[i][n]);
	assert_true(world_counter(w, "inputs_put_off") > 0);
	world_free(w);
}

// TH-84: their RSTs come behind their requests, in the same turn.
static void th_84_clients_that_go_leave_the_line(void **state)
{
	struct world *w = flooded_world(3, N_FEW, 2);
	flood(w);
	assert_true(wire_step(&w->wire, w->wire.now_ns + SECOND)); // the first flight is on its way
	for (uint32_t i = 0; i < MODEST(w); i++)
		client_abort(&w->clients[i]);
	struct ask *victim = ask_of(w, VICTIM(w), KIND_ECHO, 100);
	uint64_t first = next_turn(w, w->wire.now_ns + SECOND);
	assert_true(world_counter(w, "inputs_put_off") > 0);
	// A quantum of each of two sources, and none from the line.
	assert_in_range(first, 1, (PROXY_WORK_TURN + 2 * PROXY_WORK_QUANTUM) / FLOOD_WORK + 1);
	assert_int_equal(run_by_turns(w, 100 * MS), 0);
	assert_ok(w, victim);
	world_free(w); // checks that nothing is left
}

#define CASE(name) cmocka_unit_test(name)

RUN_SUITE("proxy/turn", CASE(th_84_a_flood_holds_up_no_other_source),
	CASE(th_84_a_flood_that_goes_on_has_short_turns),
	CASE(th_84_a_line_of_many_sources_holds_up_no_other),
	CASE(th_84_input_that_waits_is_neither_lost_nor_mixed_up),
	CASE(th_84_clients_that_go_leave_the_line))
