// SPDX-License-Identifier: Apache-2.0
// Pieces of clusters for tests, with ' for ".
// Thread: any.
#pragma once

#include "tests/unit/ctrl/res/json.h"

#define FROM_EDS "'type':'EDS','edsClusterConfig':{'edsConfig':{'ads':{}}}"
#define CLUSTER(x) "{'name':'c'," x "}"
#define EDS_AND(x) CLUSTER(FROM_EDS "," x)

#define AGGREGATE_TYPE "envoy.extensions.clusters.aggregate.v3.ClusterConfig"
#define CUSTOM(any) "'clusterType':{'name':'envoy.clusters.aggregate','typedConfig':" any "}"
#define OF(children) CUSTOM(ANY(AGGREGATE_TYPE, ",'clusters':[" children "]"))

#define DNS_OF(assignment) "'type':'LOGICAL_DNS','loadAssignment':{" assignment "}"
#define DNS_AT(endpoint) DNS_OF("'endpoints':[{'lbEndpoints':[{" endpoint "}]}]")
#define SOCKET(fields) "'address':{'socketAddress':{" fields "}}"
#define DNS(fields) DNS_AT("'endpoint':{" SOCKET(fields) "}")

#define SOCKETS "envoy.extensions.transport_sockets."
#define LB "envoy.extensions.load_balancing_policies."
#define ENTRY(any) "{'typedExtensionConfig':{'name':'x','typedConfig':" any "}}"
#define LIST(entries) "{'policies':[" entries "]}"
#define ROUND_ROBIN_TYPE LB "round_robin.v3.RoundRobin"
#define WEIGHTED_TYPE LB "client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin"
#define LEAST_REQUEST_TYPE LB "least_request.v3.LeastRequest"
#define RING_HASH_TYPE LB "ring_hash.v3.RingHash"
#define PICK_FIRST_TYPE LB "pick_first.v3.PickFirst"
#define PROVIDED_TYPE LB "cluster_provided.v3.ClusterProvided"
#define ROUND_ROBIN ENTRY(ANY(ROUND_ROBIN_TYPE, ""))
#define PICK_FIRST ENTRY(ANY(PICK_FIRST_TYPE, ""))
#define WRR(entries)                                                                               \
	ENTRY(ANY(LB "wrr_locality.v3.WrrLocality", ",'endpointPickingPolicy':" LIST(entries)))
#define UNKNOWN ENTRY(ANY(ROUTER_TYPE, "")) // any message that is no policy
#define BALANCED(entries) EDS_AND("'loadBalancingPolicy':" LIST(entries))
#define BY(type, fields) BALANCED(ENTRY(ANY(type, "," fields)))
