// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/affinity_map.h"
#include "lb/pick/breaker.h"
#include "lb/pick/leaf_picker.h"
#include "lb/pick/loads.h"
#include "lb/policy/node_ops.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/fake_node.h"
#include "tests/unit/lb/leaves.h"

#include <errno.h>

// A75-T01
static void dump_shows_the_layers_from_the_top_down(void **state)
{
	static struct leaves f;
	struct leaves_plan p;
	struct fake_dump d;
	leaves_init(&f, fake_ops_of);
	leaves_plan_init(&p, 0);
	f.config.spec = &leaves_whole;
	fake_first_state = LB_READY;
	leaves_update(&f, &p, 2);
	fake_dump_init(&d);
	lb_leaf_dump(f.leaf, &d.base);
	assert_string_equal(d.text,
		"cds READY cluster=orders\n"
		"  outlier_detection counts=no ejected=0\n"
		"    xds_cluster_impl max_requests=1024 in_flight=0 drop_categories=0\n"
		"      xds_override_host kept_for_sessions=0\n"
		"        priority READY\n"
		"          child0 READY current=yes\n"
		"            ring_hash READY\n"
		"          child1");
	leaves_fini(&f);
}

// A42-T09, A56-P01, A75-T03
static void next_priority_is_made_when_the_first_fails(void **state)
{
	static struct leaves f;
	struct leaves_plan p;
	leaves_init(&f, fake_ops_of);
	leaves_plan_init(&p, 0);
	f.config.spec = &leaves_whole;
	leaves_update(&f, &p, 2);
	assert_int_equal(fake_count(), 1);
	assert_int_equal(fake_nodes->n_localities, 2); // A42-T09: all localities of the priority
	assert_int_equal(fake_nodes->n_members, 8);
	fake_report(fake_nodes, LB_TRANSIENT_FAILURE);
	assert_int_equal(fake_count(), 2);
	assert_string_equal(fake_nodes->name, "c");
	fake_report(fake_nodes, LB_READY);
	assert_int_equal(f.state, LB_READY);
	assert_string_equal(leaves_pick(&f).text, "c");
	leaves_fini(&f);
}

// A74-C03
static void priorities_that_swap_localities_swap_their_children(void **state)
{
	static struct leaves f;
	struct leaves_plan p;
	leaves_init(&f, fake_ops_of);
	leaves_plan_init(&p, 0);
	f.config.spec = &leaves_whole;
	fake_first_state = LB_TRANSIENT_FAILURE;
	leaves_update(&f, &p, 2);
	struct fake_node *ab = fake_find("a"), *cd = fake_find("c");
	uint32_t made = fake_n_made;
	fake_report(cd, LB_READY);
	struct lb_leaf_priority first = p.priorities[0];
	p.priorities[0] = p.priorities[1];
	p.priorities[1] = first;
	leaves_update(&f, &p, 2);
	assert_int_equal(fake_n_made, made);
	assert_ptr_equal(fake_find("a"), ab);
	assert_ptr_equal(fake_find("c"), cd);
	leaves_fini(&f);
}

// A50-E04, PF-08, UPD-02
static void endpoint_is_the_same_member_in_any_order_of_addresses(void **state)
{
	static struct leaves f;
	struct ip_port addresses[2] = {world_addr(1), world_addr(2)};
	struct lb_leaf_endpoint e = {addresses, 2, 1, LB_LEAF_HEALTHY, STR(""), STR("")};
	struct lb_leaf_locality l = {STR("a"), 1, &e, 1};
	struct leaves_plan p = {.priorities = {{&l, 1}}};
	leaves_init(&f, fake_ops_of);
	f.config.spec = &leaves_whole;
	leaves_update(&f, &p, 1);
	struct lb_member *m = fake_nodes->members[0];
	addresses[0] = world_addr(2);
	addresses[1] = world_addr(1);
	l.weight = 2;
	leaves_update(&f, &p, 1);
	assert_ptr_equal(fake_nodes->members[0], m);
	assert_true(ip_port_eq(lb_member_address(m, 0), &addresses[0]));
	assert_int_equal(f.n_taken, 1);
	addresses[1] = world_addr(3);
	leaves_update(&f, &p, 1);
	assert_ptr_not_equal(fake_nodes->members[0], m);
	assert_int_equal(f.n_taken, 1);
	leaves_fini(&f);
}

// AHC-06: a member that left unhealthy may come back while it still serves an older list, when
// there are no checks any more.
static void a_verdict_ends_where_there_are_no_checks(void **state)
{
	static struct leaves f;
	struct leaves_plan p;
	leaves_init(&f, fake_ops_of);
	leaves_plan_init(&p, 0);
	f.config.spec = &leaves_whole;
	leaves_update(&f, &p, 1);
	struct lb_member *m = lb_leaf_member(f.leaf, &p.addresses[0], 1);
	lb_member_set_health(m, LB_MEMBER_UNHEALTHY);
	leaves_update(&f, &p, 1);
	assert_ptr_equal(lb_leaf_member(f.leaf, &p.addresses[0], 1), m);
	assert_int_equal(lb_member_health(m), LB_MEMBER_SERVES);
	leaves_fini(&f);
}

// A55-O01, A55-O03
static void draining_endpoint_is_for_sessions_only(void **state)
{
	static struct leaves f;
	struct leaves_plan p;
	struct lb_affinity_host h;
	leaves_init(&f, fake_ops_of);
	leaves_plan_init(&p, 0);
	f.config.spec = &leaves_whole;
	f.config.session_health |= 1 << LB_LEAF_DRAINING;
	p.endpoints[1].health = LB_LEAF_DRAINING;
	fake_first_state = LB_READY;
	leaves_update(&f, &p, 2);
	assert_int_equal(fake_nodes->n_members, 7);
	const struct lb_leaf_layer *layer = lb_leaf_layer(f.picker);
	assert_true(lb_affinity_map_find(layer->affinity, &p.addresses[1], &h));
	assert_true(h.is_target);
	assert_false(h.state->has_connection);
	assert_true(lb_affinity_map_find(layer->affinity, &p.addresses[15], &h)); // priority 1
	assert_false(h.state->has_connection);
	assert_true(lb_affinity_map_find(layer->affinity, &p.addresses[0], &h));
	assert_true(h.state->has_connection);
	leaves_fini(&f);
}

// RR-04: the list before serves on until one of the new one is READY. Its members keep their
// numbers, which nobody else gets meanwhile, and requests to them find their host names.
static void members_that_are_still_picked_keep_number_and_host_name(void **state)
{
	static struct leaves f;
	struct leaves_plan p, q;
	struct lb_affinity_host h;
	leaves_init(&f, lb_node_ops_of);
	leaves_plan_init(&p, 0);
	leaves_plan_init(&q, 16);
	p.endpoints[0].hostname = STR("zero.example");
	leaves_update(&f, &p, 1);
	leaves_pass(&f, WORLD_S);
	for (uint32_t i = 16; i < 24; i++)
		f.is_hung[i] = true;
	leaves_update(&f, &q, 1);
	leaves_pass(&f, WORLD_S);
	assert_in_range(leaves_picked(&f), 0, 7);
	assert_int_equal(f.n_taken, 16);
	const struct lb_affinity_map *map = lb_leaf_layer(f.picker)->affinity;
	assert_true(lb_affinity_map_find(map, &p.addresses[0], &h));
	assert_true(str_eq(h.hostname, STR("zero.example")));
	assert_false(h.state->is_target);
	f.config.max_requests = 77; // the list stays
	leaves_update(&f, &q, 1);
	leaves_pass(&f, WORLD_S);
	assert_in_range(leaves_picked(&f), 0, 7);
	assert_true(lb_affinity_map_find(lb_leaf_layer(f.picker)->affinity, &p.addresses[0], &h));
	assert_true(str_eq(h.hostname, STR("zero.example")));
	memset(f.is_hung, 0, sizeof(f.is_hung));
	leaves_pass(&f, 5 * WORLD_S);
	assert_in_range(leaves_picked(&f), 16, 23);
	assert_int_equal(f.n_taken, 8);
	assert_false(lb_affinity_map_find(lb_leaf_layer(f.picker)->affinity, &p.addresses[0], &h));
	leaves_fini(&f);
}

static const struct lb_endpoint *picked(struct leaves *f)
{
	struct lb_pick p = leaves_pick(f);
	assert_int_equal(p.kind, LB_PICK_ENDPOINT);
	return p.cell->endpoint;
}

// TLS-161: plain connections serve until one with TLS is READY, and none of them after.
static void other_security_takes_over_when_it_is_connected(void **state)
{
	static struct leaves f;
	struct leaves_plan p;
	leaves_init(&f, lb_node_ops_of);
	leaves_plan_init(&p, 0);
	leaves_update(&f, &p, 1);
	leaves_pass(&f, WORLD_S);
	assert_null(picked(&f)->security);
	memset(f.is_hung, true, sizeof(f.is_hung));
	f.config.security = lb_security_new(5, STR("a.example"));
	leaves_update(&f, &p, 1);
	leaves_pass(&f, WORLD_S);
	assert_null(picked(&f)->security);
	assert_int_equal(f.n_taken, 16);
	leaves_update(&f, &p, 1); // the same once more
	assert_int_equal(f.n_taken, 16);
	memset(f.is_hung, 0, sizeof(f.is_hung));
	leaves_pass(&f, 5 * WORLD_S);
	for (uint32_t i = 0; i < 32; i++) {
		assert_int_equal(lb_endpoint_credential(picked(&f)), 5);
		assert_string_equal(lb_endpoint_server_name(picked(&f)), "a.example");
	}
	assert_int_equal(f.n_taken, 8);
	leaves_fini(&f);
	lb_security_put(f.config.security);
}

// A101
static void host_names_are_server_names_of_those_that_have_one(void **state)
{
	static struct leaves f;
	struct leaves_plan p;
	leaves_init(&f, lb_node_ops_of);
	leaves_plan_init(&p, 0);
	p.endpoints[1].hostname = STR("one.example:443"); // an authority
	p.endpoints[2].hostname = STR("10.0.0.1:443"); // an address is no server name
	f.config.security = lb_security_new(5, STR("a.example"));
	f.config.sni_is_hostname = true;
	leaves_update(&f, &p, 1);
	leaves_pass(&f, WORLD_S);
	const struct lb_member *before[3];
	for (int i = 0; i < 3; i++) {
		before[i] = lb_leaf_member(f.leaf, &p.addresses[i], 1);
		assert_string_equal(lb_endpoint_server_name(lb_member_endpoint(before[i])),
			i == 1 ? "one.example" : "a.example");
	}
	p.endpoints[1].hostname = STR("other.example");
	leaves_update(&f, &p, 1);
	leaves_pass(&f, 5 * WORLD_S);
	assert_ptr_equal(lb_leaf_member(f.leaf, &p.addresses[0], 1), before[0]);
	const struct lb_member *m = lb_leaf_member(f.leaf, &p.addresses[1], 1);
	assert_ptr_not_equal(m, before[1]);
	assert_string_equal(lb_endpoint_server_name(lb_member_endpoint(m)), "other.example");
	assert_int_equal(f.n_taken, 8);
	leaves_fini(&f);
	assert_int_equal(f.config.security->n_refs, 1);
	lb_security_put(f.config.security);
}

static const struct ip_port *proxy_of(const struct leaves *f, const struct ip_port *address)
{
	const struct lb_member *m = lb_leaf_member(f->leaf, address, 1);
	assert_non_null(m);
	return lb_endpoint_proxy(lb_member_endpoint(m));
}

static const struct ip_port proxy = {{{[10] = 0xff, 0xff, 10, 0, 0, 9}}, 3128};

// HC-06, HC-07, HC-15
static void a_change_of_its_proxy_makes_an_endpoint_another_one(void **state)
{
	static struct leaves f;
	struct leaves_plan p;
	leaves_init(&f, lb_node_ops_of);
	leaves_plan_init(&p, 0);
	p.endpoints[1].proxy = proxy;
	leaves_update(&f, &p, 1);
	leaves_pass(&f, WORLD_S);
	const struct lb_member *before[2];
	for (int i = 0; i < 2; i++)
		before[i] = lb_leaf_member(f.leaf, &p.addresses[i], 1);
	assert_null(proxy_of(&f, &p.addresses[1])); // the cluster wants none
	f.config.uses_proxies = true;
	for (int secure = 0; secure < 2; secure++) {
		f.config.security = secure ? lb_security_new(5, STR("a.example")) : NULL;
		leaves_update(&f, &p, 1);
		leaves_pass(&f, 5 * WORLD_S);
		const struct lb_member *m = lb_leaf_member(f.leaf, &p.addresses[1], 1);
		const struct lb_endpoint *e = lb_member_endpoint(m);
		assert_ptr_not_equal(m, before[1]);
		assert_true(ip_port_eq(lb_endpoint_proxy(e), &proxy));
		assert_true(ip_port_eq(&e->addr, &p.addresses[1]));
		assert_int_equal(lb_endpoint_credential(e), secure ? 5 : 0);
		assert_string_equal(lb_endpoint_server_name(e), secure ? "a.example" : "");
		assert_null(proxy_of(&f, &p.addresses[0]));
		if (!secure)
			assert_ptr_equal(lb_leaf_member(f.leaf, &p.addresses[0], 1), before[0]);
		leaves_update(&f, &p, 1); // the same once more
		assert_ptr_equal(lb_leaf_member(f.leaf, &p.addresses[1], 1), m);
	}
	const struct lb_member *same = lb_leaf_member(f.leaf, &p.addresses[0], 1);
	p.endpoints[1].proxy.port = 8080;
	leaves_update(&f, &p, 1);
	leaves_pass(&f, 5 * WORLD_S);
	assert_int_equal(proxy_of(&f, &p.addresses[1])->port, 8080);
	p.endpoints[1].proxy.port = 0;
	leaves_update(&f, &p, 1);
	leaves_pass(&f, 5 * WORLD_S);
	assert_null(proxy_of(&f, &p.addresses[1]));
	assert_ptr_equal(lb_leaf_member(f.leaf, &p.addresses[0], 1), same);
	assert_int_equal(f.n_taken, 8);
	leaves_fini(&f);
	assert_int_equal(f.config.security->n_refs, 1);
	lb_security_put(f.config.security);
}

// RR-04, A50-E04: however many lists wait in a row, whoever is picked is known, and comes back as
// the same member. A list that never had its turn leaves nobody behind.
static void lists_that_wait_in_a_row_lose_nobody_who_is_picked(void **state)
{
	static struct leaves f;
	struct leaves_plan p, q, r;
	struct lb_affinity_host h;
	leaves_init(&f, lb_node_ops_of);
	leaves_plan_init(&p, 0);
	leaves_plan_init(&q, 16);
	leaves_plan_init(&r, 32);
	p.endpoints[0].hostname = STR("zero.example");
	leaves_update(&f, &p, 1);
	leaves_pass(&f, WORLD_S);
	const struct lb_member *first = lb_leaf_member(f.leaf, &p.addresses[0], 1);
	uint32_t id = lb_member_id(first);
	memset(f.is_hung, true, sizeof(f.is_hung));
	for (int i = 0; i < 6; i++) {
		const struct leaves_plan *waits = i % 2 ? &r : &q, *gone = i % 2 ? &q : &r;
		leaves_update(&f, waits, 1);
		const struct lb_affinity_map *map = lb_leaf_layer(f.picker)->affinity;
		assert_true(lb_affinity_map_find(map, &p.addresses[0], &h));
		leaves_pass(&f, 3 * WORLD_S);
		assert_in_range(leaves_picked(&f), 0, 7);
		map = lb_leaf_layer(f.picker)->affinity;
		for (uint32_t k = 0; k < 8; k++) {
			assert_true(lb_affinity_map_find(map, &p.addresses[k], &h));
			assert_true(str_eq(h.hostname, k ? STR("") : STR("zero.example")));
			assert_true(lb_affinity_map_find(map, &waits->addresses[k], &h));
			assert_false(lb_affinity_map_find(map, &gone->addresses[k], &h));
		}
		assert_int_equal(f.n_taken, 16);
	}
	leaves_update(&f, &p, 1);
	leaves_pass(&f, 3 * WORLD_S);
	assert_ptr_equal(lb_leaf_member(f.leaf, &p.addresses[0], 1), first);
	assert_int_equal(lb_member_id(first), id);
	assert_int_equal(f.n_taken, 8);
	assert_in_range(leaves_picked(&f), 0, 7);
	leaves_fini(&f);
}

// A75-O13, A75-O15: pick_first connects to a member of its own, so what a session has connected is
// the session's.
static void sessions_own_what_pick_first_does_not_use(void **state)
{
	static const struct lb_policy_spec first = {.kind = LB_POLICY_PICK_FIRST};
	static struct leaves f;
	struct leaves_plan p;
	leaves_init(&f, lb_node_ops_of);
	leaves_plan_init(&p, 0);
	f.config.spec = &first;
	f.config.idle_timeout_ns = 10 * WORLD_S;
	leaves_update(&f, &p, 1);
	leaves_pick(&f);
	leaves_pass(&f, WORLD_S);
	struct lb_member *m = lb_leaf_member(f.leaf, &p.addresses[3], 1);
	lb_leaf_want(f.leaf, lb_member_id(m));
	leaves_pass(&f, WORLD_S);
	assert_int_equal(lb_member_raw_state(m), LB_READY);
	leaves_pass(&f, 30 * WORLD_S);
	assert_int_equal(lb_member_raw_state(m), LB_IDLE);
	leaves_fini(&f);
}

// RH-01, PF-08: the first address is the key, also when nothing but the order is another one.
static void ring_follows_the_first_address(void **state)
{
	static const struct lb_policy_spec ring = {
		.kind = LB_POLICY_RING_HASH, .ring_hash = {64, 64}};
	static struct leaves f;
	struct leaves_plan p;
	leaves_init(&f, lb_node_ops_of);
	leaves_plan_init(&p, 0);
	struct ip_port pairs[2][2] = {
		{p.addresses[0], p.addresses[8]}, {p.addresses[8], p.addresses[0]}};
	f.config.spec = &ring;
	p.endpoints[0].addresses = pairs[0];
	p.endpoints[0].n_addresses = 2;
	leaves_update(&f, &p, 1);
	uint32_t before = f.n_published;
	p.endpoints[0].addresses = pairs[1];
	leaves_update(&f, &p, 1);
	assert_true(f.n_published > before);
	struct lb_picker *reordered = lb_picker_get(f.picker);
	static struct leaves fresh;
	leaves_init(&fresh, lb_node_ops_of);
	fresh.config.spec = &ring;
	leaves_update(&fresh, &p, 1);
	for (uint64_t k = 0; k < 1000; k++) {
		struct lb_pick_hash hash = {k * UINT64_C(0x9e3779b97f4a7c15), true};
		struct lb_pick_ctx ctx = {.hash = &hash, .rand = &f.world.rand};
		struct lb_pick a = lb_pick(reordered, &ctx);
		struct lb_pick b = lb_pick(fresh.picker, &ctx);
		assert_int_equal(a.kind, b.kind);
		assert_int_equal(a.connect_request,
			b.connect_request); // both leaves number their members alike
	}
	lb_picker_put(reordered);
	leaves_fini(&fresh);
	leaves_fini(&f);
}

// A27-I02, A74-C08
static void cluster_that_drops_everything_is_ready_without_endpoints(void **state)
{
	static struct leaves f;
	const struct lb_drop_category all = {"maintenance", LB_DROP_ALL};
	leaves_init(&f, lb_node_ops_of);
	f.config.note = "EDS orders: does not exist";
	leaves_update(&f, &(struct leaves_plan){0}, 0);
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	assert_string_equal(leaves_pick(&f).text,
		"cluster orders: no locality has usable endpoints "
		"(EDS orders: does not exist)");
	f.config.drops = &all;
	f.config.n_drops = 1;
	leaves_update(&f, &(struct leaves_plan){0}, 0);
	assert_int_equal(f.state, LB_READY);
	struct lb_drop_once once = {0};
	const struct lb_leaf_layer *layer = lb_leaf_layer(f.picker);
	assert_int_equal(lb_drops_draw(layer->drops, &once, layer->id, &f.world.rand), 0);
	leaves_fini(&f);
}

// A74-T06, A74-I12, A74-C09: the layer is another one, the policies hear nothing.
static void limit_and_drops_change_above_the_policies(void **state)
{
	static struct leaves f;
	struct leaves_plan p;
	leaves_init(&f, fake_ops_of);
	leaves_plan_init(&p, 0);
	fake_first_state = LB_READY;
	f.config.spec = &leaves_whole;
	leaves_update(&f, &p, 2);
	const struct lb_breaker *b = lb_leaf_layer(f.picker)->breaker;
	uint32_t n_members = fake_nodes->n_members;
	struct lb_drop_category half = {"half", 500000};
	struct lb_loads *loads = lb_loads_new(1);
	assert_non_null(loads);
	f.config.drops = &half;
	f.config.n_drops = 1;
	f.config.loads = loads; // another LRS server
	f.config.session_health |= 1 << LB_LEAF_DRAINING; // override_host_status
	f.config.idle_timeout_ns += WORLD_S;
	f.config.max_requests = 3;
	f.config.outlier = &f.outlier;
	f.outlier = (struct lb_outlier_conf){
		.interval_ns = WORLD_S, .failure_percentage = {.enabled = true}};
	leaves_update(&f, &p, 2);
	assert_int_equal(lb_leaf_layer(f.picker)->max_requests, 3);
	assert_ptr_equal(lb_leaf_layer(f.picker)->breaker, b);
	assert_string_equal(lb_leaf_layer(f.picker)->name, "orders");
	assert_int_equal(lb_drops_count(lb_leaf_layer(f.picker)->drops), 1);
	assert_int_equal(fake_nodes->n_updates, 1);
	assert_int_equal(fake_nodes->n_members, n_members);
	f.config.eds_service_name = "other"; // A32-I07
	leaves_update(&f, &p, 2);
	assert_ptr_not_equal(lb_leaf_layer(f.picker)->breaker, b);
	leaves_fini(&f);
	lb_loads_put(loads);
}

// A42-C11
static void weights_among_all_localities_are_products_of_shares(void **state)
{
	static struct leaves f;
	struct leaves_plan p;
	leaves_init(&f, fake_ops_of);
	leaves_plan_init(&p, 0);
	f.config.spec = &leaves_whole;
	p.localities[0].weight = 3;
	p.localities[1].weight = 2;
	p.localities[0].n_endpoints = p.localities[1].n_endpoints = 2;
	p.endpoints[0].weight = 2;
	p.endpoints[4].weight = 3;
	leaves_update(&f, &p, 1);
	static const double expected[] = {0.4, 0.2, 0.3, 0.1};
	for (int i = 0; i < 4; i++)
		assert_float_equal(fake_nodes->weights[i] / 2147483648.0, expected[i], 1e-6);
	p.localities[0].weight = UINT32_MAX - 2;
	leaves_update(&f, &p, 1);
	assert_int_equal(fake_nodes->weights[3], 1); // raised from nothing, as weights are >= 1
	leaves_fini(&f);
}

// A52-T12
static void other_policy_takes_the_place_of_the_first(void **state)
{
	static struct leaves f;
	struct leaves_plan p;
	leaves_init(&f, fake_ops_of);
	leaves_plan_init(&p, 0);
	f.config.spec = &leaves_whole;
	fake_first_state = LB_READY;
	leaves_update(&f, &p, 1);
	f.config.spec = &leaves_child;
	fake_first_state = LB_CONNECTING;
	leaves_update(&f, &p, 1);
	assert_int_equal(f.state, LB_READY);
	assert_int_equal(fake_count(), 2);
	fake_report(fake_nodes, LB_READY);
	world_pass(&f.world, WORLD_MS);
	assert_int_equal(fake_count(), 1);
	leaves_fini(&f);
}

// A75-T03, A75-E11: all of the first priority is ejected, and the second one serves.
static void ejection_of_a_whole_priority_fails_over(void **state)
{
	static struct leaves f;
	struct leaves_plan p;
	leaves_init(&f, lb_node_ops_of);
	leaves_plan_init(&p, 0);
	f.config.outlier = &f.outlier;
	f.outlier = (struct lb_outlier_conf){.interval_ns = 10 * WORLD_S,
		.base_ejection_ns = 30 * WORLD_S,
		.max_ejection_ns = 300 * WORLD_S,
		.max_ejection_percent = 100,
		.threshold_percent = 85,
		.failure_percentage = {true, 100, 1, 10}};
	leaves_update(&f, &p, 2);
	leaves_pass(&f, WORLD_S);
	assert_int_equal(f.state, LB_READY);
	for (int i = 0; i < 10000; i++)
		f.n_failed[leaves_pick(&f).cell->member]++;
	leaves_pass(&f, 10 * WORLD_S);
	assert_int_equal(f.state, LB_READY);
	for (int i = 0; i < 1000; i++)
		assert_in_range(leaves_picked(&f), 8, 15);
	leaves_pass(&f, 60 * WORLD_S);
	// A50-E14; the connections were there all the time
	assert_in_range(leaves_picked(&f), 0, 7);
	leaves_fini(&f);
}

// Where nothing looks for addresses, pickers have nothing to look in.
static void hosts_are_known_from_when_there_are_sessions_or_host_names(void **state)
{
	static struct leaves f;
	struct leaves_plan p;
	struct lb_affinity_host h;
	leaves_init(&f, lb_node_ops_of);
	f.env.has_sessions = false;
	leaves_plan_init(&p, 0);
	lb_leaf_begin_sessions(f.leaf); // nothing is known yet
	leaves_update(&f, &p, 2);
	leaves_pass(&f, WORLD_S);
	assert_null(lb_leaf_layer(f.picker)->affinity);
	assert_null(lb_leaf_layer(f.picker)->sessions);
	assert_in_range(leaves_picked(&f), 0, 7);
	p.endpoints[9].hostname = STR("nine.example");
	leaves_update(&f, &p, 2);
	assert_true(lb_affinity_map_find(lb_leaf_layer(f.picker)->affinity, &p.addresses[9], &h));
	assert_true(str_eq(h.hostname, STR("nine.example")));
	p.endpoints[9].hostname = STR("");
	leaves_update(&f, &p, 2);
	assert_null(lb_leaf_layer(f.picker)->affinity);
	f.env.has_sessions = true;
	lb_leaf_begin_sessions(f.leaf);
	const struct lb_affinity_map *map = lb_leaf_layer(f.picker)->sessions;
	assert_int_equal(lb_affinity_map_pick(map, &p.addresses[0], 1, &h), LB_AFFINITY_USE);
	assert_int_equal(lb_affinity_map_pick(map, &p.addresses[9], 1, &h), LB_AFFINITY_CONNECT);
	leaves_fini(&f);
}

// A75-O08, A75-O19, A75-O21: a session goes on in a priority that nobody else uses.
static void session_keeps_its_endpoint_in_an_unused_priority(void **state)
{
	static struct leaves f;
	struct leaves_plan p;
	leaves_init(&f, lb_node_ops_of);
	leaves_plan_init(&p, 0);
	leaves_update(&f, &p, 2);
	leaves_pass(&f, WORLD_S);
	const struct ip_port *a = &p.addresses[9];
	struct lb_affinity_host h;
	assert_int_equal(lb_affinity_map_pick(lb_leaf_layer(f.picker)->sessions, a, 1, &h),
		LB_AFFINITY_CONNECT);
	lb_leaf_want(f.leaf, h.member);
	leaves_pass(&f, WORLD_S);
	assert_int_equal(
		lb_affinity_map_pick(lb_leaf_layer(f.picker)->sessions, a, 1, &h), LB_AFFINITY_USE);
	assert_true(ip_port_eq(&h.state->endpoint->addr, a));
	assert_in_range(leaves_picked(&f), 0, 7);
	leaves_fini(&f);
}

// A56-P14, A74-C06, PF-05, PF-06: what any endpoint asks for reaches those who resolve names,
// unless the leaf is one of EDS.
static void resolution_is_asked_for_unless_endpoints_come_of_eds(void **state)
{
	static struct leaves f;
	struct leaves_plan p;
	leaves_init(&f, lb_node_ops_of);
	leaves_plan_init(&p, 0);
	leaves_update(&f, &p, 1);
	leaves_pass(&f, WORLD_S);
	assert_int_equal(f.n_resolutions, 0);
	leaves_set_down(&f, 0, true);
	assert_int_equal(f.n_resolutions, 1);
	leaves_pass(&f, 10 * WORLD_S);
	assert_in_range(f.n_resolutions, 3, 8); // and once a failure
	uint32_t before = f.n_resolutions;
	f.config.ignores_reresolution = true;
	leaves_update(&f, &p, 1);
	leaves_set_down(&f, 1, true);
	leaves_pass(&f, 10 * WORLD_S);
	assert_int_equal(f.n_resolutions, before);
	leaves_fini(&f);
}

// PF-07: pick_first's list of addresses is a member of its own, which goes with it.
static void what_pick_first_made_ends_with_its_list(void **state)
{
	static struct leaves f;
	static const struct lb_policy_spec pick_first = {.kind = LB_POLICY_PICK_FIRST};
	struct leaves_plan p, q;
	leaves_init(&f, lb_node_ops_of);
	leaves_plan_init(&p, 0);
	leaves_plan_init(&q, 16);
	f.config.spec = &pick_first;
	for (int i = 0; i < 20; i++) {
		leaves_update(&f, i % 2 ? &p : &q, 1);
		leaves_pass(&f, WORLD_S);
		assert_int_equal(leaves_picked(&f), i % 2 ? 0 : 16);
		assert_int_equal(f.n_taken, 9); // eight endpoints and the list
		struct lb_endpoint_table *t = lb_connectivity_endpoints(f.world.connectivity);
		assert_int_equal(lb_endpoint_table_count(t), 1); // connections of one alone
	}
	f.config.spec = &leaves_split;
	leaves_update(&f, &p, 1);
	leaves_pass(&f, 2 * WORLD_S);
	assert_int_equal(f.n_taken, 8);
	leaves_fini(&f);
}

// TLS-161, HC-07: what pick_first is connected to goes with what it asks for.
static void pick_first_connects_anew_for_another_proxy(void **state)
{
	static struct leaves f;
	static const struct lb_policy_spec pick_first = {.kind = LB_POLICY_PICK_FIRST};
	struct leaves_plan p;
	leaves_init(&f, lb_node_ops_of);
	leaves_plan_init(&p, 0);
	f.config.spec = &pick_first;
	f.config.uses_proxies = true;
	for (uint16_t port = 0; port < 3; port++) {
		for (int i = 0; i < 8; i++) {
			p.endpoints[i].proxy = proxy;
			p.endpoints[i].proxy.port = port;
		}
		leaves_update(&f, &p, 1);
		leaves_pass(&f, 5 * WORLD_S);
		const struct lb_endpoint *e = picked(&f);
		assert_int_equal(lb_endpoint_proxy(e) ? lb_endpoint_proxy(e)->port : 0, port);
		assert_int_equal(f.n_taken, 9);
	}
	leaves_fini(&f);
}

static void failed_publish_is_tried_again(void **state)
{
	static struct leaves f;
	struct leaves_plan p;
	leaves_init(&f, lb_node_ops_of);
	leaves_plan_init(&p, 0);
	leaves_update(&f, &p, 2);
	f.out_of_memory = true;
	leaves_pass(&f, WORLD_S);
	assert_int_equal(f.state, LB_CONNECTING);
	f.out_of_memory = false;
	leaves_pass(&f, 2 * WORLD_S);
	assert_int_equal(f.state, LB_READY);
	leaves_fini(&f);
}

// Whatever allocation fails: the update counts or it doesn't, and traffic goes on.
static void update_without_memory_leaves_it_as_before(void **state)
{
	static struct leaves f;
	struct leaves_plan p, q;
	bool failed = true;
	leaves_init(&f, lb_node_ops_of);
	leaves_plan_init(&p, 0);
	leaves_plan_init(&q, 16);
	leaves_update(&f, &p, 2);
	leaves_pass(&f, 5 * WORLD_S);
	for (size_t nth = 0; failed && alloc_fail_works(); nth++) {
		alloc_fail_arm(nth);
		int err = leaf_update(f.leaf, &f.config, q.priorities, 2);
		failed = alloc_fail_disarm();
		assert_true(!err || err == -ENOMEM);
		leaves_pass(&f, 15 * WORLD_S);
		assert_int_equal(f.state, LB_READY);
		assert_int_equal(leaves_picked(&f) >= 16, err == 0);
		leaves_update(&f, &p, 2);
		leaves_pass(&f, 15 * WORLD_S);
		assert_in_range(leaves_picked(&f), 0, 7);
	}
	assert_int_equal(f.n_taken, 16);
	leaves_fini(&f);
}

// A50-E01
static void nobody_is_looked_at_without_an_algorithm(void **state)
{
	static struct leaves f;
	static struct leaves_plan plan;
	leaves_init(&f, lb_node_ops_of);
	leaves_plan_init(&plan, 0);
	f.outlier = (struct lb_outlier_conf){.interval_ns = WORLD_S, .max_ejection_percent = 100};
	f.config.outlier = &f.outlier;
	leaves_update(&f, &plan, 2);
	for (uint32_t i = 0; i < N_IDS; i++)
		f.n_ok[i] = 1;
	leaves_pass(&f, 10 * WORLD_S);
	for (uint32_t i = 0; i < N_IDS; i++)
		assert_int_equal(f.n_ok[i], 1);
	f.outlier.failure_percentage.enabled = true;
	leaves_update(&f, &plan, 2);
	uint32_t member = lb_member_id(lb_leaf_member(f.leaf, &plan.addresses[0], 1));
	assert_int_equal(f.n_ok[member], 0);
	f.outlier.failure_percentage.enabled = false;
	leaves_update(&f, &plan, 2);
	f.n_ok[member] = 1;
	leaves_pass(&f, 10 * WORLD_S);
	assert_int_equal(f.n_ok[member], 1);
	leaves_fini(&f);
}

static void construction_without_memory_gives_nothing(void **state)
{
	static struct leaves f;
	struct lb_leaf *leaf = NULL;
	leaves_init_world(&f, 1);
	const struct lb_leaf_env *env = leaves_env(&f, lb_node_ops_of);
	ALLOC_FAIL_EACH(
		leaf = lb_leaf_new(env, leaves_parent(&f), "x", 1), !leaf, lb_leaf_free(leaf));
	leaves_fini(&f);
}

RUN_SUITE("lb/leaf", cmocka_unit_test(nobody_is_looked_at_without_an_algorithm),
	cmocka_unit_test(members_that_are_still_picked_keep_number_and_host_name),
	cmocka_unit_test(other_security_takes_over_when_it_is_connected),
	cmocka_unit_test(host_names_are_server_names_of_those_that_have_one),
	cmocka_unit_test(a_change_of_its_proxy_makes_an_endpoint_another_one),
	cmocka_unit_test(lists_that_wait_in_a_row_lose_nobody_who_is_picked),
	cmocka_unit_test(sessions_own_what_pick_first_does_not_use),
	cmocka_unit_test(hosts_are_known_from_when_there_are_sessions_or_host_names),
	cmocka_unit_test(ring_follows_the_first_address),
	cmocka_unit_test(dump_shows_the_layers_from_the_top_down),
	cmocka_unit_test(next_priority_is_made_when_the_first_fails),
	cmocka_unit_test(priorities_that_swap_localities_swap_their_children),
	cmocka_unit_test(endpoint_is_the_same_member_in_any_order_of_addresses),
	cmocka_unit_test(a_verdict_ends_where_there_are_no_checks),
	cmocka_unit_test(draining_endpoint_is_for_sessions_only),
	cmocka_unit_test(cluster_that_drops_everything_is_ready_without_endpoints),
	cmocka_unit_test(limit_and_drops_change_above_the_policies),
	cmocka_unit_test(weights_among_all_localities_are_products_of_shares),
	cmocka_unit_test(other_policy_takes_the_place_of_the_first),
	cmocka_unit_test(ejection_of_a_whole_priority_fails_over),
	cmocka_unit_test(session_keeps_its_endpoint_in_an_unused_priority),
	cmocka_unit_test(resolution_is_asked_for_unless_endpoints_come_of_eds),
	cmocka_unit_test(what_pick_first_made_ends_with_its_list),
	cmocka_unit_test(pick_first_connects_anew_for_another_proxy),
	cmocka_unit_test(failed_publish_is_tried_again),
	cmocka_unit_test(update_without_memory_leaves_it_as_before),
	cmocka_unit_test(construction_without_memory_gives_nothing))
