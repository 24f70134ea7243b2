// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/variants/params.h"

#include "ctrl/base/text.h"
#include "envoy/service/discovery/v3/discovery.pb-c.h"
#include "lb/base/arena.h"

#include <jansson.h>
#include <xxhash.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef Envoy__Service__Discovery__V3__ResourceLocator Locator;
typedef Envoy__Service__Discovery__V3__ResourceLocator__DynamicParametersEntry LocatorEntry;

// A parameter on its way into a set.
struct item {
	struct xds_param param;
	size_t rank; // of two with one key the higher counts
};

static int item_cmp(const void *x, const void *y)
{
	const struct item *a = x, *b = y;
	int order = strcmp(a->param.key, b->param.key);
	return order ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

static size_t drop_repeated(struct item *items, size_t n)
{
	size_t n_kept = 0;
	for (size_t i = 0; i < n; i++)
		if (i + 1 == n || strcmp(items[i].param.key, items[i + 1].param.key) != 0)
			items[n_kept++] = items[i];
	return n_kept;
}

static const char *put_text(char **at, const char *text)
{
	char *copy = *at;
	*at = stpcpy(copy, text) + 1;
	return copy;
}

// Sorts the items.
static int make(struct item *items, size_t n, struct xds_params **ret)
{
	if (n == 0) {
		*ret = NULL;
		return 0;
	}
	qsort(items, n, sizeof(*items), item_cmp);
	n = drop_repeated(items, n);
	size_t n_bytes = 0;
	for (size_t i = 0; i < n; i++)
		n_bytes += strlen(items[i].param.key) + strlen(items[i].param.value) + 2;
	size_t lists = n * sizeof(struct xds_param);
	struct xds_params *p = malloc(sizeof(*p) + lists + n_bytes);
	if (!p)
		return -ENOMEM;
	p->n_refs = 1;
	p->n = (uint32_t)n;
	char *texts = (char *)p + sizeof(*p) + lists, *at = texts;
	for (size_t i = 0; i < n; i++) {
		p->list[i].key = put_text(&at, items[i].param.key);
		p->list[i].value = put_text(&at, items[i].param.value);
	}
	// The terminators part the texts: two sets with the same bytes are the same.
	p->hash = XXH64(texts, n_bytes, 0);
	*ret = p;
	return 0;
}

static struct item *items_new(size_t n)
{
	return calloc(n + 1, sizeof(struct item)); // never 0, which may give NULL
}

int xds_params_new(const struct xds_param *list, size_t n, struct xds_params **ret)
{
	struct item *items = items_new(n);
	if (!items)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		items[i] = (struct item){list[i], i};
	int rc = make(items, n, ret);
	free(items);
	return rc;
}

struct xds_params *xds_params_get(struct xds_params *p)
{
	if (p)
		p->n_refs++;
	return p;
}

void xds_params_put(struct xds_params *p)
{
	if (p && --p->n_refs == 0)
		free(p);
}

static bool has_nul(const json_t *string)
{
	return strlen(json_string_value(string)) != json_string_length(string);
}

int xds_params_from_json(
	const json_t *o, const char *at, struct xds_params **ret, struct lb_err *err)
{
	if (o && !json_is_object(o))
		return lb_err_set(err, "%s: must be an object of strings", at);
	struct item *items = items_new(json_object_size(o));
	if (!items)
		return -ENOMEM;
	size_t n = 0;
	int rc = 0;
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)o, key, value)
	{
		if (!json_is_string(value))
			rc = lb_err_set(err, "%s[\"%.64s\"]: must be a string", at, key);
		else if (has_nul(value))
			rc = lb_err_set(err, "%s[\"%.64s\"]: must not hold a NUL", at, key);
		if (rc)
			break;
		items[n] = (struct item){{key, json_string_value(value)}, n};
		n++;
	}
	if (!rc)
		rc = make(items, n, ret);
	free(items);
	return rc;
}

int xds_params_from_metadata(
	const json_t *metadata, const struct xds_params *given, struct xds_params **ret)
{
	size_t n = 0, n_given = given ? given->n : 0;
	struct item *items = items_new(json_object_size(metadata) + n_given);
	if (!items)
		return -ENOMEM;
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)metadata, key, value)
	{
		if (json_is_string(value) && !has_nul(value))
			items[n++] = (struct item){{key, json_string_value(value)}, 0};
	}
	for (size_t i = 0; i < n_given; i++)
		items[n++] = (struct item){given->list[i], 1};
	int rc = make(items, n, ret);
	free(items);
	return rc;
}

int xds_params_from_locator(const Locator *m, struct xds_params **ret)
{
	size_t n = m->n_dynamic_parameters;
	struct item *items = items_new(n);
	if (!items)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const LocatorEntry *e = m->dynamic_parameters[i];
		items[i] = (struct item){{e->key, e->value}, i};
	}
	int rc = make(items, n, ret);
	free(items);
	return rc;
}

// protobuf-c's structs have no const; what is packed is only read.
static char *text(const char *s)
{
	return (char *)(uintptr_t)s;
}

Locator *xds_params_locator(const struct xds_params *p, const char *name, struct lb_arena *a)
{
	size_t n = p ? p->n : 0;
	Locator *m = lb_arena_alloc(a, 1, sizeof(*m));
	LocatorEntry *entries = lb_arena_alloc(a, n, sizeof(*entries));
	LocatorEntry **list = lb_arena_alloc(a, n, sizeof(LocatorEntry *));
	if (!m || !entries || !list)
		return NULL;
	envoy__service__discovery__v3__resource_locator__init(m);
	m->name = text(name);
	m->n_dynamic_parameters = n;
	m->dynamic_parameters = list;
	for (size_t i = 0; i < n; i++) {
		envoy__service__discovery__v3__resource_locator__dynamic_parameters_entry__init(
			&entries[i]);
		entries[i].key = text(p->list[i].key);
		entries[i].value = text(p->list[i].value);
		list[i] = &entries[i];
	}
	return m;
}

static int param_cmp(const void *key, const void *param)
{
	return strcmp(key, ((const struct xds_param *)param)->key);
}

const char *xds_params_find(const struct xds_params *p, const char *key)
{
	const struct xds_param *found =
		p ? bsearch(key, p->list, p->n, sizeof(p->list[0]), param_cmp) : NULL;
	return found ? found->value : NULL;
}

bool xds_params_eq(const struct xds_params *a, const struct xds_params *b)
{
	return a == b || (a && b && a->hash == b->hash && xds_params_cmp(a, b) == 0);
}

int xds_params_cmp(const struct xds_params *a, const struct xds_params *b)
{
	uint32_t n_a = a ? a->n : 0, n_b = b ? b->n : 0;
	for (uint32_t i = 0; i < n_a && i < n_b; i++) {
		int order = strcmp(a->list[i].key, b->list[i].key);
		if (!order)
			order = strcmp(a->list[i].value, b->list[i].value);
		if (order)
			return order;
	}
	return (n_a > n_b) - (n_a < n_b);
}

uint64_t xds_params_hash(const struct xds_params *p)
{
	return p ? p->hash : 0;
}

void xds_params_print(const struct xds_params *p, char *out, size_t room)
{
	struct xds_text t = xds_text_of(out, room);
	xds_text_add(&t, "{");
	for (uint32_t i = 0; p && i < p->n; i++) {
		xds_text_add(&t, i ? ", " : "");
		xds_text_add_word(&t, p->list[i].key);
		xds_text_add(&t, "=");
		xds_text_add_word(&t, p->list[i].value);
	}
	xds_text_add(&t, "}");
}
