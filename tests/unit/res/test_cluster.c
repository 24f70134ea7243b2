// SPDX-License-Identifier: Apache-2.0
// Which clusters are accepted and which are refused with what words: one row a rule.
#include "ctrl/res/cluster.h"
#include "ctrl/xds/type.h"
#include "tests/support/check.h"
#include "tests/unit/res/rows.h"

#define ROUTER_TYPE "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
#define EDS "'type':'EDS','edsClusterConfig':{'edsConfig':{'ads':{}}}"
#define CLUSTER(x) "{'name':'c'," x "}"
#define POLICIES(list) CLUSTER(EDS ",'loadBalancingPolicy':{'policies':[" list "]}")
#define LB "type.googleapis.com/envoy.extensions.load_balancing_policies."
#define POLICY(config) "{'typedExtensionConfig':{'name':'x','typedConfig':{" config "}}}"
#define ROUND_ROBIN POLICY("'@type':'" LB "round_robin.v3.RoundRobin'")
#define MAGLEV POLICY("'@type':'" ROUTER_TYPE "'")
#define WRR(list)                                                                                  \
	POLICY("'@type':'" LB "wrr_locality.v3.WrrLocality',"                                      \
	       "'endpointPickingPolicy':{'policies':[" list "]}")
#define OPTIONS_TYPE "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
#define UPSTREAM(config) CLUSTER(EDS ",'upstreamConfig':{'name':'u','typedConfig':{" config "}}")
#define IDLE(duration)                                                                             \
	UPSTREAM("'@type':'" OPTIONS_TYPE "','commonHttpProtocolOptions':{'idleTimeout':" duration \
		 "}")
#define TLS_TYPE "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"

static void clusters(void **state)
{
	static const struct res_row rows[] = {
		{"CL-03 EDS over ads", CLUSTER(EDS), NULL},
		{"CL-03 EDS over self",
			CLUSTER("'type':'EDS','edsClusterConfig':{'edsConfig':{'self':{}}}"), NULL},
		{"CL-03 EDS from a file",
			CLUSTER("'type':'EDS','edsClusterConfig':{'edsConfig':{'path':'/x'}}"),
			"neither ads nor self"},
		{"CL-03 EDS without config", CLUSTER("'type':'EDS'"), "neither ads nor self"},
		{"CL-03 STATIC", CLUSTER("'type':'STATIC'"), "STATIC is not supported"},
		{"CL-03 no type is STATIC", CLUSTER("'lbPolicy':'ROUND_ROBIN'"), "STATIC"},
		{"CL-03 STRICT_DNS", CLUSTER("'type':'STRICT_DNS'"), "STRICT_DNS is not supported"},
		{"A37-D01 LOGICAL_DNS", CLUSTER("'type':'LOGICAL_DNS'"), "needs one"},
		{"CL-03 aggregate",
			CLUSTER("'clusterType':{'name':'envoy.clusters.aggregate','typedConfig':"
				"{'@type':'type.googleapis.com/"
				"envoy.extensions.clusters.aggregate.v3.ClusterConfig',"
				"'clusters':['a']}}"),
			NULL},
		{"CL-03 lrs_server self", CLUSTER(EDS ",'lrsServer':{'self':{}}"), NULL},
		{"CL-03 lrs_server ads", CLUSTER(EDS ",'lrsServer':{'ads':{}}"), "lrs_server"},
		{"CL-04 xdstp cluster without a service name",
			"{'name':'xdstp://a/envoy.config.cluster.v3.Cluster/c'," EDS "}",
			"needs a service_name"},
		{"A52 lb_policy LEAST_REQUEST", CLUSTER(EDS ",'lbPolicy':'LEAST_REQUEST'"), NULL},
		{"A52 lb_policy MAGLEV", CLUSTER(EDS ",'lbPolicy':'MAGLEV'"),
			"MAGLEV is not supported"},
		{"A52 config beats the enum",
			CLUSTER(EDS ",'lbPolicy':'MAGLEV','loadBalancingPolicy':"
				    "{'policies':[" ROUND_ROBIN "]}"),
			NULL},
		{"A52 LOAD_BALANCING_POLICY_CONFIG without one",
			CLUSTER(EDS ",'lbPolicy':'LOAD_BALANCING_POLICY_CONFIG'"),
			"LOAD_BALANCING_POLICY_CONFIG is not supported"},
		{"A52 first supported one", POLICIES(MAGLEV "," WRR(ROUND_ROBIN)), NULL},
		{"A52 none supported", POLICIES(MAGLEV), "no supported policy"},
		{"A52 empty list", POLICIES(""), "no supported policy"},
		{"A52 supported but invalid", POLICIES(WRR(MAGLEV) "," ROUND_ROBIN),
			"wrr_locality: endpoint_picking_policy: no supported policy"},
		{"A52 entry without config", POLICIES("{}"), "policies[0]: no typed_config"},
		{"A75 idle_timeout", IDLE("'30s'"), NULL},
		{"CL-08 negative idle_timeout", IDLE("'-1s'"), "idle_timeout: seconds"},
		{"CL-08 other type in upstream_config", UPSTREAM("'@type':'" ROUTER_TYPE "'"),
			"no HttpProtocolOptions"},
		{"TLS is not left out silently",
			CLUSTER(EDS ",'transportSocket':{'name':'tls','typedConfig':"
				    "{'@type':'" TLS_TYPE "','sni':'x'}}"),
			"TLS to backends is not supported yet"},
		{"CL-07 unsupported fields are ignored",
			CLUSTER(EDS ",'connectTimeout':'5s','healthChecks':[{}],"
				    "'perConnectionBufferLimitBytes':1"),
			NULL, "health_checks are ignored: health is what the endpoints come with"},
	};
	RUN_ROWS(&res_type_cluster, rows);
}

RUN_SUITE("res/cluster", cmocka_unit_test(clusters))
