// SPDX-License-Identifier: Apache-2.0
#include "lb/snapshot.h"

#include "lb/base/check.h"
#include "lb/cluster.h"
#include "lb/filter.h"
#include "lb/route.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct lb_snapshot *lb_snapshot_new(uint32_t n_frontends, const char *error)
{
	CHECK(n_frontends <= LB_MAX_FRONTENDS);
	struct lb_snapshot *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->version = 1;
	s->frontends = calloc((size_t)n_frontends + 1, sizeof(s->frontends[0]));
	if (!s->frontends)
		goto err;
	for (; s->n_frontends < n_frontends; s->n_frontends++) {
		char *copy = strdup(error);
		if (!copy)
			goto err;
		s->frontends[s->n_frontends].error = copy;
	}
	return s;
err:
	lb_snapshot_free(s);
	return NULL;
}

static struct lb_cluster_page *page_new(const struct lb_cluster_page *from)
{
	struct lb_cluster_page *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->n_refs = 1;
	for (uint32_t i = 0; from && i < LB_CLUSTERS_PER_PAGE; i++)
		if (from->clusters[i])
			p->clusters[i] = lb_cluster_get(from->clusters[i]);
	return p;
}

static void page_put(struct lb_cluster_page *p)
{
	if (!p || --p->n_refs)
		return;
	for (uint32_t i = 0; i < LB_CLUSTERS_PER_PAGE; i++)
		lb_cluster_put(p->clusters[i]);
	free(p);
}

// The page of this id, no other snapshot's. NULL = no memory.
static struct lb_cluster_page *own_page(struct lb_snapshot *s, uint32_t id)
{
	uint32_t n = id / LB_CLUSTERS_PER_PAGE + 1;
	if (n > s->n_pages) {
		struct lb_cluster_page **pages =
			realloc(s->pages, n * sizeof(struct lb_cluster_page *));
		if (!pages)
			return NULL;
		memset(pages + s->n_pages, 0, (n - s->n_pages) * sizeof(pages[0]));
		s->pages = pages;
		s->n_pages = n;
	}
	struct lb_cluster_page *old = s->pages[n - 1];
	if (old && old->n_refs == 1)
		return old;
	struct lb_cluster_page *page = page_new(old);
	if (!page)
		return NULL;
	page_put(old);
	s->pages[n - 1] = page;
	return page;
}

struct lb_snapshot *lb_snapshot_copy(const struct lb_snapshot *from)
{
	struct lb_snapshot *s = lb_snapshot_new(0, "");
	if (!s)
		return NULL;
	free(s->frontends);
	s->version = from->version + 1;
	s->frontends = calloc((size_t)from->n_frontends + 1, sizeof(s->frontends[0]));
	s->pages = malloc(((size_t)from->n_pages + 1) * sizeof(struct lb_cluster_page *));
	if (!s->frontends || !s->pages)
		goto err;
	for (; s->n_frontends < from->n_frontends; s->n_frontends++) {
		const struct lb_frontend *f = &from->frontends[s->n_frontends];
		char *error = strdup(f->error);
		if (!error)
			goto err;
		s->frontends[s->n_frontends] = (struct lb_frontend){
			.routes = f->routes ? lb_route_table_get(f->routes) : NULL,
			.error = error,
			.filters = f->filters ? lb_filter_chain_get(f->filters) : NULL,
			.generation = f->generation,
		};
	}
	for (; s->n_pages < from->n_pages; s->n_pages++) {
		struct lb_cluster_page *page = from->pages[s->n_pages];
		if (page)
			page->n_refs++;
		s->pages[s->n_pages] = page;
	}
	return s;
err:
	lb_snapshot_free(s);
	return NULL;
}

int lb_snapshot_set_frontend(
	struct lb_snapshot *s, uint32_t index, struct lb_route_table *routes, const char *error)
{
	CHECK(index < s->n_frontends);
	char *copy = strdup(error ? error : "");
	if (!copy)
		return -ENOMEM;
	struct lb_frontend *f = &s->frontends[index];
	struct lb_route_table *old = f->routes;
	f->routes = routes ? lb_route_table_get(routes) : NULL;
	lb_route_table_put(old);
	free(f->error);
	f->error = copy;
	return 0;
}

void lb_snapshot_set_filters(
	struct lb_snapshot *s, uint32_t index, struct lb_filter_chain *filters, uint64_t generation)
{
	CHECK(index < s->n_frontends);
	struct lb_frontend *f = &s->frontends[index];
	struct lb_filter_chain *old = f->filters;
	f->filters = filters ? lb_filter_chain_get(filters) : NULL;
	f->generation = generation;
	lb_filter_chain_put(old);
}

int lb_snapshot_set_cluster(struct lb_snapshot *s, uint32_t id, struct lb_cluster *cluster)
{
	CHECK(id < LB_MAX_CLUSTERS);
	if (lb_snapshot_cluster(s, id) == cluster)
		return 0;
	struct lb_cluster_page *page = own_page(s, id);
	if (!page)
		return -ENOMEM;
	struct lb_cluster **place = &page->clusters[id % LB_CLUSTERS_PER_PAGE];
	struct lb_cluster *old = *place;
	*place = cluster ? lb_cluster_get(cluster) : NULL;
	lb_cluster_put(old);
	return 0;
}

void lb_snapshot_free(struct lb_snapshot *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n_frontends; i++) {
		lb_route_table_put(s->frontends[i].routes);
		lb_filter_chain_put(s->frontends[i].filters);
		free(s->frontends[i].error);
	}
	for (uint32_t i = 0; i < s->n_pages; i++)
		page_put(s->pages[i]);
	free(s->frontends);
	free(s->pages);
	free(s);
}
