// SPDX-License-Identifier: Apache-2.0
// show load: what workers, frontends and clusters have had to do, a row each; what `shuntctl top`
// draws, by the difference of two of them.
#include "ctrl/stats/listing.h"
#include "ctrl/stats/load_walk.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "lb/base/container_of.h"
#include "lb/base/histogram.h"
#include "lb/base/time.h"

#include <stdlib.h>

struct walk {
	struct listing_source source;
	const struct show *show;
	struct load_walk *loads; // owned
	struct listing *to; // of this step
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

// What not every kind has: null where it is not.
static void set(json_t *row, const char *key, bool has, uint64_t value)
{
	json_object_set_new(row, key, has ? json_integer((json_int_t)value) : json_null());
}

static const char *const kinds[] = {
	[LOAD_WORKER] = "worker", [LOAD_FRONTEND] = "frontend", [LOAD_CLUSTER] = "cluster"};

// All rows have all columns, so that each is there whichever row comes first.
static json_t *row_of(const struct load *l, const struct histogram *times)
{
	bool is_cluster = l->kind == LOAD_CLUSTER;
	json_t *row = json_object();
	show_set_text(row, "kind", kinds[l->kind]);
	show_set_text(row, "name", l->name);
	show_set_text(row, "state", l->state);
	set(row, "endpoints", is_cluster, l->n_endpoints);
	set(row, "ready", is_cluster, l->n_ready);
	set(row, "connections", l->kind != LOAD_FRONTEND, l->connections);
	show_set_u64(row, "requests", l->requests);
	show_set_u64(row, "active", l->active);
	set(row, "queued", is_cluster, l->queued);
	show_set_u64(row, "ok", l->ended[LB_CAUSE_OK]);
	show_set_u64(row, "failed", l->failed);
	show_set_u64(row, "bad", l->bad);
	json_object_set_new(row, "busy_percent",
		l->kind == LOAD_WORKER ? json_real(100 * l->busy_share) : json_null());
	json_object_set_new(row, "ended", show_causes(l->ended));
	json_object_set_new(row, "times", times_json(times));
	return row;
}

static void on_load(void *ctx, const struct load *l)
{
	struct walk *w = ctx;
	struct lb_cluster_times times = {0};
	if (l->kind != LOAD_CLUSTER) {
		listing_add(w->to, row_of(l, l->times));
		return;
	}
	if (l->requests) // else they are not resident
		assembler_cluster_times(w->show->conf.assembler, l->name, &times);
	listing_add(w->to, row_of(l, &times.request));
}

static bool step(struct listing_source *source, struct listing *to)
{
	struct walk *w = CONTAINER_OF(source, struct walk, source);
	w->to = to;
	int more = load_walk_step(w->loads);
	if (more < 0)
		listing_add(to, NULL);
	return more > 0;
}

static void walk_free(struct listing_source *source)
{
	struct walk *w = CONTAINER_OF(source, struct walk, source);
	load_walk_free(w->loads);
	free(w);
}

struct listing_source *show_load(const struct show *s, struct show_args *args)
{
	struct walk *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	const struct load_reader reader = {.load = on_load, .ctx = w};
	*w = (struct walk){
		.source = {step, walk_free}, .show = s, .loads = load_walk_new(s, &reader, NULL)};
	if (w->loads)
		return &w->source;
	free(w);
	return NULL;
}
