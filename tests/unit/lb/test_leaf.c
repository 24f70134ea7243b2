// SPDX-License-Identifier: Apache-2.0
#include "lb/affinity_map.h"
#include "lb/aggregate.h"
#include "lb/breaker.h"
#include "lb/connectivity.h"
#include "lb/leaf.h"
#include "lb/member.h"
#include "lb/picker.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/fake_node.h"
#include "tests/unit/lb/world.h"

#include <errno.h>

#define N_IDS 4096
#define NOTHING UINT32_MAX

static const struct lb_policy_spec child_spec = {.kind = LB_POLICY_ROUND_ROBIN};
static const struct lb_policy_spec split = {.kind = LB_POLICY_WRR_LOCALITY, .child = &child_spec};
static const struct lb_policy_spec whole = {.kind = LB_POLICY_RING_HASH};

struct fixture {
	struct world world;
	struct lb_member_env member_env;
	struct lb_breakers *breakers;
	struct lb_leaf *leaf;
	struct lb_aggregate *aggregate;
	bool taken[N_IDS];
	uint32_t next_id, n_taken, n_slots, next_slot;
	uint32_t positions[65536]; // by slot
	uint64_t n_ok[N_IDS], n_failed[N_IDS], used_ns[N_IDS];
	enum lb_state state;
	struct lb_picker *picker;
	uint32_t n_published;
	bool out_of_memory;
	// What the configuration says; addresses by number.
	struct lb_leaf_config config;
	struct lb_outlier_conf outlier;
	struct lb_leaf_config leaf_configs[3]; // of "leaf0", …
	bool is_down[WORLD_MAX_ENDPOINTS]; // by address
};

static uint32_t member_take(void *ctx)
{
	struct fixture *f = ctx;
	while (f->taken[f->next_id])
		f->next_id = (f->next_id + 1) % N_IDS;
	f->taken[f->next_id] = true;
	f->n_taken++;
	uint32_t id = f->next_id;
	f->next_id = (f->next_id + 1) % N_IDS;
	return id;
}

static void member_give(void *ctx, uint32_t id)
{
	struct fixture *f = ctx;
	assert_true(f->taken[id]);
	f->taken[id] = false;
	f->n_taken--;
}

static uint32_t slot_take(void *ctx)
{
	struct fixture *f = ctx;
	f->n_slots++;
	return f->next_slot++ % 65536;
}

static void slot_give(void *ctx, uint32_t slot)
{
	((struct fixture *)ctx)->n_slots--;
}

static void harvest(void *ctx, uint32_t member, uint64_t *ret_ok, uint64_t *ret_failed)
{
	struct fixture *f = ctx;
	*ret_ok = f->n_ok[member];
	*ret_failed = f->n_failed[member];
	f->n_ok[member] = f->n_failed[member] = 0;
}

static uint64_t last_used(void *ctx, uint32_t member)
{
	return ((struct fixture *)ctx)->used_ns[member];
}

static int on_publish(void *ctx, enum lb_state state, struct lb_picker *picker)
{
	struct fixture *f = ctx;
	if (f->out_of_memory) {
		lb_picker_put(picker);
		return -ENOMEM;
	}
	lb_picker_put(f->picker);
	f->picker = picker;
	f->state = state;
	f->n_published++;
	return 0;
}

static struct lb_leaf_env env_of(struct fixture *f, lb_node_ops_find *ops_of)
{
	return (struct lb_leaf_env){.wheel = f->world.wheel,
		.rand = &f->world.rand,
		.member_env = &f->member_env,
		.breakers = f->breakers,
		.ops_of = ops_of,
		.member_take = member_take,
		.member_give = member_give,
		.slot_take = slot_take,
		.slot_give = slot_give,
		.harvest = harvest,
		.last_used = last_used,
		.publish = on_publish,
		.ctx = f};
}

static void init_world(struct fixture *f, uint64_t seed)
{
	*f = (struct fixture){0};
	world_init(&f->world, 1, seed);
	f->member_env = (struct lb_member_env){f->world.connectivity, 250 * WORLD_MS};
	f->breakers = lb_breakers_new();
	f->config = (struct lb_leaf_config){.spec = &split,
		.max_requests = 1024,
		.eds_service_name = "",
		.session_health = 1 << LB_LEAF_UNKNOWN | 1 << LB_LEAF_HEALTHY,
		.idle_timeout_ns = 3600 * WORLD_S,
		.note = ""};
	fake_first_state = -1;
	fake_update_error = 0;
}

static void init(struct fixture *f, lb_node_ops_find *ops_of)
{
	init_world(f, 1);
	const struct lb_leaf_env env = env_of(f, ops_of);
	f->leaf = lb_leaf_new(&env, "orders", 1);
	assert_non_null(f->leaf);
}

static void fini(struct fixture *f)
{
	lb_leaf_free(f->leaf);
	lb_aggregate_free(f->aggregate);
	lb_picker_put(f->picker);
	assert_int_equal(f->n_taken, 0);
	assert_int_equal(f->n_slots, 0);
	assert_int_equal(fake_count(), 0);
	assert_int_equal(lb_breakers_count(f->breakers), 0);
	lb_breakers_free(f->breakers);
	world_fini(&f->world);
}

// Endpoints of a leaf: four in each locality, localities "a" to "d" two by two in priorities.
struct plan {
	struct ip_port addresses[16];
	struct lb_leaf_endpoint endpoints[16];
	struct lb_leaf_locality localities[4];
	struct lb_leaf_priority priorities[4];
};

static void plan_init(struct plan *p, uint32_t first)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	for (uint32_t i = 0; i < 16; i++) {
		p->addresses[i] = world_addr(first + i);
		p->endpoints[i] = (struct lb_leaf_endpoint){.addresses = &p->addresses[i],
			.n_addresses = 1,
			.weight = 1,
			.health = LB_LEAF_HEALTHY};
	}
	for (uint32_t i = 0; i < 4; i++)
		p->localities[i] =
			(struct lb_leaf_locality){str_from(names[i]), 1, &p->endpoints[4 * i], 4};
	p->priorities[0] = (struct lb_leaf_priority){&p->localities[0], 2};
	p->priorities[1] = (struct lb_leaf_priority){&p->localities[2], 2};
}

static void update(struct fixture *f, const struct plan *p, uint32_t n)
{
	f->config.priorities = p->priorities;
	f->config.n_priorities = n;
	assert_int_equal(lb_leaf_update(f->leaf, &f->config), 0);
}

static struct lb_pick pick(struct fixture *f)
{
	uint64_t ready[WORLD_MAX_ENDPOINTS / 64];
	struct lb_pick_hash hash = {0};
	uint32_t position = 0;
	memset(ready, 0xff, sizeof(ready));
	struct lb_pick_ctx ctx = {.rand = &f->world.rand,
		.position = &position,
		.positions = f->positions,
		.ready = ready,
		.hash = &hash};
	struct lb_pick p = f->picker->pick(f->picker, &ctx);
	if (p.kind == LB_PICK_QUEUE && p.wish && f->leaf)
		lb_leaf_want(f->leaf, p.wish - 1);
	return p;
}

// Who is asked for, by address; NOTHING = requests wait or fail.
static uint32_t picked(struct fixture *f)
{
	struct lb_pick p = pick(f);
	return p.kind == LB_PICK_ENDPOINT && p.endpoint
	               ? ip_to_v4(&p.endpoint->addr.ip) - 0x0a520000
	               : NOTHING;
}

// Answers what has been asked of the anchor, each attempt after a moment.
static void answer(struct fixture *f)
{
	struct lb_endpoint_table *t = lb_connectivity_endpoints(f->world.connectivity);
	for (uint32_t id = 0; id < 200; id++) {
		struct lb_endpoint *e = lb_endpoint_find(t, id);
		while (f->world.n_releases[id])
			world_answer_release(&f->world, id);
		if (!e || !f->world.n_connects[id])
			continue;
		f->world.n_connects[id] = 0;
		bool is_down = f->is_down[ip_to_v4(&e->addr.ip) - 0x0a520000];
		world_event(&f->world, 0, is_down ? LB_EVENT_FAILED : LB_EVENT_CONNECTED, id,
			"refused");
	}
}

static void pass(struct fixture *f, uint64_t ns)
{
	uint64_t end = world_now(&f->world) + ns;
	while (world_now(&f->world) < end) {
		uint64_t step = world_now(&f->world) + 50 * WORLD_MS;
		twheel_advance(f->world.wheel, step < end ? step : end);
		answer(f);
	}
}

static void set_down(struct fixture *f, uint32_t address, bool is_down)
{
	struct ip_port a = world_addr(address);
	struct lb_endpoint_table *t = lb_connectivity_endpoints(f->world.connectivity);
	f->is_down[address] = is_down;
	for (uint32_t id = 0; is_down && id < 200; id++) {
		struct lb_endpoint *e = lb_endpoint_find(t, id);
		if (e && ip_port_eq(&e->addr, &a))
			world_event(&f->world, 0, LB_EVENT_LOST, id, "reset by peer");
	}
}

// A75-T01
static void dump_shows_the_layers_from_the_top_down(void **state)
{
	static struct fixture f;
	struct plan p;
	struct fake_dump d;
	init(&f, fake_ops_of);
	plan_init(&p, 0);
	f.config.spec = &whole;
	fake_first_state = LB_READY;
	update(&f, &p, 2);
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
	fini(&f);
}

// P01, T03
static void next_priority_is_made_when_the_first_fails(void **state)
{
	static struct fixture f;
	struct plan p;
	init(&f, fake_ops_of);
	plan_init(&p, 0);
	f.config.spec = &whole;
	update(&f, &p, 2);
	assert_int_equal(fake_count(), 1);
	assert_int_equal(fake_nodes->n_localities, 2); // T09: all localities of the priority
	assert_int_equal(fake_nodes->n_members, 8);
	fake_report(fake_nodes, LB_TRANSIENT_FAILURE);
	assert_int_equal(fake_count(), 2);
	assert_string_equal(fake_nodes->name, "c");
	fake_report(fake_nodes, LB_READY);
	assert_int_equal(f.state, LB_READY);
	assert_string_equal(pick(&f).text, "c");
	fini(&f);
}

// C03
static void priorities_that_swap_localities_swap_their_children(void **state)
{
	static struct fixture f;
	struct plan p;
	init(&f, fake_ops_of);
	plan_init(&p, 0);
	f.config.spec = &whole;
	fake_first_state = LB_TRANSIENT_FAILURE;
	update(&f, &p, 2);
	struct fake_node *ab = fake_find("a"), *cd = fake_find("c");
	uint32_t made = fake_n_made;
	fake_report(cd, LB_READY);
	struct lb_leaf_priority first = p.priorities[0];
	p.priorities[0] = p.priorities[1];
	p.priorities[1] = first;
	update(&f, &p, 2);
	assert_int_equal(fake_n_made, made);
	assert_ptr_equal(fake_find("a"), ab);
	assert_ptr_equal(fake_find("c"), cd);
	fini(&f);
}

// E04, PF-08, UPD-02
static void endpoint_is_the_same_member_in_any_order_of_addresses(void **state)
{
	static struct fixture f;
	struct ip_port addresses[2] = {world_addr(1), world_addr(2)};
	struct lb_leaf_endpoint e = {addresses, 2, 1, LB_LEAF_HEALTHY, STR(""), STR("")};
	struct lb_leaf_locality l = {STR("a"), 1, &e, 1};
	struct plan p = {.priorities = {{&l, 1}}};
	init(&f, fake_ops_of);
	f.config.spec = &whole;
	update(&f, &p, 1);
	struct lb_member *m = fake_nodes->members[0];
	addresses[0] = world_addr(2);
	addresses[1] = world_addr(1);
	l.weight = 2;
	update(&f, &p, 1);
	assert_ptr_equal(fake_nodes->members[0], m);
	assert_true(ip_port_eq(lb_member_address(m, 0), &addresses[0]));
	assert_int_equal(f.n_taken, 1);
	addresses[1] = world_addr(3);
	update(&f, &p, 1);
	assert_ptr_not_equal(fake_nodes->members[0], m);
	assert_int_equal(f.n_taken, 1);
	fini(&f);
}

// O01, O03
static void draining_endpoint_is_for_sessions_only(void **state)
{
	static struct fixture f;
	struct plan p;
	struct lb_affinity_host h;
	init(&f, fake_ops_of);
	plan_init(&p, 0);
	f.config.spec = &whole;
	f.config.session_health |= 1 << LB_LEAF_DRAINING;
	p.endpoints[1].health = LB_LEAF_DRAINING;
	fake_first_state = LB_READY;
	update(&f, &p, 2);
	assert_int_equal(fake_nodes->n_members, 7);
	const struct lb_leaf_layer *layer = lb_leaf_layer(f.picker);
	assert_true(lb_affinity_map_find(layer->affinity, &p.addresses[1], &h));
	assert_true(h.is_target);
	assert_false(h.state->has_connection);
	assert_true(lb_affinity_map_find(layer->affinity, &p.addresses[15], &h)); // priority 1
	assert_false(h.state->has_connection);
	assert_true(lb_affinity_map_find(layer->affinity, &p.addresses[0], &h));
	assert_true(h.state->has_connection);
	assert_true(str_eq(h.locality, STR("a")));
	fini(&f);
}

// I02, C08
static void cluster_that_drops_everything_is_ready_without_endpoints(void **state)
{
	static struct fixture f;
	const struct lb_drop_category all = {"maintenance", LB_DROP_ALL};
	init(&f, lb_node_ops_of);
	f.config.note = "EDS orders: does not exist";
	update(&f, &(struct plan){0}, 0);
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	assert_string_equal(pick(&f).text, "cluster orders: no locality has usable endpoints "
					   "(EDS orders: does not exist)");
	f.config.drops = &all;
	f.config.n_drops = 1;
	update(&f, &(struct plan){0}, 0);
	assert_int_equal(f.state, LB_READY);
	struct lb_drop_once once = {0};
	const struct lb_leaf_layer *layer = lb_leaf_layer(f.picker);
	assert_int_equal(lb_drops_draw(layer->drops, &once, layer->id, &f.world.rand), 0);
	fini(&f);
}

// T06, I12, C09: the layer is another one, the policies hear nothing.
static void limit_and_drops_change_above_the_policies(void **state)
{
	static struct fixture f;
	struct plan p;
	init(&f, fake_ops_of);
	plan_init(&p, 0);
	fake_first_state = LB_READY;
	f.config.spec = &whole;
	update(&f, &p, 2);
	const struct lb_breaker *b = lb_leaf_layer(f.picker)->breaker;
	f.config.max_requests = 3;
	f.config.outlier = &f.outlier;
	f.outlier = (struct lb_outlier_conf){
		.interval_ns = WORLD_S, .failure_percentage = {.enabled = true}};
	update(&f, &p, 2);
	assert_int_equal(lb_leaf_layer(f.picker)->max_requests, 3);
	assert_true(lb_leaf_layer(f.picker)->counts_outcomes);
	assert_ptr_equal(lb_leaf_layer(f.picker)->breaker, b);
	assert_string_equal(lb_leaf_layer(f.picker)->name, "orders");
	assert_int_equal(fake_nodes->n_updates, 1);
	f.config.eds_service_name = "other"; // I07
	update(&f, &p, 2);
	assert_ptr_not_equal(lb_leaf_layer(f.picker)->breaker, b);
	fini(&f);
}

// C11
static void weights_among_all_localities_are_products_of_shares(void **state)
{
	static struct fixture f;
	struct plan p;
	init(&f, fake_ops_of);
	plan_init(&p, 0);
	f.config.spec = &whole;
	p.localities[0].weight = 3;
	p.localities[1].weight = 2;
	p.localities[0].n_endpoints = p.localities[1].n_endpoints = 2;
	p.endpoints[0].weight = 2;
	p.endpoints[4].weight = 3;
	update(&f, &p, 1);
	static const double expected[] = {0.4, 0.2, 0.3, 0.1};
	for (int i = 0; i < 4; i++)
		assert_float_equal(fake_nodes->weights[i] / 2147483648.0, expected[i], 1e-6);
	p.localities[0].weight = UINT32_MAX - 2;
	update(&f, &p, 1);
	assert_int_equal(fake_nodes->weights[3], 1); // raised from nothing, as weights are >= 1
	fini(&f);
}

// A52-T12
static void other_policy_takes_the_place_of_the_first(void **state)
{
	static struct fixture f;
	struct plan p;
	init(&f, fake_ops_of);
	plan_init(&p, 0);
	f.config.spec = &whole;
	fake_first_state = LB_READY;
	update(&f, &p, 1);
	f.config.spec = &child_spec;
	fake_first_state = LB_CONNECTING;
	update(&f, &p, 1);
	assert_int_equal(f.state, LB_READY);
	assert_int_equal(fake_count(), 2);
	fake_report(fake_nodes, LB_READY);
	world_pass(&f.world, WORLD_MS);
	assert_int_equal(fake_count(), 1);
	fini(&f);
}

// T03, E11: all of the first priority is ejected, and the second one serves.
static void ejection_of_a_whole_priority_fails_over(void **state)
{
	static struct fixture f;
	struct plan p;
	init(&f, lb_node_ops_of);
	plan_init(&p, 0);
	f.config.outlier = &f.outlier;
	f.outlier = (struct lb_outlier_conf){.interval_ns = 10 * WORLD_S,
		.base_ejection_ns = 30 * WORLD_S,
		.max_ejection_ns = 300 * WORLD_S,
		.max_ejection_percent = 100,
		.threshold_percent = 85,
		.failure_percentage = {true, 100, 1, 10}};
	update(&f, &p, 2);
	pass(&f, WORLD_S);
	assert_int_equal(f.state, LB_READY);
	for (int i = 0; i < 10000; i++)
		f.n_failed[pick(&f).member]++;
	pass(&f, 10 * WORLD_S);
	assert_int_equal(f.state, LB_READY);
	for (int i = 0; i < 1000; i++)
		assert_in_range(picked(&f), 8, 15);
	pass(&f, 60 * WORLD_S);
	assert_in_range(picked(&f), 0, 7); // E14; the connections were there all the time
	fini(&f);
}

// O08, O19, O21: a session goes on in a priority that nobody else uses.
static void session_keeps_its_endpoint_in_an_unused_priority(void **state)
{
	static struct fixture f;
	struct plan p;
	init(&f, lb_node_ops_of);
	plan_init(&p, 0);
	update(&f, &p, 2);
	pass(&f, WORLD_S);
	struct lb_affinity_pick a =
		lb_affinity_map_pick(lb_leaf_layer(f.picker)->affinity, &p.addresses[9], 1);
	assert_int_equal(a.kind, LB_AFFINITY_WISH);
	lb_leaf_want(f.leaf, a.host.member);
	pass(&f, WORLD_S);
	a = lb_affinity_map_pick(lb_leaf_layer(f.picker)->affinity, &p.addresses[9], 1);
	assert_int_equal(a.kind, LB_AFFINITY_USE);
	assert_true(ip_port_eq(&a.host.state->endpoint->addr, &p.addresses[9]));
	assert_in_range(picked(&f), 0, 7);
	fini(&f);
}

static void failed_publish_is_tried_again(void **state)
{
	static struct fixture f;
	struct plan p;
	init(&f, lb_node_ops_of);
	plan_init(&p, 0);
	update(&f, &p, 2);
	f.out_of_memory = true;
	pass(&f, WORLD_S);
	assert_int_equal(f.state, LB_CONNECTING);
	f.out_of_memory = false;
	pass(&f, 2 * WORLD_S);
	assert_int_equal(f.state, LB_READY);
	fini(&f);
}

// Whatever allocation fails: the update counts or it doesn't, and traffic goes on.
static void update_without_memory_leaves_it_as_before(void **state)
{
	static struct fixture f;
	struct plan p, q;
	bool failed = true;
	init(&f, lb_node_ops_of);
	plan_init(&p, 0);
	plan_init(&q, 16);
	update(&f, &p, 2);
	pass(&f, 5 * WORLD_S);
	for (size_t nth = 0; failed && alloc_fail_works(); nth++) {
		f.config.priorities = q.priorities;
		alloc_fail_arm(nth);
		int err = lb_leaf_update(f.leaf, &f.config);
		failed = alloc_fail_disarm();
		assert_true(!err || err == -ENOMEM);
		pass(&f, 15 * WORLD_S);
		assert_int_equal(f.state, LB_READY);
		assert_int_equal(picked(&f) >= 16, err == 0);
		update(&f, &p, 2);
		pass(&f, 15 * WORLD_S);
		assert_in_range(picked(&f), 0, 7);
	}
	assert_int_equal(f.n_taken, 16);
	fini(&f);
}

static void construction_without_memory_gives_nothing(void **state)
{
	static struct fixture f;
	struct lb_leaf *leaf = NULL;
	init_world(&f, 1);
	const struct lb_leaf_env env = env_of(&f, lb_node_ops_of);
	ALLOC_FAIL_EACH(leaf = lb_leaf_new(&env, "x", 1), !leaf, lb_leaf_free(leaf));
	fini(&f);
}

// Aggregates.

static int configure(void *ctx, struct lb_leaf *leaf, const char *name)
{
	struct fixture *f = ctx;
	return lb_leaf_update(leaf, &f->leaf_configs[name[4] - '0']);
}

static uint32_t leaf_id(void *ctx, const char *name)
{
	return (uint32_t)(name[4] - '0');
}

static void init_aggregate(struct fixture *f, struct plan *plans)
{
	init_world(f, 1);
	for (uint32_t i = 0; i < 3; i++) {
		plan_init(&plans[i], 16 * i);
		f->leaf_configs[i] = f->config;
		f->leaf_configs[i].priorities = plans[i].priorities;
		f->leaf_configs[i].n_priorities = 2;
	}
	const struct lb_aggregate_env env = {env_of(f, lb_node_ops_of), configure, leaf_id};
	f->aggregate = lb_aggregate_new(&env, "all");
	assert_non_null(f->aggregate);
}

static void use_leaves(struct fixture *f, const char *const *names, uint32_t n)
{
	assert_int_equal(lb_aggregate_update(f->aggregate, names, n, ""), 0);
}

static void all_down(struct fixture *f, uint32_t first, uint32_t n, bool is_down)
{
	for (uint32_t i = 0; i < n; i++)
		set_down(f, first + i, is_down);
}

// G09
static void next_leaf_serves_while_the_first_fails(void **state)
{
	static const char *const names[] = {"leaf0", "leaf1"}, *const turned[] = {"leaf1", "leaf0"};
	static struct fixture f;
	struct plan plans[3];
	init_aggregate(&f, plans);
	use_leaves(&f, names, 2);
	pass(&f, WORLD_S);
	assert_in_range(picked(&f), 0, 7);
	assert_null(lb_aggregate_leaf(f.aggregate, "leaf1"));
	all_down(&f, 0, 16, true);
	pass(&f, 30 * WORLD_S);
	assert_in_range(picked(&f), 16, 23);
	assert_string_equal(lb_leaf_layer(f.picker)->name, "leaf1");
	struct lb_leaf *second = lb_aggregate_leaf(f.aggregate, "leaf1");
	use_leaves(&f, turned, 2);
	assert_ptr_equal(lb_aggregate_leaf(f.aggregate, "leaf1"), second);
	assert_in_range(picked(&f), 16, 23);
	use_leaves(&f, names, 2);
	all_down(&f, 0, 16, false);
	pass(&f, 200 * WORLD_S);
	assert_in_range(picked(&f), 0, 7);
	fini(&f);
}

// G10
static void aggregate_without_leaves_fails(void **state)
{
	static struct fixture f;
	struct plan plans[3];
	init_aggregate(&f, plans);
	use_leaves(&f, NULL, 0);
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	assert_string_equal(pick(&f).text, "cluster all: no leaf clusters");
	assert_null(lb_leaf_layer(f.picker));
	fini(&f);
}

// G12
static void leaf_that_drops_everything_keeps_the_traffic(void **state)
{
	static const char *const names[] = {"leaf0", "leaf1"};
	static const struct lb_drop_category all = {"maintenance", LB_DROP_ALL};
	static struct fixture f;
	struct plan plans[3];
	init_aggregate(&f, plans);
	f.leaf_configs[0].drops = &all;
	f.leaf_configs[0].n_drops = 1;
	f.leaf_configs[0].n_priorities = 0;
	use_leaves(&f, names, 2);
	pass(&f, 60 * WORLD_S);
	assert_int_equal(f.state, LB_READY);
	assert_string_equal(lb_leaf_layer(f.picker)->name, "leaf0");
	assert_null(lb_aggregate_leaf(f.aggregate, "leaf1"));
	fini(&f);
}

// T02
static void dump_of_an_aggregate_has_a_whole_tree_for_each_leaf(void **state)
{
	static const char *const names[] = {"leaf0", "leaf1"};
	static struct fixture f;
	struct plan plans[3];
	struct fake_dump d;
	init_aggregate(&f, plans);
	f.leaf_configs[0].n_priorities = 0;
	use_leaves(&f, names, 2);
	pass(&f, WORLD_S);
	fake_dump_init(&d);
	lb_aggregate_dump(f.aggregate, &d.base);
	const char *at = d.text;
	static const char *const order[] = {"cds READY cluster=all\n  priority READY\n    leaf0 ",
		"cds TRANSIENT_FAILURE cluster=leaf0", "outlier_detection", "xds_cluster_impl",
		"xds_override_host", "priority", "leaf1 READY current=yes",
		"cds READY cluster=leaf1", "outlier_detection", "xds_cluster_impl",
		"xds_override_host", "priority"};
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		at = strstr(at, order[i]);
		assert_non_null(at);
		at++;
	}
	fini(&f);
}

// Weeks of failures and updates: once things are left alone, requests go to the first leaf and
// priority that has somebody up; nothing leaks and no member is made twice.
static void weeks_of_outages_end_where_they_should(void **state)
{
	static const char *const names[] = {"leaf0", "leaf1"};
	static struct fixture f;
	struct plan plans[3];
	struct rand rand;
	init_aggregate(&f, plans);
	rand_init(&rand, 2024);
	use_leaves(&f, names, 2);
	for (int round = 0; round < 400; round++) {
		for (uint64_t n = rand_below(&rand, 6); n; n--) {
			uint32_t first = 8 * (uint32_t)rand_below(&rand, 4);
			bool is_down = rand_below(&rand, 2);
			if (rand_below(&rand, 2))
				all_down(&f, first, 8, is_down);
			else
				set_down(&f, first + (uint32_t)rand_below(&rand, 8), is_down);
			pass(&f, rand_below(&rand, 20) * WORLD_S);
		}
		if (rand_below(&rand, 4) == 0) {
			plans[0].localities[0].weight = 1 + (uint32_t)rand_below(&rand, 9);
			plans[1].localities[2].n_endpoints = (uint32_t)rand_below(&rand, 5);
			use_leaves(&f, names, 2);
		}
		pass(&f, 150 * WORLD_S); // longer than any backoff (BO-01)
		uint32_t group = 0; // of eight: a priority of a leaf
		for (; group < 4; group++) {
			uint32_t n_up = 0;
			for (uint32_t i = 0; i < 8; i++) {
				const struct lb_leaf_locality *l =
					&plans[group / 2].localities[group % 2 * 2 + i / 4];
				n_up += i % 4 < l->n_endpoints && !f.is_down[8 * group + i];
			}
			if (n_up)
				break;
		}
		for (int i = 0; i < 20; i++) {
			uint32_t who = picked(&f);
			assert_int_equal(who == NOTHING, group == 4);
			if (who != NOTHING) {
				assert_int_equal(who / 8, group);
				assert_false(f.is_down[who]);
			}
		}
		assert_int_equal(f.state, group < 4 ? LB_READY : f.state);
		assert_true(f.n_taken <= 32);
	}
	assert_true(world_now(&f.world) - WORLD_START > 1000 * 60 * WORLD_S);
	fini(&f);
}

RUN_SUITE("lb/leaf", cmocka_unit_test(dump_shows_the_layers_from_the_top_down),
	cmocka_unit_test(next_priority_is_made_when_the_first_fails),
	cmocka_unit_test(priorities_that_swap_localities_swap_their_children),
	cmocka_unit_test(endpoint_is_the_same_member_in_any_order_of_addresses),
	cmocka_unit_test(draining_endpoint_is_for_sessions_only),
	cmocka_unit_test(cluster_that_drops_everything_is_ready_without_endpoints),
	cmocka_unit_test(limit_and_drops_change_above_the_policies),
	cmocka_unit_test(weights_among_all_localities_are_products_of_shares),
	cmocka_unit_test(other_policy_takes_the_place_of_the_first),
	cmocka_unit_test(ejection_of_a_whole_priority_fails_over),
	cmocka_unit_test(session_keeps_its_endpoint_in_an_unused_priority),
	cmocka_unit_test(failed_publish_is_tried_again),
	cmocka_unit_test(update_without_memory_leaves_it_as_before),
	cmocka_unit_test(construction_without_memory_gives_nothing),
	cmocka_unit_test(next_leaf_serves_while_the_first_fails),
	cmocka_unit_test(aggregate_without_leaves_fails),
	cmocka_unit_test(leaf_that_drops_everything_keeps_the_traffic),
	cmocka_unit_test(dump_of_an_aggregate_has_a_whole_tree_for_each_leaf),
	cmocka_unit_test(weeks_of_outages_end_where_they_should))
