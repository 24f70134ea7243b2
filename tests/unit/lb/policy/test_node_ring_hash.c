// SPDX-License-Identifier: Apache-2.0
#include "lb/index/hash.h"
#include "lb/pick/ring.h"
#include "lb/route/req.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/policy/node_world.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void init(struct node_world *w, uint64_t seed)
{
	node_world_init(w, &lb_node_ring_hash, seed);
	w->spec.ring_hash.min_size = w->spec.ring_hash.max_size = 256;
}

// The members in the order in which a hash meets them, by a ring of the test's own.
static void order_of(uint32_t n, uint64_t hash, uint32_t *ret_order)
{
	char texts[NODE_MEMBERS][IP_PORT_TEXT_MAX];
	struct lb_ring_item items[NODE_MEMBERS] = {0};
	for (uint32_t i = 0; i < n; i++) {
		struct ip_port a = world_addr(i);
		items[i] = (struct lb_ring_item){str_from(ip_port_print(&a, texts[i])), 1};
	}
	struct lb_ring *r = lb_ring_new(items, n, 256, 256);
	bool seen[NODE_MEMBERS] = {0};
	uint32_t at = lb_ring_find(r, hash);
	for (uint32_t found = 0; found < n; at = (at + 1) % lb_ring_size(r)) {
		uint32_t i = lb_ring_item_at(r, at);
		if (!seen[i])
			ret_order[found++] = i;
		seen[i] = true;
	}
	lb_ring_free(r);
}

static struct lb_pick pick(struct node_world *w, uint64_t hash)
{
	w->hash = (struct lb_pick_hash){hash, true};
	return node_world_pick(w);
}

// RH-05
static void nothing_connects_before_a_pick(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 1);
	assert_int_equal(node_world_update(&w, 0, 3, ""), 0);
	assert_int_equal(w.state, LB_IDLE);
	assert_int_equal(w.n_published, 1);
	world_pass(&w.world, 20 * WORLD_S);
	assert_int_equal(
		lb_endpoint_table_count(lb_connectivity_endpoints(w.world.connectivity)), 0);
	node_world_fini(&w);
}

// RH-04, RH-05, MC-13: a pick requests a connect of the hash's own member; the control thread
// connects it.
static void pick_requests_a_connect_of_the_idle_member_of_its_hash(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 1);
	assert_int_equal(node_world_update(&w, 0, 5, ""), 0);
	for (uint64_t i = 0; i < 200; i++) {
		uint64_t hash = rand_u64(&w.rand);
		uint32_t order[5];
		order_of(5, hash, order);
		struct lb_pick p = pick(&w, hash);
		assert_int_equal(p.kind, LB_PICK_QUEUE);
		assert_null(p.want); // no worker connects by itself
		assert_int_equal(p.connect_request, order[0] + 1);
	}
	lb_member_connect(w.members[2]);
	assert_int_equal(w.state, LB_CONNECTING);
	node_world_connected(&w, 2, 1);
	assert_int_equal(w.state, LB_READY);
	world_pass(&w.world, 2 * WORLD_S);
	node_world_event(&w, LB_EVENT_LOST, 2);
	assert_int_equal(w.state, LB_IDLE); // not failing, and it stays
	world_pass(&w.world, 20 * WORLD_S);
	assert_int_equal(node_world_connects(&w, 2), 1);
	node_world_fini(&w);
}

// MC-05
static void worker_without_connection_waits_for_its_own(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 1);
	assert_int_equal(node_world_update(&w, 0, 2, ""), 0);
	lb_member_connect(w.members[0]);
	lb_member_connect(w.members[1]);
	node_world_connected(&w, 0, 2);
	w.ready[0] &= ~((uint64_t)1 << node_world_id(&w, 0));
	for (int i = 0; i < 100; i++) {
		uint64_t hash = rand_u64(&w.rand);
		uint32_t order[2];
		order_of(2, hash, order);
		struct lb_pick p = pick(&w, hash);
		assert_int_equal(p.kind, order[0] == 0 ? LB_PICK_QUEUE : LB_PICK_ENDPOINT);
		const struct lb_endpoint *e = p.cell ? p.cell->endpoint : p.want;
		assert_int_equal(e->id, node_world_id(&w, order[0]));
		assert_int_equal(p.connect_request, 0);
	}
	node_world_fini(&w);
}

// RH-04, ERR-01
static void all_failing_gives_the_first_ones_error(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 1);
	assert_int_equal(node_world_update(&w, 0, 3, "EDS orders"), 0);
	for (uint32_t i = 0; i < 3; i++) {
		lb_member_connect(w.members[i]);
		node_world_event(&w, LB_EVENT_FAILED, i);
	}
	assert_int_equal(w.state, LB_TRANSIENT_FAILURE);
	for (int i = 0; i < 50; i++) {
		uint64_t hash = rand_u64(&w.rand);
		uint32_t order[3];
		order_of(3, hash, order);
		char text[128];
		snprintf(text, sizeof(text),
			"cluster orders: no endpoint of the ring works, its first: "
			"10.82.0.%u:50051: refused (EDS orders)",
			order[0]);
		struct lb_pick p = pick(&w, hash);
		assert_int_equal(p.kind, LB_PICK_FAIL);
		assert_string_equal(p.text, text);
	}
	assert_int_equal(node_world_update(&w, 0, 0, "gone"), 0);
	assert_string_equal(pick(&w, 1).text, "cluster orders: no endpoints (gone)");
	node_world_fini(&w);
}

// RH-07: no pick comes to who is failing, so it goes on by itself, one at a time.
static void failing_ring_tries_one_idle_member_after_another(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 1);
	assert_int_equal(node_world_update(&w, 0, 4, ""), 0);
	lb_member_connect(w.members[0]);
	uint32_t n_tried = 1;
	for (uint32_t step = 1; step < 4; step++) {
		uint32_t at = 0;
		while (lb_member_state(w.members[at]) != LB_CONNECTING)
			at++;
		node_world_event(&w, LB_EVENT_FAILED, at);
		n_tried = 0;
		for (uint32_t i = 0; i < 4; i++)
			n_tried += lb_member_state(w.members[i]) != LB_IDLE;
		assert_int_equal(n_tried, step + 1);
		assert_int_equal(w.state, step == 1 ? LB_CONNECTING : LB_TRANSIENT_FAILURE);
	}
	node_world_fini(&w);
}

// RH-02: a member's share of hashes is that of its weight.
static void weights_share_the_hashes(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 1);
	w.spec.ring_hash.min_size = w.spec.ring_hash.max_size = 4096;
	w.weights[1] = 3;
	assert_int_equal(node_world_update(&w, 0, 2, ""), 0);
	lb_member_connect(w.members[0]);
	lb_member_connect(w.members[1]);
	node_world_connected(&w, 0, 2);
	uint32_t count[2] = {0};
	for (int i = 0; i < 20000; i++)
		count[pick(&w, rand_u64(&w.rand)).cell->member]++;
	assert_in_range(count[1], 14300, 15700); // of a ring of 4096 entries: ±4 %
	node_world_fini(&w);
}

// RH-04 by words: the first member that does not fail decides.
static void check_pick(struct node_world *w, uint32_t n, uint64_t hash)
{
	uint32_t order[NODE_MEMBERS], at = 0;
	order_of(n, hash, order);
	while (at < n && lb_member_state(w->members[order[at]]) == LB_TRANSIENT_FAILURE)
		at++;
	struct lb_pick p = pick(w, hash);
	if (at == n) {
		assert_int_equal(p.kind, LB_PICK_FAIL);
		return;
	}
	switch (lb_member_state(w->members[order[at]])) {
	case LB_READY:
		assert_int_equal(p.kind, LB_PICK_ENDPOINT);
		assert_int_equal(p.cell->member, order[at]);
		break;
	case LB_IDLE:
		assert_int_equal(p.kind, LB_PICK_QUEUE);
		assert_int_equal(p.connect_request, order[at] + 1);
		break;
	default:
		assert_int_equal(p.kind, LB_PICK_QUEUE);
		assert_int_equal(p.connect_request, 0);
	}
}

// RH-06 by words.
static enum lb_state expected(struct node_world *w, uint32_t n)
{
	uint32_t n_in[4] = {0};
	for (uint32_t i = 0; i < n; i++)
		n_in[lb_member_state(w->members[i])]++;
	if (n_in[LB_READY])
		return LB_READY;
	if (n_in[LB_TRANSIENT_FAILURE] >= 2)
		return LB_TRANSIENT_FAILURE;
	if (n_in[LB_CONNECTING])
		return LB_CONNECTING;
	if (n_in[LB_TRANSIENT_FAILURE] == 1 && n > 1)
		return LB_CONNECTING;
	return n_in[LB_IDLE] ? LB_IDLE : LB_TRANSIENT_FAILURE;
}

static void random_life_agrees_with_the_rules(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct node_world w;
		init(&w, seed);
		uint32_t n = 1 + seed % 5;
		assert_int_equal(node_world_update(&w, 0, n, ""), 0);
		for (int step = 0; step < 300; step++) {
			uint32_t number = (uint32_t)rand_below(&w.rand, n);
			struct lb_pick p;
			switch (rand_below(&w.rand, 9)) {
			case 0:
				world_pass(&w.world, rand_below(&w.rand, 3 * WORLD_S));
				break;
			case 1:
				if (rand_below(&w.rand, 6))
					break;
				n = 1 + (uint32_t)rand_below(&w.rand, 5);
				assert_int_equal(node_world_update(&w, 0, n, ""), 0);
				break;
			case 2:
				lb_member_set_ejected(
					w.members[number], rand_below(&w.rand, 4) == 0);
				break;
			case 3:
				p = pick(&w, rand_u64(&w.rand));
				if (p.connect_request)
					lb_member_connect(w.members[p.connect_request - 1]);
				break;
			case 4:
			case 5:
				node_world_event(&w, LB_EVENT_CONNECTED, number);
				break;
			case 6:
				node_world_event(&w, LB_EVENT_LOST, number);
				break;
			default:
				node_world_event(&w, LB_EVENT_FAILED, number);
			}
			assert_int_equal(w.state, expected(&w, n));
			for (int i = 0; i < 5; i++)
				check_pick(&w, n, rand_u64(&w.rand));
		}
		node_world_fini(&w);
	}
}

static void each_failed_allocation_is_survived(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 1);
	assert_int_equal(node_world_update(&w, 0, 2, "note"), 0);
	lb_member_connect(w.members[0]);
	node_world_connected(&w, 0, 1);
	int err = 0;
	for (size_t nth = 0;; nth++) {
		alloc_fail_arm(nth);
		err = node_world_update(&w, 0, 4, "other note");
		if (!alloc_fail_disarm())
			break;
		assert_true(err == 0 || err == -ENOMEM);
		assert_int_equal(w.state, LB_READY);
		if (err == 0)
			break; // only the picker was left for later
		for (int i = 0; i < 5; i++)
			check_pick(&w, 2, rand_u64(&w.rand));
	}
	assert_int_equal(err, 0);
	world_pass(&w.world, 2 * WORLD_S);
	for (size_t nth = 0; nth < 6; nth++) {
		alloc_fail_arm(nth);
		node_world_event(&w, LB_EVENT_LOST, 0);
		alloc_fail_disarm();
		world_pass(&w.world, 2 * WORLD_S);
		assert_int_equal(w.state, LB_IDLE);
		for (int i = 0; i < 20; i++)
			check_pick(&w, 4, rand_u64(&w.rand));
		lb_member_connect(w.members[0]);
		world_pass(&w.world, 2 * WORLD_S);
		alloc_fail_arm(nth);
		node_world_event(&w, LB_EVENT_FAILED, 0); // wakes another one too
		alloc_fail_disarm();
		world_pass(&w.world, 100 * WORLD_MS);
		world_pass(&w.world, 2 * WORLD_S);
		assert_int_equal(w.state, LB_CONNECTING);
		for (int i = 0; i < 5; i++)
			check_pick(&w, 4, rand_u64(&w.rand));
		node_world_connected(&w, 0, 1);
		for (uint32_t i = 1; i < 4; i++)
			lb_member_disconnect(w.members[i]);
		assert_int_equal(w.state, LB_READY);
		world_pass(&w.world, 2 * WORLD_S);
	}
	node_world_fini(&w);
}

// PF-05, PF-06: not for what an ejection or the start of an attempt changes.
static void loss_and_failure_ask_for_a_resolution(void **state)
{
	(void)state;
	struct node_world w;
	init(&w, 1);
	assert_int_equal(node_world_update(&w, 0, 1, ""), 0);
	lb_member_connect(w.own ? w.own : w.members[0]);
	node_world_event(&w, LB_EVENT_FAILED, 0);
	assert_int_equal(w.n_resolutions, 1);
	world_pass(&w.world, 2 * WORLD_S);
	assert_int_equal(w.n_resolutions, 1);
	node_world_event(&w, LB_EVENT_FAILED, 0);
	assert_int_equal(w.n_resolutions, 2);
	node_world_connected(&w, 0, 1);
	lb_member_set_ejected(w.members[0], true);
	lb_member_set_ejected(w.members[0], false);
	assert_int_equal(w.n_resolutions, 2);
	world_pass(&w.world, 2 * WORLD_S);
	node_world_event(&w, LB_EVENT_LOST, 0);
	assert_int_equal(w.n_resolutions, 3);
	node_world_fini(&w);
}

// A request with these values of x-key, n of them.
static struct lb_pick pick_with(struct node_world *w, uint32_t n, const char *const *values)
{
	struct field fields[2];
	char scratch[64];
	for (uint32_t i = 0; i < n; i++)
		fields[i] = (struct field){.name = STR("x-key"), .value = str_from(values[i])};
	const struct lb_req req = {.fields = fields, .n_fields = n};
	struct lb_pick_ctx ctx = {.req = &req,
		.rand = &w->rand,
		.ready = w->ready,
		.hash = &w->hash,
		.scratch = scratch,
		.scratch_size = sizeof(scratch)};
	return lb_pick(w->picker, &ctx);
}

static void init_with_header(struct node_world *w)
{
	init(w, 1);
	w->spec.ring_hash.request_hash_header = STR("x-key");
	w->hash = (struct lb_pick_hash){7, true}; // of the route, which counts no more
}

// RH-10
static void values_of_the_policys_header_are_hashed_joined(void **state)
{
	(void)state;
	struct node_world w;
	uint32_t order[4];
	init_with_header(&w);
	assert_int_equal(node_world_update(&w, 0, 4, ""), 0);
	for (int i = 0; i < 20; i++) {
		char a[8], joined[16];
		snprintf(a, sizeof(a), "u%d", i);
		snprintf(joined, sizeof(joined), "%s,v", a);
		order_of(4, lb_xxh64(joined, strlen(joined)), order);
		const char *const values[] = {a, "v"};
		assert_int_equal(pick_with(&w, 2, values).connect_request, order[0] + 1);
	}
	node_world_fini(&w);
}

// RH-10: whoever is READY, and one attempt beside at a time.
static void request_without_the_header_goes_to_any_ready_member(void **state)
{
	(void)state;
	struct node_world w;
	uint32_t n[4] = {0}, n_connect_requests = 0;
	init_with_header(&w);
	assert_int_equal(node_world_update(&w, 0, 4, ""), 0);
	struct lb_pick p = pick_with(&w, 0, NULL);
	assert_int_equal(p.kind, LB_PICK_QUEUE);
	assert_in_range(p.connect_request, 1, 4);
	lb_member_connect(w.members[0]);
	p = pick_with(&w, 0, NULL);
	assert_int_equal(p.kind, LB_PICK_QUEUE);
	assert_int_equal(p.connect_request, 0);
	node_world_connected(&w, 0, 1);
	for (int i = 0; i < 1000; i++) {
		p = pick_with(&w, 0, NULL);
		assert_int_equal(p.kind, LB_PICK_ENDPOINT);
		n_connect_requests += p.connect_request != 0;
	}
	assert_in_range(n_connect_requests, 600, 900); // the ring has others before the READY one
	for (uint32_t i = 1; i < 4; i++)
		lb_member_connect(w.members[i]);
	node_world_connected(&w, 1, 3);
	for (int i = 0; i < 4000; i++)
		n[pick_with(&w, 0, NULL).cell->member]++;
	for (int i = 0; i < 4; i++)
		assert_in_range(n[i], 500, 1500); // shares of the ring
	memset(w.ready, 0, sizeof(w.ready)); // MC-04
	p = pick_with(&w, 0, NULL);
	assert_int_equal(p.kind, LB_PICK_QUEUE);
	assert_non_null(p.want);
	uint32_t id = node_world_id(&w, 2);
	w.ready[id / 64] |= UINT64_C(1) << id % 64;
	for (int i = 0; i < 100; i++)
		assert_int_equal(pick_with(&w, 0, NULL).cell->member, 2);
	node_world_fini(&w);
}

// RH-10
static void request_without_the_header_fails_when_all_do(void **state)
{
	(void)state;
	struct node_world w;
	init_with_header(&w);
	assert_int_equal(node_world_update(&w, 0, 2, ""), 0);
	for (uint32_t i = 0; i < 2; i++) {
		lb_member_connect(w.members[i]);
		node_world_event(&w, LB_EVENT_FAILED, i);
	}
	struct lb_pick p = pick_with(&w, 0, NULL);
	assert_int_equal(p.kind, LB_PICK_FAIL);
	assert_non_null(strstr(p.text, "refused"));
	node_world_fini(&w);
}

RUN_SUITE("lb/node_ring_hash", cmocka_unit_test(values_of_the_policys_header_are_hashed_joined),
	cmocka_unit_test(request_without_the_header_goes_to_any_ready_member),
	cmocka_unit_test(request_without_the_header_fails_when_all_do),
	cmocka_unit_test(nothing_connects_before_a_pick),
	cmocka_unit_test(pick_requests_a_connect_of_the_idle_member_of_its_hash),
	cmocka_unit_test(worker_without_connection_waits_for_its_own),
	cmocka_unit_test(all_failing_gives_the_first_ones_error),
	cmocka_unit_test(failing_ring_tries_one_idle_member_after_another),
	cmocka_unit_test(weights_share_the_hashes),
	cmocka_unit_test(random_life_agrees_with_the_rules),
	cmocka_unit_test(loss_and_failure_ask_for_a_resolution),
	cmocka_unit_test(each_failed_allocation_is_survived))
