// SPDX-License-Identifier: Apache-2.0
// round_robin (lb-tree.md RR-01..RR-04): picks walk the READY ones in a cycle. The place in the
// cycle belongs to the picking worker (MC-09); where the cycle starts to the picker, so that swaps
// of pickers in step with a worker's picks favour nobody (RR-02, MC-10).
#include "lb/node_spread.h"

static const struct lb_cell *pick(const struct lb_picker *, struct lb_pick_ctx *);

// It never was in this list, or that has become shorter. Apart, so that other picks need not save
// what this overwrites.
static __attribute__((noinline, cold)) const struct lb_cell *begin_anywhere(
	const struct lb_spread_picker *p, struct lb_pick_ctx *ctx)
{
	ctx->positions[p->slot] = (uint32_t)rand_below(ctx->rand, p->cells.n);
	return pick(&p->base, ctx);
}

static const struct lb_cell *pick(const struct lb_picker *base, struct lb_pick_ctx *ctx)
{
	const struct lb_spread_picker *p = (const struct lb_spread_picker *)base;
	uint32_t n = p->cells.n, position = ctx->positions[p->slot];
	if (__builtin_expect(position > n, 0))
		return begin_anywhere(p, ctx);
	position = position == n ? 0 : position;
	ctx->positions[p->slot] = position + 1;
	uint32_t at = position < n - p->start ? position + p->start : position + p->start - n;
	const struct lb_cell *turn = lb_cells_at(&p->cells, at);
	lb_cells_prefetch(&p->cells, turn, at);
	return lb_spread_serve(&p->cells, turn, ctx);
}

static const struct lb_spread_kind kind = {
	.ops = &lb_node_round_robin, .pick = pick, .has_slot = true};

static struct lb_node *node_new(struct lb_node_env *env, struct lb_node_parent parent)
{
	return lb_spread_new(&kind, env, parent);
}

const struct lb_node_ops lb_node_round_robin = {
	.name = "round_robin",
	.new = node_new,
	.update = lb_spread_update,
	.exit_idle = lb_spread_exit_idle,
	.again = lb_spread_again,
	.free = lb_spread_free,
};
