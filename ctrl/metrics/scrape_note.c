// SPDX-License-Identifier: Apache-2.0
#include "ctrl/metrics/scrape_inside.h"
#include "lb/base/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Where the walk over all clusters stands: by name, as they may change meanwhile.
static const char *last_name(const struct scrape *s)
{
	return s->n_clusters ? s->clusters[s->n_clusters - 1].name : "";
}

static void note_endpoint(void *ctx, const struct assembler_endpoint_info *e)
{
	struct scrape *s = ctx;
	if (s->n_endpoints == SCRAPE_MAX_ENDPOINTS) {
		s->n_endpoints_left_out++;
		return;
	}
	char *leaf = grow(&s->endpoints, s->n_endpoints, &s->endpoint_room, sizeof(s->endpoints[0]))
	                     ? strdup(e->leaf)
	                     : NULL;
	if (!leaf) {
		s->n_endpoints_left_out++;
		return;
	}
	struct scrape_endpoint *to = &s->endpoints[s->n_endpoints++];
	*to = (struct scrape_endpoint){
		.cluster = s->n_clusters - 1,
		.leaf = leaf,
		.is_up = e->is_up,
		.is_ejected = e->is_ejected,
		.is_unhealthy = e->record.health.health == LB_MEMBER_UNHEALTHY,
		.connections = e->connections,
		.issued = e->totals.issued,
		.failed = e->totals.failed,
	};
	ip_port_print(&e->addresses[0], to->address);
}

// Times are read once for all: bodies and answers are told of all clusters.
static int note_times(struct scrape *s, struct scrape_cluster *c, uint32_t id)
{
	struct lb_cluster_times *times = calloc(1, sizeof(*times));
	if (!times)
		return -ENOMEM;
	if (c->totals.started)
		assembler_cluster_times(s->conf.assembler, c->name, times);
	c->bodies = times->bodies;
	memcpy(c->answers, times->answers, sizeof(c->answers));
	if (id < SCRAPE_MAX_CLUSTER_TIMES || s->n_names) {
		c->times = times;
		return 0;
	}
	s->n_clusters_left_out++;
	free(times);
	return 0;
}

static int note_cluster(struct scrape *s, const struct assembler_cluster_info *info)
{
	char *name = grow(&s->clusters, s->n_clusters, &s->room, sizeof(s->clusters[0]))
	                     ? strdup(info->name)
	                     : NULL;
	if (!name)
		return -ENOMEM;
	struct scrape_cluster *c = &s->clusters[s->n_clusters++];
	*c = (struct scrape_cluster){
		.name = name,
		.is_up = info->state != LB_TRANSIENT_FAILURE,
		.n_endpoints = info->n_endpoints,
		.n_ready = info->n_ready,
		.n_failing = info->n_failing,
		.n_ejected = info->n_ejected,
		.n_unhealthy = info->n_unhealthy,
		.counts = info->counts,
		.in_flight = info->in_flight,
		.max_requests = info->max_requests,
		.connections = info->connections,
		.totals = info->totals,
	};
	if (!s->endpoints_only)
		return note_times(s, c, info->id) ? -ENOMEM : 1;
	assembler_each_endpoint(s->conf.assembler, c->name, note_endpoint, s);
	return 1;
}

// Of those that are asked for, the next one that there is.
static bool next_named(struct scrape *s, struct assembler_cluster_info *info)
{
	while (s->at < s->n_names)
		if (assembler_find_cluster(s->conf.assembler, s->names[s->at++], info))
			return true;
	return false;
}

int scrape_note_step(struct scrape *s)
{
	if (!s->xds) {
		bool is_told = !s->endpoints_only && !s->clusters_only;
		s->xds = xds_note_new(is_told ? s->conf.xds : NULL);
		return s->xds ? 1 : -ENOMEM;
	}
	struct assembler_cluster_info info;
	bool any = s->n_names ? next_named(s, &info)
	                      : assembler_next_cluster(s->conf.assembler, last_name(s), &info);
	return any ? note_cluster(s, &info) : 0;
}

void scrape_note_free(struct scrape *s)
{
	for (uint32_t i = 0; i < s->n_clusters; i++) {
		free(s->clusters[i].name);
		free(s->clusters[i].times);
	}
	for (uint32_t i = 0; i < s->n_endpoints; i++)
		free(s->endpoints[i].leaf);
	free(s->clusters);
	free(s->endpoints);
	xds_note_free(s->xds);
}
