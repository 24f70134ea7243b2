// SPDX-License-Identifier: Apache-2.0
// What a reload of shunt.yaml makes of a frontend whose next target takes its time: it is made
// beside what serves, which goes on, and address, TLS and routes come in one snapshot.
#include "ctrl/assemble/cluster_tree.h"
#include "lb/live_frontend.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/assembler_world.h"
#include "tests/unit/ctrl/routes_by_hand.h"

#include <string.h>

#define TLS 5 // a credential's id
#define RETRY_TURNS 1000 // two seconds

static const char *refused_cluster; // there is no room for it; NULL = for all
static unsigned n_refused; // so often

int __real_cluster_tree_configure(struct cluster_tree *, struct xds_config *,
	const struct xds_cluster_config *, struct lb_err *);
int __wrap_cluster_tree_configure(struct cluster_tree *, struct xds_config *,
	const struct xds_cluster_config *, struct lb_err *);
int __wrap_cluster_tree_configure(struct cluster_tree *t, struct xds_config *config,
	const struct xds_cluster_config *conf, struct lb_err *err)
{
	if (!refused_cluster || strcmp(conf->name, refused_cluster) != 0)
		return __real_cluster_tree_configure(t, config, conf, err);
	n_refused++;
	return lb_err_set(err, "no room for %s", conf->name);
}

#define BACKEND(n)                                                                                 \
	{                                                                                          \
		{{{[10] = 255, [11] = 255, [12] = 10, [15] = n}}, 1}, LB_LEAF_HEALTHY, 1, NULL     \
	}
static const struct told_endpoint backends[] = {BACKEND(1), BACKEND(2)};
static const struct told_locality localities[] = {
	{"", "", "", 1, &backends[0], 1}, {"", "", "", 1, &backends[1], 1}};
static const struct told_priority priorities[] = {{&localities[0], 1}, {&localities[1], 1}};
#define TO(cluster) ROUTES({PREFIX("/"), CLUSTERS({cluster, 1})})
static const struct res_vhost before[] = {{"a", DOMAINS("a"), TO("blue"), .hash = {1, 1}}};
static const struct res_vhost moved[] = {{"m", DOMAINS("a"), TO("blue"), .hash = {5, 5}}};
static const struct res_vhost after[] = {{"new", DOMAINS("n"), TO("blue"), .hash = {3, 3}},
	{"b", DOMAINS("b"), TO("green"), .hash = {2, 2}},
	{"c", DOMAINS("c"), TO("blue"), .hash = {4, 4}}};

struct told {
	const struct res_vhost *vhosts;
	uint32_t n;
	const char *listener; // its version; NULL = "1"
	int backend; // of blue; 0 = 1
};

// Blue, and green without any endpoints where routes go there.
static struct xds_config *config_with(struct told t)
{
	struct res_endpoints *e[] = {
		endpoints_of(&priorities[t.backend ? t.backend - 1 : 0], 1), NULL};
	struct res_listener *l = listener_of(t.listener ? t.listener : "1", NULL, 0);
	struct res_route_config *r = routes_of(t.vhosts, t.n);
	struct xds_config *c =
		config_of(l, r, (const char *[]){"blue", "green"}, e, t.vhosts == after ? 2 : 1);
	xds_res_put(&e[0]->base);
	xds_res_put(&l->base);
	xds_res_put(&r->base);
	return c;
}

static void give_next(struct world *w, struct told t)
{
	struct xds_config *c = config_with(t);
	assembler_update_next(w->assembler, 0, c);
	xds_config_put(c);
}

static const struct lb_frontend *published(const struct world *w)
{
	return lb_snapshot_frontend(lb_slot_current(w->slot), 0);
}

static bool is_made(const struct world *w)
{
	return assembler_next_is_made(w->assembler, 0);
}

static void await_made(struct world *w)
{
	for (int i = 0; i < 100 && !is_made(w); i++)
		turns(w, 1);
	assert_true(is_made(w));
}

// As frontends_change.c does.
static void take(struct world *w, bool sends_away)
{
	const struct lb_frontend_conf conf = {.port = 80};
	struct lb_live_frontend *live = lb_live_frontend_new(&conf, 1, 0, false);
	assert_non_null(live);
	assembler_take_next(w->assembler, 0);
	assembler_set_live(w->assembler, 0, live, sends_away);
	assembler_set_tls(w->assembler, 0, TLS);
	lb_live_frontend_put(live);
}

// Serves in plain text, while the routes of another target are being compiled.
static void begin(struct world *w)
{
	static struct config_frontend to;
	refused_cluster = NULL;
	update(w, 0, config_with((struct told){before, 1}));
	turns(w, 10);
	settle(w);
	assert_non_null(published(w)->routes);
	w->frontends[0].next = &to;
	assert_true(assembler_begin_next(w->assembler, 0));
	give_next(w, (struct told){after, 3});
	assert_string_equal(assembler_frontend_waiting(w->assembler, 0), "compiling routes");
}

static bool has_cluster(const struct world *w, const char *name)
{
	struct assembler_cluster_info info;
	return assembler_find_cluster(w->assembler, name, &info);
}

// Once no snapshot that somebody may read has it.
static void await_end(struct world *w, const char *cluster)
{
	for (int i = 0; i < 50 && has_cluster(w, cluster); i++) {
		settle(w);
		turns(w, 60);
	}
	assert_false(has_cluster(w, cluster));
}

static void note_backend(void *ctx, const struct assembler_endpoint_info *i)
{
	*(int *)ctx = ip_to_v4(&i->addresses[0].ip) & 255;
}

static int backend_of_blue(const struct world *w)
{
	int n = 0;
	assembler_each_endpoint(w->assembler, "blue", note_backend, &n);
	return n;
}

// OPS-324
static void ops_324_address_tls_and_routes_come_in_one_snapshot(void **state)
{
	struct world *w = *state;
	begin(w);
	const struct lb_route_table *routes = published(w)->routes;
	uint64_t generation = published(w)->generation;
	int n_waits = 0;
	for (; !is_made(w) && n_waits < 100; n_waits++)
		turns(w, 1);
	assert_in_range(n_waits, 5, 99);
	assert_string_equal(assembler_frontend_waiting(w->assembler, 0), "");
	turns(w, 10); // for certificates, say
	assert_null(published(w)->live);
	assert_int_equal(published(w)->credential, LB_PLAIN_TEXT);
	assert_ptr_equal(published(w)->routes, routes);
	assert_int_equal(published(w)->generation, generation);
	settle(w);
	uint64_t version = lb_slot_current(w->slot)->version;
	take(w, true);
	turns(w, 1);
	assert_int_equal(lb_slot_current(w->slot)->version, version + 1);
	assert_int_equal(published(w)->live->number, 1);
	assert_int_equal(published(w)->credential, TLS);
	assert_ptr_not_equal(published(w)->routes, routes);
	assert_int_equal(published(w)->generation, generation + 1);
	assert_false(is_made(w));
}

// OPS-302: it hears of its own routes and endpoints as if nothing were to come.
static void ops_302_what_serves_goes_on_while_the_next_is_compiled(void **state)
{
	struct world *w = *state;
	begin(w);
	const struct lb_route_table *routes = published(w)->routes;
	update(w, 0, config_with((struct told){moved, 1, .backend = 2}));
	give_next(w, (struct told){after, 3, .backend = 2}); // both hear of the endpoints
	for (int i = 0; i < 100 && published(w)->routes == routes; i++)
		turns(w, 1);
	assert_ptr_not_equal(published(w)->routes, routes);
	assert_null(published(w)->live);
	settle(w);
	assert_int_equal(backend_of_blue(w), 2);
}

// OPS-302: they share it, and one of them has heard less so far.
static void ops_302_a_cluster_is_not_taken_back_by_what_is_to_come(void **state)
{
	struct world *w = *state;
	begin(w);
	struct xds_config *newer = config_with((struct told){moved, 1, .backend = 2});
	update(w, 0, xds_config_get(newer));
	assembler_update_next(w->assembler, 0, newer); // behind what is being compiled
	xds_config_put(newer);
	for (int i = 0; i < 100; i++) {
		turns(w, 1);
		if (i > 50)
			assert_int_equal(backend_of_blue(w), 2);
	}
	settle(w);
	assert_true(is_made(w));
	take(w, false);
	turns(w, 1);
	assert_int_equal(backend_of_blue(w), 2);
}

// OPS-302: which both hold, and which what is to come has still as it was.
static void ops_302_a_refused_cluster_of_what_serves_is_tried_again(void **state)
{
	struct world *w = *state;
	begin(w);
	await_made(w);
	refused_cluster = "blue";
	n_refused = 0;
	update(w, 0, config_with((struct told){moved, 1, .backend = 2}));
	turns(w, 50);
	assert_int_not_equal(n_refused, 0);
	assert_int_equal(backend_of_blue(w), 1);
	refused_cluster = NULL;
	give_next(w, (struct told){after, 3});
	turns(w, RETRY_TURNS);
	assert_int_equal(backend_of_blue(w), 2);
}

// OPS-303
static void ops_303_a_next_one_that_fails_is_a_refusal(void **state)
{
	struct world *w = *state;
	begin(w);
	const struct lb_route_table *routes = published(w)->routes;
	await_made(w);
	assembler_fail_next(w->assembler, 0, "listener other does not exist");
	settle(w);
	assert_false(is_made(w));
	assert_string_equal(
		assembler_frontend_refusal(w->assembler, 0), "listener other does not exist");
	assert_string_equal(assembler_frontend_error(w->assembler, 0), "");
	assert_ptr_equal(published(w)->routes, routes);
	await_end(w, "green");
	give_next(w, (struct told){after, 3});
	assert_string_equal(assembler_frontend_refusal(w->assembler, 0), "");
	await_made(w);
}

// OPS-303: it is whole, or it is not taken, whatever else of it comes.
static void ops_303_a_next_one_whose_cluster_is_refused_is_not_made(void **state)
{
	struct world *w = *state;
	begin(w);
	refused_cluster = "green";
	turns(w, 100);
	assert_false(is_made(w));
	assert_string_equal(assembler_frontend_refusal(w->assembler, 0), "no room for green");
	turns(w, RETRY_TURNS);
	assert_false(is_made(w));
	give_next(w, (struct told){after, 3, .backend = 2});
	for (int i = 0; i < 100; i++) { // to be compiled, and then refused as well
		turns(w, 1);
		assert_false(is_made(w));
	}
	refused_cluster = NULL;
	turns(w, RETRY_TURNS);
	assert_true(is_made(w));
	assert_string_equal(assembler_frontend_refusal(w->assembler, 0), "");
}

// OPS-324: at any step, and what was to come lets its clusters go.
static void ops_324_what_is_half_made_is_taken_back(void **state)
{
	struct world *w = *state;
	begin(w);
	const struct lb_route_table *routes = published(w)->routes;
	for (int n = 0; n < 14; n++) {
		turns(w, n);
		assert_true(has_cluster(w, "green"));
		if (n % 2) {
			assembler_drop_next(w->assembler, 0);
			await_end(w, "green");
		}
		assert_true(assembler_begin_next(w->assembler, 0));
		give_next(w, (struct told){after, 3});
	}
	assembler_drop_next(w->assembler, 0);
	assert_string_equal(assembler_frontend_waiting(w->assembler, 0), "");
	settle(w);
	assert_ptr_equal(published(w)->routes, routes);
	assert_int_equal(backend_of_blue(w), 1);
}

// OPS-324: what served goes, as its clusters do.
static void ops_324_what_is_taken_serves_and_is_updated_as_ever(void **state)
{
	struct world *w = *state;
	begin(w);
	uint64_t generation = published(w)->generation;
	assert_true(assembler_begin_next(w->assembler, 0));
	give_next(w, (struct told){after, 3, .listener = "2"});
	await_made(w);
	settle(w);
	take(w, false);
	turns(w, 1);
	assert_int_equal(published(w)->generation, generation + 1); // other filters
	const struct lb_route_table *routes = published(w)->routes;
	update(w, 0, config_with((struct told){moved, 1, .listener = "2", .backend = 2}));
	turns(w, 50);
	settle(w);
	assert_ptr_not_equal(published(w)->routes, routes);
	assert_int_equal(published(w)->generation, generation + 1);
	assert_int_equal(backend_of_blue(w), 2);
	await_end(w, "green");
	assembler_fail(w->assembler, 0, "gone");
	await_end(w, "blue");
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, world_set_up_in_steps, world_tear_down)
RUN_SUITE("ctrl/frontend_next", CASE(ops_324_address_tls_and_routes_come_in_one_snapshot),
	CASE(ops_302_what_serves_goes_on_while_the_next_is_compiled),
	CASE(ops_302_a_cluster_is_not_taken_back_by_what_is_to_come),
	CASE(ops_302_a_refused_cluster_of_what_serves_is_tried_again),
	CASE(ops_303_a_next_one_that_fails_is_a_refusal),
	CASE(ops_303_a_next_one_whose_cluster_is_refused_is_not_made),
	CASE(ops_324_what_is_half_made_is_taken_back),
	CASE(ops_324_what_is_taken_serves_and_is_updated_as_ever))
