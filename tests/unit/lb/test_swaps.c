// SPDX-License-Identifier: Apache-2.0
// Picks while the control thread swaps snapshots (MC-01, MC-14, MC-18, UPD-01): real
// threads, the real slot, the real tree of a cluster. The long form: test_lb_swaps 10000.
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/cluster.h"
#include "lb/leaf/leaf.h"
#include "lb/member/connectivity.h"
#include "lb/member/member.h"
#include "lb/pick/affinity_map.h"
#include "lb/pick/breaker.h"
#include "lb/pick/leaf_picker.h"
#include "lb/pick/limits.h"
#include "lb/pick/link.h"
#include "lb/pick/picker.h"
#include "lb/policy/node_ops.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/support/confined.h"
#include "tests/support/leaf_update.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define N_ENDPOINTS 10000
#define N_LOCALITIES 10 // the last two in the second priority
#define PER_LOCALITY (N_ENDPOINTS / N_LOCALITIES)
#define LIMIT 1000
#define MS NS_PER_MS

static uint32_t n_swaps; // argv[1]

// The control thread's side of one cluster.
struct ctrl {
	struct twheel *wheel;
	struct rand rand;
	struct lb_connectivity *connectivity;
	struct lb_member_env member_env;
	struct lb_leaf_env env;
	struct lb_breakers *breakers;
	struct lb_leaf *leaf;
	struct lb_leaf_config config;
	uint32_t n_endpoints;
	struct ip_port addresses[N_ENDPOINTS];
	struct lb_leaf_endpoint endpoints[N_ENDPOINTS];
	struct lb_leaf_locality localities[N_LOCALITIES];
	struct lb_leaf_priority priorities[2];
	char names[N_LOCALITIES][8];
	uint32_t next_member, next_slot;
	struct lb_picker *picker; // newest; counted
	uint32_t *connects, n_connects; // asked for, by endpoint id
	uint32_t *releases, n_releases;
	struct lb_slot *slot;
};

static uint32_t member_take(void *ctx, void *owner)
{
	return ((struct ctrl *)ctx)->next_member++;
}

static uint32_t slot_take(void *ctx)
{
	return ((struct ctrl *)ctx)->next_slot++;
}

static void give(void *ctx, uint32_t id)
{
}

static void harvest(void *ctx, uint32_t member, uint64_t *ret_ok, uint64_t *ret_failed)
{
	*ret_ok = *ret_failed = 0;
}

static uint64_t last_used(void *ctx, uint32_t member)
{
	return 0;
}

static int on_publish(void *ctx, enum lb_state state, struct lb_picker *picker)
{
	struct ctrl *c = ctx;
	lb_picker_put(c->picker);
	c->picker = picker;
	return 0;
}

static void on_connect(void *ctx, struct lb_endpoint *e)
{
	struct ctrl *c = ctx;
	c->connects[c->n_connects++] = e->id;
}

static void on_release(void *ctx, struct lb_endpoint *e)
{
	struct ctrl *c = ctx;
	c->releases[c->n_releases++] = e->id;
}

static void tell(struct ctrl *c, enum lb_event_kind kind, uint32_t id)
{
	const struct lb_event e = {.kind = kind, .endpoint_id = id};
	lb_connectivity_event(c->connectivity, 0, &e);
}

// All attempts succeed.
static void answer(struct ctrl *c)
{
	while (c->n_connects)
		tell(c, LB_EVENT_CONNECTED, c->connects[--c->n_connects]);
	while (c->n_releases)
		tell(c, LB_EVENT_RELEASED, c->releases[--c->n_releases]);
	twheel_advance(c->wheel, twheel_now(c->wheel) + MS);
}

static void update(struct ctrl *c)
{
	assert_int_equal(leaf_update(c->leaf, &c->config, c->priorities, 2), 0);
	answer(c);
	twheel_advance(c->wheel, twheel_now(c->wheel) + MS);
}

static struct ctrl *ctrl_new(const struct lb_policy_spec *spec, uint32_t n_endpoints)
{
	struct ctrl *c = calloc(1, sizeof(*c));
	c->wheel = twheel_new(1000 * MS);
	rand_init(&c->rand, 1);
	c->connects = calloc(LB_MAX_ENDPOINTS, sizeof(uint32_t));
	c->releases = calloc(LB_MAX_ENDPOINTS, sizeof(uint32_t));
	c->breakers = lb_breakers_new();
	c->connectivity = lb_connectivity_new(&(struct lb_connectivity_env){
		c->wheel, &c->rand, 1, on_connect, on_release, c, .on_state = lb_member_on_state});
	c->member_env = (struct lb_member_env){c->connectivity, 250 * MS};
	c->n_endpoints = n_endpoints;
	uint32_t each = n_endpoints / N_LOCALITIES;
	for (uint32_t i = 0; i < n_endpoints; i++) {
		c->addresses[i] = (struct ip_port){ip_from_v4(0x0a000000 + i), 80};
		c->endpoints[i] = (struct lb_leaf_endpoint){
			&c->addresses[i], 1, 1, LB_LEAF_HEALTHY, STR(""), STR("")};
	}
	for (uint32_t i = 0; i < N_LOCALITIES; i++) {
		snprintf(c->names[i], sizeof(c->names[i]), "z%u", i);
		c->localities[i] = (struct lb_leaf_locality){
			str_from(c->names[i]), 1 + i, &c->endpoints[i * each], each};
	}
	c->priorities[0] = (struct lb_leaf_priority){c->localities, N_LOCALITIES - 2};
	c->priorities[1] = (struct lb_leaf_priority){&c->localities[N_LOCALITIES - 2], 2};
	c->config = (struct lb_leaf_config){.spec = spec,
		.max_requests = LIMIT,
		.eds_service_name = "",
		.session_health = 1 << LB_LEAF_HEALTHY,
		.idle_timeout_ns = 3600000 * MS,
		.note = ""};
	c->env = (struct lb_leaf_env){.wheel = c->wheel,
		.rand = &c->rand,
		.member_env = &c->member_env,
		.breakers = c->breakers,
		.ops_of = lb_node_ops_of,
		.has_sessions = true,
		.member_take = member_take,
		.member_give = give,
		.slot_take = slot_take,
		.slot_give = give,
		.harvest = harvest,
		.last_used = last_used,
		.ctx = c};
	c->leaf = lb_leaf_new(&c->env, (struct lb_leaf_parent){on_publish, c}, "orders", 0);
	update(c);
	update(c);
	return c;
}

// The snapshot of this moment.
static struct lb_snapshot *snapshot_of(struct ctrl *c)
{
	struct lb_snapshot *s =
		c->slot ? lb_snapshot_copy(lb_slot_current(c->slot)) : lb_snapshot_new(1, "");
	struct lb_cluster *cluster = lb_cluster_new(0, "orders", LB_READY, c->picker);
	assert_int_equal(lb_snapshot_set_cluster(s, 0, cluster), 0);
	lb_cluster_put(cluster);
	return s;
}

static void ctrl_free(struct ctrl *c)
{
	lb_slot_free(c->slot);
	lb_leaf_free(c->leaf);
	lb_picker_put(c->picker);
	answer(c);
	lb_connectivity_free(c->connectivity);
	lb_breakers_free(c->breakers);
	twheel_free(c->wheel);
	free(c->connects);
	free(c->releases);
	free(c);
}

// A worker that picks and does nothing else.
struct picking {
	struct lb_slot *slot;
	uint64_t ready[LB_MAX_ENDPOINTS / 64]; // all of them
	uint32_t positions[4096];
	struct rand rand;
	uint32_t n_endpoints;
	bool stop; // w: test, r: this one
	uint64_t n_picks, n_swaps_seen; // w: this one, r: test after the end
	uint64_t n_failed, n_waiting, n_torn;
};

static struct picking *picking_new(struct lb_slot *slot, uint64_t seed, uint32_t n_endpoints)
{
	struct picking *p = calloc(1, sizeof(*p));
	p->slot = slot;
	p->n_endpoints = n_endpoints;
	memset(p->ready, 0xff, sizeof(p->ready));
	rand_init(&p->rand, seed);
	for (int i = 0; i < 4096; i++)
		p->positions[i] = (uint32_t)rand_u64(&p->rand);
	return p;
}

static struct lb_pick pick_of(struct picking *p, const struct lb_picker *picker)
{
	struct lb_pick_hash hash = {rand_u64(&p->rand), true};
	struct lb_pick_ctx ctx = {
		.rand = &p->rand, .positions = p->positions, .ready = p->ready, .hash = &hash};
	return lb_pick(picker, &ctx);
}

// The session's endpoint, as it is in the same snapshot.
static void pick_bound(struct picking *p, const struct lb_leaf_layer *layer)
{
	struct ip_port a = {
		ip_from_v4(0x0a000000 + (uint32_t)rand_below(&p->rand, p->n_endpoints)), 80};
	struct lb_affinity_host host;
	if (lb_affinity_map_pick(layer->sessions, &a, 1, &host) == LB_AFFINITY_USE &&
		!ip_port_eq(&host.state->endpoint->addr, &a))
		p->n_torn++;
}

static void pick_once(struct picking *p, const struct lb_picker *picker)
{
	const struct lb_leaf_layer *layer = lb_leaf_layer(picker);
	struct lb_pick x = pick_of(p, picker);
	struct lb_affinity_host host;
	p->n_picks++;
	p->n_failed += x.kind == LB_PICK_FAIL;
	p->n_waiting += x.kind == LB_PICK_QUEUE;
	if (p->n_picks % 16 == 0)
		pick_bound(p, layer);
	if (x.kind != LB_PICK_ENDPOINT)
		return;
	// Endpoint, member and session entry are of one snapshot.
	if (!lb_affinity_map_find(layer->affinity, &x.cell->endpoint->addr, &host) ||
		host.member != x.cell->member)
		p->n_torn++;
}

static void *picking_main(void *arg)
{
	struct picking *p = arg;
	uint64_t version = 0;
	lb_slot_reader_start();
	while (!__atomic_load_n(&p->stop, __ATOMIC_ACQUIRE)) {
		const struct lb_snapshot *s = lb_slot_read(p->slot);
		p->n_swaps_seen += s->version != version;
		version = s->version;
		for (int i = 0; i < 32; i++)
			pick_once(p, lb_snapshot_cluster(s, 0)->picker);
		lb_slot_quiescent();
	}
	lb_slot_reader_stop();
	return NULL;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * NS_PER_MS}, NULL);
}

// A lost connection and its return; another weight; an endpoint to another priority and back.
static void change(struct ctrl *c, uint32_t i)
{
	struct lb_leaf_locality *l = &c->localities[rand_below(&c->rand, N_LOCALITIES - 2)];
	switch (i % 8) {
	case 3:
		l->weight = 1 + (uint32_t)rand_below(&c->rand, 100);
		update(c);
		break;
	case 5:
	case 7: // the last of one locality is the next one's first
		c->localities[2].n_endpoints += i % 8 == 5 ? -1u : 1;
		c->localities[3].endpoints -= i % 8 == 5 ? 1 : -1;
		c->localities[3].n_endpoints += i % 8 == 5 ? 1 : -1u;
		update(c);
		break;
	case 1:
		c->config.max_requests = LIMIT + i % 2;
		update(c);
		break;
	case 0:
	case 2:
	case 4:
	case 6:
		answer(c); // it is back since the last one
		tell(c, LB_EVENT_LOST, (uint32_t)rand_below(&c->rand, c->n_endpoints * 8 / 10));
		twheel_advance(c->wheel, twheel_now(c->wheel) + MS);
		break;
	}
}

static void swap_while_picking(const struct lb_policy_spec *spec)
{
	struct ctrl *c = ctrl_new(spec, N_ENDPOINTS);
	c->slot = lb_slot_new(snapshot_of(c));
	struct picking *p = picking_new(c->slot, 7, N_ENDPOINTS);
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, picking_main, p), 0);
	unsigned most = 0;
	for (uint32_t i = 0; i < n_swaps; i++) {
		change(c, i);
		for (int k = 0; k < 10000 && lb_slot_reclaim(c->slot) >= 3; k++)
			pause_ms(1); // MC-18: storms are coalesced
		lb_slot_publish(c->slot, snapshot_of(c));
		unsigned n = lb_slot_reclaim(c->slot);
		most = n > most ? n : most;
	}
	__atomic_store_n(&p->stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	assert_int_equal(p->n_failed, 0);
	assert_int_equal(p->n_waiting, 0);
	assert_int_equal(p->n_torn, 0);
	assert_in_range(most, 1, 3);
	assert_true(p->n_swaps_seen > n_swaps / 20);
	printf("%u swaps, %llu seen, %llu picks, at most %u snapshots\n", n_swaps,
		(unsigned long long)p->n_swaps_seen, (unsigned long long)p->n_picks, most);
	free(p);
	ctrl_free(c);
}

static const struct lb_policy_spec round_robin = {.kind = LB_POLICY_ROUND_ROBIN};
static const struct lb_policy_spec by_locality = {
	.kind = LB_POLICY_WRR_LOCALITY, .child = &round_robin};
static const struct lb_policy_spec least = {
	.kind = LB_POLICY_LEAST_REQUEST, .least_request = {.choice_count = 2}};
static const struct lb_policy_spec weighted = {.kind = LB_POLICY_WEIGHTED_ROUND_ROBIN,
	.wrr = {.update_ns = 1000 * MS, .expiration_ns = 180000 * MS}};
static const struct lb_policy_spec ring = {
	.kind = LB_POLICY_RING_HASH, .ring_hash = {.min_size = 1024, .max_size = 4096}};
static const struct lb_policy_spec first = {.kind = LB_POLICY_PICK_FIRST};

// MC-01, MC-18, UPD-01
static void round_robin_goes_on_while_snapshots_are_swapped(void **state)
{
	swap_while_picking(&round_robin);
}

// MC-01, MC-18, UPD-01
static void priorities_weights_and_sessions_go_on_while_snapshots_are_swapped(void **state)
{
	swap_while_picking(&by_locality);
}

struct greedy {
	struct picking *picking;
	struct lb_breaker *breaker;
	uint32_t n_in, n_refused;
};

// Takes places until it was refused often, as the dispatch of picked requests does.
static void *greedy_main(void *arg)
{
	struct greedy *g = arg;
	lb_slot_reader_start();
	while (g->n_refused < 1000) {
		const struct lb_snapshot *s = lb_slot_read(g->picking->slot);
		const struct lb_picker *picker = lb_snapshot_cluster(s, 0)->picker;
		const struct lb_leaf_layer *layer = lb_leaf_layer(picker);
		pick_once(g->picking, picker);
		if (lb_breaker_enter(layer->breaker, layer->max_requests))
			g->n_in++;
		else
			g->n_refused++;
		lb_slot_quiescent();
	}
	lb_slot_reader_stop();
	return NULL;
}

// MC-14, A32-I05: exactly as many as are allowed, over two workers that hold what they have.
static void breaker_lets_exactly_its_limit_in_over_two_picking_threads(void **state)
{
	struct ctrl *c = ctrl_new(&by_locality, 100);
	c->slot = lb_slot_new(snapshot_of(c));
	struct greedy g[2] = {0};
	pthread_t threads[2];
	for (uint64_t i = 0; i < 2; i++) {
		g[i].picking = picking_new(c->slot, i, 100);
		assert_int_equal(pthread_create(&threads[i], NULL, greedy_main, &g[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	struct lb_breaker *b = lb_leaf_layer(c->picker)->breaker;
	assert_int_equal(g[0].n_in + g[1].n_in, LIMIT);
	assert_int_equal(lb_breaker_in_flight(b), LIMIT);
	for (int i = 0; i < LIMIT; i++)
		lb_breaker_leave(b);
	for (int i = 0; i < 2; i++)
		free(g[i].picking);
	ctrl_free(c);
}

struct alone {
	struct picking *picking;
	const struct lb_picker *picker;
};

static bool pick_alone(void *user)
{
	const struct alone *a = user;
	struct picking *p = a->picking;
	for (int i = 0; i < 200000; i++)
		pick_once(p, a->picker);
	return !p->n_failed && !p->n_torn && !p->n_waiting;
}

// MC-01
static void picks_make_no_system_call_and_take_no_memory(void **state)
{
	const struct lb_policy_spec *const all[] = {
		&round_robin, &by_locality, &least, &weighted, &ring, &first};
	if (!alloc_fail_works())
		skip();
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct ctrl *c = ctrl_new(all[i], 100);
		struct picking *p = picking_new(NULL, 1, 100);
		if (all[i] == &ring) // nothing connects before a pick
			for (uint32_t k = 0; k < 100; k++)
				lb_leaf_want(c->leaf, k);
		answer(c);
		answer(c);
		struct lb_snapshot *s = snapshot_of(c);
		struct alone alone = {p, lb_snapshot_cluster(s, 0)->picker};
		assert_true(confined_run(pick_alone, &alone));
		lb_snapshot_free(s);
		free(p);
		ctrl_free(c);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1)
		n_swaps = (uint32_t)strtoul(argv[1], NULL, 10);
	else
		n_swaps = alloc_fail_works() ? 200 : 40; // sanitizers take their time
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(round_robin_goes_on_while_snapshots_are_swapped),
		cmocka_unit_test(priorities_weights_and_sessions_go_on_while_snapshots_are_swapped),
		cmocka_unit_test(breaker_lets_exactly_its_limit_in_over_two_picking_threads),
		cmocka_unit_test(picks_make_no_system_call_and_take_no_memory),
	};
	return cmocka_run_group_tests_name("lb/swaps", suite, NULL, NULL);
}
