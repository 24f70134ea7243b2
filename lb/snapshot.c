// SPDX-License-Identifier: Apache-2.0
#include "lb/snapshot.h"

#include "lb/base/check.h"
#include "lb/chain_set.h"
#include "lb/cluster.h"
#include "lb/live_frontend.h"
#include "lb/own_ranges.h"
#include "lb/pick/access_set.h"
#include "lb/route/filter.h"
#include "lb/route/route.h"
#include "lb/vips.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t n_frontend_pages(uint32_t n_frontends)
{
	return (n_frontends + LB_FRONTENDS_PER_PAGE - 1) / LB_FRONTENDS_PER_PAGE;
}

static void frontend_page_put(struct lb_frontend_page *p)
{
	if (!p || --p->n_refs)
		return;
	for (uint32_t i = 0; i < LB_FRONTENDS_PER_PAGE; i++) {
		lb_route_table_put(p->frontends[i].routes);
		lb_filter_chain_put(p->frontends[i].filters);
		lb_access_set_put(p->frontends[i].access);
		lb_chain_set_put(p->frontends[i].chains);
		lb_live_frontend_put(p->frontends[i].live);
		free(p->frontends[i].error);
	}
	free(p);
}

// All of them with the error, to the end of the page. NULL = out of memory.
static struct lb_frontend_page *frontend_page_new(const char *error)
{
	struct lb_frontend_page *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->n_refs = 1;
	for (uint32_t i = 0; i < LB_FRONTENDS_PER_PAGE; i++) {
		p->frontends[i].error = strdup(error);
		if (!p->frontends[i].error) {
			frontend_page_put(p);
			return NULL;
		}
	}
	return p;
}

static struct lb_frontend_page *frontend_page_copy(const struct lb_frontend_page *from)
{
	struct lb_frontend_page *p = frontend_page_new("");
	for (uint32_t i = 0; p && i < LB_FRONTENDS_PER_PAGE; i++) {
		const struct lb_frontend *f = &from->frontends[i];
		char *error = strdup(f->error);
		if (!error) {
			frontend_page_put(p);
			return NULL;
		}
		free(p->frontends[i].error);
		p->frontends[i] = (struct lb_frontend){
			.routes = f->routes ? lb_route_table_get(f->routes) : NULL,
			.error = error,
			.filters = f->filters ? lb_filter_chain_get(f->filters) : NULL,
			.access = lb_access_set_get(f->access),
			.generation = f->generation,
			.chains = lb_chain_set_get(f->chains),
			.credential = f->credential,
			.live = lb_live_frontend_get(f->live),
		};
	}
	return p;
}

// To be changed: in a page that is no other snapshot's. NULL = out of memory.
static struct lb_frontend *own_frontend(struct lb_snapshot *s, uint32_t index)
{
	CHECK(index < s->n_frontends);
	struct lb_frontend_page **place = &s->frontend_pages[index / LB_FRONTENDS_PER_PAGE];
	if ((*place)->n_refs > 1) {
		struct lb_frontend_page *copy = frontend_page_copy(*place);
		if (!copy)
			return NULL;
		frontend_page_put(*place);
		*place = copy;
	}
	return &(*place)->frontends[index % LB_FRONTENDS_PER_PAGE];
}

struct lb_snapshot *lb_snapshot_new(uint32_t n_frontends, const char *error)
{
	CHECK(n_frontends <= LB_MAX_FRONTENDS);
	struct lb_snapshot *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->version = 1;
	uint32_t n = n_frontend_pages(n_frontends);
	s->frontend_pages = calloc((size_t)n + 1, sizeof(struct lb_frontend_page *));
	s->n_frontends = s->frontend_pages ? n_frontends : 0;
	bool ok = s->frontend_pages;
	for (uint32_t i = 0; ok && i < n; i++)
		ok = (s->frontend_pages[i] = frontend_page_new(error));
	if (ok)
		return s;
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

// The page of this id, no other snapshot's. NULL = out of memory.
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
	struct lb_snapshot *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	uint32_t n = n_frontend_pages(from->n_frontends);
	s->frontend_pages = malloc(((size_t)n + 1) * sizeof(struct lb_frontend_page *));
	s->pages = malloc(((size_t)from->n_pages + 1) * sizeof(struct lb_cluster_page *));
	if (!s->frontend_pages || !s->pages) {
		lb_snapshot_free(s);
		return NULL;
	}
	s->version = from->version + 1;
	s->n_generations = from->n_generations;
	s->n_live = from->n_live;
	s->terms = from->terms;
	s->credentials = lb_credentials_get(from->credentials);
	s->vips = lb_vips_get(from->vips);
	s->ranges = lb_own_ranges_get(from->ranges);
	s->n_frontends = from->n_frontends;
	for (uint32_t i = 0; i < n; i++) {
		s->frontend_pages[i] = from->frontend_pages[i];
		s->frontend_pages[i]->n_refs++;
	}
	for (; s->n_pages < from->n_pages; s->n_pages++) {
		struct lb_cluster_page *page = from->pages[s->n_pages];
		if (page)
			page->n_refs++;
		s->pages[s->n_pages] = page;
	}
	return s;
}

int lb_snapshot_set_frontend(
	struct lb_snapshot *s, uint32_t index, struct lb_route_table *routes, const char *error)
{
	struct lb_frontend *f = own_frontend(s, index);
	char *copy = f ? strdup(error ? error : "") : NULL;
	if (!copy)
		return -ENOMEM;
	struct lb_route_table *old = f->routes;
	f->routes = routes ? lb_route_table_get(routes) : NULL;
	lb_route_table_put(old);
	free(f->error);
	f->error = copy;
	return 0;
}

int lb_snapshot_set_filters(
	struct lb_snapshot *s, uint32_t index, struct lb_filter_chain *filters, uint64_t generation)
{
	struct lb_frontend *f = own_frontend(s, index);
	if (!f)
		return -ENOMEM;
	struct lb_filter_chain *old = f->filters;
	f->filters = filters ? lb_filter_chain_get(filters) : NULL;
	s->n_generations += f->generation != generation;
	f->generation = generation;
	lb_filter_chain_put(old);
	return 0;
}

int lb_snapshot_set_access(struct lb_snapshot *s, uint32_t index, struct lb_access_set *logs)
{
	if (lb_snapshot_frontend(s, index)->access == logs)
		return 0;
	struct lb_frontend *f = own_frontend(s, index);
	if (!f)
		return -ENOMEM;
	lb_access_set_put(f->access);
	f->access = lb_access_set_get(logs);
	return 0;
}

int lb_snapshot_set_chains(struct lb_snapshot *s, uint32_t index, struct lb_chain_set *chains)
{
	if (lb_snapshot_frontend(s, index)->chains == chains)
		return 0;
	struct lb_frontend *f = own_frontend(s, index);
	if (!f)
		return -ENOMEM;
	lb_chain_set_put(f->chains);
	f->chains = lb_chain_set_get(chains);
	return 0;
}

int lb_snapshot_set_live(struct lb_snapshot *s, uint32_t index, struct lb_live_frontend *live)
{
	if (lb_snapshot_frontend(s, index)->live == live)
		return 0;
	struct lb_frontend *f = own_frontend(s, index);
	if (!f)
		return -ENOMEM;
	lb_live_frontend_put(f->live);
	f->live = lb_live_frontend_get(live);
	s->n_live++;
	return 0;
}

void lb_snapshot_set_vips(struct lb_snapshot *s, struct lb_vips *vips)
{
	struct lb_vips *old = s->vips;
	s->vips = lb_vips_get(vips);
	lb_vips_put(old);
}

void lb_snapshot_set_ranges(struct lb_snapshot *s, struct lb_own_ranges *ranges)
{
	struct lb_own_ranges *old = s->ranges;
	s->ranges = lb_own_ranges_get(ranges);
	lb_own_ranges_put(old);
}

int lb_snapshot_set_frontend_credential(struct lb_snapshot *s, uint32_t index, uint32_t id)
{
	if (lb_snapshot_frontend(s, index)->credential == id)
		return 0;
	struct lb_frontend *f = own_frontend(s, index);
	if (!f)
		return -ENOMEM;
	f->credential = id;
	return 0;
}

int lb_snapshot_set_credential(struct lb_snapshot *s, uint32_t id, struct lb_credential *credential)
{
	return lb_credentials_set(&s->credentials, id, credential);
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
	for (uint32_t i = 0; i < n_frontend_pages(s->n_frontends); i++)
		frontend_page_put(s->frontend_pages[i]);
	for (uint32_t i = 0; i < s->n_pages; i++)
		page_put(s->pages[i]);
	lb_credentials_put(s->credentials);
	lb_vips_put(s->vips);
	lb_own_ranges_put(s->ranges);
	free(s->frontend_pages);
	free(s->pages);
	free(s);
}
