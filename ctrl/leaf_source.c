// SPDX-License-Identifier: Apache-2.0
#include "ctrl/leaf_source.h"

#include "ctrl/cluster_tree.h"
#include "ctrl/deps/depmgr.h"
#include "ctrl/load_report.h"
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "lb/base/twheel.h"
#include "lb/leaf.h"
#include "lb/loads.h"
#include "lb/node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// A leaf's configuration in the making. All is owned but for what it points to in the resources.
struct draft {
	struct lb_leaf_priority *priorities;
	struct lb_leaf_locality *localities;
	struct lb_leaf_endpoint *endpoints;
	struct ip_port *addresses; // of endpoints with several
	struct lb_drop_category *drops;
	char *names; // of localities, one after the other
	uint32_t n_priorities, n_localities, n_endpoints, n_addresses, n_drops;
	size_t names_len;
};

static void put(struct xds_res *res)
{
	xds_res_put(res);
}

static void set_cluster(struct res_cluster **at, struct res_cluster *c)
{
	if (c)
		xds_res_get(&c->base);
	put(*at ? &(*at)->base : NULL);
	*at = c;
}

static void set_endpoints(struct res_endpoints **at, struct res_endpoints *e)
{
	if (e)
		xds_res_get(&e->base);
	put(*at ? &(*at)->base : NULL);
	*at = e;
}

struct leaf_source *leaf_source_new(const struct cluster_tree_env *env, const char *name)
{
	struct leaf_source *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->id = ids_take(env->leaf_ids, twheel_now(env->wheel));
	s->name = strdup(name);
	if (s->id == IDS_NONE || !s->name) {
		leaf_source_free(s, env);
		return NULL;
	}
	return s;
}

void leaf_source_free(struct leaf_source *s, const struct cluster_tree_env *env)
{
	if (!s)
		return;
	if (s->id != IDS_NONE)
		ids_give(env->leaf_ids, s->id, twheel_now(env->wheel));
	set_cluster(&s->cluster, NULL);
	set_endpoints(&s->endpoints, NULL);
	set_cluster(&s->policy_of, NULL);
	load_leaf_free(s->loads);
	free(s->note);
	free(s->name);
	free(s);
}

bool leaf_source_is_same(const struct leaf_source *s, const struct xds_cluster_config *conf,
	const struct res_cluster *policy)
{
	return s->cluster && s->cluster == conf->cluster && s->endpoints == conf->endpoints &&
	       lb_policy_spec_same(s->policy_of->spec, policy->spec) &&
	       strcmp(s->note, conf->resolution_note) == 0;
}

// A55-V07, A55-O03: others take no part.
static bool is_used(const struct res_endpoint *e)
{
	return e->health == RES_HEALTH_UNKNOWN || e->health == RES_HEALTH_HEALTHY ||
	       e->health == RES_HEALTH_DRAINING;
}

static enum lb_leaf_health health_of(const struct res_endpoint *e)
{
	switch (e->health) {
	case RES_HEALTH_DRAINING:
		return LB_LEAF_DRAINING;
	case RES_HEALTH_HEALTHY:
		return LB_LEAF_HEALTHY;
	default:
		return LB_LEAF_UNKNOWN;
	}
}

static uint32_t session_health(const struct res_cluster *c)
{
	uint32_t mask = 0;
	mask |= (c->session_health >> RES_HEALTH_UNKNOWN & 1) << LB_LEAF_UNKNOWN;
	mask |= (c->session_health >> RES_HEALTH_HEALTHY & 1) << LB_LEAF_HEALTHY;
	mask |= (c->session_health >> RES_HEALTH_DRAINING & 1) << LB_LEAF_DRAINING;
	return mask;
}

static size_t name_size(const struct res_locality *l)
{
	return 2 * (strlen(l->region) + strlen(l->zone) + strlen(l->sub_zone)) + 2;
}

static bool draft_alloc(struct draft *d, const struct res_endpoints *e)
{
	size_t localities = 0, endpoints = 0, addresses = 0, names = 0;
	uint32_t n_priorities = e ? e->n_priorities : 0, n_drops = e ? e->n_drops : 0;
	for (uint32_t i = 0; i < n_priorities; i++) {
		localities += e->priorities[i].n_localities;
		for (uint32_t j = 0; j < e->priorities[i].n_localities; j++) {
			const struct res_locality *l = &e->priorities[i].localities[j];
			names += name_size(l);
			endpoints += l->n_endpoints;
			for (uint32_t k = 0; k < l->n_endpoints; k++)
				if (l->endpoints[k].more)
					addresses += 1 + l->endpoints[k].more->n_additional;
		}
	}
	d->priorities = calloc((size_t)n_priorities + 1, sizeof(*d->priorities));
	d->localities = calloc(localities + 1, sizeof(*d->localities));
	d->endpoints = malloc((endpoints + 1) * sizeof(*d->endpoints));
	d->addresses = malloc((addresses + 1) * sizeof(*d->addresses));
	d->drops = calloc((size_t)n_drops + 1, sizeof(*d->drops));
	d->names = malloc(names + 1);
	return d->priorities && d->localities && d->endpoints && d->addresses && d->drops &&
	       d->names;
}

static void draft_fini(struct draft *d)
{
	free(d->priorities);
	free(d->localities);
	free(d->endpoints);
	free(d->addresses);
	free(d->drops);
	free(d->names);
}

static void add_endpoint(struct draft *d, const struct res_endpoint *e)
{
	const struct res_endpoint_more *more = e->more;
	struct lb_leaf_endpoint *to = &d->endpoints[d->n_endpoints++];
	*to = (struct lb_leaf_endpoint){.addresses = &e->addr,
		.n_addresses = 1,
		.weight = e->weight,
		.health = health_of(e)};
	if (!more)
		return;
	to->hostname = str_from(more->hostname);
	to->hash_key = str_from(more->hash_key);
	to->n_addresses += more->n_additional;
	to->addresses = &d->addresses[d->n_addresses];
	d->addresses[d->n_addresses++] = e->addr;
	for (uint32_t i = 0; i < more->n_additional; i++)
		d->addresses[d->n_addresses++] = more->additional[i];
}

static void add_name_part(struct draft *d, const char *part)
{
	for (; *part; part++) {
		if (*part == '/' || *part == '\\')
			d->names[d->names_len++] = '\\';
		d->names[d->names_len++] = *part;
	}
}

// Slashes of its parts are escaped, so that no two localities have the same name.
static struct str add_name(struct draft *d, const struct res_locality *l)
{
	size_t from = d->names_len;
	add_name_part(d, l->region);
	d->names[d->names_len++] = '/';
	add_name_part(d, l->zone);
	d->names[d->names_len++] = '/';
	add_name_part(d, l->sub_zone);
	return (struct str){d->names + from, d->names_len - from};
}

static void add_locality(struct draft *d, const struct res_locality *l, struct load_leaf *loads)
{
	struct lb_leaf_locality *to = &d->localities[d->n_localities++];
	to->name = add_name(d, l);
	to->weight = l->weight;
	to->endpoints = &d->endpoints[d->n_endpoints];
	for (uint32_t i = 0; i < l->n_endpoints; i++)
		if (is_used(&l->endpoints[i]))
			add_endpoint(d, &l->endpoints[i]);
	to->n_endpoints = (uint32_t)(&d->endpoints[d->n_endpoints] - to->endpoints);
	if (loads)
		to->load = load_leaf_locality(loads, l->region, l->zone, l->sub_zone);
}

static void draft_fill(struct draft *d, const struct res_endpoints *e, struct load_leaf *loads)
{
	for (uint32_t i = 0; e && i < e->n_priorities; i++) {
		const struct res_priority *p = &e->priorities[i];
		struct lb_leaf_priority *to = &d->priorities[d->n_priorities++];
		*to = (struct lb_leaf_priority){&d->localities[d->n_localities], p->n_localities};
		for (uint32_t j = 0; j < p->n_localities; j++)
			add_locality(d, &p->localities[j], loads);
	}
	for (uint32_t i = 0; e && i < e->n_drops; i++)
		d->drops[d->n_drops++] =
			(struct lb_drop_category){e->drops[i].category, e->drops[i].per_million};
}

static int update(struct leaf_source *s, struct lb_leaf *leaf,
	const struct xds_cluster_config *conf, const struct lb_policy_spec *spec)
{
	const struct res_cluster *c = conf->cluster;
	const struct res_endpoints *e = conf->endpoints;
	struct draft d = {0};
	if (!draft_alloc(&d, e)) {
		draft_fini(&d);
		return -ENOMEM;
	}
	if (s->loads)
		load_leaf_begin(s->loads);
	draft_fill(&d, e, s->loads);
	const struct lb_leaf_config config = {
		.spec = spec,
		.priorities = d.priorities,
		.n_priorities = d.n_priorities,
		.drops = d.drops,
		.n_drops = d.n_drops,
		.loads = s->loads ? load_leaf_drops(s->loads, d.drops, d.n_drops) : NULL,
		.metrics = s->loads ? load_leaf_metrics(s->loads) : NULL,
		.max_requests = c->max_requests,
		.eds_service_name = c->eds_service_name,
		.outlier = c->outlier,
		.session_health = session_health(c),
		.idle_timeout_ns = c->idle_timeout_ns,
		.ignores_reresolution = c->kind == RES_CLUSTER_EDS, // C06
		.note = conf->resolution_note,
	};
	int err = lb_leaf_update(leaf, &config);
	if (!err && s->loads)
		load_leaf_end(s->loads);
	draft_fini(&d);
	return err;
}

static int choose_loads(
	struct leaf_source *s, struct load_report *report, const struct res_cluster *c)
{
	bool wanted = c->reports_load && report;
	bool fits = s->loads && s->cluster &&
	            strcmp(s->cluster->eds_service_name, c->eds_service_name) == 0;
	if (!wanted || !fits) {
		load_leaf_free(s->loads);
		s->loads = wanted ? load_leaf_new(report, s->name, c->eds_service_name) : NULL;
	}
	if (!wanted)
		return 0;
	return s->loads ? load_leaf_set_metrics(s->loads, c->metrics, c->n_metrics) : -ENOMEM;
}

int leaf_source_apply(struct leaf_source *s, const struct cluster_tree_env *env,
	struct lb_leaf *leaf, const struct xds_cluster_config *conf, struct res_cluster *policy)
{
	if (s->policy_of && lb_policy_spec_same(s->policy_of->spec, policy->spec))
		policy = s->policy_of;
	char *note = strdup(conf->resolution_note);
	int err = note ? choose_loads(s, env->loads, conf->cluster) : -ENOMEM;
	if (!err)
		err = update(s, leaf, conf, policy->spec);
	if (err) {
		free(note);
		return err;
	}
	set_cluster(&s->cluster, conf->cluster);
	set_endpoints(&s->endpoints, conf->endpoints);
	set_cluster(&s->policy_of, policy);
	free(s->note);
	s->note = note;
	return 0;
}
