// SPDX-License-Identifier: Apache-2.0
// What becomes of a request whose cluster is chosen and cannot serve: it stays with its choice.
#include "lb/cause.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#define N 400

// One client; cluster zero serves, cluster one has no endpoint.
static struct world *half_a_world(void)
{
	struct world_conf conf = world_conf_default(3);
	conf.n_clients = 1;
	struct world *w = world_new(&conf);
	control_set_endpoints(&w->control, 0, HOST_BACKENDS, 0x3);
	control_set_endpoints(&w->control, 1, HOST_BACKENDS, 0);
	open_client(w);
	world_run(w, 20 * MS);
	return w;
}

// Route two draws cluster zero by 1 and one by 3.
static void a28_w06_a_drawn_cluster_that_is_down_gives_nothing_to_its_sibling(void **state)
{
	struct world *w = half_a_world();
	uint32_t n_failed = 0;
	for (int i = 0; i < N; i++) {
		struct ask *a = world_ask(w, "two", KIND_ECHO, 10);
		client_ask(&w->clients[0], a);
		finish(w);
		if (a->grpc_status == 0)
			assert_ok(w, a);
		else
			assert_reply(a, 14);
		n_failed += a->grpc_status != 0;
	}
	// 300, and four standard deviations are 35.
	assert_in_range(n_failed, 265, 335);
	assert_int_equal(world_ended(w, LB_CAUSE_NO_HEALTHY), n_failed);
	world_free(w);
}

static void a28_w06_retries_stay_with_the_drawn_cluster(void **state)
{
	struct world *w = half_a_world();
	const struct lb_route_policy policy = {
		.retry = {.statuses = 1 << 14, .max_attempts = 3, .base_ns = MS, .max_ns = MS}};
	control_set_policy(&w->control, ROUTE_TWO, &policy);
	world_run(w, MS);
	uint32_t n_failed = 0;
	for (int i = 0; i < N; i++) {
		struct ask *a = world_ask(w, "two", KIND_ECHO, 10);
		client_ask(&w->clients[0], a);
		finish(w);
		n_failed += a->grpc_status != 0;
	}
	assert_in_range(n_failed, 265, 335); // not the cube of that share
	assert_int_equal(world_counter(w, "retries"), 2 * n_failed);
	world_free(w);
}

#define CASE(f) cmocka_unit_test(f)
RUN_SUITE("sim/proxy_route",
	CASE(a28_w06_a_drawn_cluster_that_is_down_gives_nothing_to_its_sibling),
	CASE(a28_w06_retries_stay_with_the_drawn_cluster))
