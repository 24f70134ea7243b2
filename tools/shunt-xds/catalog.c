// SPDX-License-Identifier: Apache-2.0
#include "tools/shunt-xds/catalog.h"

#include "ctrl/xds/constraints.h"
#include "lb/base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void content_put(void *content)
{
	resource_put(content);
}

static bool content_eq(const void *a, const void *b)
{
	return resource_eq(a, b);
}

static void list_free(struct resource **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		resource_put(list[i]);
	free(list);
}

struct catalog *catalog_new(void)
{
	struct catalog *c = calloc(1, sizeof(*c));
	for (int t = 0; c && t < N_RESOURCE_TYPES; t++) {
		const struct xds_variants_conf conf = {
			.label = resource_type_info((enum resource_type)t)->label,
			.keeps_all = true,
			.content_put = content_put,
			.content_eq = content_eq,
		};
		c->types[t].cache = xds_variants_new(&conf);
		if (!c->types[t].cache) {
			catalog_free(c);
			c = NULL;
		}
	}
	return c;
}

void catalog_free(struct catalog *c)
{
	if (!c)
		return;
	for (int t = 0; t < N_RESOURCE_TYPES; t++) {
		struct catalog_type *type = &c->types[t];
		xds_variants_free(type->cache);
		list_free(type->names, type->n_names);
		list_free(type->next, type->n_next);
	}
	free(c);
}

void catalog_begin(struct catalog *c)
{
	for (int t = 0; t < N_RESOURCE_TYPES; t++)
		xds_variants_begin(c->types[t].cache, XDS_CHANGE_FULL);
}

int catalog_set(struct catalog *c, struct resource *r, struct lb_err *err)
{
	struct catalog_type *type = &c->types[r->type];
	if (type->n_next == type->room) {
		size_t room = type->room ? type->room * 2 : 16;
		struct resource **next = realloc(type->next, room * sizeof(struct resource *));
		if (!next)
			return -ENOMEM;
		type->next = next;
		type->room = room;
	}
	int rc = xds_variants_set(
		type->cache, r->name, r->constraints, r->version, resource_get(r), err);
	if (!rc)
		type->next[type->n_next++] = resource_get(r);
	return rc;
}

int catalog_check(struct catalog *c, enum resource_type *ret_type, struct xds_variants_clash *ret,
	struct lb_err *err)
{
	int rc = 0;
	for (int t = 0; t < N_RESOURCE_TYPES && !rc; t++) {
		*ret_type = (enum resource_type)t;
		rc = xds_variants_check(c->types[t].cache, ret, err);
	}
	return rc;
}

static int by_name(const void *a, const void *b)
{
	const struct resource *const *x = a;
	const struct resource *const *y = b;
	return strcmp((*x)->name, (*y)->name);
}

// Puts the list of the change into the place of the names that were.
static void take_names(struct catalog_type *type)
{
	list_free(type->names, type->n_names);
	type->names = type->next;
	type->n_names = 0;
	type->n = type->n_next;
	if (type->n > 0)
		qsort(type->names, type->n, sizeof(struct resource *), by_name);
	for (size_t i = 0; i < type->n; i++) {
		struct resource *r = type->names[i];
		if (type->n_names > 0 && strcmp(type->names[type->n_names - 1]->name, r->name) == 0)
			resource_put(r);
		else
			type->names[type->n_names++] = r;
	}
	type->next = NULL;
	type->n_next = type->room = 0;
}

static void commit_type(struct catalog_type *type)
{
	uint64_t before = type->version;
	type->version = 0;
	for (size_t i = 0; i < type->n_next; i++)
		type->version += type->next[i]->hash;
	xds_variants_commit(type->cache);
	take_names(type);
	// Whoever sees something else compares for himself.
	struct xds_variants_event e;
	bool is_seen = false;
	while (xds_variants_drain(type->cache, &e))
		is_seen = true;
	if (is_seen || type->version != before)
		type->generation++;
}

void catalog_commit(struct catalog *c)
{
	for (int t = 0; t < N_RESOURCE_TYPES; t++)
		commit_type(&c->types[t]);
}

void catalog_abort(struct catalog *c)
{
	for (int t = 0; t < N_RESOURCE_TYPES; t++) {
		struct catalog_type *type = &c->types[t];
		xds_variants_abort(type->cache);
		list_free(type->next, type->n_next);
		type->next = NULL;
		type->n_next = type->room = 0;
	}
}

const struct resource *catalog_find(const struct catalog *c, enum resource_type type,
	const char *name, const struct xds_constraints *constraints)
{
	const struct xds_variant *v = xds_variants_find(c->types[type].cache, name, constraints);
	return v ? catalog_resource(v) : NULL;
}
