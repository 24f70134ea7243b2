// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble_state.h"
#include "ctrl/cluster_set.h"
#include "ctrl/route_compile.h"
#include "lb/balancer.h"
#include "lb/base/twheel.h"
#include "lb/cluster.h"
#include "lb/connectivity.h"
#include "lb/limits.h"
#include "lb/picker.h"
#include "lb/subchannel.h"

static uint32_t count_ready(const struct cluster *c)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < c->n_subchannels; i++)
		n += lb_subchannel_state(c->subchannels[i]) == LB_READY;
	return n;
}

// What a request would hear. A picker in this state looks at nothing.
static const char *why_failing(const struct lb_cluster *c)
{
	if (c->state != LB_TRANSIENT_FAILURE)
		return "";
	struct lb_pick_ctx nothing = {0};
	struct lb_pick pick = c->picker->pick(c->picker, &nothing);
	return pick.kind == LB_PICK_FAIL ? pick.text : "";
}

static void describe(
	const struct assembler *a, const struct cluster *c, struct assembler_cluster_info *ret)
{
	const struct lb_cluster *now = lb_balancer_cluster(c->balancer);
	*ret = (struct assembler_cluster_info){
		.name = c->name,
		.id = c->id,
		.state = now->state,
		.detail = why_failing(now),
		.leaving = c->n_users == 0,
		.n_endpoints = c->n_subchannels,
		.n_ready = count_ready(c),
	};
	workers_cluster_totals(a->conf.workers, c->id, &ret->totals);
	cluster_totals_since(&ret->totals, &c->before);
}

void assembler_each_cluster(const struct assembler *a,
	void (*fn)(void *ctx, const struct assembler_cluster_info *), void *ctx)
{
	for (uint32_t i = 0; i < cluster_set_count(a->clusters); i++) {
		struct assembler_cluster_info info;
		describe(a, cluster_set_at(a->clusters, i), &info);
		fn(ctx, &info);
	}
}

bool assembler_find_cluster(
	const struct assembler *a, const char *name, struct assembler_cluster_info *ret)
{
	const struct cluster *c = cluster_set_find(a->clusters, name);
	if (c)
		describe(a, c, ret);
	return c;
}

struct lb_pick assembler_pick(const struct assembler *a, const char *name, const struct lb_req *req)
{
	static const uint64_t all[LB_MAX_ENDPOINTS / 64] = {
		[0 ... LB_MAX_ENDPOINTS / 64 - 1] = UINT64_MAX};
	const struct cluster *c = cluster_set_find(a->clusters, name);
	if (!c)
		return (struct lb_pick){.kind = LB_PICK_FAIL, .text = "no such cluster"};
	struct rand rand;
	rand_init(&rand, twheel_now(a->conf.wheel));
	uint32_t position = (uint32_t)rand_u64(&rand);
	struct lb_pick_ctx ctx = {.req = req, .rand = &rand, .position = &position, .ready = all};
	const struct lb_picker *picker = lb_balancer_cluster(c->balancer)->picker;
	return picker->pick(picker, &ctx);
}

void assembler_each_endpoint(const struct assembler *a, const char *cluster,
	void (*fn)(void *ctx, const struct assembler_endpoint_info *), void *ctx)
{
	const struct cluster *c = cluster_set_find(a->clusters, cluster);
	for (uint32_t i = 0; c && i < c->n_subchannels; i++) {
		const struct lb_endpoint *e = lb_subchannel_endpoint(c->subchannels[i]);
		struct assembler_endpoint_info info = {
			.address = e->text,
			.id = e->id,
			.state = lb_subchannel_state(c->subchannels[i]),
			.last_error = lb_subchannel_last_error(c->subchannels[i]),
		};
		fn(ctx, &info);
	}
}

const char *assembler_frontend_error(const struct assembler *a, uint32_t frontend)
{
	const struct assembled_frontend *f = &a->frontends[frontend];
	return f->routes ? "" : f->error;
}

const char *assembler_frontend_refusal(const struct assembler *a, uint32_t frontend)
{
	return a->frontends[frontend].refusal;
}

const char *assembler_frontend_waiting(const struct assembler *a, uint32_t frontend)
{
	return a->frontends[frontend].waits ? "compiling regular expressions" : "";
}

bool assembler_frontend_routes(
	const struct assembler *a, uint32_t frontend, struct assembler_routes *ret)
{
	const struct assembled_frontend *f = &a->frontends[frontend];
	if (!f->applied)
		return false;
	*ret = (struct assembler_routes){f->applied, compiled_routes_table(f->routes), f->filters,
		f->actions, a->conf.trusts_server};
	return true;
}
