// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/frontend_clusters.h"

#include "ctrl/assemble/assembled_frontend.h"
#include "ctrl/assemble/cluster_set.h"
#include "ctrl/assemble/cluster_tree.h"
#include "ctrl/assemble/draft.h"
#include "ctrl/conf/config.h"
#include "ctrl/deps/config.h"
#include "ctrl/res/listener.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool was_refused(const struct cluster *c, const struct assembled_frontend *f)
{
	return c->refused[f->refused_bit / 64] >> f->refused_bit % 64 & 1;
}

static void note_refused(struct cluster *c, const struct assembled_frontend *f, bool is_refused)
{
	uint64_t bit = UINT64_C(1) << f->refused_bit % 64;
	uint64_t *bits = &c->refused[f->refused_bit / 64];
	*bits = is_refused ? *bits | bit : *bits & ~bit;
}

// Most numbers are new, and nothing was counted for them. 0 or -ENOMEM.
static int remember_totals(const struct workers *workers, struct cluster *c)
{
	struct cluster_totals t;
	workers_cluster_totals(workers, c->id, &t);
	if (t.started == 0)
		return 0;
	c->before = malloc(sizeof(*c->before));
	if (!c->before)
		return -ENOMEM;
	c->before->totals = t;
	workers_cluster_times(workers, c->id, &c->before->times);
	return 0;
}

static bool is_held(const struct xds_config *config, uint32_t n_held, const char *cluster)
{
	const struct xds_cluster_config *c =
		config ? xds_config_find_cluster(config, cluster) : NULL;
	return c && c->is_root && c - config->clusters < n_held;
}

// How many of the frontend's configurations hold it.
static uint32_t n_uses(const struct assembled_frontend *f, const char *cluster)
{
	return (uint32_t)is_held(f->applied, UINT32_MAX, cluster) +
	       is_held(f->wanted, f->n_held, cluster) + is_held(f->newest, UINT32_MAX, cluster);
}

// Frontends that name it see to it themselves.
bool frontend_clusters_in_use(const struct assembled_frontend *f, const char *cluster)
{
	const struct cluster *c = cluster_set_find(f->env->clusters, cluster);
	return c && c->n_users == n_uses(f, cluster);
}

// A31-R11: others are leaves of aggregates, or what requests alone hold.
static bool sees_to(const struct assembled_frontend *f, const struct xds_cluster_config *conf)
{
	return conf->is_root || frontend_clusters_in_use(f, conf->name);
}

// NULL: out of memory, or too many of them (reterr).
static struct cluster *obtain(
	const struct assembled_frontend_env *env, const char *name, struct lb_err *reterr)
{
	uint32_t known = cluster_set_count(env->clusters);
	struct cluster *c = cluster_set_obtain(env->clusters, name, reterr);
	if (!c || cluster_set_count(env->clusters) == known)
		return c;
	if (remember_totals(env->workers, c)) {
		cluster_set_drop(env->clusters, c);
		lb_err_set(reterr, "out of memory");
		return NULL;
	}
	draft_set_cluster(env->draft, c->id, cluster_tree_object(c->tree));
	return c;
}

uint32_t frontend_clusters_hold(const struct assembled_frontend *f, const struct xds_config *config,
	uint32_t from, struct lb_err *reterr)
{
	for (uint32_t i = from; i < config->n_clusters; i++) {
		if (!config->clusters[i].is_root)
			continue;
		struct cluster *c = obtain(f->env, config->clusters[i].name, reterr);
		if (!c)
			return i;
		if (c->n_users++ == 0)
			cluster_tree_set_leaving(c->tree, false);
	}
	return config->n_clusters;
}

void frontend_clusters_release(
	const struct assembled_frontend *f, const struct xds_config *config, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!config->clusters[i].is_root)
			continue;
		struct cluster *c = cluster_set_find(f->env->clusters, config->clusters[i].name);
		if (--c->n_users > 0)
			continue;
		c->left_by = draft_version(f->env->draft);
		cluster_tree_set_leaving(c->tree, true);
		if (!f->env->left_by)
			f->env->left_by = c->left_by;
	}
}

static bool same_parts(const struct xds_cluster_config *a, const struct xds_cluster_config *b)
{
	return a->cluster == b->cluster && a->endpoints == b->endpoints;
}

// With what others serve, or are to serve: a frontend and its next one hold clusters as two do.
// NULL = there is none at k.
static const struct xds_config *applied_beside(const struct assembled_frontend *f, uint32_t k)
{
	const struct assembled_frontend *other = &f->env->all[k / 2];
	if (k % 2)
		other = other->next;
	return other && other != f ? other->applied : NULL;
}

static uint32_t n_beside(const struct assembled_frontend *f)
{
	return 2 * config_n_places(f->env->config);
}

// Another frontend serves with what this one has heard since, and cannot follow yet: the cluster
// that both share is not taken back.
static bool is_outdated(const struct assembled_frontend *f, const struct xds_cluster_config *conf)
{
	const struct xds_config *newest = f->newest;
	const struct xds_cluster_config *newer =
		newest ? xds_config_find_cluster(newest, conf->name) : NULL;
	if (!newer || same_parts(newer, conf))
		return false;
	for (uint32_t k = 0; k < n_beside(f); k++) {
		const struct xds_config *serves = applied_beside(f, k);
		const struct xds_cluster_config *c =
			serves ? xds_config_find_cluster(serves, conf->name) : NULL;
		if (c && c->is_root && same_parts(c, newer))
			return true;
	}
	return false;
}

// Of an entry, with its leaves.
static bool same_entry(const struct xds_config *in_a, const struct xds_cluster_config *a,
	const struct xds_config *in_b, const struct xds_cluster_config *b)
{
	if (!same_parts(a, b) || a->n_leaves != b->n_leaves || strcmp(a->error, b->error) != 0 ||
		strcmp(a->resolution_note, b->resolution_note) != 0)
		return false;
	for (uint32_t i = 0; i < b->n_leaves; i++)
		if (strcmp(a->leaves[i], b->leaves[i]) != 0 ||
			!same_parts(xds_config_find_cluster(in_a, a->leaves[i]),
				xds_config_find_cluster(in_b, b->leaves[i])))
			return false;
	return true;
}

static bool is_contested(const struct assembled_frontend *f, const struct xds_config *config,
	const struct xds_cluster_config *conf)
{
	for (uint32_t k = 0; k < n_beside(f); k++) {
		const struct xds_config *serves = applied_beside(f, k);
		const struct xds_cluster_config *other =
			serves ? xds_config_find_cluster(serves, conf->name) : NULL;
		if (other && other->is_root && !same_entry(serves, other, config, conf))
			return true;
	}
	return false;
}

// Is it nothing new to this frontend, while another one serves with something else? Of the two, one
// still waits for more and may say again what it had (DM-28): who hears of a change configures it,
// and what was said before takes nothing back. It does happen: compose_meanwhile() leaves a cluster
// whose own resource is newer as it was, for the sake of another's endpoints. Uncontested it counts
// as said, since the cluster may have followed what came to nothing
// (frontend_clusters_follow_endpoints()); and so it does where it was refused, since only its
// repetition is the next try.
static bool is_repeated(const struct assembled_frontend *f, const struct xds_config *config,
	const struct xds_cluster_config *conf, const struct cluster *c)
{
	const struct xds_config *own = f->applied;
	const struct xds_cluster_config *before =
		own ? xds_config_find_cluster(own, conf->name) : NULL;
	// What the cluster has already does no harm, and is what most entries are: no other
	// frontend is looked at, of which there may be thousands.
	return before && !was_refused(c, f) && same_entry(own, before, config, conf) &&
	       !cluster_tree_is_same(c->tree, config, conf) && is_contested(f, config, conf);
}

static bool has_sessions(const struct res_listener *l)
{
	for (uint32_t i = 0; i < l->n_filters; i++)
		if (l->filters[i].kind == LB_FILTER_SESSION)
			return true;
	return false;
}

// Once a listener has the filter, clusters spend memory on sessions for good: requests of before
// its end have them still, and it may return.
static void note_sessions(const struct assembled_frontend_env *env, const struct res_listener *l)
{
	if (env->trees->leaf.has_sessions || !has_sessions(l))
		return;
	env->trees->leaf.has_sessions = true;
	for (uint32_t i = 0; i < cluster_set_count(env->clusters); i++)
		cluster_tree_begin_sessions(cluster_set_at(env->clusters, i)->tree);
}

void frontend_clusters_configure(const struct assembled_frontend *f, struct lb_err *ret_refused)
{
	struct xds_config *config = f->wanted;
	struct lb_err why = {.text = ""};
	uint32_t n_refused = 0;
	note_sessions(f->env, config->listener);
	for (uint32_t i = 0; i < config->n_clusters; i++) {
		const struct xds_cluster_config *conf = &config->clusters[i];
		if (!sees_to(f, conf) || is_outdated(f, conf))
			continue;
		struct cluster *c = cluster_set_find(f->env->clusters, conf->name);
		if (is_repeated(f, config, conf, c))
			continue;
		bool is_refused = cluster_tree_configure(
			c->tree, config, conf, n_refused ? &(struct lb_err){0} : &why);
		note_refused(c, f, is_refused);
		n_refused += is_refused;
	}
	lb_err_set(ret_refused, "%s", why.text);
	if (n_refused > 1)
		lb_err_set(ret_refused, "%s; and %u more clusters", why.text, n_refused - 1);
}

// Of two configurations.
static bool same_resource(
	const struct xds_config *a, const struct xds_config *b, const char *cluster)
{
	const struct xds_cluster_config *in_a = xds_config_find_cluster(a, cluster);
	const struct xds_cluster_config *in_b = xds_config_find_cluster(b, cluster);
	return in_a && in_b && in_a->cluster && in_a->cluster == in_b->cluster;
}

// Of all that an entry consists of, but for its endpoints.
static bool same_resources(const struct xds_config *a, const struct xds_config *b,
	const struct xds_cluster_config *in_b)
{
	if (!same_resource(a, b, in_b->name))
		return false;
	const struct xds_cluster_config *in_a = xds_config_find_cluster(a, in_b->name);
	if (in_a->n_leaves != in_b->n_leaves)
		return false;
	for (uint32_t i = 0; i < in_b->n_leaves; i++)
		if (strcmp(in_a->leaves[i], in_b->leaves[i]) != 0 ||
			!same_resource(a, b, in_b->leaves[i]))
			return false;
	return true;
}

void frontend_clusters_follow_endpoints(const struct assembled_frontend *f)
{
	struct xds_config *newest = f->newest ? f->newest : f->wanted;
	for (uint32_t i = 0; f->applied && i < newest->n_clusters; i++) {
		const struct xds_cluster_config *conf = &newest->clusters[i];
		struct cluster *c = cluster_set_find(f->env->clusters, conf->name);
		if (!c || !same_resources(f->applied, newest, conf) ||
			!sees_to(f, xds_config_find_cluster(f->applied, conf->name)) ||
			is_repeated(f, newest, conf, c))
			continue;
		// What does not fit now is tried again with the whole of it.
		(void)cluster_tree_configure(c->tree, newest, conf, &(struct lb_err){0});
	}
}
