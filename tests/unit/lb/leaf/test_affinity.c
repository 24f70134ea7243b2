// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/affinity.h"
#include "lb/leaf/roster.h"
#include "lb/member/connectivity.h"
#include "lb/member/member.h"
#include "lb/pick/affinity_map.h"
#include "lb/pick/leaf_endpoints.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/world.h"

#include <errno.h>
#include <stdlib.h>

#define N 4
#define IDLE_NS (20 * WORLD_S)

struct fixture {
	bool uses_ejected; // of the switch
	bool wants_no_map;
	struct world world;
	struct lb_member_env member_env;
	struct lb_member *members[N];
	struct {
		struct lb_member *member;
		bool is_target, in_child;
	} list[N];
	struct lb_affinity *affinity;
	uint64_t used_ns[N];
	uint32_t n_changes;
};

static uint64_t last_used(void *ctx, uint32_t member)
{
	return ((struct fixture *)ctx)->used_ns[member];
}

static void on_member(void *ctx, struct lb_member *m)
{
	struct fixture *f = ctx;
	if (f->affinity)
		lb_affinity_note(f->affinity, m);
}

static void on_change(void *ctx)
{
	((struct fixture *)ctx)->n_changes++;
}

// With those of the list from this one on.
static int try_update(struct fixture *f, uint32_t from, uint32_t n, uint64_t idle_ns)
{
	uint8_t uses[N];
	struct lb_leaf_endpoint endpoints[N];
	struct lb_roster *roster = lb_roster_new(n);
	const struct ip_port *second;
	for (uint32_t i = 0; roster && i < n; i++) {
		struct lb_member *m = f->list[from + i].member;
		uses[i] = (uint8_t)(f->list[from + i].is_target * LB_AFFINITY_TARGET +
				    f->list[from + i].in_child * LB_AFFINITY_IN_CHILD);
		endpoints[i] = (struct lb_leaf_endpoint){.addresses = lb_member_address(m, 0),
			.n_addresses = lb_member_n_addresses(m),
			.weight = 1};
		lb_roster_add(roster, lb_member_get(m));
	}
	const struct lb_leaf_locality locality = {STR(""), 1, endpoints, n};
	const struct lb_leaf_priority priority = {&locality, 1};
	struct lb_leaf_endpoints *e = roster ? lb_leaf_endpoints_new(&priority, 1, &second) : NULL;
	const struct lb_affinity_list list = {
		.endpoints = e, .roster = roster, .uses = uses, .wants_map = !f->wants_no_map};
	int err = e ? lb_affinity_update(f->affinity, &list, idle_ns) : -ENOMEM;
	lb_leaf_endpoints_put(e);
	lb_roster_put(roster);
	return err;
}

static void update_n(struct fixture *f, uint32_t n, uint64_t idle_ns)
{
	assert_int_equal(try_update(f, 0, n, idle_ns), 0);
}

static void init_idle(struct fixture *f, uint64_t idle_ns)
{
	*f = (struct fixture){.uses_ejected = f->uses_ejected, .wants_no_map = f->wants_no_map};
	world_init(&f->world, 1, 1);
	f->member_env =
		(struct lb_member_env){f->world.connectivity, 250 * WORLD_MS, on_member, .ctx = f};
	for (uint32_t i = 0; i < N; i++) {
		struct ip_port a = world_addr(i);
		f->members[i] = lb_member_new(&f->member_env, i, &a, 1);
		f->list[i].member = f->members[i];
		f->list[i].is_target = true;
	}
	const struct lb_affinity_env env = {
		f->world.wheel, last_used, on_change, f, f->uses_ejected};
	f->affinity = lb_affinity_new(&env);
	update_n(f, N, idle_ns);
}

static void init(struct fixture *f)
{
	init_idle(f, IDLE_NS);
}

static void fini(struct fixture *f)
{
	lb_affinity_free(f->affinity);
	f->affinity = NULL;
	for (uint32_t i = 0; i < N; i++)
		lb_member_put(f->members[i]);
	world_fini(&f->world);
}

static uint32_t id_of(struct fixture *f, uint32_t i)
{
	struct ip_port a = world_addr(i);
	uint32_t id = world_id(&f->world, &a);
	assert_int_not_equal(id, UINT32_MAX);
	return id;
}

static void tick(struct fixture *f)
{
	world_pass(&f->world, WORLD_MS);
}

static void report(struct fixture *f, uint32_t i, enum lb_event_kind kind)
{
	world_event(&f->world, 0, kind, id_of(f, i), "refused");
	tick(f);
}

static void connect(struct fixture *f, uint32_t i)
{
	lb_affinity_want(f->affinity, i);
	report(f, i, LB_EVENT_CONNECTED);
	assert_int_equal(lb_member_raw_state(f->members[i]), LB_READY);
}

static bool is_connected(struct fixture *f, uint32_t i)
{
	return lb_member_raw_state(f->members[i]) == LB_READY;
}

struct found {
	enum lb_affinity_kind kind;
	struct lb_affinity_host host;
};

// For a cookie with the addresses of these members.
static struct found pick_list(struct fixture *f, const uint32_t *list, uint32_t n)
{
	struct ip_port addresses[8];
	for (uint32_t i = 0; i < n; i++)
		addresses[i] = world_addr(list[i]);
	struct found p;
	p.kind = lb_affinity_map_pick(lb_affinity_map_of(f->affinity), addresses, n, &p.host);
	return p;
}

#define PICK(f, ...)                                                                               \
	pick_list(f, (const uint32_t[]){__VA_ARGS__},                                              \
		sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void expect(struct found p, enum lb_affinity_kind kind, uint32_t member)
{
	assert_int_equal(p.kind, kind);
	if (kind == LB_AFFINITY_USE || kind == LB_AFFINITY_CONNECT)
		assert_int_equal(p.host.member, member);
}

// A75-O05
static void first_ready_endpoint_is_used_whatever_comes_before(void **state)
{
	struct fixture f = {0};
	init(&f);
	f.list[0].in_child = f.list[1].in_child = true;
	update_n(&f, N, IDLE_NS);
	connect(&f, 2);
	connect(&f, 3);
	expect(PICK(&f, 0, 2, 3), LB_AFFINITY_USE, 2);
	expect(PICK(&f, 1, 3, 2), LB_AFFINITY_USE, 3);
	assert_ptr_equal(PICK(&f, 2).host.state->endpoint, lb_member_endpoint(f.members[2]));
	fini(&f);
}

// A75-O06, A75-O07, A75-O08: IDLE before CONNECTING before one that nobody has.
static void without_a_ready_one_idle_connects_connecting_waits_none_is_made(void **state)
{
	struct fixture f = {0};
	init(&f);
	f.list[0].in_child = true;
	update_n(&f, N, IDLE_NS);
	lb_affinity_want(f.affinity, 1);
	tick(&f);
	expect(PICK(&f, 3, 1, 0), LB_AFFINITY_CONNECT, 0);
	expect(PICK(&f, 3, 1), LB_AFFINITY_QUEUE, 0);
	expect(PICK(&f, 3, 2), LB_AFFINITY_CONNECT, 3);
	fini(&f);
}

// A75-O04: a connect request of before the endpoint began to drain.
static void nobody_is_connected_whom_no_session_may_use(void **state)
{
	struct fixture f = {0};
	init(&f);
	f.list[0].is_target = f.list[0].in_child = false;
	update_n(&f, N, IDLE_NS);
	lb_affinity_want(f.affinity, 0);
	tick(&f);
	assert_int_equal(lb_member_raw_state(f.members[0]), LB_IDLE);
	assert_int_equal(lb_affinity_n_owned(f.affinity), 0);
	fini(&f);
}

// A55-O02, A75-O09
static void unknown_failing_or_unhealthy_ones_leave_it_to_the_child(void **state)
{
	struct fixture f = {0};
	init(&f);
	f.list[1].is_target = false;
	update_n(&f, N, IDLE_NS);
	lb_affinity_want(f.affinity, 0);
	report(&f, 0, LB_EVENT_FAILED);
	expect(PICK(&f, 77, 1, 0), LB_AFFINITY_CHILD, 0);
	expect(PICK(&f, 77), LB_AFFINITY_CHILD, 0);
	assert_int_equal(lb_affinity_map_pick(NULL, NULL, 0, NULL), LB_AFFINITY_CHILD);
	fini(&f);
}

// A75-O22
static void ejected_endpoint_binds_nobody(void **state)
{
	struct fixture f = {0};
	init(&f);
	connect(&f, 0);
	lb_member_set_ejected(f.members[0], true);
	tick(&f);
	expect(PICK(&f, 0), LB_AFFINITY_CHILD, 0);
	lb_member_set_ejected(f.members[0], false);
	tick(&f);
	expect(PICK(&f, 0), LB_AFFINITY_USE, 0);
	fini(&f);
}

// A75-O22: behind the switch as gRPC's core has it.
static void ejected_endpoint_keeps_its_sessions_if_asked_to(void **state)
{
	struct fixture f = {.uses_ejected = true};
	init(&f);
	connect(&f, 0);
	lb_member_set_ejected(f.members[0], true);
	tick(&f);
	expect(PICK(&f, 0), LB_AFFINITY_USE, 0);
	fini(&f);
}

// A75-O20
static void repeated_connect_requests_make_one_connection(void **state)
{
	struct fixture f = {0};
	init(&f);
	for (int i = 0; i < 5; i++)
		lb_affinity_want(f.affinity, 1);
	assert_int_equal(f.world.n_connects[id_of(&f, 1)], 1);
	assert_int_equal(lb_affinity_n_owned(f.affinity), 1);
	update_n(&f, 1, IDLE_NS);
	lb_affinity_want(f.affinity, 1); // just removed
	lb_affinity_want(f.affinity, 1000);
	assert_int_equal(lb_affinity_n_owned(f.affinity), 0);
	fini(&f);
}

// A75-O15, A75-O16
static void unused_connection_ends_at_the_sweep_after_its_time(void **state)
{
	struct fixture f = {0};
	init(&f);
	world_pass(&f.world, WORLD_S);
	connect(&f, 0);
	world_pass(&f.world, WORLD_S - WORLD_MS);
	f.used_ns[0] = world_now(&f.world); // 2 s after the configuration
	world_pass(&f.world, 23 * WORLD_S - WORLD_MS);
	assert_true(is_connected(&f, 0));
	world_pass(&f.world, WORLD_MS);
	assert_false(is_connected(&f, 0));
	tick(&f);
	expect(PICK(&f, 0), LB_AFFINITY_CONNECT, 0);
	fini(&f);
}

// A75-O12, A75-O15
static void connection_in_use_stays(void **state)
{
	struct fixture f = {0};
	init(&f);
	connect(&f, 0);
	for (int i = 0; i < 100; i++) {
		world_pass(&f.world, 5 * WORLD_S);
		f.used_ns[0] = world_now(&f.world);
	}
	assert_true(is_connected(&f, 0));
	world_pass(&f.world, 30 * WORLD_S);
	assert_false(is_connected(&f, 0));
	fini(&f);
}

// A75-O13
static void what_the_child_lets_go_stays_only_if_a_session_used_it(void **state)
{
	struct fixture f = {0};
	init(&f);
	f.list[0].in_child = f.list[1].in_child = true;
	update_n(&f, N, IDLE_NS);
	connect(&f, 0);
	connect(&f, 1);
	world_pass(&f.world, 60 * WORLD_S);
	assert_true(is_connected(&f, 0) && is_connected(&f, 1)); // A75-O15: not owned
	f.used_ns[1] = world_now(&f.world) - 10 * WORLD_S;
	lb_affinity_set_in_child(f.affinity, f.members[0], false);
	lb_affinity_set_in_child(f.affinity, f.members[1], false);
	tick(&f);
	assert_false(is_connected(&f, 0));
	assert_true(is_connected(&f, 1));
	assert_int_equal(lb_affinity_n_owned(f.affinity), 1);
	fini(&f);
}

// A75-O13, A75-O19: also by an update.
static void endpoint_that_moves_to_an_unused_priority_keeps_its_session(void **state)
{
	struct fixture f = {0};
	init(&f);
	f.list[0].in_child = f.list[1].in_child = true;
	update_n(&f, N, IDLE_NS);
	connect(&f, 0);
	connect(&f, 1);
	f.used_ns[1] = world_now(&f.world);
	f.list[0].in_child = f.list[1].in_child = false;
	update_n(&f, N, IDLE_NS);
	tick(&f);
	assert_false(is_connected(&f, 0));
	assert_true(is_connected(&f, 1));
	expect(PICK(&f, 1), LB_AFFINITY_USE, 1);
	fini(&f);
}

// A75-O14
static void child_takes_the_connection_back_as_it_is(void **state)
{
	struct fixture f = {0};
	init(&f);
	connect(&f, 0);
	uint32_t n = f.world.n_connects[id_of(&f, 0)];
	lb_affinity_set_in_child(f.affinity, f.members[0], true);
	assert_int_equal(lb_affinity_n_owned(f.affinity), 0);
	world_pass(&f.world, 100 * WORLD_S);
	assert_true(is_connected(&f, 0));
	assert_int_equal(f.world.n_connects[id_of(&f, 0)], n);
	fini(&f);
}

// A75-O18
static void largest_timeout_does_not_overflow_and_zero_retains_nothing(void **state)
{
	struct fixture f = {0};
	init_idle(&f, UINT64_MAX);
	connect(&f, 0);
	world_pass(&f.world, 100 * WORLD_S);
	assert_true(is_connected(&f, 0));
	fini(&f);
	init_idle(&f, 0);
	lb_affinity_want(f.affinity, 0);
	world_pass(&f.world, 19 * WORLD_S);
	assert_int_equal(lb_member_raw_state(f.members[0]), LB_CONNECTING); // somebody waits
	report(&f, 0, LB_EVENT_CONNECTED);
	expect(PICK(&f, 0), LB_AFFINITY_USE, 0);
	world_pass(&f.world, 5 * WORLD_S);
	assert_false(is_connected(&f, 0));
	fini(&f);
}

static void connection_that_nobody_is_to_have_is_ended(void **state)
{
	struct fixture f = {0};
	init(&f);
	lb_member_connect(f.members[2]); // as a list that is about to go may do
	report(&f, 2, LB_EVENT_CONNECTED);
	world_pass(&f.world, 5 * WORLD_S);
	assert_false(is_connected(&f, 2));
	fini(&f);
}

static void on_nothing(struct lb_member_watcher *w, uint32_t index)
{
	(void)w;
	(void)index;
}

// BO-01: cut off, it would be connected again at once, whatever its backoff.
static void connection_that_a_list_still_holds_is_left_to_it(void **state)
{
	struct fixture f = {0};
	struct lb_member_watcher w = {.on_change = on_nothing, .n = 1};
	init(&f);
	assert_true(lb_member_watch(f.members[2], &w, 0));
	lb_member_connect(f.members[2]);
	report(&f, 2, LB_EVENT_CONNECTED);
	world_pass(&f.world, 20 * WORLD_S);
	assert_true(is_connected(&f, 2));
	lb_member_unwatch(f.members[2], &w, 0);
	world_pass(&f.world, 5 * WORLD_S);
	assert_false(is_connected(&f, 2));
	fini(&f);
}

// A75-O20: and what happens in one turn is told once.
static void changes_make_another_map(void **state)
{
	struct fixture f = {0};
	init(&f);
	lb_affinity_want(f.affinity, 0);
	lb_affinity_want(f.affinity, 1);
	assert_int_equal(f.n_changes, 0);
	tick(&f);
	assert_int_equal(f.n_changes, 1);
	report(&f, 0, LB_EVENT_CONNECTED);
	assert_int_equal(f.n_changes, 2);
	fini(&f);
}

static struct lb_affinity_map *map_of(
	const struct lb_leaf_endpoint *list, uint32_t n, const struct lb_cells *cells)
{
	const struct lb_leaf_locality locality = {STR(""), 1, list, n};
	const struct lb_leaf_priority priority = {&locality, 1};
	const struct ip_port *second;
	struct lb_leaf_endpoints *e = lb_leaf_endpoints_new(&priority, 1, &second);
	assert_non_null(e);
	struct lb_affinity_map *m = lb_affinity_map_new(e, NULL, cells);
	assert_non_null(m);
	lb_leaf_endpoints_put(e);
	return m;
}

// A55-O01, A75-O10
static void cookie_lists_the_address_in_use_first(void **state)
{
	const struct ip_port list[] = {
		world_addr(0), {{{0xfd, [15] = 7}}, 8080}, {ip_from_v4(0x0a520001), 81}};
	const struct lb_leaf_endpoint endpoint = {
		list, 3, 1, LB_LEAF_HEALTHY, STR("a.example"), STR("")};
	struct lb_cells cells = {0};
	assert_int_equal(
		lb_cells_push(&cells, (struct lb_cell){.member = 5, .is_target = true}), 0);
	struct lb_affinity_map *m = map_of(&endpoint, 1, &cells);
	static const char *const texts[] = {"10.82.0.0:50051,[fd00::7]:8080,10.82.0.1:81",
		"[fd00::7]:8080,10.82.0.0:50051,10.82.0.1:81",
		"10.82.0.1:81,10.82.0.0:50051,[fd00::7]:8080"};
	for (int i = 0; i < 3; i++) {
		struct lb_affinity_host h;
		assert_true(lb_affinity_map_find(m, &list[i], &h));
		char text[64];
		size_t len = strlen(texts[i]);
		assert_int_equal(lb_affinity_print(&h, text, sizeof(text)), len);
		assert_memory_equal(text, texts[i], len);
		assert_int_equal(lb_affinity_print(&h, text, len), len);
		assert_int_equal(lb_affinity_print(&h, text, len - 1), 0);
		assert_int_equal(h.member, 5);
		assert_true(str_eq(h.hostname, STR("a.example")));
	}
	lb_cells_fini(&cells);
	assert_ptr_equal(lb_affinity_map_get(m), m);
	lb_affinity_map_put(m);
	lb_affinity_map_put(m);
}

// The filter before the table may be wrong about strangers, never about the leaf's own.
static void all_addresses_are_found_and_few_others_are_looked_for(void **state)
{
	enum { N_HOSTS = 5000 };
	static struct ip_port addresses[N_HOSTS];
	static struct lb_leaf_endpoint endpoints[N_HOSTS];
	struct lb_cells cells = {0};
	for (uint32_t i = 0; i < N_HOSTS; i++) {
		addresses[i] = world_addr(i);
		endpoints[i] = (struct lb_leaf_endpoint){
			.addresses = &addresses[i], .n_addresses = 1, .weight = 1};
		const struct lb_cell cell = {
			.member = i, .has_connection = true, .is_target = true};
		assert_int_equal(lb_cells_push(&cells, cell), 0);
	}
	struct lb_affinity_map *m = map_of(endpoints, N_HOSTS, &cells);
	struct lb_affinity_host host;
	uint32_t n_mistaken = 0;
	for (uint32_t i = 0; i < N_HOSTS; i++) {
		assert_int_equal(
			lb_affinity_map_pick(m, &addresses[i], 1, &host), LB_AFFINITY_CONNECT);
		assert_int_equal(host.member, i);
	}
	for (uint32_t i = N_HOSTS; i < 10 * N_HOSTS; i++) {
		struct ip_port a = world_addr(i);
		n_mistaken += lb_address_filter_has(m->filter, lb_address_hash(&a));
		assert_int_equal(lb_affinity_map_pick(m, &a, 1, &host), LB_AFFINITY_CHILD);
	}
	assert_in_range(n_mistaken, 1, 9 * N_HOSTS / 50);
	lb_affinity_map_put(m);
	lb_cells_fini(&cells);
}

static void each_allocation_that_fails_leaves_it_as_before(void **state)
{
	struct fixture f;
	bool failed = true;
	init(&f);
	connect(&f, 0);
	f.used_ns[0] = world_now(&f.world);
	for (size_t nth = 0; failed && alloc_fail_works(); nth++) {
		alloc_fail_arm(nth);
		int err = try_update(&f, 1, N - 1, IDLE_NS);
		failed = alloc_fail_disarm();
		assert_int_equal(err, failed ? -ENOMEM : 0);
		expect(PICK(&f, 0), failed ? LB_AFFINITY_USE : LB_AFFINITY_CHILD, 0);
	}
	update_n(&f, N, IDLE_NS);
	// A map that could not be made is made later.
	lb_affinity_want(f.affinity, 1);
	alloc_fail_arm(0);
	tick(&f);
	if (alloc_fail_disarm()) {
		expect(PICK(&f, 1), LB_AFFINITY_CONNECT, 1);
		world_pass(&f.world, WORLD_S);
	}
	expect(PICK(&f, 1), LB_AFFINITY_QUEUE, 1);
	fini(&f);
}

// An update of the columns alone keeps the cells, and makes those that are owed first.
static void columns_change_while_a_change_of_the_cells_is_owed(void **state)
{
	struct fixture f = {0};
	struct lb_leaf_endpoint endpoints[N];
	uint8_t uses[N];
	const struct ip_port *second;
	struct lb_leaf_endpoints *columns[2];
	if (!alloc_fail_works())
		skip();
	init(&f);
	struct lb_roster *roster = lb_roster_new(N);
	for (uint32_t i = 0; i < N; i++) {
		lb_roster_add(roster, lb_member_get(f.members[i]));
		uses[i] = LB_AFFINITY_TARGET | LB_AFFINITY_IN_CHILD;
		endpoints[i] =
			(struct lb_leaf_endpoint){.addresses = lb_member_address(f.members[i], 0),
				.n_addresses = 1,
				.weight = 1};
	}
	const struct lb_leaf_locality locality = {STR(""), 1, endpoints, N};
	const struct lb_leaf_priority priority = {&locality, 1};
	for (int i = 0; i < 2; i++) {
		columns[i] = lb_leaf_endpoints_new(&priority, 1, &second);
		endpoints[1].hostname = STR("one.example");
	}
	struct lb_affinity_list list = {
		.wants_map = true, .endpoints = columns[0], .roster = roster, .uses = uses};
	assert_int_equal(lb_affinity_update(f.affinity, &list, IDLE_NS), 0);
	expect(PICK(&f, 0), LB_AFFINITY_CONNECT, 0);
	alloc_fail_arm(0);
	lb_member_set_ejected(f.members[0], true);
	assert_true(alloc_fail_disarm());
	alloc_fail_arm(0);
	tick(&f);
	assert_true(alloc_fail_disarm());
	expect(PICK(&f, 0), LB_AFFINITY_CONNECT, 0); // the map of before
	list.endpoints = columns[1];
	bool failed = true;
	for (size_t nth = 0; failed; nth++) {
		alloc_fail_arm(nth);
		int err = lb_affinity_update(f.affinity, &list, IDLE_NS);
		failed = alloc_fail_disarm();
		assert_int_equal(err, failed ? -ENOMEM : 0);
		expect(PICK(&f, 0), failed ? LB_AFFINITY_CONNECT : LB_AFFINITY_CHILD, 0);
		expect(PICK(&f, 3), LB_AFFINITY_CONNECT, 3);
	}
	assert_true(str_eq(PICK(&f, 1).host.hostname, STR("one.example")));
	for (int i = 0; i < 2; i++)
		lb_leaf_endpoints_put(columns[i]);
	lb_roster_put(roster);
	fini(&f);
}

// Where nobody looks for addresses; connections are kept and ended all the same.
static void map_is_made_where_one_is_wanted(void **state)
{
	struct fixture f = {.wants_no_map = true};
	init(&f);
	assert_null(lb_affinity_map_of(f.affinity));
	connect(&f, 1);
	assert_int_equal(lb_affinity_n_owned(f.affinity), 1);
	assert_int_equal(f.n_changes, 0);
	assert_null(lb_affinity_map_of(f.affinity));
	f.wants_no_map = false;
	update_n(&f, N, IDLE_NS);
	expect(PICK(&f, 1), LB_AFFINITY_USE, 1);
	expect(PICK(&f, 3), LB_AFFINITY_CONNECT, 3);
	lb_affinity_want(f.affinity, 3); // a change that is to make another map
	f.wants_no_map = true;
	update_n(&f, N, IDLE_NS);
	tick(&f);
	assert_int_equal(f.n_changes, 0);
	assert_null(lb_affinity_map_of(f.affinity));
	world_pass(&f.world, IDLE_NS + 5 * WORLD_S);
	assert_false(is_connected(&f, 1));
	fini(&f);
}

// Neither a map nor none is left half made.
static void without_memory_for_a_map_the_list_stays(void **state)
{
	struct fixture f = {.wants_no_map = true};
	init(&f);
	f.wants_no_map = false;
	bool failed = alloc_fail_works();
	for (size_t nth = 0; failed; nth++) {
		alloc_fail_arm(nth);
		int err = try_update(&f, 0, N, IDLE_NS);
		failed = alloc_fail_disarm();
		assert_int_equal(err, failed ? -ENOMEM : 0);
		assert_true(!lb_affinity_map_of(f.affinity) == failed);
	}
	fini(&f);
}

RUN_SUITE("lb/affinity", cmocka_unit_test(first_ready_endpoint_is_used_whatever_comes_before),
	cmocka_unit_test(without_a_ready_one_idle_connects_connecting_waits_none_is_made),
	cmocka_unit_test(nobody_is_connected_whom_no_session_may_use),
	cmocka_unit_test(unknown_failing_or_unhealthy_ones_leave_it_to_the_child),
	cmocka_unit_test(ejected_endpoint_binds_nobody),
	cmocka_unit_test(ejected_endpoint_keeps_its_sessions_if_asked_to),
	cmocka_unit_test(repeated_connect_requests_make_one_connection),
	cmocka_unit_test(unused_connection_ends_at_the_sweep_after_its_time),
	cmocka_unit_test(connection_in_use_stays),
	cmocka_unit_test(what_the_child_lets_go_stays_only_if_a_session_used_it),
	cmocka_unit_test(endpoint_that_moves_to_an_unused_priority_keeps_its_session),
	cmocka_unit_test(child_takes_the_connection_back_as_it_is),
	cmocka_unit_test(largest_timeout_does_not_overflow_and_zero_retains_nothing),
	cmocka_unit_test(connection_that_nobody_is_to_have_is_ended),
	cmocka_unit_test(connection_that_a_list_still_holds_is_left_to_it),
	cmocka_unit_test(changes_make_another_map),
	cmocka_unit_test(cookie_lists_the_address_in_use_first),
	cmocka_unit_test(all_addresses_are_found_and_few_others_are_looked_for),
	cmocka_unit_test(columns_change_while_a_change_of_the_cells_is_owed),
	cmocka_unit_test(each_allocation_that_fails_leaves_it_as_before),
	cmocka_unit_test(map_is_made_where_one_is_wanted),
	cmocka_unit_test(without_memory_for_a_map_the_list_stays))
