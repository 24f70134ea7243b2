// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/route_compile.h"

#include "ctrl/assemble/cluster_set.h"
#include "ctrl/assemble/regex_cache.h"
#include "ctrl/assemble/vhost_conf.h"
#include "ctrl/assemble/vhost_numbers.h"
#include "ctrl/base/strmap.h"
#include "ctrl/res/route.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/route/route.h"

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
	uint16_t number; // of its counters; 0 = none
	char key[65]; // hashes of its bytes and of its clusters' ids
};

struct route_compiler {
	struct route_compiler_conf conf;
	struct strmap units; // by key
	struct compiled_routes *leaving; // to be freed
};

struct compiled_routes {
	struct route_compiler *compiler;
	struct lb_route_table *table; // counted
	struct compiled_routes *next; // that is leaving
	uint32_t n; // units that it has, when it leaves
	struct unit *units[]; // one use of each
};

struct route_compiler *route_compiler_new(const struct route_compiler_conf *conf)
{
	struct route_compiler *c = calloc(1, sizeof(*c));
	if (c)
		c->conf = *conf;
	return c;
}

static void unit_free(struct route_compiler *c, struct unit *u)
{
	vhost_numbers_give(c->conf.numbers, u->number);
	lb_vhost_put(u->vhost);
	free(u);
}

static void unit_put(struct route_compiler *c, struct unit *u)
{
	if (!u || --u->n_users)
		return;
	strmap_remove(&c->units, &u->by_key);
	unit_free(c, u);
}

static struct unit *unit_find(struct route_compiler *c, const char *key)
{
	struct strmap_link *l = strmap_find(&c->units, key);
	if (!l)
		return NULL;
	struct unit *u = CONTAINER_OF(l, struct unit, by_key);
	u->n_users++;
	return u;
}

// One virtual host's patterns and where they are.
struct patterns {
	uint32_t n_paths, n_headers;
	struct str *list; // owned: of paths, then of headers
	struct lb_regex_ref *refs; // owned; borrowed from the cache until its next sweep
};

enum stage { LOOKING, ASKING, MAKING, JOINING, DONE };

struct route_job {
	struct route_compiler *compiler;
	const struct res_route_config *routes;
	struct route_compile_how how;
	bool is_trusted; // who sent the routes
	const struct res_vhost *vhosts; // those of the table
	uint32_t n_vhosts;
	struct compiled_routes *to;
	char (*keys)[65]; // owned, [n_vhosts]
	enum stage stage;
	uint32_t next; // of the vhosts, in this stage
	uint32_t n_exact; // domains without a star
	struct str *domains; // owned; of one virtual host at a time
	uint32_t domains_room;
	struct lb_err *err;
};

// What the object depends on: the bytes, whether their sender is trusted (A81), and which clusters
// the names stand for now (ids are given to others, once their clusters are gone).
static void make_key(const struct route_job *j, const struct res_vhost *v, char key[65])
{
	const struct cluster_set *clusters = j->compiler->conf.clusters;
	struct {
		uint64_t hash[2]; // so far
		uint64_t id;
	} ids = {.hash = {j->is_trusted}};
	for (uint32_t i = 0; i < v->n_routes; i++) {
		for (uint32_t k = 0; k < v->routes[i].n_clusters; k++) {
			const struct res_weighted_cluster *w = &v->routes[i].clusters[k];
			const struct cluster *known =
				w->weight ? cluster_set_find(clusters, w->name) : NULL;
			ids.id = known ? known->id : UINT32_MAX;
			XXH128_hash_t h = XXH3_128bits(&ids, sizeof(ids));
			ids.hash[0] = h.low64;
			ids.hash[1] = h.high64;
		}
	}
	snprintf(key, 65, "%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "%016" PRIx64, v->hash[0],
		v->hash[1], ids.hash[0], ids.hash[1]);
}

static enum route_compile_outcome no_memory(struct lb_err *err)
{
	lb_err_set(err, "out of memory");
	return ROUTE_COMPILE_REFUSED;
}

static void patterns_fini(struct patterns *p)
{
	free(p->list);
	free(p->refs);
}

static enum route_compile_outcome ask(
	struct route_job *j, enum regex_cache_use use, const struct patterns *p)
{
	uint32_t first = use == REGEX_OF_PATHS ? 0 : p->n_paths;
	uint32_t n = use == REGEX_OF_PATHS ? p->n_paths : p->n_headers;
	if (n == 0)
		return ROUTE_COMPILED;
	no_memory(j->err);
	int err = regex_cache_ask(
		j->compiler->conf.regexes, use, p->list + first, n, p->refs + first, j->err);
	return err == 0         ? ROUTE_COMPILED
	       : err == -EAGAIN ? ROUTE_COMPILE_WAITS
	                        : ROUTE_COMPILE_REFUSED;
}

static enum route_compile_outcome patterns_init(
	struct patterns *p, struct route_job *j, const struct res_vhost *v)
{
	vhost_patterns(v, NULL, &p->n_paths, NULL, &p->n_headers);
	size_t n = (size_t)p->n_paths + p->n_headers;
	if (n == 0)
		return ROUTE_COMPILED;
	p->list = calloc(n, sizeof(*p->list));
	p->refs = calloc(n, sizeof(*p->refs));
	if (!p->list || !p->refs)
		return no_memory(j->err);
	vhost_patterns(v, p->list, &p->n_paths, p->list + p->n_paths, &p->n_headers);
	enum route_compile_outcome paths = ask(j, REGEX_OF_PATHS, p);
	if (paths == ROUTE_COMPILE_REFUSED)
		return paths;
	enum route_compile_outcome headers = ask(j, REGEX_OF_HEADERS, p);
	return headers == ROUTE_COMPILED ? paths : headers;
}

static uint32_t count_exact(const struct res_vhost *v)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < v->n_domains; i++)
		n += !strchr(v->domains[i], '*');
	return n;
}

// What is in use already is used again.
static enum route_compile_outcome look(struct route_job *j, struct slice *slice)
{
	while (j->next < j->n_vhosts) {
		uint32_t i = j->next++;
		j->n_exact += count_exact(&j->vhosts[i]);
		make_key(j, &j->vhosts[i], j->keys[i]);
		j->to->units[i] = unit_find(j->compiler, j->keys[i]);
		if (slice_over(slice))
			return ROUTE_COMPILE_GOES_ON;
	}
	j->stage = ASKING;
	return ROUTE_COMPILED;
}

// Of the rest the patterns are asked for, all of them, so that they are compiled in one go; without
// a pause, since what is not asked for each time is forgotten.
static enum route_compile_outcome ask_for_all(struct route_job *j)
{
	enum route_compile_outcome worst = ROUTE_COMPILED;
	for (uint32_t i = 0; i < j->n_vhosts; i++) {
		struct patterns p = {.n_paths = 0};
		if (j->to->units[i])
			continue;
		enum route_compile_outcome outcome = patterns_init(&p, j, &j->vhosts[i]);
		patterns_fini(&p);
		if (outcome == ROUTE_COMPILE_REFUSED)
			return outcome;
		if (outcome == ROUTE_COMPILE_WAITS)
			worst = outcome;
	}
	if (worst == ROUTE_COMPILED) {
		j->stage = MAKING;
		j->next = 0;
	}
	return worst;
}

static struct lb_vhost *compile(
	struct route_job *j, const struct res_vhost *v, const struct patterns *p, uint16_t number)
{
	struct vhost_conf_env env = {
		.clusters = j->compiler->conf.clusters,
		.is_trusted = j->is_trusted,
		.paths = p->refs,
		.headers = p->refs ? p->refs + p->n_paths : NULL,
		.number = number,
	};
	struct vhost_conf conf;
	struct lb_vhost *made = NULL;
	if (vhost_conf_init(&conf, v, &env, j->err) == 0) {
		made = lb_vhost_new(&conf.conf, j->err);
		if (!made)
			lb_err_within(j->err, "virtual host '%s'", v->name);
	}
	vhost_conf_fini(&conf);
	return made;
}

// NULL = refused.
static struct unit *unit_new(struct route_job *j, uint32_t index, const struct patterns *p)
{
	struct route_compiler *c = j->compiler;
	const struct res_vhost *v = &j->vhosts[index];
	struct unit *u = calloc(1, sizeof(*u));
	if (!u) {
		no_memory(j->err);
		return NULL;
	}
	memcpy(u->key, j->keys[index], sizeof(u->key));
	u->n_users = 1;
	u->number = vhost_numbers_take(c->conf.numbers, v->name);
	u->vhost = compile(j, v, p, u->number);
	if (u->vhost && strmap_add(&c->units, &u->by_key, u->key) == 0)
		return u;
	if (u->vhost)
		no_memory(j->err);
	unit_free(c, u);
	return NULL;
}

static enum route_compile_outcome make_unit(struct route_job *j, uint32_t index, struct unit **ret)
{
	struct patterns p = {.n_paths = 0};
	enum route_compile_outcome outcome = patterns_init(&p, j, &j->vhosts[index]);
	if (outcome == ROUTE_COMPILED) {
		*ret = unit_new(j, index, &p);
		outcome = *ret ? ROUTE_COMPILED : ROUTE_COMPILE_REFUSED;
	}
	patterns_fini(&p);
	return outcome;
}

static enum route_compile_outcome make_units(struct route_job *j, struct slice *slice)
{
	for (; j->next < j->n_vhosts; j->next++) {
		struct unit **place = &j->to->units[j->next];
		enum route_compile_outcome outcome = ROUTE_COMPILED;
		if (!*place) // a twin in the same configuration may have come meanwhile
			*place = unit_find(j->compiler, j->keys[j->next]);
		if (!*place)
			outcome = make_unit(j, j->next, place);
		if (outcome == ROUTE_COMPILE_WAITS) // its patterns were forgotten meanwhile
			j->stage = ASKING;
		if (outcome != ROUTE_COMPILED)
			return outcome;
		if (slice_over(slice)) {
			j->next++;
			return ROUTE_COMPILE_GOES_ON;
		}
	}
	j->stage = JOINING;
	j->next = 0;
	return ROUTE_COMPILED;
}

static int add_to_table(struct route_job *j, uint32_t index)
{
	const struct res_vhost *v = &j->vhosts[index];
	if (v->n_domains > j->domains_room) {
		free(j->domains);
		j->domains_room = v->n_domains;
		j->domains = calloc(v->n_domains, sizeof(*j->domains));
	}
	if (!j->domains)
		return -ENOMEM;
	for (uint32_t i = 0; i < v->n_domains; i++)
		j->domains[i] = str_from(v->domains[i]);
	const struct lb_vhost_conf conf = {
		.name = str_from(v->name), .domains = j->domains, .n_domains = v->n_domains};
	return lb_route_table_add(j->to->table, &conf, j->to->units[index]->vhost, j->err);
}

static enum route_compile_outcome make_table(struct route_job *j, struct slice *slice)
{
	no_memory(j->err);
	if (!j->to->table)
		j->to->table = lb_route_table_new(&(struct lb_route_table_conf){
			.n_vhosts = j->n_vhosts,
			.n_exact = j->n_exact,
			.ignore_port = j->routes->ignore_port,
			.grpc_sees_all = j->how.grpc_sees_all,
			.n_workers = j->compiler->conf.n_workers,
		});
	if (!j->to->table)
		return ROUTE_COMPILE_REFUSED;
	while (j->next < j->n_vhosts) {
		if (add_to_table(j, j->next++))
			return ROUTE_COMPILE_REFUSED;
		if (slice_over(slice))
			return ROUTE_COMPILE_GOES_ON;
	}
	if (lb_route_table_seal(j->to->table, j->err))
		return ROUTE_COMPILE_REFUSED;
	j->stage = DONE;
	return ROUTE_COMPILED;
}

struct route_job *route_job_new(struct route_compiler *c, const struct res_route_config *routes,
	struct route_compile_how how)
{
	struct route_job *j = calloc(1, sizeof(*j));
	if (!j)
		return NULL;
	*j = (struct route_job){
		.compiler = c,
		.routes = routes,
		.how = how,
		.is_trusted = xds_res_is_trusted(&routes->base),
		.vhosts = how.vhost < 0 ? routes->vhosts : &routes->vhosts[how.vhost],
		.n_vhosts = how.vhost < 0 ? routes->n_vhosts : 1,
	};
	j->keys = calloc((size_t)j->n_vhosts + 1, sizeof(*j->keys));
	j->to = calloc(1, sizeof(*j->to) + j->n_vhosts * sizeof(j->to->units[0]));
	if (!j->keys || !j->to) {
		route_job_free(j);
		return NULL;
	}
	j->to->compiler = c;
	j->to->n = j->n_vhosts;
	return j;
}

void route_job_free(struct route_job *j)
{
	if (!j)
		return;
	compiled_routes_free(j->to);
	free(j->keys);
	free(j->domains);
	free(j);
}

enum route_compile_outcome route_job_run(
	struct route_job *j, struct compiled_routes **ret, struct lb_err *reterr)
{
	struct slice *slice = &j->compiler->conf.slice;
	enum route_compile_outcome outcome = ROUTE_COMPILED;
	*ret = NULL;
	j->err = reterr;
	slice_begin(slice);
	if (j->stage == LOOKING)
		outcome = look(j, slice);
	if (outcome == ROUTE_COMPILED && j->stage == ASKING)
		outcome = ask_for_all(j);
	if (outcome == ROUTE_COMPILED && j->stage == MAKING)
		outcome = make_units(j, slice);
	if (outcome == ROUTE_COMPILED && j->stage == JOINING)
		outcome = make_table(j, slice);
	if (outcome == ROUTE_COMPILED) {
		*ret = j->to;
		j->to = NULL;
	}
	return outcome;
}

// Frees a part of the first that is leaving, or all of it (NULL).
static void let_go(struct route_compiler *c, struct slice *slice)
{
	struct compiled_routes *r = c->leaving;
	lb_route_table_put(r->table); // the units are what it is made of
	r->table = NULL;
	while (r->n > 0) {
		unit_put(c, r->units[--r->n]);
		if (slice && slice_over(slice))
			return;
	}
	c->leaving = r->next;
	free(r);
}

void route_compiler_tidy(struct route_compiler *c)
{
	slice_begin(&c->conf.slice);
	// Whoever frees a table frees what nobody else has of it: snapshots go first.
	while (c->leaving && !(c->leaving->table && lb_route_table_is_shared(c->leaving->table))) {
		struct compiled_routes *first = c->leaving;
		let_go(c, &c->conf.slice);
		if (c->leaving == first)
			return;
	}
}

void route_compiler_free(struct route_compiler *c)
{
	if (!c)
		return;
	while (c->leaving)
		let_go(c, NULL);
	CHECK(c->units.n == 0);
	strmap_fini(&c->units);
	free(c);
}

void compiled_routes_free(struct compiled_routes *r)
{
	if (!r)
		return;
	struct route_compiler *c = r->compiler;
	struct compiled_routes **last = &c->leaving;
	while (*last)
		last = &(*last)->next;
	*last = r;
	r->next = NULL;
	while (c->leaving && slice_is_whole(&c->conf.slice))
		let_go(c, NULL);
}

struct lb_route_table *compiled_routes_table(const struct compiled_routes *r)
{
	return r->table;
}
