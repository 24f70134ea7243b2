// SPDX-License-Identifier: Apache-2.0
// round_robin (RR-01..RR-04): picks walk the READY ones in a cycle. The place in the
// cycle belongs to the picking worker (MC-09): a 2^32nd of a turn is its unit, so that it is a
// place among however many there are, and going round needs no test. A step is rounded up: nobody
// has two turns in a row, and of n endpoints n^2 / 2^32 are passed over in a cycle (two of
// 100,000), each time others. With the next picker the cycle is turned by a random part (RR-02), so
// that swaps in step with picks favour nobody (MC-10).
#include "lb/base/container_of.h"
#include "lb/policy/node_ops.h"
#include "lb/policy/node_spread.h"

#define N_AHEAD 8 // cells: two cache lines, so that one comes while the other is picked from

// Of a list with more than a page. Apart, or each pick of a shorter one would save its registers.
static __attribute__((noinline)) const struct lb_cell *pick_of_many(
	const struct lb_spread_picker *p, struct lb_pick_ctx *ctx, uint32_t at)
{
	const struct lb_cell *turn = lb_cells_at(&p->cells, at);
	__builtin_prefetch(turn + N_AHEAD);
	return lb_spread_serve(p, ctx, turn);
}

static const struct lb_cell *pick(const struct lb_picker *base, struct lb_pick_ctx *ctx)
{
	const struct lb_spread_picker *p = CONTAINER_OF(base, struct lb_spread_picker, base);
	uint32_t *position = &ctx->positions[p->slot];
	uint32_t part = *position + p->start;
	*position += p->step;
	uint32_t at = (uint32_t)((uint64_t)part * p->cells.n >> 32);
	if (p->cells.height)
		return pick_of_many(p, ctx, at);
	return lb_spread_serve(p, ctx, &p->cells.root->entries[at].cell);
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
