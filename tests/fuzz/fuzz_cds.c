// SPDX-License-Identifier: Apache-2.0
// Any bytes as a Cluster: a verdict with a reason; what is accepted keeps what its users rely on,
// and says the same when it is read again.
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/xds/type.h"
#include "lb/base/check.h"
#include "lb/base/time.h"
#include "lb/leaf/outlier.h"
#include "lb/policy/node_ops.h"
#include "lb/route/domains.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 16 // gRFC A52: lists of policies in each other
#define RING_CAP 4096 // RH-03
#define SHORTEST_NS (100 * NS_PER_MS)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_parameters(const struct lb_policy_spec *s)
{
	switch (s->kind) {
	case LB_POLICY_WEIGHTED_ROUND_ROBIN:
		CHECK(isfinite(s->wrr.error_penalty) && s->wrr.error_penalty >= 0);
		CHECK(s->wrr.update_ns >= SHORTEST_NS);
		return;
	case LB_POLICY_LEAST_REQUEST:
		CHECK(s->least_request.choice_count >= 2 && s->least_request.choice_count <= 10);
		return;
	case LB_POLICY_RING_HASH:
		CHECK(s->ring_hash.min_size >= 1 && s->ring_hash.max_size <= RING_CAP);
		CHECK(s->ring_hash.min_size <= s->ring_hash.max_size);
		return;
	case LB_POLICY_WRR_LOCALITY:
	case LB_POLICY_ROUND_ROBIN:
	case LB_POLICY_PICK_FIRST:
		return;
	}
	CHECK(!"a policy that nobody knows");
}

static void check_tree(const struct lb_policy_spec *s)
{
	unsigned depth = 0;
	CHECK(s);
	for (; s; s = s->child) {
		CHECK(depth++ < MAX_DEPTH);
		CHECK((s->kind == LB_POLICY_WRR_LOCALITY) == !!s->child);
		CHECK(lb_node_ops_of(s->kind));
		check_parameters(s);
	}
}

static void check_outlier(const struct lb_outlier_conf *o)
{
	CHECK(o->interval_ns >= SHORTEST_NS && o->max_ejection_percent <= 100);
	CHECK(o->threshold_percent <= 100);
	CHECK(o->success_rate.enforcement_percent <= 100);
	CHECK(o->failure_percentage.enforcement_percent <= 100);
	CHECK(o->success_rate.enabled == (o->success_rate.enforcement_percent > 0));
	CHECK(o->failure_percentage.enabled == (o->failure_percentage.enforcement_percent > 0));
}

static void check_source(const struct res_cluster *c)
{
	CHECK(c->eds_name && c->eds_service_name);
	CHECK(strcmp(c->eds_name, *c->eds_service_name ? c->eds_service_name : c->base.name) == 0);
	CHECK((c->kind == RES_CLUSTER_AGGREGATE) == (c->n_children > 0));
	CHECK((c->kind == RES_CLUSTER_LOGICAL_DNS) == !!c->dns.host);
	CHECK(!c->is_provided || c->kind == RES_CLUSTER_AGGREGATE);
	for (uint32_t i = 0; i < c->n_children; i++)
		CHECK(*c->children[i]);
	if (c->kind != RES_CLUSTER_LOGICAL_DNS)
		return;
	CHECK(*c->dns.host && c->dns.port);
	CHECK(!*c->dns.hostname || lb_authority_is_valid(str_from(c->dns.hostname)));
}

static void check_cluster(const struct res_cluster *c)
{
	const uint32_t statuses =
		1u << LB_LEAF_UNKNOWN | 1u << LB_LEAF_HEALTHY | 1u << LB_LEAF_DRAINING;
	check_source(c);
	check_tree(c->spec);
	if (c->outlier)
		check_outlier(c->outlier);
	CHECK(!(c->session_health & ~statuses));
	for (uint32_t i = 0; i < c->n_metrics; i++)
		CHECK(c->metrics[i]);
	for (uint32_t i = 0; i < c->warnings.n; i++)
		CHECK(*c->warnings.list[i].text && c->warnings.list[i].n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct xds_decoded d = {0}, again = {0};
	res_type_cluster.decode(data, size, &d);
	res_type_cluster.decode(data, size, &again);
	CHECK(!d.res == !!*d.err.text);
	CHECK(strcmp(d.err.text, again.err.text) == 0);
	if (d.res) {
		check_cluster(res_cluster_from(d.res));
		CHECK(xds_res_eq(d.res, again.res) && strcmp(d.name, d.res->name) == 0);
		CHECK(lb_policy_spec_same(
			res_cluster_from(d.res)->spec, res_cluster_from(again.res)->spec));
	}
	xds_res_put(d.res);
	xds_res_put(again.res);
	free(d.name);
	free(again.name);
	return 0;
}
