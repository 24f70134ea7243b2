// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet-sim/balancer.h"

#include "lb/base/check.h"
#include "lb/leaf/subset.h"
#include "lb/pick/leaf_endpoints.h"
#include "lb/pick/picker.h"
#include "lb/policy/node_ops.h"
#include "tools/fleet-sim/backends.h"
#include "tools/fleet-sim/mesh.h"

#include <stdlib.h>

#define N_SLOTS BACKENDS_LOCALITIES_MAX // one for each node that goes round
#define NONE UINT32_MAX

struct balancer {
	struct balancer_conf conf;
	struct mesh *mesh; // borrowed
	struct rand rand;
	struct lb_node_env env;
	struct lb_node *node; // owned
	struct lb_picker *picker; // counted; NULL = none yet
	struct lb_node_member *members; // [mesh->n], owned: what the node is given
	uint32_t n_slots; // taken
	uint32_t (*positions)[N_SLOTS]; // [n_workers], owned
	uint32_t *active; // [mesh->n], owned: requests under way at each backend
	uint32_t *under_way; // [n_under_way], owned: the backend of each; NONE = there is none
};

static int on_publish(void *ctx, enum lb_state state, struct lb_picker *picker)
{
	struct balancer *b = ctx;
	(void)state;
	lb_picker_put(b->picker);
	b->picker = picker;
	return 0;
}

static uint32_t slot_take(void *ctx)
{
	struct balancer *b = ctx;
	return b->n_slots < N_SLOTS ? b->n_slots++ : UINT32_MAX;
}

static void slot_give(void *ctx, uint32_t slot)
{
	// No node goes before all do.
	(void)ctx;
	(void)slot;
}

static const struct lb_node_services services = {.slot_take = slot_take, .slot_give = slot_give};

// As a leaf does it: to each locality those that are not left out of the subset.
static uint32_t list_localities(
	struct balancer *b, const uint8_t *is_out, struct lb_node_locality *ret)
{
	const struct lb_leaf_endpoints *e = b->mesh->endpoints;
	uint32_t n = 0;
	for (uint32_t i = 0; i < e->n_spans; i++) {
		const struct lb_leaf_span *span = &e->spans[i];
		uint32_t first = n;
		for (uint32_t k = span->first; k < span->first + span->n_serving; k++)
			if (!is_out || !is_out[k])
				b->members[n++] = (struct lb_node_member){
					b->mesh->members[k], lb_leaf_endpoints_weight(e, k)};
		ret[i] = (struct lb_node_locality){
			.name = span->name,
			.weight = span->weight,
			.members = &b->members[first],
			.n_members = n - first,
		};
	}
	return e->n_spans;
}

static bool update(struct balancer *b, const struct lb_policy_spec *spec)
{
	struct lb_node_locality localities[BACKENDS_LOCALITIES_MAX];
	uint8_t *is_out;
	if (lb_subset_choose(b->mesh->endpoints, spec, b->conf.seed, &is_out))
		return false;
	struct lb_node_config config = {.spec = spec, .localities = localities};
	config.n_localities = list_localities(b, is_out, localities);
	free(is_out);
	b->node = lb_node_ops_of(spec->kind)->new (&b->env, (struct lb_node_parent){on_publish, b});
	return b->node && b->node->ops->update(b->node, &config) == 0 && b->picker;
}

static bool init(struct balancer *b)
{
	uint32_t n = b->mesh->n, n_workers = b->conf.n_workers;
	b->members = malloc(n * sizeof(*b->members));
	b->positions = malloc(n_workers * sizeof(*b->positions));
	b->active = calloc(n, sizeof(*b->active));
	b->under_way = malloc(b->conf.n_under_way * sizeof(*b->under_way));
	if (!b->members || !b->positions || !b->active || !b->under_way)
		return false;
	for (uint32_t i = 0; i < n_workers; i++)
		for (uint32_t k = 0; k < N_SLOTS; k++)
			b->positions[i][k] = (uint32_t)rand_u64(&b->rand); // MC-10
	for (uint32_t i = 0; i < b->conf.n_under_way; i++)
		b->under_way[i] = NONE;
	return true;
}

struct balancer *balancer_new(
	struct mesh *m, const struct lb_policy_spec *spec, const struct balancer_conf *conf)
{
	struct balancer *b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	*b = (struct balancer){.conf = *conf, .mesh = m};
	b->env = (struct lb_node_env){.cluster = "backends",
		.note = "",
		.wheel = m->wheel,
		.rand = &b->rand,
		.orca = m->orca,
		.ops_of = lb_node_ops_of,
		.services = &services,
		.ctx = b};
	rand_init(&b->rand, conf->seed);
	lb_node_env_init(&b->env);
	if (init(b) && update(b, spec))
		return b;
	balancer_free(b);
	return NULL;
}

void balancer_free(struct balancer *b)
{
	if (!b)
		return;
	lb_node_free(b->node);
	lb_node_env_fini(&b->env);
	lb_picker_put(b->picker);
	free(b->members);
	free(b->positions);
	free(b->active);
	free(b->under_way);
	free(b);
}

// As the worker that sends it counts it, and some other one's end, whichever: how long requests
// take is by chance then (exponentially), and their number is constant.
static void count(struct balancer *b, const struct lb_cell *cell)
{
	if (!cell->counts_active)
		return;
	uint32_t *place = &b->under_way[rand_below(&b->rand, b->conf.n_under_way)];
	if (*place != NONE)
		b->active[*place]--;
	b->active[cell->member]++;
	*place = cell->member;
}

uint32_t balancer_pick(struct balancer *b)
{
	struct lb_pick_hash hash = {0}; // by chance
	struct lb_pick_ctx ctx = {.rand = &b->rand,
		.ready = b->mesh->ready,
		.hash = &hash,
		.positions = b->positions[rand_below(&b->rand, b->conf.n_workers)],
		.active = b->active};
	struct lb_pick p = lb_pick(b->picker, &ctx);
	CHECK(p.kind == LB_PICK_ENDPOINT); // each backend is connected to
	count(b, p.cell);
	return p.cell->member;
}
