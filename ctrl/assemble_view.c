// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble_state.h"
#include "ctrl/cluster_set.h"
#include "ctrl/route_compile.h"
#include "lb/balancer.h"
#include "lb/base/twheel.h"
#include "lb/cluster.h"
#include "lb/connectivity.h"
#include "lb/hosts.h"
#include "lb/limits.h"
#include "lb/picker.h"
#include "lb/req.h"
#include "lb/session.h"
#include "lb/subchannel.h"

static uint32_t count_ready(const struct cluster *c)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < c->n_subchannels; i++)
		n += lb_subchannel_state(c->subchannels[i]) == LB_READY;
	return n;
}

// What the picker says to a worker that is connected to every endpoint.
static struct lb_pick ask(const struct assembler *a, const struct lb_picker *picker,
	const struct lb_req *req, struct lb_pick_hash hash)
{
	static const uint64_t all[LB_MAX_ENDPOINTS / 64] = {
		[0 ... LB_MAX_ENDPOINTS / 64 - 1] = UINT64_MAX};
	struct rand rand;
	rand_init(&rand, twheel_now(a->conf.wheel));
	uint32_t position = (uint32_t)rand_u64(&rand);
	struct lb_pick_ctx ctx = {
		.req = req, .rand = &rand, .position = &position, .ready = all, .hash = &hash};
	return picker->pick(picker, &ctx);
}

// What a request would hear.
static const char *why_failing(const struct assembler *a, const struct lb_cluster *c)
{
	const struct lb_req any = {0};
	if (c->state != LB_TRANSIENT_FAILURE)
		return "";
	struct lb_pick pick = ask(a, c->picker, &any, (struct lb_pick_hash){0});
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
		.detail = why_failing(a, now),
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

struct lb_pick assembler_pick(const struct assembler *a, const char *name, const struct lb_req *req,
	const struct lb_pick_hash *hash)
{
	const struct cluster *c = cluster_set_find(a->clusters, name);
	if (!c)
		return (struct lb_pick){.kind = LB_PICK_FAIL, .text = "no such cluster"};
	return ask(a, lb_balancer_cluster(c->balancer)->picker, req, *hash);
}

const struct lb_endpoint *assembler_session_endpoint(
	const struct assembler *a, const char *name, struct str addresses)
{
	struct ip_port list[LB_SESSION_MAX_ADDRESSES];
	const struct cluster *c = cluster_set_find(a->clusters, name);
	size_t n = c ? lb_session_addresses(addresses, list) : 0;
	for (size_t i = 0; i < n; i++) {
		const struct lb_host *host =
			lb_hosts_find(lb_balancer_cluster(c->balancer)->hosts, &list[i]);
		if (host && host->endpoint && host->is_session_target)
			return host->endpoint;
	}
	return NULL;
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
