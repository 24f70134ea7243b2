// SPDX-License-Identifier: Apache-2.0
// weighted_round_robin (gRFC A58; A58-01..A58-07): round robin in proportion to what
// backends report. Weights lie in the cells, scaled as lb/pick/stride.h has them, so that a worker
// needs only its place in the sequence (MC-11), and one endpoint's change only its own page. All
// are weighed again once an update period.
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/member/member.h"
#include "lb/pick/orca.h"
#include "lb/pick/stride.h"
#include "lb/policy/node_ops.h"
#include "lb/policy/node_spread.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define UPDATE_MIN_NS (100 * NS_PER_MS) // A58-02

struct wrr {
	struct lb_spread spread;
	struct lb_orca_conf conf;
	uint64_t update_ns;
	struct twheel_timer timer;
	uint16_t mean; // scaled: of who has no weight of its own
	uint32_t n_top; // cells that weigh LB_STRIDE_MAX, so that picks end within one round
};

static const struct lb_cell *pick(const struct lb_picker *base, struct lb_pick_ctx *ctx)
{
	const struct lb_spread_picker *p = CONTAINER_OF(base, struct lb_spread_picker, base);
	uint32_t sequence = ctx->positions[p->slot];
	const struct lb_cell *turn;
	uint32_t at;
	do {
		at = sequence++;
		turn = lb_cells_at(&p->cells, at % p->cells.n);
	} while (!lb_stride_has_turn(at, p->cells.n, turn->weight));
	ctx->positions[p->slot] = sequence;
	return lb_spread_serve(p, ctx, turn);
}

static void became_ready(struct lb_spread *s, const struct lb_member *m)
{
	if (s->base.env->orca)
		lb_orca_restart(s->base.env->orca, lb_member_id(m)); // A58-03
}

static uint16_t weight(struct lb_spread *s)
{
	struct wrr *w = CONTAINER_OF(s, struct wrr, spread);
	w->n_top += w->mean == LB_STRIDE_MAX;
	return w->mean;
}

static bool left(struct lb_spread *s, uint16_t scaled)
{
	struct wrr *w = CONTAINER_OF(s, struct wrr, spread);
	w->n_top -= scaled == LB_STRIDE_MAX && w->n_top > 0;
	return w->n_top == 0;
}

// 0 = none now.
static double weight_of(const struct wrr *w, uint32_t member, struct lb_wrr_counts *counts)
{
	const struct lb_node_env *env = w->spread.base.env;
	uint64_t now_ns = twheel_now(env->wheel);
	double weight = env->orca ? lb_orca_weight(env->orca, member, &w->conf, now_ns) : 0;
	if (weight > 0)
		return weight;
	bool is_stale = env->orca && lb_orca_look(env->orca, member, &w->conf, now_ns, &weight) ==
	                                     LB_ORCA_EXPIRED;
	*(is_stale ? &counts->stale : &counts->not_yet_usable) += 1;
	return 0;
}

// A58-04: one more, without a weight, stands for the mean.
static void scale(struct wrr *w, const struct lb_cells *cells, double *weights, uint16_t *scaled)
{
	struct lb_wrr_counts nobodys = {0}, *wrr = w->spread.base.env->wrr;
	struct lb_wrr_counts *counts = wrr ? wrr : &nobodys;
	for (uint32_t i = 0; i < cells->n; i++)
		weights[i] = weight_of(w, lb_cells_at(cells, i)->member, counts);
	weights[cells->n] = 0;
	counts->updates++;
	if (lb_stride_scale(weights, cells->n + 1, scaled))
		return;
	counts->rr_fallback++;
	for (uint32_t i = 0; i <= cells->n; i++)
		scaled[i] = LB_STRIDE_MAX; // plain round robin
}

static int set_all(struct wrr *w, struct lb_cells *cells, const uint16_t *scaled, bool *ret_changed)
{
	w->n_top = 0;
	for (uint32_t i = 0; i < cells->n; i++) {
		struct lb_cell cell = *lb_cells_at(cells, i);
		w->n_top += scaled[i] == LB_STRIDE_MAX;
		if (cell.weight == scaled[i])
			continue;
		cell.weight = scaled[i];
		*ret_changed = true;
		if (lb_cells_set(cells, i, cell))
			return -ENOMEM;
	}
	w->mean = scaled[cells->n];
	return 0;
}

static int weigh(struct lb_spread *s, struct lb_cells *cells, bool *ret_changed)
{
	double *weights = malloc((cells->n + 1) * sizeof(weights[0]));
	uint16_t *scaled = malloc((cells->n + 1) * sizeof(scaled[0]));
	int err = -ENOMEM;
	if (weights && scaled) {
		scale(CONTAINER_OF(s, struct wrr, spread), cells, weights, scaled);
		err = set_all(CONTAINER_OF(s, struct wrr, spread), cells, scaled, ret_changed);
	}
	free(weights);
	free(scaled);
	return err;
}

static void rearm(struct wrr *w)
{
	struct twheel *wheel = w->spread.base.env->wheel;
	twheel_arm(wheel, &w->timer, twheel_now(wheel) + w->update_ns);
}

static void on_timer(struct twheel_timer *t)
{
	struct wrr *w = CONTAINER_OF(t, struct wrr, timer);
	rearm(w);
	lb_spread_weigh(&w->spread);
}

static void configure(struct lb_spread *s, const struct lb_policy_spec *spec)
{
	struct wrr *w = CONTAINER_OF(s, struct wrr, spread);
	w->conf = (struct lb_orca_conf){
		spec->wrr.error_penalty, spec->wrr.blackout_ns, spec->wrr.expiration_ns};
	w->update_ns = spec->wrr.update_ns < UPDATE_MIN_NS ? UPDATE_MIN_NS : spec->wrr.update_ns;
	s->must_weigh = true;
	s->is_published = false;
	rearm(w);
}

static const struct lb_spread_kind kind = {
	.ops = &lb_node_weighted_round_robin,
	.pick = pick,
	.has_slot = true,
	.wants_reports = true, // A58-06: also in place of streams, which nobody opens
	.configure = configure,
	.became_ready = became_ready,
	.weight = weight,
	.left = left,
	.weigh = weigh,
};

static struct lb_node *node_new(struct lb_node_env *env, struct lb_node_parent parent)
{
	struct wrr *w = calloc(1, sizeof(*w));
	if (w && !lb_spread_init(&w->spread, &kind, env, parent)) {
		free(w);
		return NULL;
	}
	if (!w)
		return NULL;
	w->timer.fire = on_timer;
	w->mean = LB_STRIDE_MAX;
	return &w->spread.base;
}

static void node_free(struct lb_node *node)
{
	struct wrr *w = CONTAINER_OF(node, struct wrr, spread.base);
	twheel_cancel(w->spread.base.env->wheel, &w->timer);
	lb_spread_fini(&w->spread);
	free(w);
}

const struct lb_node_ops lb_node_weighted_round_robin = {
	.name = "weighted_round_robin",
	.new = node_new,
	.update = lb_spread_update,
	.exit_idle = lb_spread_exit_idle,
	.again = lb_spread_again,
	.free = node_free,
	.spread = &kind,
};
