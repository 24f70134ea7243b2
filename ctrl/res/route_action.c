// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/route_action.h"

#include "ctrl/res/http_filter.h"
#include "ctrl/res/regex_check.h"
#include "ctrl/res/retry.h"

#include <errno.h>
#include <string.h>

#define CHANNEL_ID "io.grpc.channel_id"

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Route__V3__RouteAction Action;
typedef Envoy__Config__Route__V3__RouteAction__HashPolicy HashPolicy;
typedef Envoy__Config__Route__V3__RouteAction__HashPolicy__Header HashHeader;
typedef Envoy__Config__Route__V3__RouteAction__MaxStreamDuration MaxDuration;
typedef Envoy__Config__Route__V3__WeightedCluster Weighted;
typedef Envoy__Config__Route__V3__WeightedCluster__ClusterWeight ClusterWeight;
typedef Envoy__Config__Route__V3__ClusterSpecifierPlugin Plugin;
#define CLUSTER_CASE(x) ENVOY__CONFIG__ROUTE__V3__ROUTE_ACTION__CLUSTER_SPECIFIER_##x
#define HASH_CASE(x) ENVOY__CONFIG__ROUTE__V3__ROUTE_ACTION__HASH_POLICY__POLICY_SPECIFIER_##x
#define HOST_CASE(x) ENVOY__CONFIG__ROUTE__V3__ROUTE_ACTION__HOST_REWRITE_SPECIFIER_##x

static int read_plugin(struct res_plugins *p, struct res_reader *rd, const Plugin *m)
{
	if (!m->extension)
		return lb_err_set(rd->err, "no extension");
	if (!*m->extension->name)
		return lb_err_set(rd->err, "extension.name: empty");
	const Google__Protobuf__Any *any = m->extension->typed_config;
	if (!any)
		return lb_err_set(rd->err, "no extension.typed_config");
	if (!m->is_optional)
		return lb_err_set(rd->err, "type \"%.128s\" is not supported", any->type_url);
	int rc = res_name_set_add(&p->names, rd->arena, m->extension->name);
	if (rc == -EEXIST)
		return lb_err_set(
			rd->err, "the name \"%.128s\" is a duplicate", m->extension->name);
	return rc;
}

int res_plugins_read(struct res_plugins *p, struct res_reader *rd, Plugin *const *list, size_t n)
{
	*p = (struct res_plugins){0};
	for (size_t i = 0; i < n; i++) {
		int rc = read_plugin(p, rd, list[i]);
		if (rc == -EINVAL)
			lb_err_within(rd->err, "cluster_specifier_plugins[%zu]", i);
		if (rc)
			return rc;
	}
	return 0;
}

void res_plugins_fini(struct res_plugins *p)
{
	strmap_fini(&p->names);
}

// A28-V08; header_max, when it is there, alone counts (A31-T03).
static int read_max_duration(struct res_reader *rd, const MaxDuration *m, struct lb_timeouts *t)
{
	if (!m)
		return 0;
	if (res_check_duration(m->max_stream_duration, "max_stream_duration", rd->err) ||
		res_check_duration(m->grpc_timeout_header_max, "grpc_timeout_header_max", rd->err))
		return lb_err_within(rd->err, "max_stream_duration");
	t->has_max = m->max_stream_duration;
	if (t->has_max)
		t->max_ns = res_duration_ns(m->max_stream_duration);
	t->has_header_max = m->grpc_timeout_header_max;
	if (t->has_header_max)
		t->header_max_ns = res_duration_ns(m->grpc_timeout_header_max);
	return 0;
}

static int read_timeouts(struct res_reader *rd, const Action *a, struct lb_timeouts *t)
{
	if (res_check_duration(a->idle_timeout, "idle_timeout", rd->err))
		return -EINVAL;
	t->idle_ns = res_idle_ns(a->idle_timeout);
	return read_max_duration(rd, a->max_stream_duration, t);
}

// HP-03.
static int read_rewrite(struct res_reader *rd, const HashHeader *m, struct lb_hash_policy *h)
{
	const Envoy__Type__Matcher__V3__RegexMatchAndSubstitute *re = m->regex_rewrite;
	if (!re)
		return 0;
	if (!re->pattern || !*re->pattern->regex)
		return lb_err_set(rd->err, "header.regex_rewrite.pattern.regex: empty");
	int rc = res_rewrite_check(re->pattern->regex, re->substitution, rd->err);
	if (rc)
		return rc == -EINVAL ? lb_err_within(rd->err, "header.regex_rewrite") : rc;
	rc = res_copy(rd, re->pattern->regex, &h->pattern);
	return rc ? rc : res_copy(rd, re->substitution, &h->substitution);
}

static int read_hash_header(struct res_reader *rd, const HashHeader *m, struct lb_hash_policy *h)
{
	if (!*m->header_name)
		return lb_err_set(rd->err, "header.header_name: empty");
	h->kind = LB_HASH_HEADER;
	int rc = res_copy_folded(rd, m->header_name, &h->header);
	return rc ? rc : read_rewrite(rd, m, h);
}

// *ret_used false: a kind that does not hash, dropped with its terminal flag (HP-07).
static int read_hash_policy(
	struct res_reader *rd, const HashPolicy *m, struct lb_hash_policy *h, bool *ret_used)
{
	*h = (struct lb_hash_policy){.terminal = m->terminal};
	*ret_used = true;
	if (m->policy_specifier_case == HASH_CASE(HEADER))
		return read_hash_header(rd, m->header, h);
	if (m->policy_specifier_case == HASH_CASE(FILTER_STATE) &&
		strcmp(m->filter_state->key, CHANNEL_ID) == 0) {
		h->kind = LB_HASH_CONNECTION;
		return 0;
	}
	res_warn(rd, "route.hash_policy: one of a kind that is not supported is ignored");
	*ret_used = false;
	return 0;
}

static int read_hash_policies(
	struct res_reader *rd, const Action *a, struct lb_route_policy *policy)
{
	if (a->n_hash_policy == 0)
		return 0;
	struct lb_hash_policy *list = lb_arena_alloc(rd->arena, a->n_hash_policy, sizeof(*list));
	if (!list)
		return -ENOMEM;
	uint32_t n = 0;
	for (size_t i = 0; i < a->n_hash_policy; i++) {
		bool used;
		int rc = read_hash_policy(rd, a->hash_policy[i], &list[n], &used);
		if (rc == -EINVAL)
			lb_err_within(rd->err, "hash_policy[%zu]", i);
		if (rc)
			return rc;
		n += used;
	}
	policy->hash = list;
	policy->n_hash = n;
	return 0;
}

static void read_rewrites(struct res_reader *rd, const Action *a, struct lb_route_policy *p)
{
	if (a->host_rewrite_specifier_case == HOST_CASE(AUTO_HOST_REWRITE))
		p->auto_host_rewrite = a->auto_host_rewrite->value;
	else if (a->host_rewrite_specifier_case != HOST_CASE(_NOT_SET)) // AR-05
		res_warn(rd, "route.host_rewrite_literal and host_rewrite_header are ignored");
	if (*a->prefix_rewrite || a->regex_rewrite)
		res_warn(rd, "route.prefix_rewrite and regex_rewrite are ignored");
	if (a->n_request_mirror_policies)
		res_warn(rd, "route." RES_MIRRORS_IGNORED);
}

static struct res_override_entry override_of_entry(const void *message, size_t i)
{
	const ClusterWeight *m = message;
	return (struct res_override_entry){
		m->typed_per_filter_config[i]->key, m->typed_per_filter_config[i]->value};
}

// A28-W05, A28-W07. cluster_header is not read (A28-W09).
static int read_cluster_weight(
	struct res_reader *rd, const ClusterWeight *m, struct res_weighted_cluster *c)
{
	if (!*m->name)
		return lb_err_set(rd->err, "no cluster name");
	if (!m->weight)
		return lb_err_set(rd->err, "no weight");
	c->weight = m->weight->value;
	c->name = lb_arena_strdup(rd->arena, m->name);
	const struct res_override_map overrides = {
		m, m->n_typed_per_filter_config, override_of_entry};
	return c->name ? res_overrides_read(rd, &overrides, &c->overrides) : -ENOMEM;
}

// A28-W02 to A28-W04.
static int check_weights(struct res_reader *rd, const Weighted *w, uint64_t sum)
{
	if (sum == 0 || sum > UINT32_MAX)
		return lb_err_set(rd->err, "weights add up to %llu", (unsigned long long)sum);
	if (w->total_weight && w->total_weight->value &&
		w->total_weight->value != sum) // deprecated
		res_warn(rd, "route.weighted_clusters: total_weight is not the sum of the weights, "
			     "which counts");
	return 0;
}

static int read_weighted(struct res_reader *rd, const Weighted *w, struct res_route *r)
{
	if (w->n_clusters == 0)
		return lb_err_set(rd->err, "no clusters");
	struct res_weighted_cluster *list = lb_arena_alloc(rd->arena, w->n_clusters, sizeof(*list));
	if (!list)
		return -ENOMEM;
	uint64_t sum = 0;
	for (size_t i = 0; i < w->n_clusters; i++) {
		int rc = read_cluster_weight(rd, w->clusters[i], &list[i]);
		if (rc == -EINVAL)
			lb_err_within(rd->err, "clusters[%zu]", i);
		if (rc)
			return rc;
		sum += list[i].weight;
	}
	r->clusters = list;
	r->n_clusters = (uint32_t)w->n_clusters;
	return check_weights(rd, w, sum);
}

static int read_single(struct res_reader *rd, const char *name, struct res_route *r)
{
	if (!*name)
		return lb_err_set(rd->err, "cluster: no name");
	struct res_weighted_cluster *one = lb_arena_alloc(rd->arena, 1, sizeof(*one));
	if (!one)
		return -ENOMEM;
	one->name = lb_arena_strdup(rd->arena, name);
	one->weight = 1;
	r->clusters = one;
	r->n_clusters = 1;
	return one->name ? 0 : -ENOMEM;
}

// A28-V02, A28-V06.
static int read_specifier(struct res_reader *rd, const Action *a, const struct res_plugins *plugins,
	struct res_route *r, const char **ret_ignored)
{
	int rc;
	switch (a->cluster_specifier_case) {
	case CLUSTER_CASE(CLUSTER):
		return read_single(rd, a->cluster, r);
	case CLUSTER_CASE(WEIGHTED_CLUSTERS):
		rc = read_weighted(rd, a->weighted_clusters, r);
		return rc == -EINVAL ? lb_err_within(rd->err, "weighted_clusters") : rc;
	case CLUSTER_CASE(CLUSTER_SPECIFIER_PLUGIN):
		if (!strmap_find(&plugins->names, a->cluster_specifier_plugin))
			return lb_err_set(rd->err,
				"cluster_specifier_plugin: \"%.128s\" is not declared",
				a->cluster_specifier_plugin);
		*ret_ignored = "its cluster_specifier_plugin is optional and not supported";
		return 0;
	case CLUSTER_CASE(CLUSTER_HEADER):
		*ret_ignored = "cluster_header is not supported";
		return 0;
	case CLUSTER_CASE(INLINE_CLUSTER_SPECIFIER_PLUGIN):
		*ret_ignored = "inline_cluster_specifier_plugin is not supported";
		return 0;
	default:
		*ret_ignored = "no cluster specifier that is known";
		return 0;
	}
}

bool res_action_has_clusters(const Action *a)
{
	return a->cluster_specifier_case == CLUSTER_CASE(CLUSTER) ||
	       a->cluster_specifier_case == CLUSTER_CASE(WEIGHTED_CLUSTERS);
}

int res_action_read(struct res_reader *rd, const Action *a, const struct res_plugins *plugins,
	const struct lb_retry *vhost_retry, struct res_route *r, struct lb_route_policy *policy,
	const char **ret_ignored)
{
	int rc = read_timeouts(rd, a, &policy->timeouts);
	if (!rc)
		rc = read_hash_policies(rd, a, policy);
	if (!rc && a->retry_policy) // RT-02: though it may retry nothing
		rc = res_retry_read(rd, a->retry_policy, &policy->retry);
	else
		policy->retry = *vhost_retry;
	if (!rc) {
		read_rewrites(rd, a, policy);
		rc = read_specifier(rd, a, plugins, r, ret_ignored);
	}
	return rc == -EINVAL ? lb_err_within(rd->err, "route") : rc;
}
