// SPDX-License-Identifier: Apache-2.0
// least_request (gRFC A48; A48-01..A48-03): the one of a few, drawn at random, that has
// the fewest requests in flight. The counts are all workers', so that they agree on who is busy
// (MC-12); whoever sends the request keeps them (lb_cell.counts_active).
#include "lb/base/container_of.h"
#include "lb/policy/node_ops.h"
#include "lb/policy/node_spread.h"

static uint32_t active_of(const struct lb_pick_ctx *ctx, const struct lb_cell *cell)
{
	return ctx->active ? __atomic_load_n(&ctx->active[cell->member], __ATOMIC_RELAXED) : 0;
}

static const struct lb_cell *better(
	const struct lb_pick_ctx *ctx, const struct lb_cell *a, const struct lb_cell *b)
{
	return !a || active_of(ctx, b) < active_of(ctx, a) ? b : a;
}

static const struct lb_cell *pick(const struct lb_picker *base, struct lb_pick_ctx *ctx)
{
	const struct lb_spread_picker *p = CONTAINER_OF(base, struct lb_spread_picker, base);
	const struct lb_cell *best = NULL, *connected = NULL;
	for (uint32_t i = 0; i < p->choice_count; i++) {
		uint32_t at = (uint32_t)rand_below(ctx->rand, p->cells.n);
		const struct lb_cell *cell = lb_cells_at(&p->cells, at);
		best = better(ctx, best, cell);
		if (lb_pick_is_connected(ctx, cell))
			connected = better(ctx, connected, cell);
	}
	if (connected == best)
		return best;
	if (!connected)
		return lb_spread_serve_other(p, ctx, best);
	return lb_pick_other(
		ctx, (struct lb_pick){
			     .kind = LB_PICK_ENDPOINT, .cell = connected, .want = best->endpoint});
}

static void configure(struct lb_spread *s, const struct lb_policy_spec *spec)
{
	s->choice_count = (uint8_t)spec->least_request.choice_count;
}

static const struct lb_spread_kind kind = {
	.ops = &lb_node_least_request, .pick = pick, .counts_active = true, .configure = configure};

static struct lb_node *node_new(struct lb_node_env *env, struct lb_node_parent parent)
{
	return lb_spread_new(&kind, env, parent);
}

const struct lb_node_ops lb_node_least_request = {
	.name = "least_request_experimental",
	.new = node_new,
	.update = lb_spread_update,
	.exit_idle = lb_spread_exit_idle,
	.again = lb_spread_again,
	.free = lb_spread_free,
	.spread = &kind,
};
