// SPDX-License-Identifier: Apache-2.0
// Sorted arrays: sets are made rarely and searched often.
#include "tools/shunt-xds/resource_set.h"

#include "lb/base/check.h"
#include "lb/base/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct resource_type_info types[N_RESOURCE_TYPES] = {
	[RESOURCE_CLUSTER] = {"type.googleapis.com/envoy.config.cluster.v3.Cluster", "cluster",
		true},
	[RESOURCE_ENDPOINTS] =
		{"type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "endpoints",
			false},
	[RESOURCE_LISTENER] = {"type.googleapis.com/envoy.config.listener.v3.Listener", "listener",
		true},
	[RESOURCE_ROUTES] = {"type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
		"routes", false},
};

const struct resource_type_info *resource_type_info(enum resource_type type)
{
	CHECK(type < N_RESOURCE_TYPES);
	return &types[type];
}

enum resource_type resource_type_find(struct str type_url)
{
	enum resource_type t = 0;
	while (t < N_RESOURCE_TYPES && !str_eq(str_from(types[t].url), type_url))
		t++;
	return t;
}

struct resource *resource_new(enum resource_type type, const char *name, const char *origin,
	const uint8_t *bytes, size_t len)
{
	struct resource *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	*r = (struct resource){.n_refs = 1,
		.type = type,
		.name = strdup(name),
		.origin = strdup(origin),
		.bytes = malloc(len + 1),
		.len = len};
	if (!r->name || !r->origin || !r->bytes) {
		resource_put(r);
		return NULL;
	}
	if (len > 0)
		memcpy(r->bytes, bytes, len);
	return r;
}

struct resource *resource_get(struct resource *r)
{
	r->n_refs++;
	return r;
}

void resource_put(struct resource *r)
{
	if (!r || --r->n_refs > 0)
		return;
	free(r->name);
	free(r->origin);
	free(r->bytes);
	free(r);
}

struct resource_set *resource_set_new(void)
{
	return calloc(1, sizeof(struct resource_set));
}

void resource_set_free(struct resource_set *set)
{
	if (!set)
		return;
	for (int t = 0; t < N_RESOURCE_TYPES; t++) {
		for (size_t i = 0; i < set->types[t].n; i++)
			resource_put(set->types[t].items[i]);
		free(set->types[t].items);
	}
	free(set);
}

int resource_set_add(struct resource_set *set, struct resource *r)
{
	struct resource_list *list = &set->types[r->type];
	if (list->n == list->room) {
		size_t room = list->room ? list->room * 2 : 16;
		struct resource **items = realloc(list->items, room * sizeof(struct resource *));
		if (!items) {
			resource_put(r);
			return -ENOMEM;
		}
		list->items = items;
		list->room = room;
	}
	list->items[list->n++] = r;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct resource *const *x = a;
	const struct resource *const *y = b;
	return strcmp((*x)->name, (*y)->name);
}

static int check_unique(const struct resource_list *list, struct lb_err *reterr)
{
	for (size_t i = 1; i < list->n; i++) {
		const struct resource *a = list->items[i - 1], *b = list->items[i];
		if (strcmp(a->name, b->name) == 0)
			return lb_err_set(reterr, "%s \"%s\" stands in both %s and %s",
				types[a->type].label, a->name, a->origin, b->origin);
	}
	return 0;
}

// Puts the resource of before into the place of an equal new one, which keeps its file's name.
static void share(struct resource **place, struct resource *before)
{
	struct resource *fresh = *place;
	char *origin = fresh->origin;
	fresh->origin = before->origin;
	before->origin = origin;
	*place = resource_get(before);
	resource_put(fresh);
}

static void number(struct resource_list *list, const struct resource_list *before)
{
	uint64_t next = (before ? before->version : 0) + 1;
	size_t n_same = 0, at = 0;
	for (size_t i = 0; i < list->n; i++) {
		struct resource *r = list->items[i];
		int order = -1;
		while (before && at < before->n &&
			(order = strcmp(before->items[at]->name, r->name)) < 0)
			at++;
		if (order == 0 && before->items[at]->len == r->len &&
			memcmp(before->items[at]->bytes, r->bytes, r->len) == 0) {
			share(&list->items[i], before->items[at]);
			n_same++;
		} else {
			r->version = next;
		}
	}
	bool changed = n_same != list->n || n_same != (before ? before->n : 0);
	list->version = changed ? next : next - 1;
}

int resource_set_seal(
	struct resource_set *set, const struct resource_set *before, struct lb_err *reterr)
{
	for (int t = 0; t < N_RESOURCE_TYPES; t++) {
		struct resource_list *list = &set->types[t];
		if (list->n > 0)
			qsort(list->items, list->n, sizeof(struct resource *), by_name);
		int r = check_unique(list, reterr);
		if (r < 0)
			return r;
	}
	for (int t = 0; t < N_RESOURCE_TYPES; t++)
		number(&set->types[t], before ? &before->types[t] : NULL);
	return 0;
}

struct resource *resource_set_find(
	const struct resource_set *set, enum resource_type type, const char *name)
{
	const struct resource_list *list = &set->types[type];
	size_t low = 0, high = list->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(list->items[middle]->name, name);
		if (order == 0)
			return list->items[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}
