// SPDX-License-Identifier: Apache-2.0
// What one client may hold while others ask, one situation a test: places of a circuit breaker,
// live requests, places in the queue (TH-79, dataplane/proxy/share.h).
#include "lb/pick/cause.h"
#include "lb/pick/link.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#define LIMIT 24

static void set_limit(struct world *w, uint32_t limit)
{
	w->control.leaves[0].max_requests = limit;
	control_update(&w->control, 0);
}

static void open_more(struct world *w, uint32_t client, uint8_t source)
{
	w->clients[client].source = source;
	world_open_client(w, client, 0);
	while (!w->clients[client].up)
		world_run(w, MS);
}

static struct ask *ask_of(struct world *w, uint32_t client, enum kind kind)
{
	struct ask *a = world_ask(w, "one", kind, 10);
	client_ask(&w->clients[client], a);
	return a;
}

// Requests that never end.
static void grab(struct world *w, uint32_t client, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		ask_of(w, client, KIND_HANG);
	world_run(w, 50 * MS);
}

static uint32_t in_flight(const struct world *w)
{
	return (uint32_t)w->link->clusters[0].active;
}

static struct world *three_clients(struct world_conf *conf)
{
	conf->n_clients = 4;
	struct world *w = ready_world(conf);
	w->control.leaves[0].max_requests = LIMIT;
	control_update(&w->control, 0);
	return w;
}

// TH-79, A32-I06
static void th_79_who_asks_alone_gets_every_place(void **state)
{
	struct world_conf conf = world_conf_default(3);
	struct world *w = three_clients(&conf);
	grab(w, 0, LIMIT + 5);
	assert_int_equal(in_flight(w), LIMIT);
	assert_int_equal(world_ended(w, LB_CAUSE_OVERFLOW), 5);
	assert_int_equal(world_ended(w, LB_CAUSE_OVER_SHARE), 0);
	world_free(w);
}

static void check_victim(struct world *w, uint32_t victim)
{
	struct ask *a = ask_of(w, victim, KIND_ECHO);
	finish_of(w, a);
	assert_ok(w, a);
}

// TH-79
static void th_79_a_greedy_client_leaves_places_to_others(void **state)
{
	struct world_conf conf = world_conf_default(4);
	struct world *w = three_clients(&conf);
	open_more(w, 1, 2);
	check_victim(w, 1);
	grab(w, 0, 2 * LIMIT);
	assert_in_range(in_flight(w), LIMIT / 2, LIMIT * 9 / 10);
	assert_true(world_ended(w, LB_CAUSE_OVER_SHARE) > 0);
	assert_int_equal(world_ended(w, LB_CAUSE_OVERFLOW), 0);
	check_victim(w, 1);
	world_free(w);
}

// TH-79: one after the other, before any of them lets go of anything.
static void th_79_greedy_clients_of_many_sources_leave_places_to_others(void **state)
{
	enum { N = 8, PLACES = 512, EACH = 100, VICTIMS = 3 };
	struct world_conf conf = world_conf_default(10);
	conf.n_clients = N + 1;
	struct world *w = ready_world(&conf);
	set_limit(w, PLACES);
	control_set_endpoints(&w->control, 0, HOST_BACKENDS, 0xf);
	world_run(w, 50 * MS);
	for (uint32_t i = 1; i <= N; i++)
		open_more(w, i, (uint8_t)(i + 1));
	check_victim(w, N);
	for (uint32_t i = 0; i < N; i++)
		grab(w, i, EACH);
	struct ask *asks[VICTIMS];
	for (int i = 0; i < VICTIMS; i++)
		asks[i] = ask_of(w, N, KIND_ECHO);
	for (int i = 0; i < VICTIMS; i++) {
		finish_of(w, asks[i]);
		assert_ok(w, asks[i]);
	}
	assert_int_equal(world_ended(w, LB_CAUSE_OVERFLOW), 0);
	assert_in_range(in_flight(w), PLACES * 7 / 8, PLACES - VICTIMS);
	world_free(w);
}

// TH-79
static void th_79_more_connections_of_one_source_get_no_more(void **state)
{
	struct world_conf conf = world_conf_default(6);
	struct world *w = three_clients(&conf);
	open_more(w, 1, 1);
	open_more(w, 2, 1);
	open_more(w, 3, 2);
	check_victim(w, 3);
	for (uint32_t i = 0; i < 3; i++)
		grab(w, i, LIMIT);
	// Half of the places before anybody counts, then three parts of four.
	assert_in_range(in_flight(w), LIMIT / 2, LIMIT * 9 / 10);
	check_victim(w, 3);
	world_free(w);
}

// TH-79: what was held is given back with the connection.
static void th_79_a_share_ends_with_its_requests(void **state)
{
	struct world_conf conf = world_conf_default(7);
	struct world *w = three_clients(&conf);
	open_more(w, 1, 2);
	check_victim(w, 0);
	check_victim(w, 1);
	for (int round = 0; round < 3; round++) {
		uint64_t before = world_ended(w, LB_CAUSE_OVER_SHARE);
		grab(w, 1, LIMIT / 2);
		assert_int_equal(world_ended(w, LB_CAUSE_OVER_SHARE), before);
		grab(w, 1, LIMIT / 2);
		assert_true(world_ended(w, LB_CAUSE_OVER_SHARE) > before);
		client_abort(&w->clients[1]);
		world_run(w, 50 * MS);
		assert_int_equal(in_flight(w), 0);
		open_more(w, 1, 2);
		check_victim(w, 0);
	}
	world_free(w);
}

// TH-79
static void th_79_live_requests_of_a_source_leave_room(void **state)
{
	struct world_conf conf = world_conf_default(8);
	conf.max_requests = LIMIT;
	struct world *w = three_clients(&conf);
	set_limit(w, 10 * LIMIT);
	open_more(w, 1, 2);
	grab(w, 0, 2 * LIMIT);
	assert_in_range(in_flight(w), LIMIT / 2, LIMIT * 9 / 10);
	assert_true(world_ended(w, LB_CAUSE_OVER_SHARE) > 0);
	assert_int_equal(world_ended(w, LB_CAUSE_OVERLOAD), 0);
	check_victim(w, 1);
	world_free(w);
}

// TH-79, Q-06
static void th_79_waiting_requests_of_a_source_leave_room(void **state)
{
	struct world_conf conf = world_conf_default(9);
	conf.max_queued = LIMIT;
	conf.n_clients = 2;
	struct world *w = world_new(&conf);
	open_client(w);
	w->wire.hosts[HOST_BACKENDS].unplugged = true;
	use_backends(w, 0x1);
	open_more(w, 1, 2);
	grab(w, 0, 2 * LIMIT);
	assert_in_range(w->link->clusters[0].queued, LIMIT / 2, LIMIT * 9 / 10);
	assert_true(world_ended(w, LB_CAUSE_OVER_SHARE) > 0);
	struct ask *a = ask_of(w, 1, KIND_ECHO);
	world_run(w, 20 * MS);
	assert_false(a->closed);
	w->wire.hosts[HOST_BACKENDS].unplugged = false;
	finish_of(w, a);
	assert_ok(w, a);
	world_free(w);
}

// TH-79: the one backend has a stream at a time for all.
static void th_79_whoever_asks_most_waits_longest_for_a_stream(void **state)
{
	struct world_conf conf = world_conf_default(11);
	conf.n_clients = 2;
	conf.backend_streams = 1;
	conf.max_conns_per_endpoint = 1;
	struct world *w = ready_world(&conf);
	open_more(w, 1, 2);
	struct ask *flood[50];
	for (int i = 0; i < 50; i++)
		flood[i] = ask_of(w, 0, KIND_ECHO);
	world_run(w, MS / 2);
	struct ask *fair[2] = {ask_of(w, 1, KIND_ECHO), ask_of(w, 1, KIND_ECHO)};
	for (int i = 0; i < 2; i++) {
		finish_of(w, fair[i]);
		assert_ok(w, fair[i]);
	}
	assert_false(flood[10]->closed);
	for (int i = 0; i < 50; i++) {
		finish_of(w, flood[i]);
		assert_ok(w, flood[i]);
	}
	world_free(w);
}

#define CASE(name) cmocka_unit_test(name)

RUN_SUITE("proxy/share", CASE(th_79_who_asks_alone_gets_every_place),
	CASE(th_79_a_greedy_client_leaves_places_to_others),
	CASE(th_79_greedy_clients_of_many_sources_leave_places_to_others),
	CASE(th_79_more_connections_of_one_source_get_no_more),
	CASE(th_79_a_share_ends_with_its_requests),
	CASE(th_79_live_requests_of_a_source_leave_room),
	CASE(th_79_waiting_requests_of_a_source_leave_room),
	CASE(th_79_whoever_asks_most_waits_longest_for_a_stream))
