// SPDX-License-Identifier: Apache-2.0
// round_robin (lb-tree.md RR-01..RR-04): picks walk the READY ones in a cycle. The place in the
// cycle belongs to the picking worker (MC-09), and to one picker, by whose tag it is known: with
// the next picker the worker begins anywhere (RR-02), so that swaps in step with its picks favour
// nobody (MC-10). Where the tag is the same by chance, it just goes on.
#include "lb/node_spread.h"

#define N_AHEAD 8 // cells: two cache lines, so that one comes while the other is picked from

static const struct lb_cell *pick(const struct lb_picker *, struct lb_pick_ctx *);

// Apart, so that other picks need not save what this overwrites.
static __attribute__((noinline, cold)) const struct lb_cell *begin_anywhere(
	const struct lb_spread_picker *p, struct lb_pick_ctx *ctx)
{
	ctx->positions[p->slot] = p->tag + (uint32_t)rand_below(ctx->rand, p->cells.n);
	return pick(&p->base, ctx);
}

static const struct lb_cell *pick(const struct lb_picker *base, struct lb_pick_ctx *ctx)
{
	const struct lb_spread_picker *p = (const struct lb_spread_picker *)base;
	uint32_t *position = &ctx->positions[p->slot];
	uint32_t at = *position - p->tag;
	if (__builtin_expect(at >= p->cells.n, 0))
		return begin_anywhere(p, ctx);
	*position = at + 1 < p->cells.n ? *position + 1 : p->tag;
	const struct lb_cell *turn = lb_cells_at(&p->cells, at);
	__builtin_prefetch(turn + N_AHEAD);
	return lb_spread_serve(p, ctx, turn);
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
	.spread = &kind,
};
