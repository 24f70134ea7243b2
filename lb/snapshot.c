// SPDX-License-Identifier: Apache-2.0
#include "lb/snapshot.h"

#include "lb/base/check.h"
#include "lb/cluster.h"
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

struct lb_snapshot *lb_snapshot_copy(const struct lb_snapshot *from)
{
	struct lb_snapshot *s = lb_snapshot_new(0, "");
	if (!s)
		return NULL;
	free(s->frontends);
	s->version = from->version + 1;
	s->frontends = calloc((size_t)from->n_frontends + 1, sizeof(s->frontends[0]));
	s->clusters = malloc(((size_t)from->n_clusters + 1) * sizeof(struct lb_cluster *));
	if (!s->frontends || !s->clusters)
		goto err;
	for (; s->n_frontends < from->n_frontends; s->n_frontends++) {
		const struct lb_frontend *f = &from->frontends[s->n_frontends];
		char *error = strdup(f->error);
		if (!error)
			goto err;
		s->frontends[s->n_frontends].error = error;
		if (f->routes)
			s->frontends[s->n_frontends].routes = lb_route_table_get(f->routes);
	}
	for (; s->n_clusters < from->n_clusters; s->n_clusters++) {
		struct lb_cluster *c = from->clusters[s->n_clusters];
		s->clusters[s->n_clusters] = c ? lb_cluster_get(c) : NULL;
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
	struct lb_frontend old = *f;
	*f = (struct lb_frontend){routes ? lb_route_table_get(routes) : NULL, copy};
	lb_route_table_put(old.routes);
	free(old.error);
	return 0;
}

// In steps, so that n growing calls copy O(n) pointers in all.
static int grow_clusters(struct lb_snapshot *s, uint32_t id)
{
	uint32_t n = id < 48 ? 64 : id + id / 3 + 1;
	if (n > LB_MAX_CLUSTERS)
		n = LB_MAX_CLUSTERS;
	struct lb_cluster **more = realloc(s->clusters, n * sizeof(struct lb_cluster *));
	if (!more)
		return -ENOMEM;
	memset(more + s->n_clusters, 0, (n - s->n_clusters) * sizeof(struct lb_cluster *));
	s->clusters = more;
	s->n_clusters = n;
	return 0;
}

int lb_snapshot_set_cluster(struct lb_snapshot *s, uint32_t id, struct lb_cluster *cluster)
{
	CHECK(id < LB_MAX_CLUSTERS);
	if (id >= s->n_clusters) {
		if (!cluster)
			return 0;
		int err = grow_clusters(s, id);
		if (err)
			return err;
	}
	struct lb_cluster *old = s->clusters[id];
	s->clusters[id] = cluster ? lb_cluster_get(cluster) : NULL;
	lb_cluster_put(old);
	return 0;
}

void lb_snapshot_free(struct lb_snapshot *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n_frontends; i++) {
		lb_route_table_put(s->frontends[i].routes);
		free(s->frontends[i].error);
	}
	for (uint32_t i = 0; i < s->n_clusters; i++)
		lb_cluster_put(s->clusters[i]);
	free(s->frontends);
	free(s->clusters);
	free(s);
}
