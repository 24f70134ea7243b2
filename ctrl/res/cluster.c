// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/cluster.h"

#include "ctrl/res/common.h"
#include "ctrl/res/discovery.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/health_check.h"
#include "ctrl/res/outlier.h"
#include "ctrl/res/policy.h"
#include "ctrl/res/transport.h"
#include "ctrl/res/upstream.h"
#include "envoy/config/cluster/v3/cluster.pb-c.h"
#include "lb/pick/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MAX_REQUESTS 1024 // gRFC A32

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Cluster__V3__Cluster Cluster;
typedef Envoy__Config__Cluster__V3__CircuitBreakers__Thresholds Thresholds;
typedef Envoy__Config__Cluster__V3__CircuitBreakers__Thresholds__RetryBudget RetryBudget;
typedef Google__Protobuf__UInt32Value Number;

// ENV-04. A number that stands for "no limit" loses nothing.
static void warn_of_limit(struct res_reader *rd, const char *field, const Number *n)
{
	if (n && n->value != UINT32_MAX)
		res_warn(rd, "circuit_breakers: %s is ignored", field);
}

// CB-07, with Envoy's defaults of a budget's fields.
static int read_retry_budget(
	const Thresholds *t, struct res_reader *rd, struct lb_retry_budget *ret)
{
	const RetryBudget *in = t->retry_budget;
	if (!in) {
		bool is_set = t->max_retries && t->max_retries->value != UINT32_MAX;
		*ret = (struct lb_retry_budget){is_set, 0, is_set ? t->max_retries->value : 0};
		return 0;
	}
	double percent = in->budget_percent ? in->budget_percent->value : 20;
	const Number *least = in->min_retry_concurrency;
	if (!(percent >= 0 && percent <= 100))
		return lb_err_set(rd->err,
			"circuit_breakers: retry_budget: budget_percent %g is not from 0 to 100",
			percent);
	*ret = (struct lb_retry_budget){true, (uint32_t)(percent * 1e4), least ? least->value : 3};
	return 0;
}

static int read_thresholds(struct res_reader *rd, const Thresholds *t, struct res_cluster *c)
{
	if (t->max_requests)
		c->max_requests = t->max_requests->value;
	warn_of_limit(rd, "max_connections", t->max_connections);
	warn_of_limit(rd, "max_pending_requests", t->max_pending_requests);
	warn_of_limit(rd, "max_connection_pools", t->max_connection_pools);
	return read_retry_budget(t, rd, &c->retry_budget);
}

// A32-I05: the first threshold of DEFAULT priority.
static int read_breakers(struct res_reader *rd, const Cluster *m, struct res_cluster *c)
{
	bool found = false, others = false;
	int rc = 0;
	c->max_requests = DEFAULT_MAX_REQUESTS;
	for (size_t i = 0; m->circuit_breakers && i < m->circuit_breakers->n_thresholds; i++) {
		const Thresholds *t = m->circuit_breakers->thresholds[i];
		if (t->priority != ENVOY__CONFIG__CORE__V3__ROUTING_PRIORITY__DEFAULT)
			others = true;
		else if (!found)
			rc = read_thresholds(rd, t, c);
		found = found || t->priority == ENVOY__CONFIG__CORE__V3__ROUTING_PRIORITY__DEFAULT;
	}
	if (others)
		res_warn(rd, "circuit_breakers: thresholds of priority HIGH are ignored");
	if (m->circuit_breakers && m->circuit_breakers->n_per_host_thresholds)
		res_warn(rd, "circuit_breakers: per_host_thresholds are ignored");
	return rc;
}

// SA-12.
static uint32_t session_health(const Cluster *m)
{
	const uint32_t usual = 1u << LB_LEAF_UNKNOWN | 1u << LB_LEAF_HEALTHY;
	const Envoy__Config__Core__V3__HealthStatusSet *set =
		m->common_lb_config ? m->common_lb_config->override_host_status : NULL;
	if (!set)
		return usual;
	uint32_t mask = 0;
	for (size_t i = 0; i < set->n_statuses; i++)
		if (set->statuses[i] == (int)LB_LEAF_UNKNOWN ||
			set->statuses[i] == (int)LB_LEAF_HEALTHY ||
			set->statuses[i] == (int)LB_LEAF_DRAINING)
			mask |= 1u << set->statuses[i];
	return mask;
}

// gRFC A64, A85.
static int read_reports(struct res_reader *rd, const Cluster *m, struct res_cluster *c)
{
	if (m->lrs_server &&
		m->lrs_server->config_source_specifier_case !=
			ENVOY__CONFIG__CORE__V3__CONFIG_SOURCE__CONFIG_SOURCE_SPECIFIER_SELF)
		return lb_err_set(rd->err, "lrs_server: is not self");
	c->reports_load = m->lrs_server;
	size_t n = m->n_lrs_report_endpoint_metrics;
	if (!n)
		return 0;
	const char **list = lb_arena_alloc(rd->arena, n, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		list[i] = lb_arena_strdup(rd->arena, m->lrs_report_endpoint_metrics[i]);
		if (!list[i])
			return -ENOMEM;
	}
	c->metrics = list;
	c->n_metrics = (uint32_t)n;
	return 0;
}

// ENV-02, ENV-04: what Envoy would do besides.
static void warn_of_ignored(struct res_reader *rd, const Cluster *m)
{
	if (m->max_requests_per_connection)
		res_warn(rd, "max_requests_per_connection is ignored");
	if (m->common_lb_config && m->common_lb_config->healthy_panic_threshold &&
		m->common_lb_config->healthy_panic_threshold->value > 0)
		res_warn(rd, "common_lb_config: healthy_panic_threshold is ignored");
}

static bool is_pick_first(const struct lb_policy_spec *spec)
{
	while (spec->kind == LB_POLICY_WRR_LOCALITY)
		spec = spec->child;
	return spec->kind == LB_POLICY_PICK_FIRST;
}

// AHC-10. Of an aggregate, the clusters below it have their own.
static int read_checks(struct res_reader *rd, const Cluster *m, struct res_cluster *c)
{
	int rc = res_health_check_read(rd, m, c->tls, &c->check);
	if (rc || !c->check)
		return rc;
	if (c->kind == RES_CLUSTER_AGGREGATE)
		res_warn(rd, "health_checks are ignored: the cluster is an aggregate");
	else if (is_pick_first(c->spec))
		res_warn(rd, "health_checks are ignored: the policy is pick_first");
	return 0;
}

static int read_cluster(struct res_reader *rd, const Cluster *m, struct res_cluster *c)
{
	int rc = res_discovery_read(rd, m, c);
	if (!rc)
		rc = res_policy_read(rd, m, c->kind == RES_CLUSTER_AGGREGATE, c->specs, &c->spec,
			&c->is_provided);
	if (!rc)
		rc = res_upstream_read(rd, m, c);
	if (!rc)
		rc = read_reports(rd, m, c);
	struct res_transport transport = {NULL};
	if (!rc)
		rc = res_transport_read(rd, m, &transport);
	c->tls = transport.tls;
	c->uses_proxies = transport.uses_proxies;
	c->header = transport.header;
	if (!rc && m->outlier_detection) {
		rc = res_outlier_read(rd, m->outlier_detection, &c->outlier);
		if (rc == -EINVAL)
			lb_err_within(rd->err, "outlier_detection");
	}
	if (!rc)
		rc = read_checks(rd, m, c);
	if (!rc)
		rc = read_breakers(rd, m, c);
	if (rc)
		return rc;
	c->session_health = session_health(m);
	warn_of_ignored(rd, m);
	return res_warnings_finish(rd, &c->warnings);
}

static struct xds_res *new_cluster(
	const Cluster *m, const uint8_t *bytes, size_t len, struct xds_decoded *ret)
{
	size_t size =
		sizeof(struct res_cluster) + res_policy_depth(m) * sizeof(struct lb_policy_spec);
	struct xds_res *base = xds_res_new(&res_type_cluster, size, m->name, bytes, len);
	if (!base)
		return NULL;
	struct res_reader rd = {
		.arena = &base->arena, .err = &ret->err, .bootstrap = ret->bootstrap};
	if (!read_cluster(&rd, m, res_cluster_from(base)))
		return base;
	xds_res_put(base);
	return NULL;
}

static void release(struct xds_res *r)
{
	lb_check_put(res_cluster_from(r)->check);
}

static void decode(const uint8_t *bytes, size_t len, struct xds_decoded *ret)
{
	size_t left = RES_FIELDS_MAX;
	Cluster *m = proto_unpack_within(
		&envoy__config__cluster__v3__cluster__descriptor, bytes, len, &left, &ret->err);
	if (!m) {
		ret->name = res_name_in(bytes, len);
		return;
	}
	ret->name = strdup(m->name);
	ret->res = ret->name ? new_cluster(m, bytes, len, ret) : NULL;
	proto_free(m);
}

const struct xds_type res_type_cluster = {
	.url = "type.googleapis.com/envoy.config.cluster.v3.Cluster",
	.label = "cluster",
	.full_state = true,
	.origin = XDS_ORIGIN_SERVER,
	.decode = decode,
	.release = release,
};
