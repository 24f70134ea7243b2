// SPDX-License-Identifier: Apache-2.0
// show load: what workers, frontends and clusters have had to do, a row each; what `shuntctl top`
// draws, by the difference of two of them.
#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/conf/config.h"
#include "ctrl/stats/listing.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "lb/base/container_of.h"
#include "lb/base/histogram.h"
#include "lb/base/time.h"
#include "lb/pick/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 32 // endpoints in a step

struct walk {
	struct listing_source source;
	const struct show *show;
	// A row. False = that was the last of its kind.
	bool (*tell)(struct walk *, struct listing *);
	uint32_t at; // of workers, frontends, or endpoints of the cluster
	char *cluster; // owned; "" = before the first one
	uint32_t n_ready; // of its endpoints that were counted
	uint64_t connections; // likewise
};

// What all rows have, so that each column is there whichever comes first; null = has none.
struct load {
	const char *kind, *name, *state;
	json_t *endpoints, *ready, *connections, *queued, *busy_percent; // NULL = null
	uint64_t requests, active;
	const uint64_t *ended; // [LB_N_CAUSES]
	const struct histogram *times; // of requests; NULL = none
};

// [[above so many us, up to so many, requests]…], without empty buckets; the last one's second is
// null.
static json_t *times_json(const struct histogram *h)
{
	json_t *list = json_array();
	for (uint32_t i = 0; h && i < HISTOGRAM_N; i++) {
		if (!h->counts[i])
			continue;
		double above = i ? (double)histogram_bound_ns(i - 1) / (double)NS_PER_US : 0;
		json_t *bound =
			i + 1 < HISTOGRAM_N
				? json_real((double)histogram_bound_ns(i) / (double)NS_PER_US)
				: json_null();
		json_array_append_new(
			list, json_pack("[f, o, I]", above, bound, (json_int_t)h->counts[i]));
	}
	return list;
}

static void set(json_t *row, const char *key, json_t *value)
{
	json_object_set_new(row, key, value ? value : json_null());
}

static uint64_t sum_of(const uint64_t ended[LB_N_CAUSES])
{
	uint64_t n = 0;
	for (int i = 0; i < LB_N_CAUSES; i++)
		n += ended[i];
	return n;
}

static json_t *row_of(const struct load *l)
{
	json_t *row = json_object();
	show_set_text(row, "kind", l->kind);
	show_set_text(row, "name", l->name);
	show_set_text(row, "state", l->state);
	set(row, "endpoints", l->endpoints);
	set(row, "ready", l->ready);
	set(row, "connections", l->connections);
	show_set_u64(row, "requests", l->requests);
	show_set_u64(row, "active", l->active);
	set(row, "queued", l->queued);
	show_set_u64(row, "ok", l->ended[LB_CAUSE_OK]);
	show_set_u64(row, "failed", sum_of(l->ended) - l->ended[LB_CAUSE_OK]);
	set(row, "busy_percent", l->busy_percent);
	set(row, "ended", show_causes(l->ended));
	set(row, "times", times_json(l->times));
	return row;
}

static void count_endpoint(void *ctx, const struct assembler_endpoint_info *e)
{
	struct walk *w = ctx;
	w->at++;
	w->n_ready += e->is_up;
	w->connections += e->connections;
}

static void add_cluster(struct walk *w, struct listing *to)
{
	const struct assembler *a = w->show->conf.assembler;
	struct assembler_cluster_info info;
	if (!assembler_find_without_endpoints(a, w->cluster, &info))
		return; // it has gone
	struct lb_cluster_times times = {0};
	if (info.totals.started) // else they are not resident
		assembler_cluster_times(a, w->cluster, &times);
	const struct load load = {.kind = "cluster",
		.name = w->cluster,
		.state = lb_state_name(info.state),
		.endpoints = json_integer(w->at),
		.ready = json_integer(w->n_ready),
		.queued = json_integer((json_int_t)info.totals.queued),
		.connections = json_integer((json_int_t)w->connections),
		.requests = info.totals.started,
		.active = info.totals.active,
		.ended = info.totals.ended,
		.times = &times.request};
	listing_add(to, row_of(&load));
}

// Some endpoints are counted, or the cluster is told and the next one begun.
static bool tell_cluster(struct walk *w, struct listing *to)
{
	const struct assembler *a = w->show->conf.assembler;
	if (assembler_some_endpoints(a, w->cluster, w->at, AT_ONCE, count_endpoint, w) == AT_ONCE)
		return true;
	if (w->cluster[0])
		add_cluster(w, to);
	const char *next = assembler_cluster_after(a, w->cluster);
	char *name = next ? strdup(next) : NULL;
	if (next && !name)
		listing_add(to, NULL);
	if (!name)
		return false;
	free(w->cluster);
	w->cluster = name;
	w->at = w->n_ready = 0;
	w->connections = 0;
	return true;
}

static bool tell_frontend(struct walk *w, struct listing *to)
{
	const struct show *s = w->show;
	uint32_t i = w->at++;
	if (i >= s->conf.config->n_frontends)
		return false;
	struct lb_frontend_times times;
	struct show_frontend_state state;
	show_frontend_state(s, i, &state);
	struct load load = {.kind = "frontend",
		.name = s->conf.config->frontends[i].name,
		.state = state.name,
		.ended = times.ended,
		.times = &times.request};
	workers_frontend_times(s->conf.workers, i, &times);
	for (uint32_t k = 0; k < workers_count(s->conf.workers); k++) {
		const struct lb_worker_counters *c = &workers_link(s->conf.workers, k)->counters;
		load.requests += counter_read(&c->frontend_requests[i]);
	}
	// One may have begun and ended between the two readings.
	uint64_t n_ended = sum_of(times.ended);
	load.active = load.requests > n_ended ? load.requests - n_ended : 0;
	listing_add(to, row_of(&load));
	return true;
}

static bool tell_worker(struct walk *w, struct listing *to)
{
	const struct workers *all = w->show->conf.workers;
	uint32_t i = w->at++;
	char name[16];
	if (i >= workers_count(all))
		return false;
	const struct lb_worker_counters *c = &workers_link(all, i)->counters;
	uint64_t ended[LB_N_CAUSES];
	for (int k = 0; k < LB_N_CAUSES; k++)
		ended[k] = counter_read(&c->ended[k]);
	uint64_t requests = counter_read(&c->requests), n_ended = sum_of(ended);
	snprintf(name, sizeof(name), "%u", i);
	const struct load load = {.kind = "worker",
		.name = name,
		.state = "",
		.busy_percent = json_real(100 * workers_busy_share(all, i)),
		.connections = json_integer((json_int_t)counter_read(&c->client_connections)),
		.requests = requests,
		.active = requests > n_ended ? requests - n_ended : 0,
		.ended = ended};
	listing_add(to, row_of(&load));
	return true;
}

static bool step(struct listing_source *source, struct listing *to)
{
	struct walk *w = CONTAINER_OF(source, struct walk, source);
	if (w->tell(w, to))
		return true;
	w->at = 0;
	if (w->tell == tell_cluster)
		return false;
	w->tell = w->tell == tell_worker ? tell_frontend : tell_cluster;
	return true;
}

static void walk_free(struct listing_source *source)
{
	struct walk *w = CONTAINER_OF(source, struct walk, source);
	free(w->cluster);
	free(w);
}

struct listing_source *show_load(const struct show *s, struct show_args *args)
{
	struct walk *w = calloc(1, sizeof(*w));
	char *before = strdup("");
	if (!w || !before) {
		free(w);
		free(before);
		return NULL;
	}
	*w = (struct walk){
		.source = {step, walk_free}, .show = s, .tell = tell_worker, .cluster = before};
	return &w->source;
}
