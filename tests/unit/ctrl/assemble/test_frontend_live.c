// SPDX-License-Identifier: Apache-2.0
// What a reload of shunt.yaml makes of a frontend whose next configuration takes its time: address,
// TLS and routes come in one snapshot, and later reloads do not part them.
#include "lb/live_frontend.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/assembler_world.h"
#include "tests/unit/ctrl/routes_by_hand.h"

#define TLS 5 // a credential's id

static const struct told_endpoint backend[] = {
	{{{{[10] = 255, [11] = 255, [12] = 10, [15] = 1}}, 1}, LB_LEAF_HEALTHY, 1, NULL}};
static const struct told_locality locality = {"", "", "", 1, backend, 1};
static const struct told_priority priority = {&locality, 1};
#define TO_BLUE ROUTES({PREFIX("/"), CLUSTERS({"blue", 1})})
static const struct res_vhost before[] = {{"a", DOMAINS("a"), TO_BLUE, .hash = {1, 1}}};
static const struct res_vhost after[] = {{"new", DOMAINS("n"), TO_BLUE, .hash = {3, 3}},
	{"b", DOMAINS("b"), TO_BLUE, .hash = {2, 2}}, {"c", DOMAINS("c"), TO_BLUE, .hash = {4, 4}}};

static void give(struct world *w, const struct res_vhost *vhosts, uint32_t n)
{
	struct res_endpoints *e = endpoints_of(&priority, 1);
	struct res_listener *l = listener_of("1", NULL, 0);
	struct res_route_config *r = routes_of(vhosts, n);
	update(w, 0, config_of(l, r, (const char *[]){"blue"}, &e, 1));
	xds_res_put(&e->base);
	xds_res_put(&l->base);
	xds_res_put(&r->base);
}

static const struct lb_frontend *published(const struct world *w)
{
	return lb_snapshot_frontend(lb_slot_current(w->slot), 0);
}

static uint64_t number_of_live(const struct world *w)
{
	return published(w)->live ? published(w)->live->number : 0;
}

struct change {
	uint64_t number;
	bool with_next, sends_away, is_left;
};

static void change(struct world *w, struct change c)
{
	const struct lb_frontend_conf conf = {.port = 80};
	struct lb_live_frontend *live = lb_live_frontend_new(&conf, c.number, 0, c.is_left);
	assert_non_null(live);
	assembler_set_live(w->assembler, 0, live, c.with_next, c.sends_away);
	lb_live_frontend_put(live);
}

// Serves in plain text; another target and TLS come with the first live one, and its routes are
// being compiled.
static void begin(struct world *w)
{
	give(w, before, 1);
	turns(w, 10);
	settle(w);
	assert_non_null(published(w)->routes);
	change(w, (struct change){.number = 1, .with_next = true, .sends_away = true});
	assembler_set_tls(w->assembler, 0, TLS);
	give(w, after, 3);
	assert_string_equal(assembler_frontend_waiting(w->assembler, 0), "compiling routes");
}

static void ops_324_address_tls_and_routes_come_in_one_snapshot(void **state)
{
	struct world *w = *state;
	begin(w);
	const struct lb_route_table *routes = published(w)->routes;
	uint64_t generation = published(w)->generation;
	int n_waits = 0;
	for (; number_of_live(w) == 0 && n_waits < 100; n_waits++) {
		assert_int_equal(published(w)->credential, LB_PLAIN_TEXT);
		assert_ptr_equal(published(w)->routes, routes);
		assert_int_equal(published(w)->generation, generation);
		turns(w, 1);
	}
	assert_in_range(n_waits, 5, 99);
	assert_int_equal(published(w)->credential, TLS);
	assert_ptr_not_equal(published(w)->routes, routes);
	assert_int_equal(published(w)->generation, generation + 1);
	settle(w);
	assert_int_equal(published(w)->credential, TLS);
	// By now nothing waits: the next comes at once.
	assembler_set_tls(w->assembler, 0, TLS + 1);
	turns(w, 1);
	assert_int_equal(published(w)->credential, TLS + 1);
}

// A third certificate before the second one was anybody's.
static void ops_324_tls_that_waits_is_replaced(void **state)
{
	struct world *w = *state;
	begin(w);
	turns(w, 2);
	assembler_set_tls(w->assembler, 0, TLS + 1);
	for (int i = 0; i < 100 && number_of_live(w) == 0; i++) {
		assert_int_equal(published(w)->credential, LB_PLAIN_TEXT);
		turns(w, 1);
	}
	assert_int_equal(number_of_live(w), 1);
	assert_int_equal(published(w)->credential, TLS + 1);
}

static void ops_324_what_fails_meanwhile_fails_where_it_was_to_be(void **state)
{
	struct world *w = *state;
	begin(w);
	turns(w, 2);
	assembler_fail(w->assembler, 0, "listener web does not exist");
	settle(w);
	assert_int_equal(number_of_live(w), 1);
	assert_int_equal(published(w)->credential, TLS);
	assert_null(published(w)->routes);
}

// It says nothing of clients to be sent away, but what it takes the place of did.
static void ops_324_a_second_reload_waits_with_the_first(void **state)
{
	struct world *w = *state;
	begin(w);
	const struct lb_route_table *routes = published(w)->routes;
	uint64_t generation = published(w)->generation;
	turns(w, 2);
	change(w, (struct change){.number = 2});
	for (int i = 0; i < 100 && number_of_live(w) == 0; i++) {
		assert_ptr_equal(published(w)->routes, routes);
		turns(w, 1);
	}
	assert_int_equal(number_of_live(w), 2);
	assert_int_equal(published(w)->credential, TLS);
	assert_ptr_not_equal(published(w)->routes, routes);
	assert_int_equal(published(w)->generation, generation + 1);
	settle(w);
	change(w, (struct change){.number = 3}); // by now nothing waits
	turns(w, 1);
	assert_int_equal(number_of_live(w), 3);
	assert_int_equal(published(w)->generation, generation + 1);
}

static void ops_324_a_third_target_sends_away_who_came_to_the_first(void **state)
{
	struct world *w = *state;
	begin(w);
	uint64_t generation = published(w)->generation;
	turns(w, 2);
	change(w, (struct change){.number = 2, .with_next = true});
	turns(w, 20);
	assert_int_equal(number_of_live(w), 0);
	give(w, after, 2);
	turns(w, 50);
	settle(w);
	assert_int_equal(number_of_live(w), 2);
	assert_int_equal(published(w)->generation, generation + 1);
}

static void ops_325_one_that_is_gone_waits_for_nothing(void **state)
{
	struct world *w = *state;
	begin(w);
	const struct lb_route_table *routes = published(w)->routes;
	turns(w, 1);
	change(w, (struct change){.number = 2, .is_left = true});
	turns(w, 1);
	assert_int_equal(number_of_live(w), 2);
	assert_true(published(w)->live->is_left);
	assert_ptr_equal(published(w)->routes, routes); // for who is there
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, world_set_up_in_steps, world_tear_down)
RUN_SUITE("ctrl/frontend_live", CASE(ops_324_address_tls_and_routes_come_in_one_snapshot),
	CASE(ops_324_tls_that_waits_is_replaced),
	CASE(ops_324_what_fails_meanwhile_fails_where_it_was_to_be),
	CASE(ops_324_a_second_reload_waits_with_the_first),
	CASE(ops_324_a_third_target_sends_away_who_came_to_the_first),
	CASE(ops_325_one_that_is_gone_waits_for_nothing))
