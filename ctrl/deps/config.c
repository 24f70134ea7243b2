// SPDX-License-Identifier: Apache-2.0
#include "ctrl/deps/config.h"

#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "lb/base/arena.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct box {
	struct xds_config view; // first member
	struct lb_arena arena;
};

struct xds_config *xds_config_get(struct xds_config *c)
{
	CHECK(c->n_refs > 0);
	c->n_refs++;
	return c;
}

void xds_config_put(struct xds_config *c)
{
	if (!c)
		return;
	CHECK(c->n_refs > 0);
	if (--c->n_refs)
		return;
	for (uint32_t i = 0; i < c->n_clusters; i++) {
		if (c->clusters[i].cluster)
			xds_res_put(&c->clusters[i].cluster->base);
		if (c->clusters[i].endpoints)
			xds_res_put(&c->clusters[i].endpoints->base);
	}
	xds_res_put(&c->listener->base);
	xds_res_put(&c->routes->base);
	struct box *b = CONTAINER_OF(c, struct box, view); // view is the first member
	lb_arena_fini(&b->arena);
	free(b);
}

const struct xds_cluster_config *xds_config_find_cluster(
	const struct xds_config *c, const char *name)
{
	uint32_t low = 0, high = c->n_clusters;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		int d = strcmp(name, c->clusters[mid].name);
		if (d == 0)
			return &c->clusters[mid];
		if (d < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

int config_builder_init(struct config_builder *b, struct res_listener *listener,
	struct res_route_config *routes, int32_t vhost, uint32_t n_clusters)
{
	struct box *box = calloc(1, sizeof(*box));
	if (!box)
		return -ENOMEM;
	box->view.clusters = lb_arena_alloc(&box->arena, n_clusters, sizeof(*box->view.clusters));
	if (!box->view.clusters) {
		free(box);
		return -ENOMEM;
	}
	box->view.n_refs = 1;
	box->view.n_clusters = n_clusters;
	box->view.vhost = vhost;
	box->view.listener = listener;
	box->view.routes = routes;
	xds_res_get(&listener->base);
	xds_res_get(&routes->base);
	b->config = &box->view;
	b->arena = &box->arena;
	return 0;
}

static int compare(const void *pa, const void *pb)
{
	const struct xds_cluster_config *a = pa, *b = pb;
	return strcmp(a->name, b->name);
}

void config_builder_sort(struct config_builder *b)
{
	qsort(b->config->clusters, b->config->n_clusters, sizeof(*b->config->clusters), compare);
}

const char *config_builder_text(struct config_builder *b, const char *fmt, ...)
{
	char *text;
	va_list args;
	va_start(args, fmt);
	int n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0)
		return NULL;
	const char *copy = lb_arena_strdup(b->arena, text);
	free(text);
	return copy;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || strcmp(a, b) == 0;
}

static bool same_leaves(const struct xds_cluster_config *a, const struct xds_cluster_config *b)
{
	if (a->n_leaves != b->n_leaves)
		return false;
	for (uint32_t i = 0; i < a->n_leaves; i++)
		if (!same_text(a->leaves[i], b->leaves[i]))
			return false;
	return true;
}

static bool same_cluster(const struct xds_cluster_config *a, const struct xds_cluster_config *b)
{
	return a->cluster == b->cluster && a->endpoints == b->endpoints &&
	       a->is_root == b->is_root && same_text(a->name, b->name) &&
	       same_text(a->error, b->error) && same_text(a->resolution_note, b->resolution_note) &&
	       same_leaves(a, b);
}

bool xds_config_eq(const struct xds_config *a, const struct xds_config *b)
{
	if (a->listener != b->listener || a->routes != b->routes || a->vhost != b->vhost ||
		a->n_clusters != b->n_clusters)
		return false;
	for (uint32_t i = 0; i < a->n_clusters; i++)
		if (!same_cluster(&a->clusters[i], &b->clusters[i]))
			return false;
	return true;
}
