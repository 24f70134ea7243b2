// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/endpoint_clusters.h"

#include "ctrl/base/printout.h"
#include "lb/base/check.h"
#include "lb/pick/limits.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct naming {
	const char *names[ENDPOINT_CLUSTERS_NAMED]; // borrowed
	uint32_t n;
	bool has_more;
};

struct endpoint_clusters {
	uint32_t at[LB_MAX_ENDPOINTS]; // by id: index of list + 1; 0 = not wanted
	uint32_t n, room; // of list
	struct naming list[];
};

struct endpoint_clusters *endpoint_clusters_new(uint32_t n_endpoints)
{
	struct endpoint_clusters *c = calloc(1, sizeof(*c) + n_endpoints * sizeof(c->list[0]));
	if (c)
		c->room = n_endpoints;
	return c;
}

void endpoint_clusters_free(struct endpoint_clusters *c)
{
	free(c);
}

void endpoint_clusters_want(struct endpoint_clusters *c, uint32_t id)
{
	CHECK(id < LB_MAX_ENDPOINTS);
	if (c->at[id])
		return;
	CHECK(c->n < c->room);
	c->at[id] = ++c->n;
}

void endpoint_clusters_add(struct endpoint_clusters *c, const char *cluster, uint32_t id)
{
	struct naming *n = c->at[id] ? &c->list[c->at[id] - 1] : NULL;
	if (!n || n->has_more || (n->n && strcmp(n->names[n->n - 1], cluster) == 0))
		return;
	if (n->n < ENDPOINT_CLUSTERS_NAMED)
		n->names[n->n++] = cluster;
	else
		n->has_more = true;
}

static void print(const struct naming *n, FILE *to)
{
	for (uint32_t i = 0; i < n->n; i++)
		fprintf(to, "%s%s", i ? ", " : "", n->names[i]);
	if (n->has_more)
		fputs(", ...", to);
}

char *endpoint_clusters_text(const struct endpoint_clusters *c, uint32_t id)
{
	struct printout p;
	FILE *to = printout_begin(&p);
	if (!to)
		return NULL;
	if (id < LB_MAX_ENDPOINTS && c->at[id])
		print(&c->list[c->at[id] - 1], to);
	return printout_end(&p);
}
