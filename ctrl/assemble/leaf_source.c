// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/leaf_source.h"

#include "ctrl/assemble/cluster_tree.h"
#include "ctrl/assemble/load_report.h"
#include "ctrl/assemble/overrides.h"
#include "ctrl/assemble/tls_want.h"
#include "ctrl/certs/credentials.h"
#include "ctrl/deps/config.h"
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/tls.h"
#include "lb/base/twheel.h"
#include "lb/leaf/leaf.h"
#include "lb/pick/loads.h"
#include "lb/pick/security.h"
#include "lb/policy/policy_spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// What a leaf's configuration has besides the resources. All is owned.
struct draft {
	struct lb_leaf_endpoints *endpoints; // counted
	struct lb_drop_category *drops;
	uint32_t n_drops;
	uint32_t *loads; // [endpoints->n_spans]; NULL = nothing is reported
	char *parts; // of one locality's name
	struct lb_security *security; // counted; NULL = plain text
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

// Never plain text where TLS is asked for. Returns 0, or -ENOMEM: out of memory or of ids, which
// are there again later (TLS-280).
static int take_credential(
	const struct cluster_tree_env *env, const struct res_tls *tls, uint32_t *ret)
{
	*ret = tls ? LB_NO_CREDENTIAL : LB_PLAIN_TEXT;
	if (!tls || !env->credentials)
		return 0;
	const struct credential_want want = tls_want_of_cluster(tls);
	*ret = credentials_take(env->credentials, &want);
	return *ret == LB_NO_CREDENTIAL ? -ENOMEM : 0;
}

static void give_credential(const struct cluster_tree_env *env, uint32_t id)
{
	if (env->credentials)
		credentials_give(env->credentials, id);
}

struct leaf_source *leaf_source_new(const struct cluster_tree_env *env, const char *name)
{
	size_t size = strlen(name) + 1;
	struct leaf_source *s = calloc(1, sizeof(*s) + size);
	if (!s)
		return NULL;
	s->id = ids_take(env->leaf_ids, twheel_now(env->wheel));
	memcpy(s->name, name, size);
	if (s->id == IDS_NONE) {
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
	lb_leaf_endpoints_put(s->list);
	load_leaf_free(s->loads);
	give_credential(env, s->credential);
	free(s->note);
	free(s);
}

// A note without trouble names the node, which is always the same one.
static bool is_same_note(const struct leaf_source *s, const struct xds_cluster_config *conf)
{
	if (!s->note || !conf->has_trouble)
		return !s->note && !conf->has_trouble;
	return strcmp(s->note, conf->resolution_note) == 0;
}

bool leaf_source_is_same(const struct leaf_source *s, const struct cluster_tree_env *env,
	const struct xds_cluster_config *conf, const struct res_cluster *policy)
{
	return s->cluster && s->cluster == conf->cluster && s->endpoints == conf->endpoints &&
	       s->overridden == overrides_revision(env->overrides, s->name) &&
	       lb_policy_spec_same(s->policy_of->spec, policy->spec) && is_same_note(s, conf);
}

// Without a resource there are no endpoints, either.
static struct lb_leaf_endpoints *endpoints_of(const struct leaf_source *s,
	const struct overrides *overrides, const struct res_endpoints *e)
{
	const struct ip_port *second;
	return e ? overrides_apply(overrides, s->name, e->list)
	         : lb_leaf_endpoints_new(NULL, 0, &second);
}

static size_t longest_name(const struct lb_leaf_endpoints *l)
{
	size_t len = 0;
	for (uint32_t i = 0; i < l->n_spans; i++)
		len = l->spans[i].name.len > len ? l->spans[i].name.len : len;
	return len;
}

static int draft_init(struct draft *d, const struct leaf_source *s,
	const struct overrides *overrides, const struct res_endpoints *e)
{
	struct load_leaf *loads = s->loads;
	*d = (struct draft){
		.endpoints = endpoints_of(s, overrides, e), .n_drops = e ? e->n_drops : 0};
	d->drops = calloc((size_t)d->n_drops + 1, sizeof(*d->drops));
	if (!d->endpoints || !d->drops)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->n_drops; i++)
		d->drops[i] =
			(struct lb_drop_category){e->drops[i].category, e->drops[i].per_million};
	if (!loads)
		return 0;
	d->loads = calloc((size_t)d->endpoints->n_spans + 1, sizeof(*d->loads));
	d->parts = malloc(longest_name(d->endpoints) + 1);
	if (!d->loads || !d->parts)
		return -ENOMEM;
	load_leaf_begin(loads);
	for (uint32_t i = 0; i < d->endpoints->n_spans; i++) {
		const struct res_locality l =
			res_locality_of(d->endpoints->spans[i].name, d->parts);
		d->loads[i] = load_leaf_locality(loads, l.region, l.zone, l.sub_zone);
	}
	return 0;
}

static void draft_fini(struct draft *d)
{
	lb_leaf_endpoints_put(d->endpoints);
	free(d->drops);
	free(d->loads);
	free(d->parts);
	lb_security_put(d->security);
}

static int secure(struct draft *d, const struct res_cluster *c, uint32_t credential)
{
	const struct lb_security_conf conf = {.credential = c->tls ? credential : LB_PLAIN_TEXT,
		.server_name = c->tls ? str_from(c->tls->sni) : STR(""),
		.header = c->header};
	if (!c->tls && !c->header.version)
		return 0;
	d->security = lb_security_new_as(&conf);
	return d->security ? 0 : -ENOMEM;
}

static int update(struct leaf_source *s, const struct cluster_tree_env *env, struct lb_leaf *leaf,
	const struct xds_cluster_config *conf, const struct lb_policy_spec *spec,
	uint32_t credential)
{
	const struct res_cluster *c = conf->cluster;
	struct draft d;
	if (draft_init(&d, s, env->overrides, conf->endpoints) || secure(&d, c, credential)) {
		draft_fini(&d);
		return -ENOMEM;
	}
	const struct lb_leaf_config config = {
		.spec = spec,
		.endpoints = d.endpoints,
		.locality_loads = d.loads,
		.drops = d.drops,
		.n_drops = d.n_drops,
		.loads = s->loads ? load_leaf_drops(s->loads, d.drops, d.n_drops) : NULL,
		.metrics = s->loads ? load_leaf_metrics(s->loads) : NULL,
		.max_requests = c->max_requests,
		.retry_budget = c->retry_budget,
		.eds_service_name = c->eds_service_name,
		.outlier = c->outlier,
		.check = c->check,
		.session_health = c->session_health,
		.idle_timeout_ns = c->idle_timeout_ns,
		.timers = c->timers,
		.security = d.security,
		.sni_is_hostname = c->tls && c->tls->auto_host_sni,
		.uses_proxies = c->uses_proxies,
		.ignores_reresolution = c->kind == RES_CLUSTER_EDS, // A74-C06
		.note = conf->resolution_note,
	};
	int err = lb_leaf_update(leaf, &config);
	if (!err && s->loads)
		load_leaf_end(s->loads);
	if (!err) {
		lb_leaf_endpoints_put(s->list);
		s->list = lb_leaf_endpoints_get(d.endpoints);
		s->overridden = overrides_revision(env->overrides, s->name);
	}
	draft_fini(&d);
	return err;
}

static int choose_loads(
	struct leaf_source *s, struct load_report *report, const struct res_cluster *c)
{
	bool wanted = c->reports_load && report;
	bool fits = s->loads && s->cluster && s->cluster->base.server == c->base.server &&
	            strcmp(s->cluster->eds_service_name, c->eds_service_name) == 0;
	if (!wanted || !fits) {
		load_leaf_free(s->loads);
		s->loads =
			wanted ? load_leaf_new(report, c->base.server, s->name, c->eds_service_name)
			       : NULL;
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
	char *note = conf->has_trouble ? strdup(conf->resolution_note) : NULL;
	bool out_of_memory = conf->has_trouble && !note;
	uint32_t credential = LB_PLAIN_TEXT;
	int err = out_of_memory ? -ENOMEM : take_credential(env, conf->cluster->tls, &credential);
	if (!err)
		err = choose_loads(s, env->loads, conf->cluster);
	if (!err)
		err = update(s, env, leaf, conf, policy->spec, credential);
	give_credential(env, err ? credential : s->credential);
	if (err) {
		free(note);
		return err;
	}
	set_cluster(&s->cluster, conf->cluster);
	set_endpoints(&s->endpoints, conf->endpoints);
	set_cluster(&s->policy_of, policy);
	s->credential = credential;
	free(s->note);
	s->note = note;
	return 0;
}
