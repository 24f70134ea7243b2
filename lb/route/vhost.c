// SPDX-License-Identifier: Apache-2.0
#include "lb/route/vhost.h"

#include "lb/base/check.h"
#include "lb/index/radix.h"
#include "lb/index/string_index.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

static uint64_t vhosts_made; // ctrl only

// One kind of path: its keys, and behind those of routes the prefixes of regex sets.
struct paths {
	struct str *keys;
	void **values; // of the keys
	uint32_t *routes; // of keys[i]
	uint32_t n;
};

static int no_memory(struct lb_err *reterr)
{
	return lb_err_set(reterr, "out of memory");
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void paths_fini(struct paths *p)
{
	free(p->keys);
	free(p->values);
	free(p->routes);
}

static bool paths_init(struct paths *p, size_t room)
{
	*p = (struct paths){.keys = malloc((room + 1) * sizeof(p->keys[0])),
		.values = malloc((room + 1) * sizeof(void *)),
		.routes = malloc((room + 1) * sizeof(p->routes[0]))};
	return p->keys && p->values && p->routes;
}

static void paths_collect(struct paths *p, const struct lb_vhost_conf *conf, enum lb_path_kind kind,
	bool case_sensitive)
{
	p->n = 0;
	for (uint32_t i = 0; i < conf->n_routes; i++) {
		const struct lb_route_conf *r = &conf->routes[i];
		if (r->path_kind != kind || r->case_sensitive != case_sensitive)
			continue;
		p->keys[p->n] = r->path;
		p->routes[p->n++] = i;
	}
}

// The ascending list of each key's routes, from the last one on. Values begin with its first.
static void list_routes(struct lb_vhost *v, const struct paths *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		*(uint32_t *)p->values[i] = LB_VHOST_NONE;
	for (uint32_t i = p->n; i-- > 0;) {
		uint32_t *first = p->values[i];
		v->routes[p->routes[i]].next = *first;
		*first = p->routes[i];
	}
}

// LB_VHOST_NONE = the route, if any, has more criteria than its path.
static uint32_t plain_action(const struct lb_vhost *v, uint32_t route)
{
	if (route == LB_VHOST_NONE || v->routes[route].criteria != LB_VHOST_NONE)
		return LB_VHOST_NONE;
	return v->routes[route].action;
}

static void finish_exact(struct lb_vhost *v, const struct paths *p)
{
	list_routes(v, p);
	for (uint32_t i = 0; i < p->n; i++) {
		struct lb_vhost_exact *x = p->values[i];
		x->action = plain_action(v, x->first);
	}
}

static bool build_exact(struct lb_vhost *v, const struct paths *p)
{
	v->exact = lb_string_index_new(p->n, sizeof(struct lb_vhost_exact));
	for (uint32_t i = 0; v->exact && i < p->n; i++)
		if (lb_string_index_add(v->exact, p->keys[i]) == LB_STRING_INDEX_NONE)
			return false;
	if (!v->exact || !lb_string_index_seal(v->exact))
		return false;
	v->has_exact = p->n > 0;
	for (uint32_t i = 0; i < p->n; i++)
		p->values[i] =
			lb_string_index_value(v->exact, lb_string_index_find(v->exact, p->keys[i]));
	finish_exact(v, p);
	return true;
}

static bool build_exact_fold(struct lb_vhost *v, const struct paths *p)
{
	v->exact_fold = lb_radix_new(
		p->keys, p->n, LB_RADIX_FOLD, sizeof(struct lb_vhost_exact), p->values);
	v->has_exact_fold = p->n > 0;
	if (v->exact_fold)
		finish_exact(v, p);
	return v->exact_fold;
}

// What a prefix knows of regex sets here and above. Returns how many hits they can have here.
static uint32_t finish_sets(
	const struct lb_vhost *v, struct lb_vhost_prefix *x, const struct lb_vhost_prefix *up)
{
	uint32_t n = 0;
	x->smallest_set = up ? up->smallest_set : LB_VHOST_NONE;
	for (uint32_t s = x->sets; s != LB_VHOST_NONE; s = v->sets[s].next) {
		x->smallest_set = smaller(x->smallest_set, v->sets[s].smallest);
		n += (uint32_t)__builtin_popcountll(v->sets[s].used);
	}
	return n;
}

// From the lists of routes and sets to what each prefix knows of those above. Returns how many
// candidates a path can have at most: a list's route each, and for a set itself, then its hits.
static uint32_t finish_prefixes(
	const struct lb_vhost *v, const struct lb_radix *tree, bool has_sets)
{
	struct lb_vhost_prefix *x;
	uint32_t most = 0;
	for (x = lb_radix_next(tree, NULL); x; x = lb_radix_next(tree, x)) {
		const struct lb_vhost_prefix *up = lb_radix_up(tree, x);
		x->smallest = smaller(x->first, up ? up->smallest : LB_VHOST_NONE);
		x->n_candidates = (x->first != LB_VHOST_NONE) + (up ? up->n_candidates : 0) +
		                  (has_sets ? finish_sets(v, x, up) : 0);
		if (x->n_candidates > most)
			most = x->n_candidates;
	}
	for (x = lb_radix_next(tree, NULL); x; x = lb_radix_next(tree, x))
		x->action = plain_action(v, x->smallest);
	return most;
}

// Regex sets hang at the prefixes behind those of routes. NULL = out of memory.
static struct lb_radix *build_prefixes(
	struct lb_vhost *v, const struct paths *p, uint32_t n_sets, int flags)
{
	for (uint32_t i = 0; i < n_sets; i++)
		p->keys[p->n + i] = lb_regex_set_prefix(v->sets[i].set);
	size_t size = n_sets ? sizeof(struct lb_vhost_prefix)
	                     : offsetof(struct lb_vhost_prefix, smallest_set);
	struct lb_radix *tree = lb_radix_new(p->keys, p->n + n_sets, flags, size, p->values);
	if (!tree)
		return NULL;
	struct lb_vhost_prefix empty = {.first = LB_VHOST_NONE, .sets = LB_VHOST_NONE};
	for (uint32_t i = 0; i < p->n + n_sets; i++)
		memcpy(p->values[i], &empty, size);
	list_routes(v, p);
	for (uint32_t i = 0; i < n_sets; i++) {
		struct lb_vhost_prefix *x = p->values[p->n + i];
		v->sets[i].next = x->sets;
		x->sets = i;
	}
	v->needs.n_candidates += finish_prefixes(v, tree, n_sets > 0);
	return tree;
}

static bool build_paths(struct lb_vhost *v, const struct lb_vhost_conf *conf)
{
	struct paths p;
	bool ok = paths_init(&p, (size_t)conf->n_routes + v->n_sets);
	if (ok) {
		paths_collect(&p, conf, LB_PATH_EXACT, true);
		ok = build_exact(v, &p);
	}
	if (ok) {
		paths_collect(&p, conf, LB_PATH_EXACT, false);
		ok = build_exact_fold(v, &p);
	}
	if (ok) {
		paths_collect(&p, conf, LB_PATH_PREFIX, true);
		v->prefix = build_prefixes(v, &p, v->n_sets, 0);
		ok = v->prefix;
	}
	if (ok) {
		paths_collect(&p, conf, LB_PATH_PREFIX, false);
		v->has_prefix_fold = p.n > 0;
		v->prefix_fold = build_prefixes(v, &p, 0, LB_RADIX_FOLD);
		ok = v->prefix_fold;
	}
	paths_fini(&p);
	v->needs.n_candidates += 2; // an exact path, and one that ignores case
	return ok;
}

// A number for each distinct set of the routes' paths. NULL = out of memory.
static struct lb_string_index *number_sets(const struct lb_vhost_conf *conf)
{
	struct lb_string_index *m = lb_string_index_new(0, 0);
	for (uint32_t i = 0; m && i < conf->n_routes; i++) {
		const struct lb_regex_set *set = conf->routes[i].regex.set;
		struct str key = {(const char *)&set, sizeof(set)};
		if (conf->routes[i].path_kind != LB_PATH_REGEX ||
			lb_string_index_add(m, key) != LB_STRING_INDEX_NONE)
			continue;
		lb_string_index_free(m);
		return NULL;
	}
	return m;
}

static bool build_sets(struct lb_vhost *v, const struct lb_vhost_conf *conf)
{
	struct lb_string_index *m = number_sets(conf);
	if (!m)
		return false;
	uint32_t n = lb_string_index_count(m);
	v->sets = calloc((size_t)n + 1, sizeof(v->sets[0]));
	v->n_sets = v->sets ? n : 0;
	for (uint32_t i = conf->n_routes; v->sets && i-- > 0;) {
		const struct lb_regex_ref *ref = &conf->routes[i].regex;
		struct str key = {(const char *)&ref->set, sizeof(ref->set)};
		if (conf->routes[i].path_kind != LB_PATH_REGEX)
			continue;
		struct lb_vhost_set *set = &v->sets[lb_string_index_find(m, key)];
		if (!set->set)
			set->set = lb_regex_set_get(ref->set);
		uint64_t bit = UINT64_C(1) << ref->bit;
		v->routes[i].next = set->used & bit ? set->first[ref->bit] : LB_VHOST_NONE;
		set->used |= bit;
		set->first[ref->bit] = i;
		set->smallest = i;
	}
	lb_string_index_free(m);
	return v->sets;
}

static int build_criteria(struct lb_vhost *v, struct lb_vhost_route *to,
	const struct lb_route_conf *conf, struct lb_err *reterr)
{
	to->criteria = LB_VHOST_NONE;
	if (conf->n_headers == 0 && !conf->grpc_only && conf->ppm >= LB_PPM_ALWAYS)
		return 0;
	to->criteria = v->n_criteria;
	v->criteria[v->n_criteria++] = (struct lb_vhost_criteria){.ppm = conf->ppm,
		.grpc_only = conf->grpc_only,
		.matchers = lb_header_matchers_count(v->matchers),
		.n_matchers = conf->n_headers};
	for (uint32_t i = 0; i < conf->n_headers; i++)
		if (lb_header_matchers_add(v->matchers, &conf->headers[i], reterr))
			return lb_err_within(reterr, "headers[%u]", i);
	return 0;
}

static int build_route(
	struct lb_vhost *v, uint32_t i, const struct lb_route_conf *conf, struct lb_err *reterr)
{
	struct lb_vhost_route *to = &v->routes[i];
	if (conf->path_kind == LB_PATH_REGEX &&
		(!conf->regex.set || conf->regex.bit >= LB_REGEX_SET_MAX))
		return lb_err_set(reterr, "the path's regex is not compiled");
	int err = build_criteria(v, to, conf, reterr);
	return err ? err : lb_actions_add(&v->actions, conf, &to->action, reterr);
}

static int build(struct lb_vhost *v, const struct lb_vhost_conf *conf, struct lb_err *reterr)
{
	for (uint32_t i = 0; i < conf->n_routes; i++)
		if (build_route(v, i, &conf->routes[i], reterr))
			return lb_err_within(reterr, "routes[%u]", i);
	if (!lb_actions_seal(&v->actions))
		return no_memory(reterr);
	if (lb_overrides_copy(&v->actions.arena, &conf->overrides, &v->overrides, reterr))
		return -EINVAL;
	lb_header_matchers_needs(v->matchers, &v->needs);
	return build_sets(v, conf) && build_paths(v, conf) ? 0 : no_memory(reterr);
}

static struct str put_name(char **at, struct str name)
{
	struct str put = {*at, name.len};
	if (name.len)
		memcpy(*at, name.p, name.len);
	*at += name.len;
	return put;
}

static bool copy_names(struct lb_vhost_names *to, const struct lb_vhost_conf *conf)
{
	size_t n_routes = conf->n_routes, len = 0;
	for (size_t i = 0; i < n_routes; i++)
		len += conf->routes[i].name.len;
	size_t n_named = len ? n_routes : 0;
	to->size = conf->name.len + len + n_named * sizeof(to->routes[0]) +
	           n_routes * sizeof(to->indices[0]);
	char *at = to->bytes = malloc(len + conf->name.len + 1);
	to->indices = malloc((n_routes + 1) * sizeof(to->indices[0]));
	if (n_named)
		to->routes = calloc(n_named, sizeof(to->routes[0]));
	if (!at || !to->indices || (n_named && !to->routes))
		return false;
	to->vhost = put_name(&at, conf->name);
	for (size_t i = 0; i < n_routes; i++)
		to->indices[i] = conf->routes[i].index;
	for (size_t i = 0; i < n_named; i++)
		to->routes[i] = put_name(&at, conf->routes[i].name);
	return true;
}

static size_t count_criteria(const struct lb_vhost_conf *conf)
{
	size_t n = 0;
	for (uint32_t i = 0; i < conf->n_routes; i++) {
		const struct lb_route_conf *r = &conf->routes[i];
		n += r->n_headers || r->grpc_only || r->ppm < LB_PPM_ALWAYS;
	}
	return n;
}

struct lb_vhost *lb_vhost_new(const struct lb_vhost_conf *conf, struct lb_err *reterr)
{
	struct lb_vhost *v = calloc(1, sizeof(*v));
	if (!v) {
		(void)no_memory(reterr);
		return NULL;
	}
	v->n_refs = 1;
	v->serial = ++vhosts_made;
	v->number = conf->number;
	v->n_routes = conf->n_routes;
	v->routes = calloc((size_t)conf->n_routes + 1, sizeof(v->routes[0]));
	v->criteria = malloc((count_criteria(conf) + 1) * sizeof(v->criteria[0]));
	v->matchers = lb_header_matchers_new();
	bool ok = v->routes && v->criteria && v->matchers && copy_names(&v->names, conf);
	int err = ok ? build(v, conf, reterr) : no_memory(reterr);
	if (!err)
		return v;
	lb_vhost_put(v);
	return NULL;
}

struct lb_vhost *lb_vhost_get(struct lb_vhost *v)
{
	v->n_refs++;
	return v;
}

void lb_vhost_put(struct lb_vhost *v)
{
	if (!v)
		return;
	CHECK(v->n_refs > 0);
	if (--v->n_refs)
		return;
	for (uint32_t i = 0; i < v->n_sets; i++)
		lb_regex_set_put(v->sets[i].set);
	free(v->sets);
	free(v->names.routes);
	free(v->names.indices);
	free(v->names.bytes);
	lb_radix_free(v->prefix);
	lb_radix_free(v->prefix_fold);
	lb_radix_free(v->exact_fold);
	lb_string_index_free(v->exact);
	lb_header_matchers_free(v->matchers);
	lb_overrides_fini(&v->overrides);
	lb_actions_fini(&v->actions);
	free(v->criteria);
	free(v->routes);
	free(v);
}

size_t lb_vhost_size(const struct lb_vhost *v)
{
	return sizeof(*v) + v->n_routes * sizeof(v->routes[0]) +
	       v->n_criteria * sizeof(v->criteria[0]) + v->n_sets * sizeof(v->sets[0]) +
	       lb_string_index_size(v->exact) + lb_radix_size(v->exact_fold) +
	       lb_radix_size(v->prefix) + lb_radix_size(v->prefix_fold) +
	       lb_header_matchers_size(v->matchers) + lb_actions_size(&v->actions) + v->names.size;
}

struct lb_regex_set *lb_vhost_next_set(const struct lb_vhost *v, uint32_t *at)
{
	if (*at < v->n_sets)
		return v->sets[(*at)++].set;
	uint32_t i = *at - v->n_sets;
	struct lb_regex_set *set = lb_header_matchers_next_set(v->matchers, &i);
	*at = v->n_sets + i;
	return set;
}
