// SPDX-License-Identifier: Apache-2.0
// What becomes of a request whose cluster is chosen: it stays with its choice until its end.
#include "lb/pick/cause.h"
#include "lb/pick/link.h"
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

// One reference, whatever its end: the cluster has as many as requests are alive.
static void drops_once(struct world *w, enum lb_cause cause)
{
	const struct lb_cluster_counters *c = &w->link->clusters[0];
	finish(w);
	world_run(w, 100 * MS);
	assert_int_equal(c->active, 0);
	assert_int_equal(c->ended[cause], 1);
	assert_int_equal(c->started, 1);
	world_free(w);
}

static struct world *world_with_one(struct ask **ret, enum kind kind, const char *fail)
{
	struct world *w = ready_world(NULL);
	*ret = ask_with(w, kind, 100, "500m", fail);
	world_run(w, 20 * MS);
	assert_int_equal(w->link->clusters[0].active, !(*ret)->closed);
	return w;
}

static void a31_c05_the_reference_drops_exactly_once(void **state)
{
	static const struct {
		enum kind kind;
		const char *fail;
		enum lb_cause cause;
	} rows[] = {
		{KIND_ECHO, NULL, LB_CAUSE_OK},
		{KIND_ECHO, "1 status 13", LB_CAUSE_OK}, // the backend's own answer
		{KIND_ECHO, "1 reset 2", LB_CAUSE_UPSTREAM_RESET},
		{KIND_ECHO, "1 lose 0", LB_CAUSE_UPSTREAM_LOST},
		{KIND_HANG, NULL, LB_CAUSE_TIMEOUT},
		{KIND_STALL, NULL, LB_CAUSE_TIMEOUT},
	};
	struct ask *a;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		drops_once(world_with_one(&a, rows[i].kind, rows[i].fail), rows[i].cause);
	struct world *w = world_with_one(&a, KIND_HANG, NULL);
	client_cancel(a);
	drops_once(w, LB_CAUSE_CLIENT_RESET);
	w = world_with_one(&a, KIND_HANG, NULL);
	client_abort(&w->clients[0]);
	drops_once(w, LB_CAUSE_CLIENT_LOST);
	w = world_with_one(&a, KIND_STALL, NULL);
	backend_abort_conns(&w->backends[0]);
	backend_abort_conns(&w->backends[1]);
	drops_once(w, LB_CAUSE_UPSTREAM_LOST);
}

// A31-C05: attempts are the request's, which has one reference.
static void a31_c05_retries_hold_one_reference(void **state)
{
	static const struct lb_route_policy policy = {.retry = {.statuses = 1 << 14,
							      .max_attempts = 3,
							      .base_ns = SECOND,
							      .max_ns = SECOND}};
	struct world *w = ready_world(NULL);
	control_set_policy(&w->control, ROUTE_ONE, &policy);
	struct ask *a = ask_with(w, KIND_ECHO, 100, NULL, "1 status 14");
	world_run(w, 100 * MS);
	assert_false(a->closed);
	assert_int_equal(w->link->clusters[0].active, 1);
	drops_once(w, LB_CAUSE_OK);
}

#define CASE(f) cmocka_unit_test(f)
RUN_SUITE("sim/proxy_route",
	CASE(a28_w06_a_drawn_cluster_that_is_down_gives_nothing_to_its_sibling),
	CASE(a28_w06_retries_stay_with_the_drawn_cluster),
	CASE(a31_c05_the_reference_drops_exactly_once), CASE(a31_c05_retries_hold_one_reference))
