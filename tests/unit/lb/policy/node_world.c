// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/lb/policy/node_world.h"

#include "tests/support/check.h"

#include <errno.h>
#include <string.h>

static int on_publish(void *ctx, enum lb_state state, struct lb_picker *picker)
{
	struct node_world *w = ctx;
	assert_non_null(picker);
	if (w->out_of_memory) {
		lb_picker_put(picker);
		return -ENOMEM;
	}
	lb_picker_put(w->picker);
	w->picker = picker;
	w->state = state;
	w->n_published++;
	return 0;
}

static void reresolve(void *ctx)
{
	struct node_world *w = ctx;
	w->n_resolutions++;
}

static uint32_t slot_take(void *ctx)
{
	struct node_world *w = ctx;
	return w->n_slots < 1 ? w->n_slots++ : UINT32_MAX;
}

static void slot_give(void *ctx, uint32_t slot)
{
	struct node_world *w = ctx;
	assert_int_equal(slot, --w->n_slots);
}

static struct lb_member *member_new(void *ctx, const struct ip_port *addresses, uint32_t n)
{
	struct node_world *w = ctx;
	struct lb_member *m = lb_member_new(&w->member_env, NODE_OWN, addresses, n);
	if (m)
		w->own = m;
	return m;
}

static const struct lb_node_services services = {slot_take, slot_give, member_new, reresolve};

void node_world_init(struct node_world *w, const struct lb_node_ops *ops, uint64_t seed)
{
	*w = (struct node_world){0};
	world_init(&w->world, 1, seed);
	rand_init(&w->rand, seed + 1000);
	w->member_env = (struct lb_member_env){w->world.connectivity, 250 * WORLD_MS};
	w->env = (struct lb_node_env){
		.cluster = "orders",
		.note = "",
		.wheel = w->world.wheel,
		.rand = &w->world.rand,
		.orca = lb_orca_table_new(),
		.services = &services,
		.ctx = w,
	};
	lb_node_env_init(&w->env);
	memset(w->ready, 0xff, sizeof(w->ready));
	w->positions[0] = (uint32_t)rand_u64(&w->rand);
	w->node = ops->new (&w->env, (struct lb_node_parent){on_publish, w});
	assert_non_null(w->node);
}

void node_world_fini(struct node_world *w)
{
	lb_node_free(w->node);
	lb_node_env_fini(&w->env);
	assert_int_equal(w->n_slots, 0);
	lb_picker_put(w->picker);
	for (uint32_t i = 0; i < NODE_MEMBERS; i++)
		lb_member_put(w->members[i]);
	lb_orca_table_free(w->env.orca);
	world_fini(&w->world);
}

int node_world_update(struct node_world *w, uint32_t first, uint32_t n, const char *note)
{
	struct lb_node_member list[NODE_MEMBERS];
	for (uint32_t i = 0; i < n; i++) {
		struct ip_port address = world_addr(first + i);
		struct lb_member **m = &w->members[first + i];
		if (!*m)
			*m = lb_member_new(&w->member_env, first + i, &address, 1);
		if (!*m)
			return -ENOMEM;
		uint32_t weight = w->weights[first + i];
		list[i] = (struct lb_node_member){*m, weight ? weight : 1};
	}
	const struct lb_node_locality locality = {STR("a/b/c"), 1, list, n};
	const struct lb_node_config config = {&w->spec, &locality, 1};
	w->env.note = note;
	return w->node->ops->update(w->node, &config);
}

uint32_t node_world_id(struct node_world *w, uint32_t number)
{
	struct ip_port address = world_addr(number);
	return world_id(&w->world, &address);
}

uint32_t node_world_connects(struct node_world *w, uint32_t number)
{
	uint32_t id = node_world_id(w, number);
	return id == UINT32_MAX ? 0 : w->world.n_connects[id];
}

void node_world_event(struct node_world *w, enum lb_event_kind kind, uint32_t number)
{
	uint32_t id = node_world_id(w, number);
	if (id != UINT32_MAX)
		world_event(&w->world, 0, kind, id, kind == LB_EVENT_FAILED ? "refused" : "");
}

void node_world_connected(struct node_world *w, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		node_world_event(w, LB_EVENT_CONNECTED, first + i);
}

struct lb_pick node_world_pick(struct node_world *w)
{
	struct lb_pick_ctx ctx = {.rand = &w->rand,
		.positions = w->positions,
		.ready = w->ready,
		.active = w->active,
		.hash = &w->hash};
	return lb_pick(w->picker, &ctx);
}

uint32_t node_world_number(struct node_world *w)
{
	struct lb_pick p = node_world_pick(w);
	assert_int_equal(p.kind, LB_PICK_ENDPOINT);
	uint32_t number = ip_to_v4(&p.cell->endpoint->addr.ip) - 0x0a520000;
	assert_int_equal(p.cell->member, number);
	return number;
}

void node_world_release(struct node_world *w)
{
	for (uint32_t id = 0; id < 2 * NODE_MEMBERS; id++)
		while (w->world.n_releases[id])
			world_answer_release(&w->world, id);
}
