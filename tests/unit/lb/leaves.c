// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/lb/leaves.h"

#include "lb/member/connectivity.h"
#include "lb/pick/breaker.h"
#include "tests/support/check.h"
#include "tests/unit/lb/fake_node.h"

#include <errno.h>

const struct lb_policy_spec leaves_child = {.kind = LB_POLICY_ROUND_ROBIN};
const struct lb_policy_spec leaves_split = {.kind = LB_POLICY_WRR_LOCALITY, .child = &leaves_child};
const struct lb_policy_spec leaves_whole = {.kind = LB_POLICY_RING_HASH};

static uint32_t member_take(void *ctx, void *owner)
{
	struct leaves *f = ctx;
	assert_ptr_equal(owner, f);
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
	struct leaves *f = ctx;
	assert_true(f->taken[id]);
	f->taken[id] = false;
	f->n_taken--;
}

static uint32_t slot_take(void *ctx)
{
	struct leaves *f = ctx;
	f->n_slots++;
	return f->next_slot++ % 65536;
}

static void slot_give(void *ctx, uint32_t slot)
{
	((struct leaves *)ctx)->n_slots--;
}

static void harvest(void *ctx, uint32_t member, uint64_t *ret_ok, uint64_t *ret_failed)
{
	struct leaves *f = ctx;
	*ret_ok = f->n_ok[member];
	*ret_failed = f->n_failed[member];
	f->n_ok[member] = f->n_failed[member] = 0;
}

static uint64_t last_used(void *ctx, uint32_t member)
{
	return ((struct leaves *)ctx)->used_ns[member];
}

static int on_publish(void *ctx, enum lb_state state, struct lb_picker *picker)
{
	struct leaves *f = ctx;
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

static void reresolve(void *ctx)
{
	((struct leaves *)ctx)->n_resolutions++;
}

const struct lb_leaf_env *leaves_env(struct leaves *f, lb_node_ops_find *ops_of)
{
	f->env = (struct lb_leaf_env){.wheel = f->world.wheel,
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
		.has_sessions = true,
		.reresolve = reresolve,
		.ctx = f};
	return &f->env;
}

struct lb_leaf_parent leaves_parent(struct leaves *f)
{
	return (struct lb_leaf_parent){on_publish, f, f};
}

void leaves_init_world(struct leaves *f, uint64_t seed)
{
	*f = (struct leaves){0};
	world_init(&f->world, 1, seed);
	f->member_env = (struct lb_member_env){f->world.connectivity, 250 * WORLD_MS};
	f->breakers = lb_breakers_new();
	f->config = (struct lb_leaf_config){.spec = &leaves_split,
		.max_requests = 1024,
		.eds_service_name = "",
		.session_health = 1 << LB_LEAF_UNKNOWN | 1 << LB_LEAF_HEALTHY,
		.idle_timeout_ns = 3600 * WORLD_S,
		.note = ""};
	fake_first_state = -1;
	fake_update_error = 0;
}

void leaves_init(struct leaves *f, lb_node_ops_find *ops_of)
{
	leaves_init_world(f, 1);
	f->leaf = lb_leaf_new(leaves_env(f, ops_of), leaves_parent(f), "orders", 1);
	assert_non_null(f->leaf);
}

void leaves_fini(struct leaves *f)
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

void leaves_plan_init(struct leaves_plan *p, uint32_t first)
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

void leaves_update(struct leaves *f, const struct leaves_plan *p, uint32_t n)
{
	assert_int_equal(leaf_update(f->leaf, &f->config, p->priorities, n), 0);
}

struct lb_pick leaves_pick(struct leaves *f)
{
	uint64_t ready[WORLD_MAX_ENDPOINTS / 64];
	struct lb_pick_hash hash = {0};
	memset(ready, 0xff, sizeof(ready));
	struct lb_pick_ctx ctx = {
		.rand = &f->world.rand, .positions = f->positions, .ready = ready, .hash = &hash};
	struct lb_pick p = lb_pick(f->picker, &ctx);
	if (p.kind == LB_PICK_QUEUE && p.connect_request && f->leaf)
		lb_leaf_want(f->leaf, p.connect_request - 1);
	return p;
}

uint32_t leaves_picked(struct leaves *f)
{
	struct lb_pick p = leaves_pick(f);
	return p.kind == LB_PICK_ENDPOINT && p.cell
	               ? ip_to_v4(&p.cell->endpoint->addr.ip) - 0x0a520000
	               : NOTHING;
}

// Answers what has been asked of the anchor, each attempt after a moment.
static void answer(struct leaves *f)
{
	struct lb_endpoint_table *t = lb_connectivity_endpoints(f->world.connectivity);
	for (uint32_t id = 0; id < 200; id++) {
		while (f->world.n_releases[id])
			world_answer_release(&f->world, id);
		struct lb_endpoint *e = lb_endpoint_find(t, id);
		if (!e)
			f->world.n_connects[id] = 0;
		if (!f->world.n_connects[id])
			continue;
		uint32_t address = ip_to_v4(&e->addr.ip) - 0x0a520000;
		if (f->is_hung[address])
			continue;
		f->world.n_connects[id] = 0;
		bool is_down = f->is_down[address];
		world_event(&f->world, 0, is_down ? LB_EVENT_FAILED : LB_EVENT_CONNECTED, id,
			"refused");
	}
}

void leaves_pass(struct leaves *f, uint64_t ns)
{
	uint64_t end = world_now(&f->world) + ns;
	while (world_now(&f->world) < end) {
		uint64_t step = world_now(&f->world) + 50 * WORLD_MS;
		twheel_advance(f->world.wheel, step < end ? step : end);
		answer(f);
	}
}

void leaves_set_down(struct leaves *f, uint32_t address, bool is_down)
{
	struct ip_port a = world_addr(address);
	uint32_t id = world_id(&f->world, &a);
	f->is_down[address] = is_down;
	if (is_down && id != UINT32_MAX)
		world_event(&f->world, 0, LB_EVENT_LOST, id, "reset by peer");
}
