// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/cluster_set.h"

#include "ctrl/assemble/cluster_tree.h"
#include "ctrl/assemble/ids.h"
#include "lb/base/container_of.h"
#include "lb/base/grow.h"
#include "lb/pick/limits.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct cluster_set {
	const struct cluster_tree_env *env;
	uint32_t n_frontends;
	struct cluster **sorted; // owned; by name
	struct strmap by_name; // the same ones
	uint32_t n, room;
	struct ids ids;
};

struct cluster_set *cluster_set_new(const struct cluster_tree_env *env, uint32_t n_frontends)
{
	struct cluster_set *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->env = env;
	s->n_frontends = n_frontends;
	if (ids_init(&s->ids, LB_MAX_CLUSTERS, 0)) {
		free(s);
		return NULL;
	}
	return s;
}

static void cluster_free(struct cluster *c)
{
	cluster_tree_free(c->tree);
	free(c->before);
	free(c->refused);
	free(c);
}

void cluster_set_free(struct cluster_set *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n; i++)
		cluster_free(s->sorted[i]);
	strmap_fini(&s->by_name);
	free(s->sorted);
	ids_fini(&s->ids);
	free(s);
}

uint32_t cluster_set_count(const struct cluster_set *s)
{
	return s->n;
}

struct cluster *cluster_set_at(const struct cluster_set *s, uint32_t index)
{
	return s->sorted[index];
}

// Where the name stands, or would stand.
static uint32_t place_of(const struct cluster_set *s, const char *name, bool *ret_found)
{
	uint32_t low = 0, high = s->n;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = strcmp(s->sorted[middle]->name, name);
		if (order == 0) {
			*ret_found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_found = false;
	return low;
}

uint32_t cluster_set_after(const struct cluster_set *s, const char *name)
{
	bool found;
	uint32_t place = place_of(s, name, &found);
	return place + found;
}

struct cluster *cluster_set_find(const struct cluster_set *s, const char *name)
{
	struct strmap_link *l = strmap_find(&s->by_name, name);
	return l ? CONTAINER_OF(l, struct cluster, by_name) : NULL;
}

static struct cluster *cluster_new(struct cluster_set *s, const char *name, uint32_t id)
{
	size_t size = strlen(name) + 1;
	struct cluster *c = calloc(1, sizeof(*c) + size);
	if (!c)
		return NULL;
	c->refused = calloc(2 * (size_t)s->n_frontends / 64 + 1, sizeof(*c->refused));
	c->id = id;
	memcpy(c->name, name, size);
	c->tree = c->refused ? cluster_tree_new(s->env, id, c->name) : NULL;
	if (!c->tree) {
		cluster_free(c);
		return NULL;
	}
	return c;
}

struct cluster *cluster_set_obtain(struct cluster_set *s, const char *name, struct lb_err *reterr)
{
	struct cluster *known = cluster_set_find(s, name);
	if (known)
		return known;
	uint32_t id = ids_take(&s->ids, 0);
	if (id == IDS_NONE) {
		lb_err_set(reterr, "cluster '%s': more than %d clusters", name, LB_MAX_CLUSTERS);
		return NULL;
	}
	struct cluster *c = grow(&s->sorted, s->n, &s->room, sizeof(s->sorted[0]))
	                            ? cluster_new(s, name, id)
	                            : NULL;
	if (c && strmap_add(&s->by_name, &c->by_name, c->name)) {
		cluster_free(c);
		c = NULL;
	}
	if (!c) {
		ids_give(&s->ids, id, 0);
		lb_err_set(reterr, "cluster '%s': out of memory", name);
		return NULL;
	}
	bool found;
	uint32_t place = place_of(s, name, &found);
	memmove(&s->sorted[place + 1], &s->sorted[place],
		(s->n - place) * sizeof(struct cluster *));
	s->sorted[place] = c;
	s->n++;
	return c;
}

void cluster_set_drop(struct cluster_set *s, struct cluster *c)
{
	bool found;
	uint32_t place = place_of(s, c->name, &found);
	if (!found)
		return;
	strmap_remove(&s->by_name, &c->by_name);
	s->n--;
	memmove(&s->sorted[place], &s->sorted[place + 1],
		(s->n - place) * sizeof(struct cluster *));
	ids_give(&s->ids, c->id, 0);
	cluster_free(c);
}
