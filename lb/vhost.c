// SPDX-License-Identifier: Apache-2.0
#include "lb/vhost.h"

#include "lb/base/check.h"
#include "lb/radix.h"
#include "lb/strmap.h"

#include <stdlib.h>

_Static_assert(LB_STRMAP_NONE == LB_VHOST_NONE && LB_RADIX_NONE == LB_VHOST_NONE,
	"keys of both kinds are absent in the same way");

// One kind of path: its keys, and behind those of routes the prefixes of regex sets.
struct paths {
	struct str *keys;
	uint32_t *numbers; // of the keys, in the tree or the hash
	uint32_t *up; // by number
	uint32_t *routes; // of keys[i]
	uint32_t n;
};

static int no_memory(struct lb_err *reterr)
{
	return lb_err_set(reterr, "no memory");
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void paths_fini(struct paths *p)
{
	free(p->keys);
	free(p->numbers);
	free(p->up);
	free(p->routes);
}

static bool paths_init(struct paths *p, size_t room)
{
	*p = (struct paths){.keys = malloc((room + 1) * sizeof(p->keys[0])),
		.numbers = malloc((room + 1) * sizeof(p->numbers[0])),
		.up = malloc((room + 1) * sizeof(p->up[0])),
		.routes = malloc((room + 1) * sizeof(p->routes[0]))};
	return p->keys && p->numbers && p->up && p->routes;
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

// The ascending list of each key's routes, from the last one on.
static uint32_t *list_routes(struct lb_vhost *v, const struct paths *p, uint32_t n_keys)
{
	uint32_t *first = malloc(((size_t)n_keys + 1) * sizeof(*first));
	if (!first)
		return NULL;
	for (uint32_t i = 0; i < n_keys; i++)
		first[i] = LB_VHOST_NONE;
	for (uint32_t i = p->n; i-- > 0;) {
		v->routes[p->routes[i]].next = first[p->numbers[i]];
		first[p->numbers[i]] = p->routes[i];
	}
	return first;
}

static bool build_exact(struct lb_vhost *v, struct paths *p)
{
	v->exact = lb_strmap_new(p->n);
	for (uint32_t i = 0; v->exact && i < p->n; i++) {
		p->numbers[i] = lb_strmap_add(v->exact, p->keys[i]);
		if (p->numbers[i] == LB_STRMAP_NONE)
			return false;
	}
	if (!v->exact || !lb_strmap_seal(v->exact))
		return false;
	v->n_exact = lb_strmap_count(v->exact);
	v->exact_first = list_routes(v, p, v->n_exact);
	return v->exact_first;
}

static bool build_exact_fold(struct lb_vhost *v, struct paths *p)
{
	v->exact_fold = lb_radix_new(p->keys, p->n, LB_RADIX_FOLD, p->numbers, p->up);
	if (!v->exact_fold)
		return false;
	v->n_exact_fold = lb_radix_count(v->exact_fold);
	v->exact_fold_first = list_routes(v, p, v->n_exact_fold);
	return v->exact_fold_first;
}

// Candidates of a set that wait at the same time: itself, or then its hits.
static uint32_t set_candidates(const struct lb_vhost_set *set)
{
	return (uint32_t)__builtin_popcountll(set->used);
}

// How many candidates the keys on one path can have at most.
static bool count_candidates(
	const struct lb_vhost *v, const struct lb_vhost_prefixes *to, uint32_t *ret)
{
	uint32_t n = to->n, *upto = malloc(((size_t)n + 1) * sizeof(*upto));
	if (!upto)
		return false;
	*ret = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct lb_vhost_key *k = &to->keys[i];
		upto[i] = (k->up == LB_VHOST_NONE ? 0 : upto[k->up]) + (k->first != LB_VHOST_NONE);
		if (to == &v->prefix && v->key_sets)
			for (uint32_t s = v->key_sets[i]; s != LB_VHOST_NONE; s = v->sets[s].next)
				upto[i] += set_candidates(&v->sets[s]);
		if (upto[i] > *ret)
			*ret = upto[i];
	}
	free(upto);
	return true;
}

// Sets hang at the keys behind those of routes. False = no memory.
static bool hang_sets(struct lb_vhost *v, const struct paths *p, uint32_t n_keys)
{
	if (v->n_sets == 0)
		return true;
	v->key_sets = malloc(n_keys * sizeof(v->key_sets[0]));
	if (!v->key_sets)
		return false;
	for (uint32_t i = 0; i < n_keys; i++)
		v->key_sets[i] = LB_VHOST_NONE;
	for (uint32_t i = 0; i < v->n_sets; i++) {
		uint32_t key = p->numbers[p->n + i];
		struct lb_vhost_set *set = &v->sets[i];
		set->next = v->key_sets[key];
		v->key_sets[key] = i;
		v->prefix.keys[key].smallest_set =
			smaller(v->prefix.keys[key].smallest_set, set->smallest);
	}
	return true;
}

static bool build_prefixes(struct lb_vhost *v, struct lb_vhost_prefixes *to, struct paths *p)
{
	bool with_sets = to == &v->prefix;
	uint32_t n_sets = with_sets ? v->n_sets : 0;
	for (uint32_t i = 0; i < n_sets; i++)
		p->keys[p->n + i] = lb_regex_set_prefix(v->sets[i].set);
	to->tree = lb_radix_new(
		p->keys, p->n + n_sets, with_sets ? 0 : LB_RADIX_FOLD, p->numbers, p->up);
	if (!to->tree)
		return false;
	uint32_t n = to->n = lb_radix_count(to->tree);
	uint32_t *first = list_routes(v, p, n);
	to->keys = malloc(((size_t)n + 1) * sizeof(to->keys[0]));
	for (uint32_t i = 0; first && to->keys && i < n; i++)
		to->keys[i] = (struct lb_vhost_key){p->up[i], first[i], first[i], LB_VHOST_NONE};
	bool ok = first && to->keys && (!with_sets || hang_sets(v, p, n));
	free(first);
	for (uint32_t i = 0; ok && i < n; i++) {
		struct lb_vhost_key *k = &to->keys[i];
		if (k->up == LB_VHOST_NONE)
			continue;
		k->smallest = smaller(k->smallest, to->keys[k->up].smallest);
		k->smallest_set = smaller(k->smallest_set, to->keys[k->up].smallest_set);
	}
	uint32_t n_candidates = 0;
	ok = ok && count_candidates(v, to, &n_candidates);
	v->needs.n_candidates += n_candidates;
	return ok;
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
		ok = build_prefixes(v, &v->prefix, &p);
	}
	if (ok) {
		paths_collect(&p, conf, LB_PATH_PREFIX, false);
		ok = build_prefixes(v, &v->prefix_fold, &p);
	}
	paths_fini(&p);
	v->needs.n_candidates += 2; // an exact path, and one that ignores case
	return ok;
}

// A number for each distinct set of the routes' paths. NULL = no memory.
static struct lb_strmap *number_sets(const struct lb_vhost_conf *conf)
{
	struct lb_strmap *m = lb_strmap_new(0);
	for (uint32_t i = 0; m && i < conf->n_routes; i++) {
		const struct lb_regex_set *set = conf->routes[i].regex.set;
		struct str key = {(const char *)&set, sizeof(set)};
		if (conf->routes[i].path_kind != LB_PATH_REGEX ||
			lb_strmap_add(m, key) != LB_STRMAP_NONE)
			continue;
		lb_strmap_free(m);
		return NULL;
	}
	return m;
}

static bool build_sets(struct lb_vhost *v, const struct lb_vhost_conf *conf)
{
	struct lb_strmap *m = number_sets(conf);
	if (!m)
		return false;
	uint32_t n = lb_strmap_count(m);
	v->sets = calloc((size_t)n + 1, sizeof(v->sets[0]));
	v->n_sets = v->sets ? n : 0;
	for (uint32_t i = conf->n_routes; v->sets && i-- > 0;) {
		const struct lb_regex_ref *ref = &conf->routes[i].regex;
		struct str key = {(const char *)&ref->set, sizeof(ref->set)};
		if (conf->routes[i].path_kind != LB_PATH_REGEX)
			continue;
		struct lb_vhost_set *set = &v->sets[lb_strmap_find(m, key)];
		if (!set->set)
			set->set = lb_regex_set_get(ref->set);
		uint64_t bit = UINT64_C(1) << ref->bit;
		v->routes[i].next = set->used & bit ? set->first[ref->bit] : LB_VHOST_NONE;
		set->used |= bit;
		set->first[ref->bit] = i;
		set->smallest = i;
	}
	lb_strmap_free(m);
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
	if (!lb_actions_seal(&v->actions) ||
		!lb_overrides_copy(&v->actions.arena, &conf->overrides, &v->overrides))
		return no_memory(reterr);
	lb_header_matchers_needs(v->matchers, &v->needs);
	return build_sets(v, conf) && build_paths(v, conf) ? 0 : no_memory(reterr);
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
	v->n_routes = conf->n_routes;
	v->routes = calloc((size_t)conf->n_routes + 1, sizeof(v->routes[0]));
	v->criteria = malloc((count_criteria(conf) + 1) * sizeof(v->criteria[0]));
	v->matchers = lb_header_matchers_new();
	bool ok = v->routes && v->criteria && v->matchers;
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

static void prefixes_fini(struct lb_vhost_prefixes *p)
{
	lb_radix_free(p->tree);
	free(p->keys);
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
	free(v->key_sets);
	prefixes_fini(&v->prefix);
	prefixes_fini(&v->prefix_fold);
	lb_radix_free(v->exact_fold);
	free(v->exact_fold_first);
	lb_strmap_free(v->exact);
	free(v->exact_first);
	lb_header_matchers_free(v->matchers);
	lb_actions_fini(&v->actions);
	free(v->criteria);
	free(v->routes);
	free(v);
}

static size_t prefixes_size(const struct lb_vhost_prefixes *p)
{
	return lb_radix_size(p->tree) + p->n * sizeof(p->keys[0]);
}

size_t lb_vhost_size(const struct lb_vhost *v)
{
	size_t n_key_sets = v->key_sets ? v->prefix.n : 0;
	return sizeof(*v) + v->n_routes * sizeof(v->routes[0]) +
	       v->n_criteria * sizeof(v->criteria[0]) + lb_strmap_size(v->exact) +
	       v->n_exact * sizeof(v->exact_first[0]) + lb_radix_size(v->exact_fold) +
	       v->n_exact_fold * sizeof(v->exact_fold_first[0]) + prefixes_size(&v->prefix) +
	       prefixes_size(&v->prefix_fold) + v->n_sets * sizeof(v->sets[0]) +
	       n_key_sets * sizeof(v->key_sets[0]) + lb_header_matchers_size(v->matchers) +
	       lb_actions_size(&v->actions);
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
