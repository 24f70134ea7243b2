// SPDX-License-Identifier: Apache-2.0
#include "ctrl/route_compile.h"

#include "ctrl/cluster_set.h"
#include "ctrl/res/route.h"
#include "ctrl/vhost_conf.h"
#include "ctrl/xds/strmap.h"
#include "lb/base/check.h"
#include "lb/route.h"

#include <xxhash.h>

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A compiled virtual host, as long as some compiled_routes has it.
struct unit {
	struct strmap_link by_key;
	uint32_t n_users;
	struct lb_vhost *vhost; // counted
	char key[65]; // hashes of its bytes and of its clusters' ids
};

struct route_compiler {
	struct route_compiler_conf conf;
	struct strmap units; // by key
};

struct compiled_routes {
	struct route_compiler *compiler;
	struct lb_route_table *table; // counted
	uint32_t n;
	struct unit *units[]; // one use of each
};

struct route_compiler *route_compiler_new(const struct route_compiler_conf *conf)
{
	struct route_compiler *c = calloc(1, sizeof(*c));
	if (c)
		c->conf = *conf;
	return c;
}

void route_compiler_free(struct route_compiler *c)
{
	if (!c)
		return;
	CHECK(c->units.n == 0);
	strmap_fini(&c->units);
	free(c);
}

static void unit_put(struct route_compiler *c, struct unit *u)
{
	if (!u || --u->n_users)
		return;
	strmap_remove(&c->units, &u->by_key);
	lb_vhost_put(u->vhost);
	free(u);
}

static struct unit *unit_find(struct route_compiler *c, const char *key)
{
	struct strmap_link *l = strmap_find(&c->units, key);
	if (!l)
		return NULL;
	struct unit *u = (struct unit *)((char *)l - offsetof(struct unit, by_key));
	u->n_users++;
	return u;
}

// What the object depends on: the bytes, and which clusters the names stand for now (ids are given
// to others, once their clusters are gone).
static void make_key(const struct route_compiler *c, const struct res_vhost *v, char key[65])
{
	struct {
		uint64_t hash[2]; // so far
		uint64_t id;
	} ids = {0};
	for (uint32_t i = 0; i < v->n_routes; i++) {
		for (uint32_t k = 0; k < v->routes[i].n_clusters; k++) {
			const struct res_weighted_cluster *w = &v->routes[i].clusters[k];
			const struct cluster *known =
				w->weight ? cluster_set_find(c->conf.clusters, w->name) : NULL;
			ids.id = known ? known->id : UINT32_MAX;
			XXH128_hash_t h = XXH3_128bits(&ids, sizeof(ids));
			ids.hash[0] = h.low64;
			ids.hash[1] = h.high64;
		}
	}
	snprintf(key, 65, "%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "%016" PRIx64, v->hash[0],
		v->hash[1], ids.hash[0], ids.hash[1]);
}

// One call of route_compile().
struct job {
	struct route_compiler *compiler;
	const struct res_vhost *vhosts; // those of the table
	uint32_t n_vhosts;
	struct compiled_routes *to;
	char (*keys)[65]; // owned, [n_vhosts]
	// Patterns of the virtual hosts that are not known, in the order in which they are built.
	struct str *patterns; // owned
	struct lb_regex_ref *refs; // owned; of patterns
	uint32_t n_patterns, room, next;
	bool starved;
	struct lb_err *err;
};

static void add_pattern(void *ctx, struct str pattern)
{
	struct job *j = ctx;
	if (j->n_patterns == j->room) {
		uint32_t room = j->room ? 2 * j->room : 64;
		struct str *list = realloc(j->patterns, room * sizeof(*list));
		if (!list) {
			j->starved = true;
			return;
		}
		j->patterns = list;
		j->room = room;
	}
	j->patterns[j->n_patterns++] = pattern;
}

static struct lb_regex_ref next_ref(void *ctx, struct str pattern)
{
	struct job *j = ctx;
	CHECK(j->next < j->n_patterns && str_eq(j->patterns[j->next], pattern));
	return j->refs[j->next++];
}

static enum route_compile_outcome no_memory(struct lb_err *err)
{
	lb_err_set(err, "out of memory");
	return ROUTE_COMPILE_REFUSED;
}

// What is in use already is used again; the patterns of the rest are gathered.
static enum route_compile_outcome find_units(struct job *j)
{
	for (uint32_t i = 0; i < j->n_vhosts; i++) {
		make_key(j->compiler, &j->vhosts[i], j->keys[i]);
		j->to->units[i] = unit_find(j->compiler, j->keys[i]);
		if (!j->to->units[i])
			vhost_each_pattern(&j->vhosts[i], add_pattern, j);
	}
	return j->starved ? no_memory(j->err) : ROUTE_COMPILED;
}

static enum route_compile_outcome find_patterns(struct job *j)
{
	if (j->n_patterns == 0)
		return ROUTE_COMPILED;
	lb_err_set(j->err, "regular expressions are not built");
	return ROUTE_COMPILE_REFUSED;
}

static struct unit *unit_new(struct job *j, uint32_t index)
{
	struct vhost_conf_env env = {
		j->compiler->conf.clusters, j->compiler->conf.trusts_server, next_ref, j};
	struct vhost_conf v;
	struct unit *u = calloc(1, sizeof(*u));
	if (!u) {
		no_memory(j->err);
		return NULL;
	}
	if (vhost_conf_init(&v, &j->vhosts[index], &env, j->err) == 0) {
		u->vhost = lb_vhost_new(&v.conf, j->err);
		if (!u->vhost)
			lb_err_within(j->err, "virtual host '%s'", j->vhosts[index].name);
	}
	vhost_conf_fini(&v);
	memcpy(u->key, j->keys[index], sizeof(u->key));
	u->n_users = 1;
	if (u->vhost && strmap_add(&j->compiler->units, &u->by_key, u->key) == 0)
		return u;
	if (u->vhost)
		no_memory(j->err);
	lb_vhost_put(u->vhost);
	free(u);
	return NULL;
}

static void skip_ref(void *ctx, struct str pattern)
{
	next_ref(ctx, pattern);
}

static enum route_compile_outcome make_units(struct job *j)
{
	for (uint32_t i = 0; i < j->n_vhosts; i++) {
		struct unit **place = &j->to->units[i];
		if (*place)
			continue;
		*place = unit_find(j->compiler, j->keys[i]);
		if (*place) // a twin in the same configuration
			vhost_each_pattern(&j->vhosts[i], skip_ref, j);
		else
			*place = unit_new(j, i);
		if (!*place)
			return ROUTE_COMPILE_REFUSED;
	}
	return ROUTE_COMPILED;
}

static enum route_compile_outcome make_table(struct job *j, bool ignore_port)
{
	uint32_t n_domains = 0;
	for (uint32_t i = 0; i < j->n_vhosts; i++)
		n_domains += j->vhosts[i].n_domains;
	struct lb_vhost_conf *confs = calloc((size_t)j->n_vhosts + 1, sizeof(*confs));
	struct lb_vhost **compiled = calloc((size_t)j->n_vhosts + 1, sizeof(struct lb_vhost *));
	struct str *domains = calloc((size_t)n_domains + 1, sizeof(*domains));
	bool ok = confs && compiled && domains;
	struct str *next = domains;
	for (uint32_t i = 0; ok && i < j->n_vhosts; i++) {
		const struct res_vhost *v = &j->vhosts[i];
		confs[i] = (struct lb_vhost_conf){
			.name = str_from(v->name), .domains = next, .n_domains = v->n_domains};
		for (uint32_t k = 0; k < v->n_domains; k++)
			*next++ = str_from(v->domains[k]);
		compiled[i] = j->to->units[i]->vhost;
	}
	no_memory(j->err);
	if (ok)
		j->to->table = lb_route_table_new(
			&(struct lb_route_table_conf){
				.vhosts = confs,
				.compiled = compiled,
				.n_vhosts = j->n_vhosts,
				.ignore_port = ignore_port,
				.n_workers = j->compiler->conf.n_workers,
			},
			j->err);
	free(confs);
	free(compiled);
	free(domains);
	return j->to->table ? ROUTE_COMPILED : ROUTE_COMPILE_REFUSED;
}

enum route_compile_outcome route_compile(struct route_compiler *c,
	const struct res_route_config *routes, int32_t vhost, struct compiled_routes **ret,
	struct lb_err *reterr)
{
	struct job j = {
		.compiler = c,
		.vhosts = vhost < 0 ? routes->vhosts : &routes->vhosts[vhost],
		.n_vhosts = vhost < 0 ? routes->n_vhosts : 1,
		.err = reterr,
	};
	*ret = NULL;
	j.keys = calloc((size_t)j.n_vhosts + 1, sizeof(*j.keys));
	j.to = calloc(1, sizeof(*j.to) + j.n_vhosts * sizeof(j.to->units[0]));
	enum route_compile_outcome outcome = ROUTE_COMPILED;
	if (!j.keys || !j.to) {
		outcome = no_memory(reterr);
	} else {
		j.to->compiler = c;
		j.to->n = j.n_vhosts;
		outcome = find_units(&j);
	}
	if (outcome == ROUTE_COMPILED)
		outcome = find_patterns(&j);
	if (outcome == ROUTE_COMPILED)
		outcome = make_units(&j);
	if (outcome == ROUTE_COMPILED)
		outcome = make_table(&j, routes->ignore_port);
	if (outcome == ROUTE_COMPILED)
		*ret = j.to;
	else
		compiled_routes_free(j.to);
	free(j.keys);
	free(j.patterns);
	free(j.refs);
	return outcome;
}

void compiled_routes_free(struct compiled_routes *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->n; i++)
		unit_put(r->compiler, r->units[i]);
	lb_route_table_put(r->table);
	free(r);
}

struct lb_route_table *compiled_routes_table(const struct compiled_routes *r)
{
	return r->table;
}
