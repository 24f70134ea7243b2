// SPDX-License-Identifier: Apache-2.0
#include "lb/picker.h"
#include "lb/policy.h"
#include "lb/subchannel.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/world.h"

#include <errno.h>
#include <string.h>

#define MAX 64

// A policy whose parent keeps the newest picker.
struct fixture {
	struct world world;
	struct lb_policy *policy;
	enum lb_state state;
	struct lb_picker *picker;
	uint32_t n_published;
	uint32_t position;
	uint64_t ready[WORLD_MAX_ENDPOINTS / 64]; // what the picking worker is connected to
	bool out_of_memory;
};

static struct lb_subchannel *subchannel_get(void *ctx, const struct ip_port *addr)
{
	struct fixture *f = ctx;
	return lb_connectivity_get(f->world.connectivity, addr);
}

static void subchannel_put(void *ctx, struct lb_subchannel *s)
{
	struct fixture *f = ctx;
	lb_connectivity_put(f->world.connectivity, s);
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

static void init(struct fixture *f, uint64_t seed)
{
	*f = (struct fixture){0};
	world_init(&f->world, 1, seed);
	memset(f->ready, 0xff, sizeof(f->ready));
	const struct lb_policy_helper helper = {
		"orders", subchannel_get, subchannel_put, on_publish, f, f->world.wheel};
	f->policy = lb_policy_round_robin.new(&helper);
	assert_non_null(f->policy);
}

static void fini(struct fixture *f)
{
	lb_policy_round_robin.free(f->policy);
	lb_picker_put(f->picker);
	world_fini(&f->world);
}

// The addresses first .. first + n - 1.
static int update(struct fixture *f, uint32_t first, uint32_t n, const char *note)
{
	struct lb_policy_endpoint endpoints[MAX];
	for (uint32_t i = 0; i < n; i++)
		endpoints[i] = (struct lb_policy_endpoint){world_addr(first + i), 1};
	const struct lb_policy_config config = {endpoints, n, note};
	return lb_policy_round_robin.update(f->policy, &config);
}

// By number of the address. Endpoint ids are given in the order of addresses here.
static uint32_t id_of(struct fixture *f, uint32_t n)
{
	struct ip_port addr = world_addr(n);
	bool is_new;
	struct lb_endpoint_table *t = lb_connectivity_endpoints(f->world.connectivity);
	struct lb_endpoint *e = lb_endpoint_get(t, &addr, &is_new);
	assert_false(is_new);
	e->n_refs--;
	return e->id;
}

static void connected(struct fixture *f, uint32_t n)
{
	world_event(&f->world, 0, LB_EVENT_CONNECTED, id_of(f, n), "");
}

static void failed(struct fixture *f, uint32_t n)
{
	world_event(&f->world, 0, LB_EVENT_FAILED, id_of(f, n), "refused");
}

static void lost(struct fixture *f, uint32_t n)
{
	world_event(&f->world, 0, LB_EVENT_LOST, id_of(f, n), "reset by peer");
}

static struct lb_pick pick(struct fixture *f)
{
	struct lb_pick_ctx ctx = {
		.rand = &f->world.rand, .position = &f->position, .ready = f->ready};
	return f->picker->pick(f->picker, &ctx);
}

static uint32_t number_of(const struct lb_endpoint *e)
{
	return ip_to_v4(&e->addr.ip) - 0x0a520000;
}

// RR-01
static void every_endpoint_is_connected_at_once(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	assert_int_equal(update(&f, 0, 5, ""), 0);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(f.world.n_connects[id_of(&f, i)], 1);
	assert_int_equal(f.state, LB_CONNECTING);
	assert_int_equal(pick(&f).kind, LB_PICK_QUEUE);
	fini(&f);
}

// RR-01
static void lost_endpoint_leaves_and_reconnects_unasked(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	assert_int_equal(update(&f, 0, 2, ""), 0);
	connected(&f, 0);
	connected(&f, 1);
	world_pass(&f.world, 10 * WORLD_S);
	uint32_t id = id_of(&f, 0);
	lost(&f, 0);
	assert_int_equal(f.world.n_connects[id], 2);
	assert_int_equal(f.state, LB_READY);
	for (int i = 0; i < 10; i++)
		assert_int_equal(number_of(pick(&f).endpoint), 1);
	connected(&f, 0);
	bool seen[2] = {0};
	for (int i = 0; i < 2; i++)
		seen[number_of(pick(&f).endpoint)] = true;
	assert_true(seen[0] && seen[1]);
	fini(&f);
}

// RR-03
static void state_is_ready_then_connecting_then_failing(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	assert_int_equal(update(&f, 0, 3, ""), 0);
	failed(&f, 0);
	assert_int_equal(f.state, LB_CONNECTING);
	failed(&f, 1);
	assert_int_equal(f.state, LB_CONNECTING);
	connected(&f, 2);
	assert_int_equal(f.state, LB_READY);
	lost(&f, 2); // reconnects: CONNECTING, while the others fail
	assert_int_equal(f.state, LB_CONNECTING);
	world_pass(&f.world, 2 * WORLD_S);
	failed(&f, 2);
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	fini(&f);
}

// RR-03, ST-02
static void failing_endpoint_counts_as_failing_until_ready(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	assert_int_equal(update(&f, 0, 1, ""), 0);
	failed(&f, 0);
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	uint32_t n = f.world.n_connects[id_of(&f, 0)];
	world_pass(&f.world, 2 * WORLD_S); // backoff ends, the next attempt is under way
	assert_int_equal(f.world.n_connects[id_of(&f, 0)], n + 1);
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	assert_int_equal(update(&f, 0, 1, ""), 0); // nor does an update make it forget
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	connected(&f, 0);
	assert_int_equal(f.state, LB_READY);
	fini(&f);
}

// RR-01, BO-01, MC-07: one endpoint, refused for an hour.
static void dead_endpoint_is_tried_as_backoff_allows(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	assert_int_equal(update(&f, 0, 1, ""), 0);
	uint32_t id = id_of(&f, 0), seen = 0;
	for (int i = 0; i < 3600 * 10; i++) {
		if (f.world.n_connects[id] > seen) {
			seen++;
			failed(&f, 0);
		}
		world_pass(&f.world, 100 * WORLD_MS);
	}
	// 11 attempts take 177 s, the others 120 s each; jitter averages out.
	assert_in_range(seen, 36, 44);
	fini(&f);
}

// ERR-01
static void failure_names_cluster_address_and_note(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	assert_int_equal(update(&f, 0, 2, "EDS orders-eds"), 0);
	failed(&f, 1);
	failed(&f, 0);
	struct lb_pick p = pick(&f);
	assert_int_equal(p.kind, LB_PICK_FAIL);
	assert_string_equal(p.text, "cluster orders: cannot connect to any of 2 endpoints, "
				    "last error: 10.82.0.0:50051: refused (EDS orders-eds)");
	world_pass(&f.world, 1300 * WORLD_MS);
	world_event(&f.world, 0, LB_EVENT_FAILED, id_of(&f, 1), "connect timeout");
	assert_non_null(strstr(pick(&f).text, "10.82.0.1:50051: connect timeout"));
	fini(&f);
}

// RR-04
static void empty_list_fails_with_the_note(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	assert_int_equal(update(&f, 0, 2, ""), 0);
	connected(&f, 0);
	uint32_t id = id_of(&f, 0);
	assert_int_equal(update(&f, 0, 0, "all localities are empty"), 0);
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	assert_string_equal(
		pick(&f).text, "cluster orders: no endpoints (all localities are empty)");
	assert_int_equal(f.world.n_releases[id], 1);
	assert_int_equal(update(&f, 0, 0, NULL), 0);
	assert_string_equal(pick(&f).text, "cluster orders: no endpoints");
	fini(&f);
}

// RR-04: the new list waits until one of it is READY, while the old one serves.
static void new_list_takes_over_once_ready(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	assert_int_equal(update(&f, 0, 2, ""), 0);
	connected(&f, 0);
	connected(&f, 1);
	assert_int_equal(update(&f, 10, 2, ""), 0);
	assert_true(number_of(pick(&f).endpoint) < 10);
	failed(&f, 10);
	assert_true(number_of(pick(&f).endpoint) < 10);
	uint32_t id = id_of(&f, 0);
	assert_int_equal(f.world.n_releases[id], 0);
	connected(&f, 11);
	for (int i = 0; i < 4; i++)
		assert_int_equal(number_of(pick(&f).endpoint), 11);
	assert_int_equal(f.world.n_releases[id], 1);
	fini(&f);
}

// RR-04
static void new_list_takes_over_when_the_old_has_no_ready_one(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	assert_int_equal(update(&f, 0, 1, ""), 0);
	connected(&f, 0);
	assert_int_equal(update(&f, 10, 1, ""), 0);
	assert_int_equal(f.state, LB_READY);
	uint32_t id = id_of(&f, 0);
	lost(&f, 0);
	assert_int_equal(f.state, LB_CONNECTING);
	lb_picker_put(f.picker); // no snapshot has the old picker any more
	f.picker = NULL;
	assert_int_equal(f.world.n_releases[id], 1);
	connected(&f, 10);
	assert_int_equal(number_of(pick(&f).endpoint), 10);
	fini(&f);
}

// RR-04
static void new_list_takes_over_when_all_of_it_fail(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	assert_int_equal(update(&f, 0, 1, ""), 0);
	connected(&f, 0);
	assert_int_equal(update(&f, 10, 2, ""), 0);
	failed(&f, 10);
	assert_int_equal(f.state, LB_READY);
	failed(&f, 11);
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	assert_non_null(strstr(pick(&f).text, "10.82.0.11:50051: refused"));
	fini(&f);
}

// UPD-02
static void update_keeps_connections_of_endpoints_that_stay(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	assert_int_equal(update(&f, 0, 3, ""), 0);
	for (uint32_t i = 0; i < 3; i++)
		connected(&f, i);
	assert_int_equal(update(&f, 1, 3, ""), 0);
	bool seen[4] = {0};
	for (int i = 0; i < 6; i++)
		seen[number_of(pick(&f).endpoint)] = true;
	assert_true(!seen[0] && seen[1] && seen[2] && !seen[3]);
	assert_int_equal(f.world.n_connects[id_of(&f, 1)], 1);
	assert_int_equal(f.world.n_releases[id_of(&f, 1)], 0);
	fini(&f);
}

static void later_update_replaces_a_list_that_still_waits(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	assert_int_equal(update(&f, 0, 1, ""), 0);
	connected(&f, 0);
	assert_int_equal(update(&f, 10, 1, ""), 0);
	uint32_t id = id_of(&f, 10);
	assert_int_equal(update(&f, 20, 1, ""), 0);
	assert_int_equal(f.world.n_releases[id], 1);
	assert_int_equal(number_of(pick(&f).endpoint), 0);
	connected(&f, 20);
	assert_int_equal(number_of(pick(&f).endpoint), 20);
	fini(&f);
}

// MC-09
static void any_window_gives_each_endpoint_its_share(void **state)
{
	(void)state;
	struct fixture f;
	for (uint32_t n = 1; n <= 7; n++) {
		init(&f, n);
		f.position = (uint32_t)rand_u64(&f.world.rand);
		assert_int_equal(update(&f, 0, n, ""), 0);
		for (uint32_t i = 0; i < n; i++)
			connected(&f, i);
		static uint32_t history[1000];
		for (int i = 0; i < 1000; i++)
			history[i] = number_of(pick(&f).endpoint);
		for (int window = 0; window < 200; window++) {
			uint32_t k = 1 + (uint32_t)rand_below(&f.world.rand, 100);
			uint32_t from = (uint32_t)rand_below(&f.world.rand, 1000 - k * n);
			uint32_t count[7] = {0};
			for (uint32_t i = 0; i < k * n; i++)
				count[history[from + i]]++;
			for (uint32_t i = 0; i < n; i++)
				assert_in_range(count[i], k - 1, k + 1);
		}
		fini(&f);
	}
}

// MC-09, RR-02: the place in the cycle outlives a new picker, so that windows over a swap hold too.
static void window_over_many_swaps_gives_each_its_share(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 4);
	uint32_t count[5] = {0};
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(update(&f, 0, 5, ""), 0);
		for (uint32_t k = 0; k < 5 && i == 0; k++)
			connected(&f, k);
		count[number_of(pick(&f).endpoint)]++;
	}
	for (int i = 0; i < 5; i++)
		assert_in_range(count[i], 199, 201); // MC-10: no bias to index 0
	fini(&f);
}

// MC-10: 1000 workers (each starts anywhere) with one pick: chi squared, 4 degrees of freedom,
// 18.47 is exceeded once in a thousand seeds.
static void workers_start_anywhere(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 4);
	assert_int_equal(update(&f, 0, 5, ""), 0);
	for (uint32_t k = 0; k < 5; k++)
		connected(&f, k);
	double chi2 = 0;
	int count[5] = {0};
	for (int i = 0; i < 1000; i++) {
		f.position = (uint32_t)rand_u64(&f.world.rand);
		count[number_of(pick(&f).endpoint)]++;
	}
	for (int i = 0; i < 5; i++)
		chi2 += (count[i] - 200.0) * (count[i] - 200.0) / 200.0;
	assert_true(chi2 < 18.47);
	fini(&f);
}

// MC-04
static void endpoint_without_a_local_connection_is_skipped_and_wanted(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	assert_int_equal(update(&f, 0, 4, ""), 0);
	for (uint32_t i = 0; i < 4; i++)
		connected(&f, i);
	memset(f.ready, 0, sizeof(f.ready));
	uint32_t id = id_of(&f, 2);
	f.ready[id / 64] |= 1ull << id % 64;
	uint32_t n_wanted = 0;
	for (int i = 0; i < 400; i++) {
		struct lb_pick p = pick(&f);
		assert_int_equal(p.kind, LB_PICK_ENDPOINT);
		assert_int_equal(number_of(p.endpoint), 2);
		assert_true(!p.want || number_of(p.want) != 2);
		n_wanted += p.want != NULL;
	}
	assert_int_equal(n_wanted, 300);
	fini(&f);
}

// MC-04: the turns of the unconnected are spread, not given to the neighbour.
static void turns_of_unconnected_endpoints_are_spread(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	assert_int_equal(update(&f, 0, 8, ""), 0);
	for (uint32_t i = 0; i < 8; i++)
		connected(&f, i);
	memset(f.ready, 0, sizeof(f.ready));
	for (uint32_t i = 4; i < 8; i++)
		f.ready[0] |= 1ull << id_of(&f, i);
	uint32_t count[8] = {0};
	for (int i = 0; i < 8000; i++)
		count[number_of(pick(&f).endpoint)]++;
	for (int i = 4; i < 8; i++)
		assert_in_range(count[i], 1800, 2200);
	fini(&f);
}

// MC-04: never a failure because this worker is not connected yet.
static void pick_without_any_local_connection_waits_for_one(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	assert_int_equal(update(&f, 0, 3, ""), 0);
	for (uint32_t i = 0; i < 3; i++)
		connected(&f, i);
	memset(f.ready, 0, sizeof(f.ready));
	uint32_t seen = 0;
	for (int i = 0; i < 3; i++) {
		struct lb_pick p = pick(&f);
		assert_int_equal(p.kind, LB_PICK_QUEUE);
		assert_non_null(p.endpoint);
		seen |= 1u << number_of(p.endpoint);
	}
	assert_int_equal(seen, 7);
	fini(&f);
}

static void nothing_is_published_that_changes_nothing(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	assert_int_equal(update(&f, 0, 3, ""), 0);
	connected(&f, 0);
	uint32_t n = f.n_published;
	failed(&f, 1); // READY stays READY with the same endpoints
	failed(&f, 2);
	world_pass(&f.world, 1300 * WORLD_MS);
	assert_int_equal(f.n_published, n);
	connected(&f, 1);
	assert_int_equal(f.n_published, n + 1);
	fini(&f);
}

static void publishing_is_tried_again_after_running_out_of_memory(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	assert_int_equal(update(&f, 0, 2, ""), 0);
	f.out_of_memory = true;
	connected(&f, 0);
	assert_int_equal(f.state, LB_CONNECTING);
	f.out_of_memory = false;
	failed(&f, 1);
	assert_int_equal(f.state, LB_READY);
	assert_int_equal(number_of(pick(&f).endpoint), 0);
	fini(&f);
}

// No event may ever come: the backend stays connected.
static void publishing_is_tried_again_without_an_event(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	assert_int_equal(update(&f, 0, 1, ""), 0);
	f.out_of_memory = true;
	connected(&f, 0);
	world_pass(&f.world, 5 * WORLD_S);
	assert_int_equal(f.state, LB_CONNECTING);
	f.out_of_memory = false;
	world_pass(&f.world, 2 * WORLD_S);
	assert_int_equal(f.state, LB_READY);
	assert_int_equal(number_of(pick(&f).endpoint), 0);
	uint32_t n = f.n_published;
	world_pass(&f.world, 5 * WORLD_S);
	assert_int_equal(f.n_published, n);
	fini(&f);
}

// Two policies (clusters) share the subchannel of an address.
static void shared_endpoint_is_connected_once(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	const struct lb_policy_endpoint endpoint = {world_addr(0), 1};
	struct fixture other = {0};
	other.world.connectivity = f.world.connectivity;
	const struct lb_policy_helper helper = {
		"other", subchannel_get, subchannel_put, on_publish, &other, f.world.wheel};
	struct lb_policy *second = lb_policy_round_robin.new(&helper);
	assert_int_equal(update(&f, 0, 1, ""), 0);
	assert_int_equal(
		lb_policy_round_robin.update(second, &(struct lb_policy_config){&endpoint, 1, ""}),
		0);
	uint32_t id = id_of(&f, 0);
	assert_int_equal(f.world.n_connects[id], 1);
	connected(&f, 0);
	assert_int_equal(f.state, LB_READY);
	assert_int_equal(other.state, LB_READY);
	world_pass(&f.world, 2 * WORLD_S);
	lost(&f, 0);
	assert_int_equal(f.world.n_connects[id], 2);
	assert_int_equal(f.state, LB_CONNECTING);
	assert_int_equal(other.state, LB_CONNECTING);
	lb_policy_round_robin.free(second);
	lb_picker_put(other.picker);
	assert_int_equal(f.world.n_releases[id], 0);
	fini(&f);
}

// Of an address that the policy uses.
static enum lb_state state_of(struct fixture *f, const struct ip_port *addr)
{
	struct lb_subchannel *s = lb_connectivity_get(f->world.connectivity, addr);
	enum lb_state state = lb_subchannel_state(s);
	lb_connectivity_put(f->world.connectivity, s);
	return state;
}

// Random events and updates: the published state and the picked set equal what the states of the
// subchannels say.
static void random_life_agrees_with_the_rules(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct fixture f;
		init(&f, seed);
		struct rand r;
		rand_init(&r, seed + 1000);
		uint32_t first = 0, n = 4;
		assert_int_equal(update(&f, first, n, ""), 0);
		for (int step = 0; step < 400; step++) {
			uint32_t id = (uint32_t)rand_below(&r, 16);
			switch (rand_below(&r, 8)) {
			case 0:
				world_pass(&f.world, rand_below(&r, 3 * WORLD_S));
				break;
			case 1:
				if (rand_below(&r, 6))
					break;
				first = (uint32_t)rand_below(&r, 8);
				n = (uint32_t)rand_below(&r, 6);
				assert_int_equal(update(&f, first, n, ""), 0);
				break;
			case 2:
				for (uint32_t k = 0; k < 16; k++)
					if (f.world.n_releases[k] && rand_below(&r, 2))
						world_answer_release(&f.world, k);
				break;
			case 3:
			case 4:
				world_event(&f.world, 0, LB_EVENT_CONNECTED, id, "");
				break;
			case 5:
				world_event(&f.world, 0, LB_EVENT_LOST, id, "closed");
				break;
			default:
				world_event(&f.world, 0, LB_EVENT_FAILED, id, "refused");
			}
			struct lb_pick p = pick(&f);
			switch (f.state) {
			case LB_READY:
				assert_int_equal(p.kind, LB_PICK_ENDPOINT);
				assert_int_equal(state_of(&f, &p.endpoint->addr), LB_READY);
				break;
			case LB_CONNECTING:
				assert_int_equal(p.kind, LB_PICK_QUEUE);
				break;
			default:
				assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
				assert_int_equal(p.kind, LB_PICK_FAIL);
				assert_non_null(strstr(p.text, "cluster orders: "));
			}
			// Whatever is in the newest list and READY must be used.
			bool newest_is_ready = false;
			for (uint32_t k = first; k < first + n; k++) {
				struct ip_port addr = world_addr(k);
				newest_is_ready |= state_of(&f, &addr) == LB_READY;
			}
			if (newest_is_ready) {
				assert_int_equal(f.state, LB_READY);
				assert_in_range(number_of(p.endpoint), first, first + n - 1);
			}
		}
		fini(&f);
	}
}

static void each_failed_allocation_is_survived(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	assert_int_equal(update(&f, 0, 2, "note"), 0);
	connected(&f, 0);
	int err = 0;
	for (size_t nth = 0;; nth++) {
		alloc_fail_arm(nth);
		err = update(&f, 0, 4, "other note");
		if (!alloc_fail_disarm())
			break;
		// Either nothing happened, or only the picker is left for later.
		assert_true(err == 0 || err == -ENOMEM);
		assert_int_equal(pick(&f).kind, LB_PICK_ENDPOINT);
	}
	assert_int_equal(err, 0);
	connected(&f, 3);
	bool seen[4] = {0};
	for (int i = 0; i < 4; i++)
		seen[number_of(pick(&f).endpoint)] = true;
	assert_true(seen[0] && seen[3] && !seen[1]);
	fini(&f);
}

RUN_SUITE("lb/policy_round_robin", cmocka_unit_test(every_endpoint_is_connected_at_once),
	cmocka_unit_test(lost_endpoint_leaves_and_reconnects_unasked),
	cmocka_unit_test(state_is_ready_then_connecting_then_failing),
	cmocka_unit_test(failing_endpoint_counts_as_failing_until_ready),
	cmocka_unit_test(dead_endpoint_is_tried_as_backoff_allows),
	cmocka_unit_test(failure_names_cluster_address_and_note),
	cmocka_unit_test(empty_list_fails_with_the_note),
	cmocka_unit_test(new_list_takes_over_once_ready),
	cmocka_unit_test(new_list_takes_over_when_the_old_has_no_ready_one),
	cmocka_unit_test(new_list_takes_over_when_all_of_it_fail),
	cmocka_unit_test(update_keeps_connections_of_endpoints_that_stay),
	cmocka_unit_test(later_update_replaces_a_list_that_still_waits),
	cmocka_unit_test(any_window_gives_each_endpoint_its_share),
	cmocka_unit_test(window_over_many_swaps_gives_each_its_share),
	cmocka_unit_test(workers_start_anywhere),
	cmocka_unit_test(endpoint_without_a_local_connection_is_skipped_and_wanted),
	cmocka_unit_test(turns_of_unconnected_endpoints_are_spread),
	cmocka_unit_test(pick_without_any_local_connection_waits_for_one),
	cmocka_unit_test(nothing_is_published_that_changes_nothing),
	cmocka_unit_test(publishing_is_tried_again_after_running_out_of_memory),
	cmocka_unit_test(publishing_is_tried_again_without_an_event),
	cmocka_unit_test(shared_endpoint_is_connected_once),
	cmocka_unit_test(random_life_agrees_with_the_rules),
	cmocka_unit_test(each_failed_allocation_is_survived))
