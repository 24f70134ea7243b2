// SPDX-License-Identifier: Apache-2.0
#include "tools/shunt-xds/catalog.h"

#include "ctrl/xds/variants/constraints.h"
#include "lb/base/check.h"

#include <xxhash.h>

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

// NULL = out of memory.
static struct catalog_type *add_type(
	struct catalog *c, uint32_t index, const struct resource_type_info *info)
{
	struct catalog_type *type = &c->types[index];
	bool newest_wins = c->newest_wins && !info->full_state;
	const struct xds_variants_conf conf = {
		.label = info->label,
		.keeps_all = true,
		.newest_wins = newest_wins,
		.content_put = content_put,
		.content_eq = content_eq,
	};
	struct xds_variants *cache = xds_variants_new(&conf);
	if (!cache)
		return NULL;
	*type = (struct catalog_type){.info = *info,
		.index = index,
		.source = c->source,
		.newest_wins = newest_wins,
		.cache = cache};
	if (index == c->n_types)
		c->n_types++;
	return type;
}

static void type_fini(struct catalog_type *type)
{
	xds_variants_free(type->cache);
	free(type->names);
	if (catalog_type_is_made(type))
		free((void *)(uintptr_t)type->info.url);
}

struct catalog *catalog_new(bool newest_wins)
{
	struct catalog *c = calloc(1, sizeof(*c));
	if (c)
		c->newest_wins = newest_wins;
	for (int t = 0; c && t < N_RESOURCE_TYPES; t++) {
		if (!add_type(c, (uint32_t)t, resource_type_info((enum resource_type)t))) {
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
	for (uint32_t t = 0; t < c->n_types; t++)
		type_fini(&c->types[t]);
	free(c);
}

void catalog_set_source(struct catalog *c, struct catalog_source *source)
{
	c->source = source;
	for (uint32_t t = 0; t < c->n_types; t++)
		c->types[t].source = source;
}

// It ends up in logs and in requests of ours.
static bool is_type_url(const char *url)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-/";
	size_t len = strspn(url, letters);
	const char *slash = strrchr(url, '/');
	return url[len] == '\0' && len <= CATALOG_URL_MAX && slash && slash[1] != '\0';
}

// Where a new type finds a place; CATALOG_TYPES_MAX = nowhere.
static uint32_t find_place(struct catalog *c)
{
	uint32_t t = N_RESOURCE_TYPES;
	if (c->n_types < CATALOG_TYPES_MAX)
		return c->n_types;
	while (t < c->n_types &&
		(c->types[t].n_users > 0 || (c->source && !c->source->drop(c->source, t))))
		t++;
	return t;
}

// 0, and *ret is NULL if there is no room, or -ENOMEM.
static int make_type(struct catalog *c, const char *url, struct catalog_type **ret)
{
	uint32_t index = find_place(c);
	if (index == CATALOG_TYPES_MAX)
		return 0;
	char *copy = strdup(url);
	if (!copy)
		return -ENOMEM;
	const char *dot = strrchr(copy, '.'), *slash = strrchr(copy, '/');
	struct resource_type_info info = {.url = copy, .label = dot > slash ? dot + 1 : slash + 1};
	struct catalog_type before = c->types[index];
	bool is_reused = index < c->n_types;
	struct catalog_type *type = add_type(c, index, &info);
	if (!type) {
		free(copy);
		return -ENOMEM;
	}
	if (is_reused)
		type_fini(&before);
	*ret = type;
	return 0;
}

struct catalog_type *catalog_find_type(struct catalog *c, const char *url)
{
	for (uint32_t t = 0; t < c->n_types; t++)
		if (strcmp(c->types[t].info.url, url) == 0)
			return &c->types[t];
	return NULL;
}

int catalog_open_type(struct catalog *c, const char *url, uint32_t n, struct catalog_type **ret)
{
	struct catalog_type *type = catalog_find_type(c, url);
	bool is_own = type && !catalog_type_is_made(type);
	int rc = 0;
	*ret = is_own ? type : NULL;
	if (is_own || n >= CATALOG_TYPES_A_CLIENT)
		return 0;
	if (!type && is_type_url(url))
		rc = make_type(c, url, &type);
	if (type)
		type->n_users++;
	*ret = type;
	return rc;
}

int catalog_add_type(struct catalog *c, const char *url, struct catalog_type **ret)
{
	struct catalog_type *type = catalog_find_type(c, url);
	int rc = 0;
	if (!type && is_type_url(url))
		rc = make_type(c, url, &type);
	if (type && !type->stays && catalog_type_is_made(type)) {
		type->stays = true;
		type->n_users++;
	}
	*ret = type;
	return rc;
}

#define TYPES_CROWDED (N_RESOURCE_TYPES + (CATALOG_TYPES_MAX - N_RESOURCE_TYPES) / 2)
void catalog_close_type(struct catalog *c, struct catalog_type *type)
{
	if (catalog_type_is_made(type) && --type->n_users == 0 && c->source &&
		c->n_types > TYPES_CROWDED)
		c->source->leave(c->source, type->index);
}

void catalog_begin(struct catalog *c, enum xds_change_kind kind)
{
	c->change = kind;
	for (uint32_t t = 0; t < c->n_types; t++) {
		struct catalog_type *type = &c->types[t];
		xds_variants_begin(type->cache, kind);
		type->next_version = kind == XDS_CHANGE_FULL ? 0 : type->version;
		type->n_next = 0;
	}
}

// The version of a full change is the same whatever the order was; others are made of the one
// before.
static void note(struct catalog *c, struct catalog_type *type, uint64_t hash)
{
	type->n_next++;
	if (c->change == XDS_CHANGE_FULL)
		type->next_version += hash;
	else
		type->next_version = XXH3_64bits_withSeed(&hash, sizeof(hash), type->next_version);
}

int catalog_set(struct catalog *c, struct resource *r, struct lb_err *err)
{
	struct catalog_type *type = &c->types[r->type];
	int rc = xds_variants_set(
		type->cache, r->name, r->constraints, r->version, resource_get(r), err);
	if (!rc)
		note(c, type, r->hash);
	return rc;
}

int catalog_remove(struct catalog *c, uint32_t t, const char *name,
	struct xds_constraints *constraints, struct lb_err *err)
{
	struct catalog_type *type = &c->types[t];
	int rc = xds_variants_remove(type->cache, name, constraints, err);
	if (!rc)
		note(c, type, XXH3_64bits(name, strlen(name)));
	return rc;
}

int catalog_check(struct catalog *c, enum resource_type *ret_type, struct xds_variants_clash *ret,
	struct lb_err *err)
{
	int rc = 0;
	for (uint32_t t = 0; t < c->n_types && !rc; t++) {
		*ret_type = (enum resource_type)t;
		rc = xds_variants_check(c->types[t].cache, ret, err);
	}
	return rc;
}

static void commit_type(struct catalog_type *type)
{
	struct xds_variants_counts counts;
	uint64_t before = type->version;
	xds_variants_commit(type->cache);
	xds_variants_counts(type->cache, &counts);
	type->n = counts.n_variants;
	type->version = type->n > 0 ? type->next_version : 0;
	// Whoever sees something else compares for himself.
	struct xds_variants_event e;
	bool is_seen = false;
	while (xds_variants_drain(type->cache, &e))
		is_seen = true;
	if (!is_seen && type->version == before)
		return;
	type->names_are_stale = true;
	type->generation++;
}

void catalog_commit(struct catalog *c)
{
	for (uint32_t t = 0; t < c->n_types; t++)
		commit_type(&c->types[t]);
}

void catalog_abort(struct catalog *c)
{
	for (uint32_t t = 0; t < c->n_types; t++)
		xds_variants_abort(c->types[t].cache);
}

const struct resource *catalog_find(const struct catalog *c, uint32_t type, const char *name,
	const struct xds_constraints *constraints)
{
	const struct xds_variant *v = xds_variants_find(c->types[type].cache, name, constraints);
	return v ? catalog_resource(v) : NULL;
}

// Variants of a name come together.
static void list_name(void *ctx, const char *name, const struct xds_variant *v)
{
	struct catalog_type *type = ctx;
	if (type->n_names == 0 || type->names[type->n_names - 1] != name)
		type->names[type->n_names++] = name;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int catalog_names(struct catalog_type *type)
{
	if (!type->names_are_stale)
		return 0;
	if (type->names_room < type->n) {
		const char **names = realloc(type->names, type->n * sizeof(char *));
		if (!names)
			return -ENOMEM;
		type->names = names;
		type->names_room = type->n;
	}
	type->n_names = 0;
	xds_variants_each(type->cache, list_name, type);
	if (type->n_names > 0)
		qsort(type->names, type->n_names, sizeof(char *), by_name);
	type->names_are_stale = false;
	return 0;
}

int catalog_want(const struct catalog_type *type, struct xds_sub *sub)
{
	return type->source ? type->source->want(type->source, type->index, sub) : 0;
}

void catalog_unwant(const struct catalog_type *type, struct xds_sub *sub)
{
	if (type->source)
		type->source->unwant(type->source, type->index, sub);
}
