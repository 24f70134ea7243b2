// SPDX-License-Identifier: Apache-2.0
// From configurations and connection events to snapshots: what is shared, what waits, what leaves.
// The worker is played by the test through its link.
#include "ctrl/assemble/assemble_inside.h"
#include "lb/cluster.h"
#include "lb/pick/limits.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/assembler_world.h"
#include "tests/unit/ctrl/routes_by_hand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct told_endpoint two_backends[] = {
	{{.port = 1, .ip = {{[10] = 255, [11] = 255, [12] = 10, [15] = 1}}}, LB_LEAF_HEALTHY, 1},
	{{.port = 2, .ip = {{[10] = 255, [11] = 255, [12] = 10, [15] = 1}}}, LB_LEAF_UNHEALTHY, 1},
	{{.port = 3, .ip = {{[10] = 255, [11] = 255, [12] = 10, [15] = 1}}}, LB_LEAF_UNKNOWN, 1},
};
static const struct told_locality locality = {"", "", "", 1, two_backends, 3};
static const struct told_priority priority = {&locality, 1};

#define ANY_HOST DOMAINS("*")
static const struct res_vhost blue_vhost = {
	"v", ANY_HOST, ROUTES({PREFIX(""), CLUSTERS({"blue", 1})})};
static const struct res_vhost green_vhost = {
	"v", ANY_HOST, ROUTES({PREFIX(""), CLUSTERS({"green", 1})})};
static const struct res_vhost both_vhost = {"v", ANY_HOST,
	ROUTES({PREFIX("/g"), CLUSTERS({"green", 1})},
		{PREFIX(""), CLUSTERS({"blue", 3}, {"green", 0})})};

// A28-R08
static void a_frontend_without_configuration_says_why_and_is_not_ready(void **state)
{
	struct world *w = *state;
	turns(w, 2);
	assert_false(assembler_ready(w->assembler));
	assert_null(lb_snapshot_frontend(lb_slot_current(w->slot), 0)->routes);
	assert_non_null(strstr(assembler_frontend_error(w->assembler, 0), "no configuration"));
	assembler_fail(w->assembler, 0, "listener web does not exist");
	turns(w, 1);
	assert_string_equal(lb_snapshot_frontend(lb_slot_current(w->slot), 0)->error,
		"listener web does not exist");
}

// A31-C04, A28-R05: the cluster is in the same snapshot as the first route to it; its requests
// wait.
static void routes_and_their_clusters_appear_in_one_snapshot(void **state)
{
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(&priority, 1);
	apply(w, &blue_vhost, (const char *[]){"blue"}, &e, 1);
	assert_int_equal(assembler_n_snapshots(w->assembler), 0);
	turns(w, 1);
	assert_int_equal(assembler_n_snapshots(w->assembler), 1);
	assert_true(assembler_ready(w->assembler));
	const struct lb_cluster *c = lb_snapshot_cluster(lb_slot_current(w->slot), route(w, "/x"));
	assert_non_null(c);
	assert_string_equal(c->name, "blue");
	assert_int_equal(c->state, LB_CONNECTING);
	xds_res_put(&e->base);
}

// RR-01, and health: only HEALTHY and UNKNOWN endpoints are used.
static void usable_endpoints_are_connected_and_ready_follows_the_worker(void **state)
{
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(&priority, 1);
	apply(w, &blue_vhost, (const char *[]){"blue"}, &e, 1);
	turns(w, 1);
	uint32_t first = expect_command(w, LB_COMMAND_CONNECT);
	uint32_t second = expect_command(w, LB_COMMAND_CONNECT);
	assert_int_not_equal(first, second);
	struct lb_command none;
	assert_false(spsc_read(&w->link->commands, &none));
	struct lb_event up = {.kind = LB_EVENT_CONNECTED, .endpoint_id = first};
	assert_true(spsc_write(&w->link->events, &up));
	turns(w, 1);
	uint32_t id = route(w, "/x");
	assert_int_equal(lb_snapshot_cluster(lb_slot_current(w->slot), id)->state, LB_READY);
	xds_res_put(&e->base);
}

// A newer version of the cluster, that asks for these times.
static struct res_cluster *timed(struct res_cluster *from, struct lb_timers timers)
{
	struct res_cluster *c = (struct res_cluster *)xds_res_new(
		&res_type_cluster, sizeof(*c), from->base.name, NULL, 0);
	c->eds_name = from->eds_name;
	c->eds_service_name = from->eds_service_name;
	c->spec = from->spec;
	c->max_requests = from->max_requests;
	c->timers = timers;
	xds_res_put(&from->base);
	return c;
}

static void apply_timed(struct world *w, struct res_endpoints *e, struct lb_timers timers)
{
	struct res_listener *listener = listener_of("1", NULL, 0);
	struct res_route_config *routes = (struct res_route_config *)xds_res_new(
		&res_type_route_config, sizeof(*routes), "routes", NULL, 0);
	routes->vhosts = &blue_vhost;
	routes->n_vhosts = 1;
	struct xds_config *c = config_of(listener, routes, (const char *[]){"blue"}, &e, 1);
	c->clusters[0].cluster = timed(c->clusters[0].cluster, timers);
	update(w, 0, c);
	xds_res_put(&routes->base);
	xds_res_put(&listener->base);
	turns(w, 1);
}

// CL-09
static void workers_can_read_times_of_connections_that_they_are_told_to_make(void **state)
{
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(&priority, 1);
	apply_timed(w, e, (struct lb_timers){.connect_ms = 250});
	for (int i = 0; i < 2; i++) {
		uint32_t id = expect_command(w, LB_COMMAND_CONNECT);
		assert_int_equal(w->shared->timers[id].connect_ms, 250);
	}
	apply_timed(w, e, (struct lb_timers){.connect_ms = 500, .ping_timeout_ms = 7});
	for (uint32_t id = 0; id < 2; id++) {
		assert_int_equal(w->shared->timers[id].connect_ms, 500);
		assert_int_equal(w->shared->timers[id].ping_timeout_ms, 7);
	}
	xds_res_put(&e->base);
}

#define N_MANY 4096

static struct res_endpoints *many_endpoints(void)
{
	struct told_endpoint *told = calloc(N_MANY, sizeof(*told));
	for (uint32_t i = 0; i < N_MANY; i++)
		told[i] = (struct told_endpoint){
			{ip_from_v4(0x0a400000 + i), 80}, LB_LEAF_HEALTHY, 1, NULL};
	const struct told_locality all = {"", "", "", 1, told, N_MANY};
	struct res_endpoints *e = endpoints_of(&(struct told_priority){&all, 1}, 1);
	free(told);
	return e;
}

// Port 80 is that of the many. How many CONNECT there are for others.
static uint32_t count_connects(struct world *w, uint32_t *ret_many)
{
	struct lb_command c;
	uint32_t n = 0;
	*ret_many = 0;
	while (spsc_read(&w->link->commands, &c)) {
		assert_int_equal(c.kind, LB_COMMAND_CONNECT);
		n += c.endpoint->addr.port != 80;
		*ret_many += c.endpoint->addr.port == 80;
	}
	return n;
}

// RR-01, paced: nobody answers, and one cluster's requests wait behind another's endpoints.
static void attempts_are_paced_and_those_that_requests_wait_for_go_first(void **state)
{
	struct world *w = *state;
	uint32_t n_many;
	struct res_endpoints *both[] = {many_endpoints(), endpoints_of(&priority, 1)};
	apply(w, &both_vhost, (const char *[]){"blue", "green"}, both, 2);
	turns(w, 1);
	uint32_t green = route(w, "/g");
	assert_int_equal(count_connects(w, &n_many), 0);
	assert_int_equal(n_many, 1024);
	assert_int_equal(assembler_n_attempts(w->assembler), 1024);
	assert_int_equal(assembler_n_waiting_attempts(w->assembler), N_MANY + 2 - 1024);
	turns(w, 50);
	assert_int_equal(count_connects(w, &n_many), 0);
	assert_int_equal(n_many, 0);
	counter_set_to(&w->link->clusters[green].queued, 1);
	turns(w, 15);
	assert_int_equal(count_connects(w, &n_many), 2);
	assert_int_equal(n_many, 0);
	counter_set_to(&w->link->clusters[green].queued, 0);
	xds_res_put(&both[0]->base);
	xds_res_put(&both[1]->base);
}

static void a_picker_change_keeps_the_route_table(void **state)
{
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(&priority, 1);
	apply(w, &blue_vhost, (const char *[]){"blue"}, &e, 1);
	turns(w, 1);
	const struct lb_route_table *table =
		lb_snapshot_frontend(lb_slot_current(w->slot), 0)->routes;
	struct lb_event up = {
		.kind = LB_EVENT_CONNECTED, .endpoint_id = expect_command(w, LB_COMMAND_CONNECT)};
	assert_true(spsc_write(&w->link->events, &up));
	turns(w, 1);
	assert_int_equal(assembler_n_snapshots(w->assembler), 2);
	assert_ptr_equal(lb_snapshot_frontend(lb_slot_current(w->slot), 0)->routes, table);
	xds_res_put(&e->base);
}

// A28-W08: the clusters, and with them their connections, hear nothing of it.
static void a_change_of_weights_changes_no_cluster(void **state)
{
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(&priority, 1);
	struct res_endpoints *both[] = {e, e};
	for (uint32_t weight = 1; weight < 4; weight++) {
		const struct lb_snapshot *old = lb_slot_current(w->slot);
		uint64_t version = old->version;
		const struct lb_cluster *before[] = {
			lb_snapshot_cluster(old, 0), lb_snapshot_cluster(old, 1)};
		const struct res_route split = {PREFIX("/"), .action = LB_ACTION_CLUSTERS,
			CLUSTERS({.name = "blue", .weight = weight},
				{.name = "green", .weight = 3})};
		const struct res_vhost v = {.name = "v",
			DOMAINS("*"),
			.routes = &split,
			.n_routes = 1,
			.hash = {weight}};
		apply(w, &v, (const char *[]){"blue", "green"}, both, 2);
		turns(w, 1);
		settle(w);
		const struct lb_snapshot *now = lb_slot_current(w->slot);
		assert_true(now->version > version);
		struct lb_command c;
		for (uint32_t id = 0; weight > 1 && id < 2; id++)
			assert_ptr_equal(lb_snapshot_cluster(now, id), before[id]);
		assert_true(weight == 1 || !spsc_read(&w->link->commands, &c));
		while (spsc_read(&w->link->commands, &c))
			; // those of the first time connect
	}
	xds_res_put(&e->base);
}

// UPD-02: the same content again publishes nothing.
static void an_equal_configuration_changes_no_cluster(void **state)
{
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(&priority, 1);
	apply(w, &blue_vhost, (const char *[]){"blue"}, &e, 1);
	turns(w, 1);
	uint32_t id = route(w, "/x");
	const struct lb_cluster *before = lb_snapshot_cluster(lb_slot_current(w->slot), id);
	apply(w, &blue_vhost, (const char *[]){"blue"}, &e, 1);
	turns(w, 1);
	assert_ptr_equal(lb_snapshot_cluster(lb_slot_current(w->slot), id), before);
	xds_res_put(&e->base);
}

// A28-R06, DM-10: a cluster in error fails alone.
static void a_cluster_in_error_fails_and_the_others_go_on(void **state)
{
	struct world *w = *state;
	struct res_endpoints *pair[] = {endpoints_of(&priority, 1), NULL};
	apply(w, &both_vhost, (const char *[]){"blue", "green"}, pair, 2);
	turns(w, 1);
	const struct lb_snapshot *s = lb_slot_current(w->slot);
	assert_int_equal(lb_snapshot_cluster(s, route(w, "/x"))->state, LB_CONNECTING);
	assert_int_equal(lb_snapshot_cluster(s, route(w, "/g"))->state, LB_TRANSIENT_FAILURE);
	xds_res_put(&pair[0]->base);
}

// A31-C01, A31-C02
static void a_cluster_that_left_stays_until_its_last_request_ends(void **state)
{
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(&priority, 1);
	apply(w, &blue_vhost, (const char *[]){"blue"}, &e, 1);
	turns(w, 1);
	uint32_t blue = route(w, "/x");
	counter_set_to(&w->link->clusters[blue].active, 1);
	apply(w, &green_vhost, (const char *[]){"green"}, &e, 1);
	settle(w);
	const struct lb_snapshot *now = lb_slot_current(w->slot);
	assert_true(lb_snapshot_cluster(now, blue)->is_leaving); // A31-R12
	assert_false(lb_snapshot_cluster(now, route(w, "/g"))->is_leaving);
	assert_int_not_equal(route(w, "/x"), blue);
	counter_set_to(&w->link->clusters[blue].active, 0);
	settle(w);
	turns(w, 60);
	assert_null(lb_snapshot_cluster(lb_slot_current(w->slot), blue));
	xds_res_put(&e->base);
}

// Not in each tick: all clusters would be looked at for as long as one stream lasts.
static void whether_a_cluster_may_go_is_looked_at_ten_times_a_second(void **state)
{
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(&priority, 1);
	apply(w, &blue_vhost, (const char *[]){"blue"}, &e, 1);
	turns(w, 1);
	uint32_t blue = route(w, "/x");
	counter_set_to(&w->link->clusters[blue].active, 1);
	apply(w, &green_vhost, (const char *[]){"green"}, &e, 1);
	settle(w);
	uint64_t looked = w->assembler->look_ns;
	assert_true(looked > w->now);
	counter_set_to(&w->link->clusters[blue].active, 0);
	while (w->now + 2 * MS < looked) {
		turns(w, 1);
		assert_non_null(lb_snapshot_cluster(lb_slot_current(w->slot), blue));
	}
	turns(w, 1);
	settle(w);
	assert_null(lb_snapshot_cluster(lb_slot_current(w->slot), blue));
	assert_int_equal(w->assembler->frontend_env.left_by, 0);
	xds_res_put(&e->base);
}

// A31-C02: no tick is without a change, so that several snapshots are alive all the time.
static void a_cluster_that_left_goes_however_much_changes(void **state)
{
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(&priority, 1);
	apply(w, &blue_vhost, (const char *[]){"blue"}, &e, 1);
	settle(w);
	uint32_t blue = route(w, "/x");
	for (int i = 0; i < 2000 && lb_snapshot_cluster(lb_slot_current(w->slot), blue); i++) {
		apply(w, &green_vhost, (const char *[]){"green"}, &e, 1);
		turns(w, 1);
		sleep_a_little();
	}
	assert_null(lb_snapshot_cluster(lb_slot_current(w->slot), blue));
	xds_res_put(&e->base);
}

static void publish(struct world *w)
{
	do
		turns(w, 1);
	while (w->assembler->draft.next);
}

// A31-C02: whoever reads the last snapshot that routes to it may still choose it.
static void a_cluster_that_left_twice_stays_until_nobody_reads_that_it_was_there(void **state)
{
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(&priority, 1);
	apply(w, &blue_vhost, (const char *[]){"blue"}, &e, 1);
	settle(w);
	uint32_t blue = route(w, "/x");
	for (int i = 0; i < 2; i++) {
		apply(w, &blue_vhost, (const char *[]){"blue"}, &e, 1);
		publish(w);
		apply(w, &green_vhost, (const char *[]){"green"}, &e, 1);
		publish(w);
	}
	uint64_t left_by = lb_slot_current(w->slot)->version;
	while (lb_slot_oldest(w->slot)->version < left_by) {
		assert_non_null(lb_snapshot_cluster(lb_slot_current(w->slot), blue));
		turns(w, 1);
		sleep_a_little();
	}
	xds_res_put(&e->base);
}

// A31-R11, A74: it is told of its endpoints as long as the configuration carries it for them.
static void a_cluster_that_left_follows_its_endpoints_while_requests_hold_it(void **state)
{
	static const struct told_endpoint moved[] = {
		{{.port = 7, .ip = {{[10] = 255, [11] = 255, [12] = 10, [15] = 7}}},
			LB_LEAF_HEALTHY, 1}};
	static const struct told_locality there = {"", "", "", 1, moved, 1};
	static const struct told_priority priorities[] = {{&there, 1}};
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(&priority, 1), *now = endpoints_of(priorities, 1);
	struct res_endpoints *both[] = {e, now};
	assert_false(assembler_in_use(w->assembler, 0, "blue"));
	apply(w, &blue_vhost, (const char *[]){"blue"}, &e, 1);
	settle(w);
	uint32_t blue = route(w, "/x");
	counter_set_to(&w->link->clusters[blue].active, 1);
	assert_true(assembler_in_use(w->assembler, 0, "blue"));
	struct lb_command c;
	while (spsc_read(&w->link->commands, &c))
		;
	struct res_listener *l = listener_of("1", NULL, 0);
	struct res_route_config *r = routes_of(&green_vhost, 1);
	struct xds_config *config = config_of(l, r, (const char *[]){"green", "blue"}, both, 2);
	config->clusters[0].is_root = false; // by name: blue is the first
	update(w, 0, config);
	settle(w);
	bool connects = false;
	while (spsc_read(&w->link->commands, &c))
		connects |= c.kind == LB_COMMAND_CONNECT && c.endpoint->addr.port == 7;
	assert_true(connects);
	counter_set_to(&w->link->clusters[blue].active, 0);
	settle(w);
	turns(w, 60);
	assert_false(assembler_in_use(w->assembler, 0, "blue"));
	xds_res_put(&l->base);
	xds_res_put(&r->base);
	xds_res_put(&e->base);
	xds_res_put(&now->base);
}

// A31-C03: whoever still holds a cluster that left hears of its failure, and does not wait for
// ever.
static void a_cluster_that_left_still_fails_when_its_backends_do(void **state)
{
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(&priority, 1);
	apply(w, &blue_vhost, (const char *[]){"blue"}, &e, 1);
	turns(w, 1);
	uint32_t blue = route(w, "/x");
	counter_set_to(&w->link->clusters[blue].active, 1);
	uint32_t ids[] = {expect_command(w, LB_COMMAND_CONNECT), 0};
	ids[1] = expect_command(w, LB_COMMAND_CONNECT);
	apply(w, &green_vhost, (const char *[]){"green"}, &(struct res_endpoints *){NULL}, 1);
	settle(w);
	assert_int_equal(lb_snapshot_cluster(lb_slot_current(w->slot), blue)->state, LB_CONNECTING);
	for (int i = 0; i < 2; i++) {
		struct lb_event down = {
			.kind = LB_EVENT_FAILED, .endpoint_id = ids[i], .why = "refused"};
		assert_true(spsc_write(&w->link->events, &down));
	}
	turns(w, 1);
	settle(w);
	assert_int_equal(
		lb_snapshot_cluster(lb_slot_current(w->slot), blue)->state, LB_TRANSIENT_FAILURE);
	counter_set_to(&w->link->clusters[blue].active, 0);
	xds_res_put(&e->base);
}

// A28-R07: matchers and clusters are those of one configuration, whatever came meanwhile.
static void a_snapshot_stays_whole_when_the_next_one_comes(void **state)
{
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(&priority, 1);
	apply(w, &blue_vhost, (const char *[]){"blue"}, &e, 1);
	settle(w);
	uint32_t blue = route(w, "/x");
	struct lb_snapshot *old = lb_snapshot_copy(lb_slot_current(w->slot)); // as a worker has it
	apply(w, &green_vhost, (const char *[]){"green"}, &e, 1);
	settle(w);
	turns(w, 2);
	assert_null(lb_snapshot_cluster(lb_slot_current(w->slot), blue));
	assert_string_equal(lb_snapshot_cluster(old, blue)->name, "blue");
	assert_ptr_not_equal(lb_snapshot_frontend(old, 0)->routes,
		lb_snapshot_frontend(lb_slot_current(w->slot), 0)->routes);
	lb_snapshot_free(old);
	settle(w);
	xds_res_put(&e->base);
}

static void a_cluster_that_comes_back_in_time_is_the_same_one(void **state)
{
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(&priority, 1);
	apply(w, &blue_vhost, (const char *[]){"blue"}, &e, 1);
	turns(w, 1);
	uint32_t blue = route(w, "/x");
	const struct lb_picker *picker =
		lb_snapshot_cluster(lb_slot_current(w->slot), blue)->picker;
	counter_set_to(&w->link->clusters[blue].active, 1);
	apply(w, &green_vhost, (const char *[]){"green"}, &e, 1);
	settle(w);
	apply(w, &blue_vhost, (const char *[]){"blue"}, &e, 1);
	settle(w);
	assert_int_equal(route(w, "/x"), blue);
	const struct lb_cluster *again = lb_snapshot_cluster(lb_slot_current(w->slot), blue);
	assert_ptr_equal(again->picker, picker);
	assert_false(again->is_leaving);
	counter_set_to(&w->link->clusters[blue].active, 0);
	xds_res_put(&e->base);
}

static void endpoints_nobody_wants_any_more_are_released(void **state)
{
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(&priority, 1), *none = endpoints_of(NULL, 0);
	apply(w, &blue_vhost, (const char *[]){"blue"}, &e, 1);
	settle(w);
	expect_command(w, LB_COMMAND_CONNECT);
	expect_command(w, LB_COMMAND_CONNECT);
	apply(w, &blue_vhost, (const char *[]){"blue"}, &none, 1);
	settle(w);
	expect_command(w, LB_COMMAND_RELEASE);
	expect_command(w, LB_COMMAND_RELEASE);
	assert_int_equal(lb_snapshot_cluster(lb_slot_current(w->slot), route(w, "/x"))->state,
		LB_TRANSIENT_FAILURE);
	xds_res_put(&e->base);
	xds_res_put(&none->base);
}

// TH-58, MC-18: a storm of changes is coalesced, yet none waits longer than a stalled worker lets
// it.
static void a_storm_of_changes_becomes_few_snapshots(void **state)
{
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(&priority, 1);
	for (int i = 0; i < 40; i++) {
		apply(w, i % 2 ? &blue_vhost : &both_vhost, (const char *[]){"blue", "green"},
			(struct res_endpoints *[]){e, e}, 2);
		turns(w, 1); // 2 ms of virtual time, no real time for a grace period
		assert_true(assembler_n_live_snapshots(w->assembler) <= 4);
	}
	assert_true(assembler_n_snapshots(w->assembler) < 40);
	turns(w, 60);
	settle(w);
	assert_int_equal(assembler_n_live_snapshots(w->assembler), 1);
	xds_res_put(&e->base);
}

// OPS-17, FL-200: endpoints come and go while a process takes over, too. It is ready all the same.
static void what_waits_to_be_told_of_endpoints_takes_no_readiness_back(void **state)
{
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(&priority, 1);
	uint32_t n_held = 0;
	apply(w, &blue_vhost, (const char *[]){"blue"}, &e, 1);
	settle(w);
	uint32_t id = expect_command(w, LB_COMMAND_CONNECT);
	for (int i = 0; i < 40; i++) {
		struct lb_event event = {.kind = i % 2 ? LB_EVENT_LOST : LB_EVENT_CONNECTED,
			.endpoint_id = id,
			.why = "closed"};
		uint64_t n = assembler_n_snapshots(w->assembler);
		assert_true(spsc_write(&w->link->events, &event));
		turns(w, 1); // no real time for a grace period
		n_held += assembler_n_snapshots(w->assembler) == n;
		assert_true(assembler_ready(w->assembler));
	}
	assert_true(n_held > 0);
	settle(w);
	xds_res_put(&e->base);
}

// A configuration that can never fit is refused with the limit, and the last good one serves on.
static void a_configuration_beyond_a_limit_is_refused_and_the_last_good_one_serves(void **state)
{
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(&priority, 1);
	apply(w, &blue_vhost, (const char *[]){"blue"}, &e, 1);
	settle(w);
	uint32_t n = LB_MAX_CLUSTERS + 1;
	char(*texts)[12] = calloc(n, sizeof(*texts));
	const char **names = calloc(n, sizeof(*names));
	struct res_endpoints **endpoints = calloc(n, sizeof(struct res_endpoints *));
	for (uint32_t i = 0; i < n; i++) {
		snprintf(texts[i], sizeof(texts[i]), "c%06u", i);
		names[i] = texts[i];
	}
	apply(w, &green_vhost, names, endpoints, n);
	assert_non_null(strstr(assembler_frontend_refusal(w->assembler, 0), "more than 16384"));
	assert_string_equal(assembler_frontend_error(w->assembler, 0), "");
	uint64_t published = assembler_n_snapshots(w->assembler);
	settle(w);
	assert_int_not_equal(route(w, "/x"), UINT32_MAX); // blue's table is there
	// Others' changes still get through, and a configuration that fits is taken at once.
	apply(w, &blue_vhost, (const char *[]){"blue"}, &e, 1);
	settle(w);
	assert_string_equal(assembler_frontend_refusal(w->assembler, 0), "");
	assert_true(assembler_n_snapshots(w->assembler) > published);
	free(texts);
	free(names);
	free(endpoints);
	xds_res_put(&e->base);
}

// The routes name a cluster that the configuration lacks: cannot be, and must not stop the rest.
static void routes_that_do_not_compile_are_refused_and_publishing_goes_on(void **state)
{
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(&priority, 1);
	apply(w, &green_vhost, (const char *[]){"blue"}, &e, 1);
	turns(w, 1);
	assert_non_null(strstr(assembler_frontend_error(w->assembler, 0), "cluster 'green'"));
	assert_false(assembler_ready(w->assembler));
	assert_non_null(strstr(
		lb_snapshot_frontend(lb_slot_current(w->slot), 0)->error, "cluster 'green'"));
	apply(w, &blue_vhost, (const char *[]){"blue"}, &e, 1);
	apply(w, &green_vhost, (const char *[]){"blue"}, &e, 1);
	assert_non_null(strstr(assembler_frontend_refusal(w->assembler, 0), "cluster 'green'"));
	settle(w);
	uint64_t published = assembler_n_snapshots(w->assembler);
	struct lb_event up = {
		.kind = LB_EVENT_CONNECTED, .endpoint_id = expect_command(w, LB_COMMAND_CONNECT)};
	assert_true(spsc_write(&w->link->events, &up));
	turns(w, 2);
	assert_true(assembler_n_snapshots(w->assembler) > published);
	apply(w, &blue_vhost, (const char *[]){"blue"}, &e, 1);
	turns(w, 60);
	assert_true(assembler_ready(w->assembler));
	xds_res_put(&e->base);
}

static void see_totals(void *ctx, const struct assembler_cluster_info *info)
{
	*(struct cluster_totals *)ctx = info->totals;
}

static void a_cluster_counts_nothing_of_who_had_its_number_before(void **state)
{
	struct world *w = *state;
	struct res_endpoints *e = endpoints_of(&priority, 1);
	struct cluster_totals totals;
	apply(w, &blue_vhost, (const char *[]){"blue"}, &e, 1);
	turns(w, 1);
	uint32_t blue = route(w, "/x");
	struct lb_cluster_counters *counters = &w->link->clusters[blue];
	counter_set_to(&counters->started, 7);
	counter_set_to(&counters->ended[LB_CAUSE_OK], 7);
	struct lb_cluster_times times, *counted = &w->link->times[blue];
	counter_set_to(&counted->answers[LB_ANSWER_GRPC], 7);
	counter_set_to(&counted->bad, 5);
	counter_set_to(&counted->bodies.in, 70);
	histogram_add(&counted->request, histogram_place(5000), 5000);
	assert_true(assembler_cluster_times(w->assembler, "blue", &times));
	assert_int_equal(times.answers[LB_ANSWER_GRPC], 7);
	assert_int_equal(times.bodies.in, 70);
	assembler_each_cluster(w->assembler, see_totals, &totals);
	assert_int_equal(totals.started, 7);
	assert_int_equal(totals.bad, 5);
	assembler_fail(w->assembler, 0, "gone");
	settle(w);
	turns(w, 60);
	apply(w, &green_vhost, (const char *[]){"green"}, &e, 1);
	settle(w);
	assert_int_equal(route(w, "/g"), blue);
	counter_add(&counters->started, 2);
	counter_add(&counters->ended[LB_CAUSE_OK], 1);
	counter_add(&counted->bad, 1);
	assembler_each_cluster(w->assembler, see_totals, &totals);
	assert_int_equal(totals.started, 2);
	assert_int_equal(totals.ended[LB_CAUSE_OK], 1);
	assert_int_equal(totals.bad, 1);
	histogram_add(&counted->request, histogram_place(600000), 600000);
	counter_add(&counted->bodies.out, 3);
	assert_false(assembler_cluster_times(w->assembler, "blue", &times));
	assert_true(assembler_cluster_times(w->assembler, "green", &times));
	assert_int_equal(times.bad, 1);
	assert_int_equal(times.answers[LB_ANSWER_GRPC], 0);
	assert_int_equal(times.bodies.in, 0);
	assert_int_equal(times.bodies.out, 3);
	assert_int_equal(times.request.sum_ns, 600000);
	assert_int_equal(times.request.counts[histogram_index(5000)], 0);
	assert_int_equal(times.request.counts[histogram_index(600000)], 1);
	xds_res_put(&e->base);
}

static void see_detail(void *ctx, const struct assembler_cluster_info *info)
{
	snprintf(ctx, 128, "%s", info->detail);
}

// A74-C01
static void a_failing_cluster_says_what_its_requests_hear(void **state)
{
	struct world *w = *state;
	struct res_endpoints *none = NULL;
	char detail[128] = "";
	apply(w, &blue_vhost, (const char *[]){"blue"}, &none, 1);
	assembler_each_cluster(w->assembler, see_detail, detail);
	assert_non_null(strstr(detail, "no such cluster"));
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, world_set_up, world_tear_down)

RUN_SUITE("ctrl/assemble", CASE(a_frontend_without_configuration_says_why_and_is_not_ready),
	CASE(routes_and_their_clusters_appear_in_one_snapshot),
	CASE(usable_endpoints_are_connected_and_ready_follows_the_worker),
	CASE(workers_can_read_times_of_connections_that_they_are_told_to_make),
	CASE(attempts_are_paced_and_those_that_requests_wait_for_go_first),
	CASE(a_picker_change_keeps_the_route_table),
	CASE(an_equal_configuration_changes_no_cluster),
	CASE(a_change_of_weights_changes_no_cluster),
	CASE(a_cluster_in_error_fails_and_the_others_go_on),
	CASE(a_cluster_that_left_stays_until_its_last_request_ends),
	CASE(whether_a_cluster_may_go_is_looked_at_ten_times_a_second),
	CASE(a_cluster_that_left_goes_however_much_changes),
	CASE(a_cluster_that_left_twice_stays_until_nobody_reads_that_it_was_there),
	CASE(a_cluster_that_left_follows_its_endpoints_while_requests_hold_it),
	CASE(a_cluster_that_left_still_fails_when_its_backends_do),
	CASE(a_snapshot_stays_whole_when_the_next_one_comes),
	CASE(a_cluster_that_comes_back_in_time_is_the_same_one),
	CASE(endpoints_nobody_wants_any_more_are_released),
	CASE(what_waits_to_be_told_of_endpoints_takes_no_readiness_back),
	CASE(a_storm_of_changes_becomes_few_snapshots),
	CASE(a_configuration_beyond_a_limit_is_refused_and_the_last_good_one_serves),
	CASE(routes_that_do_not_compile_are_refused_and_publishing_goes_on),
	CASE(a_cluster_counts_nothing_of_who_had_its_number_before),
	CASE(a_failing_cluster_says_what_its_requests_hear))
