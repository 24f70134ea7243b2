// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/cluster_tree.h"

#include "ctrl/assemble/leaf_source.h"
#include "ctrl/assemble/members.h"
#include "ctrl/certs/credentials.h"
#include "ctrl/deps/config.h"
#include "ctrl/res/cluster.h"
#include "ctrl/res/tls.h"
#include "lb/base/check.h"
#include "lb/cluster.h"
#include "lb/leaf/aggregate.h"
#include "lb/leaf/leaf.h"
#include "lb/member/connectivity.h"
#include "lb/pick/limits.h"
#include "lb/pick/picker.h"
#include "lb/policy/dump.h"
#include "lb/policy/node_ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// What balances: one of the two, or neither in error.
struct body {
	struct lb_leaf *leaf; // owned
	struct lb_aggregate *aggregate; // owned
};

struct cluster_tree {
	const struct cluster_tree_env *env;
	uint32_t id;
	bool is_leaving;
	const char *name; // borrowed
	struct lb_leaf_counts counts; // of all leaves it ever had
	struct lb_cluster *object; // counted; the newest
	struct body body;
	struct leaf_source *sources; // owned; of the leaf, or of the aggregate's, in no order
	struct xds_config *config; // counted; of the last configure(): leaves are made from it
	const struct xds_cluster_config *root; // its entry of the cluster itself
};

// Objects for snapshots. Takes the reference to the picker. -ENOMEM leaves the old one in place.
static int publish(void *ctx, enum lb_state state, struct lb_picker *picker)
{
	struct cluster_tree *t = ctx;
	struct lb_cluster *c = lb_cluster_new(t->id, t->name, state, picker);
	lb_picker_put(picker);
	if (!c)
		return -ENOMEM;
	c->is_leaving = t->is_leaving;
	lb_cluster_put(t->object);
	t->object = c;
	t->env->on_change(t->env->ctx, c);
	return 0;
}

// What the trees ask for.

static uint32_t member_take(void *ctx, void *owner)
{
	return members_take(((struct cluster_tree_env *)ctx)->members, owner);
}

static void member_give(void *ctx, uint32_t id)
{
	members_give(((struct cluster_tree_env *)ctx)->members, id);
}

static uint32_t slot_take(void *ctx)
{
	return members_slot_take(((struct cluster_tree_env *)ctx)->members);
}

static void slot_give(void *ctx, uint32_t slot)
{
	members_slot_give(((struct cluster_tree_env *)ctx)->members, slot);
}

static void harvest(void *ctx, uint32_t member, uint64_t *ret_ok, uint64_t *ret_failed)
{
	members_harvest(((struct cluster_tree_env *)ctx)->members, member, ret_ok, ret_failed);
}

static uint64_t last_used(void *ctx, uint32_t member)
{
	return members_last_used(((struct cluster_tree_env *)ctx)->members, member);
}

static bool is_used(void *ctx, uint32_t member)
{
	return members_is_used(((struct cluster_tree_env *)ctx)->members, member);
}

static void reresolve(void *ctx)
{
	const struct cluster_tree_env *env = ctx;
	env->reresolve(env->ctx);
}

void cluster_tree_env_init(struct cluster_tree_env *env)
{
	env->leaf = (struct lb_leaf_env){
		.loads = env->member_loads,
		.wheel = env->wheel,
		.rand = env->rand,
		.member_env = &env->member_env,
		.breakers = env->breakers,
		.orca = env->orca,
		.ops_of = lb_node_ops_of,
		.sessions_use_ejected = env->sessions_use_ejected,
		.subset_seed = env->subset_seed,
		.member_take = member_take,
		.member_give = member_give,
		.slot_take = slot_take,
		.slot_give = slot_give,
		.harvest = harvest,
		.last_used = last_used,
		.probes = env->probes,
		.is_used = is_used,
		.reresolve = reresolve,
		.ctx = env,
	};
}

// Sources.

static struct leaf_source *find_source(const struct cluster_tree *t, const char *name)
{
	struct leaf_source *s = t->sources;
	while (s && strcmp(s->name, name) != 0)
		s = s->next;
	return s;
}

static bool is_aggregate(const struct xds_cluster_config *conf)
{
	return conf->cluster && conf->cluster->kind == RES_CLUSTER_AGGREGATE;
}

struct leaves {
	const char *const *names;
	uint32_t n;
};

static struct leaves leaves_of(const struct xds_cluster_config *conf)
{
	if (!conf || !conf->cluster)
		return (struct leaves){0};
	if (is_aggregate(conf))
		return (struct leaves){conf->leaves, conf->n_leaves};
	return (struct leaves){&conf->name, 1};
}

// A cluster that is no aggregate is its own leaf: then nothing is searched, which is done for
// each cluster with each configuration.
static const struct xds_cluster_config *find_leaf(
	const struct xds_config *config, const struct xds_cluster_config *root, const char *name)
{
	return is_aggregate(root) ? xds_config_find_cluster(config, name) : root;
}

static bool has_leaf(const struct leaves *l, const char *name)
{
	uint32_t i = 0;
	while (i < l->n && strcmp(l->names[i], name) != 0)
		i++;
	return i < l->n;
}

static void drop_sources_but(struct cluster_tree *t, const struct leaves *leaves)
{
	for (struct leaf_source **at = &t->sources; *at;) {
		struct leaf_source *s = *at;
		if (has_leaf(leaves, s->name)) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		leaf_source_free(s, t->env);
	}
}

// Whose policy the leaf is to have.
static struct res_cluster *policy_for(const struct cluster_tree *t,
	const struct xds_cluster_config *root, const struct xds_cluster_config *leaf)
{
	if (!t->env->aggregate_policy || !is_aggregate(root) || root->cluster->is_provided)
		return leaf->cluster;
	return root->cluster;
}

// Of an aggregate, which gives each of its leaves what the configuration says.

static int configure_leaf(void *ctx, struct lb_leaf *leaf, const char *name)
{
	struct cluster_tree *t = ctx;
	const struct xds_cluster_config *conf = find_leaf(t->config, t->root, name);
	struct leaf_source *s = find_source(t, name);
	// A leaf of before an update that ran out of memory, and that is being taken back.
	if (!conf || !conf->cluster || !s)
		return -ENOMEM;
	return leaf_source_apply(s, t->env, leaf, conf, policy_for(t, t->root, conf));
}

static uint32_t leaf_id(void *ctx, const char *name)
{
	const struct leaf_source *s = find_source(ctx, name);
	DCHECK(s);
	return s->id;
}

static void body_free(struct body *b)
{
	lb_leaf_free(b->leaf);
	lb_aggregate_free(b->aggregate);
	*b = (struct body){0};
}

struct cluster_tree *cluster_tree_new(
	const struct cluster_tree_env *env, uint32_t id, const char *name)
{
	CHECK(id < LB_MAX_CLUSTERS);
	struct cluster_tree *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->env = env;
	t->id = id;
	t->name = name;
	t->object = lb_cluster_new(id, name, LB_CONNECTING, lb_picker_queue());
	if (t->object)
		return t;
	cluster_tree_free(t);
	return NULL;
}

void cluster_tree_free(struct cluster_tree *t)
{
	if (!t)
		return;
	body_free(&t->body);
	drop_sources_but(t, &(struct leaves){0});
	lb_cluster_put(t->object);
	xds_config_put(t->config);
	free(t);
}

// Configuring.

static bool is_same_leaf(const struct cluster_tree *t, const struct xds_config *config,
	const struct xds_cluster_config *root, const char *name)
{
	const struct leaf_source *s = find_source(t, name);
	const struct xds_cluster_config *leaf = find_leaf(config, root, name);
	return s && leaf_source_is_same(s, t->env, leaf, policy_for(t, root, leaf));
}

bool cluster_tree_is_same(const struct cluster_tree *t, const struct xds_config *config,
	const struct xds_cluster_config *conf)
{
	const struct xds_cluster_config *before = t->root;
	if (!before)
		return false;
	if (!conf->cluster || !before->cluster)
		return !conf->cluster && !before->cluster &&
		       strcmp(before->error, conf->error) == 0;
	struct leaves leaves = leaves_of(conf), old = leaves_of(before);
	if (is_aggregate(conf) != is_aggregate(before) || leaves.n != old.n)
		return false;
	for (uint32_t i = 0; i < leaves.n; i++)
		if (strcmp(leaves.names[i], old.names[i]) != 0 ||
			!is_same_leaf(t, config, conf, leaves.names[i]))
			return false;
	return true;
}

// 0, or -ENOMEM: some of them are there.
static int add_sources(struct cluster_tree *t, const struct leaves *leaves)
{
	for (uint32_t i = 0; i < leaves->n; i++) {
		if (find_source(t, leaves->names[i]))
			continue;
		struct leaf_source *s = leaf_source_new(t->env, leaves->names[i]);
		if (!s)
			return -ENOMEM;
		s->next = t->sources;
		t->sources = s;
	}
	return 0;
}

static bool body_new(struct cluster_tree *t, bool aggregate, struct body *ret)
{
	const struct lb_leaf_env *leaf = &t->env->leaf;
	const struct lb_leaf_parent parent = {publish, t, t, &t->counts};
	const struct lb_aggregate_env env = {leaf, parent, configure_leaf, leaf_id};
	*ret = (struct body){0};
	if (aggregate)
		ret->aggregate = lb_aggregate_new(&env, t->name);
	else
		ret->leaf = lb_leaf_new(leaf, parent, t->name, find_source(t, t->name)->id);
	return ret->aggregate || ret->leaf;
}

// From t->config.
static int body_update(struct cluster_tree *t, const struct body *b)
{
	const struct xds_cluster_config *conf = t->root;
	struct leaves leaves = leaves_of(conf);
	if (b->aggregate)
		return lb_aggregate_update(
			b->aggregate, leaves.names, leaves.n, conf->resolution_note);
	return configure_leaf(t, b->leaf, conf->name);
}

// A tree of another kind takes over connections, since it asks for them before the old one lets
// them go (A74-C09).
static int body_replace(struct cluster_tree *t, bool aggregate)
{
	struct body new;
	int err = body_new(t, aggregate, &new) ? body_update(t, &new) : -ENOMEM;
	struct body old = err ? new : t->body;
	if (!err)
		t->body = new;
	body_free(&old);
	return err;
}

static int balance(
	struct cluster_tree *t, struct xds_config *config, const struct xds_cluster_config *conf)
{
	struct leaves leaves = leaves_of(conf);
	bool aggregate = is_aggregate(conf);
	bool fits = aggregate ? (bool)t->body.aggregate : (bool)t->body.leaf;
	if (add_sources(t, &leaves))
		return -ENOMEM;
	struct xds_config *before = t->config;
	const struct xds_cluster_config *root_before = t->root;
	t->config = config; // leaves are made from it
	t->root = conf;
	int err = fits ? body_update(t, &t->body) : body_replace(t, aggregate);
	t->config = before;
	t->root = root_before;
	return err;
}

static int publish_error(struct cluster_tree *t, const char *error)
{
	struct lb_picker *picker = lb_picker_new_fail(error);
	return picker ? publish(t, LB_TRANSIENT_FAILURE, picker) : -ENOMEM;
}

// A28-R06: its endpoints are let go.
static int fail(struct cluster_tree *t, const char *error)
{
	if (publish_error(t, error))
		return -ENOMEM;
	body_free(&t->body);
	return 0;
}

// Requests need not wait for what may never come.
static void stay(struct cluster_tree *t, const char *error)
{
	if (!t->body.leaf && !t->body.aggregate)
		(void)publish_error(t, error);
}

int cluster_tree_configure(struct cluster_tree *t, struct xds_config *config,
	const struct xds_cluster_config *conf, struct lb_err *reterr)
{
	int err = 0;
	if (!cluster_tree_is_same(t, config, conf))
		err = conf->cluster ? balance(t, config, conf) : fail(t, conf->error);
	if (err) {
		lb_err_set(reterr, "cluster '%s': out of memory, TLS contexts or %d endpoints",
			t->name, LB_MAX_MEMBERS);
		stay(t, reterr->text);
	} else {
		xds_config_get(config);
		xds_config_put(t->config);
		t->config = config;
		t->root = conf;
	}
	struct leaves leaves = leaves_of(t->root);
	drop_sources_but(t, &leaves);
	return err;
}

int cluster_tree_refresh(struct cluster_tree *t, struct lb_err *reterr)
{
	return t->config ? cluster_tree_configure(t, t->config, t->root, reterr) : 0;
}

// From workers, and for operators.

void cluster_tree_want(struct cluster_tree *t, uint32_t member)
{
	if (t->body.leaf)
		lb_leaf_want(t->body.leaf, member);
	for (const struct leaf_source *s = t->sources; t->body.aggregate && s; s = s->next) {
		struct lb_leaf *leaf = lb_aggregate_leaf(t->body.aggregate, s->name);
		if (leaf)
			lb_leaf_want(leaf, member);
	}
}

// fn says how much it had to look at. Returns the sum.
static uint32_t each_leaf_do(struct cluster_tree *t, uint32_t (*fn)(struct lb_leaf *))
{
	uint32_t n = t->body.leaf ? fn(t->body.leaf) : 0;
	for (const struct leaf_source *s = t->sources; t->body.aggregate && s; s = s->next) {
		struct lb_leaf *leaf = lb_aggregate_leaf(t->body.aggregate, s->name);
		n += leaf ? fn(leaf) : 0;
	}
	return n;
}

uint32_t cluster_tree_expedite(struct cluster_tree *t)
{
	return t->object->state == LB_READY ? 0 : each_leaf_do(t, lb_leaf_expedite);
}

static uint32_t begin_sessions(struct lb_leaf *leaf)
{
	lb_leaf_begin_sessions(leaf);
	return 0;
}

void cluster_tree_begin_sessions(struct cluster_tree *t)
{
	(void)each_leaf_do(t, begin_sessions);
}

void cluster_tree_set_leaving(struct cluster_tree *t, bool is_leaving)
{
	if (t->object->is_leaving == is_leaving)
		return;
	t->is_leaving = is_leaving;
	// Without memory for it the next object says it.
	(void)publish(t, t->object->state, lb_picker_get(t->object->picker));
}

struct lb_cluster *cluster_tree_object(const struct cluster_tree *t)
{
	return t->object;
}

const char *cluster_tree_trouble(const struct cluster_tree *t)
{
	return t->root && t->root->has_trouble ? t->root->resolution_note : "";
}

const char *cluster_tree_tls(const struct cluster_tree *t)
{
	const struct res_tls *tls = t->root && t->root->cluster ? t->root->cluster->tls : NULL;
	return !tls || is_aggregate(t->root) ? "" : tls->identity ? "mtls" : "tls";
}

const char *cluster_tree_tls_error(const struct cluster_tree *t)
{
	if (!t->env->credentials)
		return "";
	for (const struct leaf_source *s = t->sources; s; s = s->next) {
		const char *error = credentials_error(t->env->credentials, s->credential);
		if (*error)
			return error;
	}
	return "";
}

void cluster_tree_dump(const struct cluster_tree *t, struct lb_dump *d)
{
	if (t->body.leaf) {
		lb_leaf_dump(t->body.leaf, d);
	} else if (t->body.aggregate) {
		lb_aggregate_dump(t->body.aggregate, d);
	} else {
		lb_dump_enter(d, "cds", t->object->state);
		lb_dump_text(d, "cluster", t->name);
		if (t->root)
			lb_dump_text(d, "error", t->root->error);
		lb_dump_leave(d);
	}
}

void cluster_tree_count(const struct cluster_tree *t, struct lb_leaf_counts *ret)
{
	*ret = t->counts;
}

void cluster_tree_each_leaf(const struct cluster_tree *t,
	void (*fn)(void *ctx, const struct leaf_source *, struct lb_leaf *leaf), void *ctx)
{
	struct leaves leaves = leaves_of(t->root);
	for (uint32_t i = 0; i < leaves.n; i++)
		fn(ctx, find_source(t, leaves.names[i]),
			t->body.leaf ? t->body.leaf
				     : lb_aggregate_leaf(t->body.aggregate, leaves.names[i]));
}
