// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/load_walk.h"

#include "ctrl/assemble/workers.h"
#include "ctrl/conf/config.h"
#include "ctrl/stats/show_inside.h"
#include "lb/pick/link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 32 // endpoints in a step

struct load_walk {
	const struct show *show;
	struct load_reader reader;
	// A step. 0 = that was the last of its kind.
	int (*step)(struct load_walk *);
	uint32_t at; // of workers, frontends, or endpoints of the cluster
	char *cluster; // owned; "" = before the first one
	bool only; // no other cluster follows
	uint32_t n_ready, n_failing; // of its endpoints that were counted
	uint64_t connections; // likewise
};

static uint64_t sum_of(const uint64_t ended[LB_N_CAUSES])
{
	uint64_t n = 0;
	for (int i = 0; i < LB_N_CAUSES; i++)
		n += ended[i];
	return n;
}

static void count_endpoint(void *ctx, const struct assembler_endpoint_info *e)
{
	struct load_walk *w = ctx;
	w->at++;
	w->n_ready += e->is_up;
	w->n_failing += e->is_failing;
	w->connections += e->connections;
	if (w->reader.endpoint)
		w->reader.endpoint(w->reader.ctx, w->cluster, e);
}

static void tell_cluster(struct load_walk *w)
{
	struct assembler_cluster_info info;
	if (!assembler_find_without_endpoints(w->show->conf.assembler, w->cluster, &info))
		return; // it has gone
	const struct load load = {.kind = LOAD_CLUSTER,
		.name = w->cluster,
		.state = lb_state_name(info.state),
		.error = info.detail,
		.n_endpoints = w->at,
		.n_ready = w->n_ready,
		.n_failing = w->n_failing,
		.connections = w->connections,
		.queued = info.totals.queued,
		.requests = info.totals.started,
		.active = info.totals.active,
		.ended = info.totals.ended,
		.failed = lb_cause_failures(info.totals.ended),
		.bad = info.totals.bad};
	w->reader.load(w->reader.ctx, &load);
}

// Some endpoints are counted, or the cluster is told and the next one begun.
static int step_cluster(struct load_walk *w)
{
	const struct assembler *a = w->show->conf.assembler;
	if (assembler_some_endpoints(a, w->cluster, w->at, AT_ONCE, count_endpoint, w) == AT_ONCE)
		return 1;
	if (w->cluster[0])
		tell_cluster(w);
	const char *next = w->only ? NULL : assembler_cluster_after(a, w->cluster);
	char *name = next ? strdup(next) : NULL;
	if (!name)
		return next ? -ENOMEM : 0;
	free(w->cluster);
	w->cluster = name;
	w->at = w->n_ready = w->n_failing = 0;
	w->connections = 0;
	return 1;
}

static int step_frontend(struct load_walk *w)
{
	const struct show *s = w->show;
	uint32_t i = w->at++;
	if (i >= s->conf.config->n_frontends)
		return 0;
	if (!config_serves(s->conf.config, i))
		return 1;
	struct lb_frontend_times times;
	struct show_frontend_state state;
	show_frontend_state(s, i, &state);
	struct load load = {.kind = LOAD_FRONTEND,
		.number = i,
		.name = s->conf.config->frontends[i].name,
		.state = state.name,
		.error = state.error,
		.n_clients = state.drain.n_clients,
		.ended = times.ended,
		.times = &times.request};
	workers_frontend_times(s->conf.workers, i, &times);
	for (uint32_t k = 0; k < workers_count(s->conf.workers); k++) {
		const struct lb_worker_counters *c = &workers_link(s->conf.workers, k)->counters;
		load.requests += counter_read(&c->frontend_requests[i]);
	}
	load.failed = lb_cause_failures(times.ended);
	load.bad = times.bad;
	// One may have begun and ended between the two readings.
	uint64_t n_ended = sum_of(times.ended);
	load.active = load.requests > n_ended ? load.requests - n_ended : 0;
	w->reader.load(w->reader.ctx, &load);
	return 1;
}

static int step_worker(struct load_walk *w)
{
	const struct workers *all = w->show->conf.workers;
	uint32_t i = w->at++;
	char name[16];
	if (i >= workers_count(all))
		return 0;
	const struct lb_worker_counters *c = &workers_link(all, i)->counters;
	uint64_t ended[LB_N_CAUSES];
	for (int k = 0; k < LB_N_CAUSES; k++)
		ended[k] = counter_read(&c->ended[k]);
	uint64_t requests = counter_read(&c->requests), n_ended = sum_of(ended);
	uint32_t n_frontends = w->show->conf.config->n_frontends;
	snprintf(name, sizeof(name), "%u", i);
	const struct load load = {.kind = LOAD_WORKER,
		.number = i,
		.name = name,
		.state = "",
		.error = "",
		.busy_share = workers_busy_share(all, i),
		.connections = counter_read(&c->client_connections),
		.requests = requests,
		.active = requests > n_ended ? requests - n_ended : 0,
		.ended = ended,
		.failed = lb_cause_failures(ended),
		.bad = workers_bad_answers(all, i, n_frontends)};
	w->reader.load(w->reader.ctx, &load);
	return 1;
}

int load_walk_step(struct load_walk *w)
{
	int more = w->step(w);
	if (more || w->step == step_cluster)
		return more;
	w->at = 0;
	w->step = w->step == step_worker ? step_frontend : step_cluster;
	return 1;
}

struct load_walk *load_walk_new(
	const struct show *s, const struct load_reader *reader, const char *only_cluster)
{
	struct load_walk *w = calloc(1, sizeof(*w));
	char *first = strdup(only_cluster ? only_cluster : "");
	if (!w || !first) {
		free(w);
		free(first);
		return NULL;
	}
	*w = (struct load_walk){.show = s,
		.reader = *reader,
		.step = step_worker,
		.cluster = first,
		.only = only_cluster};
	return w;
}

void load_walk_free(struct load_walk *w)
{
	if (!w)
		return;
	free(w->cluster);
	free(w);
}
