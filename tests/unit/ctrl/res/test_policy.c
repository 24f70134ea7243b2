// SPDX-License-Identifier: Apache-2.0
// Which balancing policies are accepted and refused (gRFC A52; one row a rule), and what tree comes
// of them.
#include "ctrl/res/cluster.h"
#include "ctrl/xds/type.h"
#include "lb/base/time.h"
#include "lb/policy/node.h"
#include "lb/policy/policy_spec.h"
#include "tests/support/check.h"
#include "tests/support/res_json.h"
#include "tests/unit/ctrl/res/cluster_json.h"
#include "tests/unit/ctrl/res/decode.h"
#include "tests/unit/ctrl/res/rows.h"

#include <stdlib.h>
#include <string.h>

#define MIN_RANGE "minimum_ring_size: must be in [1, 8388608]"
#define POLICY "=load_balancing_policy: "
#define FIRST POLICY "policies[0]: "

// A52-T10.
static void which_entry_counts(void **state)
{
#define STRUCT_ENTRY(wrapper, type) ENTRY(STRUCT_ANY(wrapper, type, ""))
#define NAMELESS(type_url) "{'@type':'" URL TYPED_STRUCT "','typeUrl':'" type_url "'}"
#define INNER "wrr_locality: endpoint_picking_policy: policies[0]: "
#define WRR_4(entries) WRR(WRR(WRR(WRR(entries))))
	static const struct res_row rows[] = {
		{"the only one", BALANCED(ROUND_ROBIN), NULL},
		{"the first known one", BALANCED(UNKNOWN "," WRR(ROUND_ROBIN)), NULL},
		{"what follows it is not read", BALANCED(ROUND_ROBIN ",{}"), NULL},
		{"config beats the enum",
			EDS_AND("'lbPolicy':'MAGLEV','loadBalancingPolicy':" LIST(ROUND_ROBIN)),
			NULL},
		{"and its parameters are not read",
			EDS_AND("'ringHashLbConfig':{'minimumRingSize':0},"
				"'loadBalancingPolicy':" LIST(ROUND_ROBIN)),
			NULL},
		{"none known", BALANCED(UNKNOWN), POLICY "no supported policy"},
		{"none at all", BALANCED(""), POLICY "no supported policy"},
		{"known but wrong", BALANCED(WRR(UNKNOWN) "," ROUND_ROBIN),
			FIRST "wrr_locality: endpoint_picking_policy: no supported policy"},
		{"known but wrong, after an unknown one",
			BALANCED(UNKNOWN "," ENTRY(ANY(LEAST_REQUEST_TYPE, ",'choiceCount':1"))),
			POLICY "policies[1]: least_request: choice_count: must be at least 2"},
		{"an entry without anything", BALANCED("{}," ROUND_ROBIN), FIRST "no typed_config"},
		{"an entry without config",
			BALANCED("{'typedExtensionConfig':{'name':'x'}}," ROUND_ROBIN),
			FIRST "no typed_config"},
		{"TypedStruct of a known type",
			BALANCED(STRUCT_ENTRY(TYPED_STRUCT, ROUND_ROBIN_TYPE)),
			POLICY "no supported policy"},
		{"TypedStruct of a name that nobody has",
			BALANCED(STRUCT_ENTRY(OLD_TYPED_STRUCT, "maglev") "," PICK_FIRST), NULL},
		{"TypedStruct without a type", BALANCED(ENTRY(NAMELESS("")) "," ROUND_ROBIN),
			FIRST "TypedStruct: type_url names no type"},
		{"TypedStruct whose type has no slash",
			BALANCED(ENTRY(NAMELESS("x")) "," ROUND_ROBIN),
			FIRST "TypedStruct: type_url names no type"},
		// TH-59
		{"depth 16", BALANCED(WRR_4(WRR_4(WRR_4(WRR(WRR(WRR(ROUND_ROBIN))))))), NULL},
		{"depth 17", BALANCED(WRR_4(WRR_4(WRR_4(WRR_4(ROUND_ROBIN))))),
			FIRST INNER INNER "wrr_locality: endpoint_picking_policy: "
					  "nested deeper than 16"},
		{"depth 9, wrong at its end",
			BALANCED(WRR_4(WRR_4(ENTRY(ANY(LEAST_REQUEST_TYPE, ",'choiceCount':1"))))),
			FIRST INNER INNER "wrr_locality: endpoint_picking_policy: "
					  "least_request: choice_count: must be at least 2"},
		{"WrrLocality without a child",
			BALANCED(ENTRY(ANY(LB "wrr_locality.v3.WrrLocality", ""))),
			FIRST "wrr_locality: no endpoint_picking_policy"},
		{"LEAST_REQUEST", EDS_AND("'lbPolicy':'LEAST_REQUEST'"), NULL},
		{"RING_HASH", EDS_AND("'lbPolicy':'RING_HASH'"), NULL},
		{"RANDOM", EDS_AND("'lbPolicy':'RANDOM'"), "=lb_policy: RANDOM is not supported"},
		{"MAGLEV", EDS_AND("'lbPolicy':'MAGLEV'"), "=lb_policy: MAGLEV is not supported"},
		{"LOAD_BALANCING_POLICY_CONFIG without one",
			EDS_AND("'lbPolicy':'LOAD_BALANCING_POLICY_CONFIG'"),
			"=lb_policy: LOAD_BALANCING_POLICY_CONFIG is not supported"},
		{"a number that is no policy", EDS_AND("'lbPolicy':4"),
			"=lb_policy: unknown is not supported"},
	};
	RUN_ROWS(&res_type_cluster, rows);
}

// gRFC A52, A76: policies by gRPC's names.
static void policies_of_a_service_config(void **state)
{
#define NAMED(name, fields) BALANCED(ENTRY(STRUCT_ANY(TYPED_STRUCT, name, fields)))
#define CHILDREN(list) NAMED("xds_wrr_locality_experimental", "'childPolicy':" list)
#define NAMED_RING(fields) NAMED("ring_hash_experimental", fields)
#define RING_0 FIRST "ring_hash_experimental: "
#define HEADER_0 RING_0 "requestHashHeader: "
#define NAMED_WRR FIRST "xds_wrr_locality_experimental: "
	static const struct res_row rows[] = {
		{"round_robin", NAMED("round_robin", ""), NULL},
		{"in the older wrapper",
			BALANCED(ENTRY(STRUCT_ANY(OLD_TYPED_STRUCT, "round_robin", ""))), NULL},
		{"without a value",
			BALANCED(ENTRY(
				"{'@type':'" URL TYPED_STRUCT "','typeUrl':'" URL "pick_first'}")),
			NULL},
		{"fields that are not known", NAMED("round_robin", "'a':{'b':[1]}"), NULL},
		{"a name in part", NAMED("round_robi", ""), POLICY "no supported policy"},
		{"wrong type of a field", NAMED("pick_first", "'shuffleAddressList':1"),
			FIRST "pick_first: shuffleAddressList: not true or false"},
		{"checked like the message", NAMED("least_request_experimental", "'choiceCount':1"),
			FIRST "least_request_experimental: choice_count: must be at least 2"},
		{"a negative period", NAMED("weighted_round_robin", "'blackoutPeriod':'-1s'"),
			FIRST "weighted_round_robin: blackout_period: seconds must be in [0, "
			      "315576000000]"},
		{"ring of 0", NAMED_RING("'minRingSize':0"), RING_0 MIN_RANGE},
		{"ring of a half", NAMED_RING("'minRingSize':0.5"), "not a whole number"},
		{"RH-10 header", NAMED_RING("'requestHashHeader':'X-Key_1.a'"), NULL},
		{"RH-10 no header", NAMED_RING("'requestHashHeader':''"), NULL},
		{"RH-10 binary header", NAMED_RING("'requestHashHeader':'x-BIN'"),
			HEADER_0 "\"x-BIN\" is not the name of a text header"},
		{"RH-10 pseudo header", NAMED_RING("'requestHashHeader':':path'"),
			HEADER_0 "\":path\" is not the name of a text header"},
		{"RH-10 two headers", NAMED_RING("'requestHashHeader':'a, b'"),
			HEADER_0 "\"a, b\" is not the name of a text header"},
		{"RH-10 a number", NAMED_RING("'requestHashHeader':1"),
			HEADER_0 "must be a string"},
		{"children", CHILDREN("[{'nobodys':{}},{'pick_first':{}},1]"), NULL},
		{"no children", NAMED("xds_wrr_locality_experimental", ""),
			NAMED_WRR "childPolicy: no supported policy"},
		{"no known child", CHILDREN("[{'nobodys':{}}]"),
			NAMED_WRR "childPolicy: no supported policy"},
		{"a child of two names", CHILDREN("[{'round_robin':{},'pick_first':{}}]"),
			NAMED_WRR "childPolicy[0]: must be an object with one field"},
		{"a child that is no object", CHILDREN("[{'nobodys':{}},5]"),
			NAMED_WRR "childPolicy[1]: must be an object with one field"},
		{"a child whose config is none", CHILDREN("[{'round_robin':5}]"),
			NAMED_WRR "round_robin: must be an object"},
		{"a child that is wrong",
			CHILDREN("[{'least_request_experimental':{'choiceCount':0}}]"),
			NAMED_WRR "least_request_experimental: choice_count: must be at least 2"},
		{"localities within localities, the message within too deep",
			BALANCED(WRR_4(WRR_4(WRR_4(WRR(WRR(
				WRR(ENTRY(STRUCT_ANY(TYPED_STRUCT, "xds_wrr_locality_experimental",
					"'childPolicy':[{'round_robin':{}}]"))))))))),
			"nested deeper than 16"},
	};
	RUN_ROWS(&res_type_cluster, rows);
}

// What no JSON can say: bytes of a resource, changed. Refused with this text.
static void check_changed(
	const char *json, const char *where, size_t offset, char byte, const char *text)
{
	size_t len;
	uint8_t *bytes = res_bytes_from_json(&res_type_cluster, json, &len);
	uint8_t *at = memmem(bytes, len, where, strlen(where));
	assert_non_null(at);
	at[offset] = (uint8_t)byte;
	res_refuse_bytes(&res_type_cluster, bytes, len, text);
	free(bytes);
}

static void an_entry_must_name_a_type_and_hold_it(void **state)
{
	const size_t slash = strlen(URL) - 1;
	check_changed(BALANCED(UNKNOWN "," ROUND_ROBIN), URL ROUTER_TYPE, slash, '.',
		"policies[0]: type_url: \"type.googleapis.com.envoy.extensions.filters.http.router."
		"v3.Router\" names no type");
	check_changed(
		BALANCED(ROUND_ROBIN), URL ROUND_ROBIN_TYPE, slash, '.', "policies[0]: type_url: ");
	check_changed(BALANCED(UNKNOWN "," ROUND_ROBIN), URL ROUTER_TYPE,
		strlen(URL ROUTER_TYPE) - 1, '/', "names no type");
	// choice_count is a message of two bytes, which now claims nine.
	check_changed(BY(LEAST_REQUEST_TYPE, "'choiceCount':5"), "\x0a\x02\x08\x05", 1, 9,
		"least_request: ");
}

// RH-01, RH-03.
static void rings(void **state)
{
#define RING(fields) BY(RING_HASH_TYPE, fields)
#define OLD_RING(fields) EDS_AND("'lbPolicy':'RING_HASH','ringHashLbConfig':{" fields "}")
#define MAX_RANGE "maximum_ring_size: must be in [1, 8388608]"
#define OVER "minimum_ring_size: must not exceed maximum_ring_size"
	static const struct res_row rows[] = {
		{"sizes", RING("'minimumRingSize':'1','maximumRingSize':'8388608'"), NULL},
		{"equal sizes", RING("'minimumRingSize':'7','maximumRingSize':'7'"), NULL},
		{"min 0", RING("'minimumRingSize':'0'"), FIRST "ring_hash: " MIN_RANGE},
		{"min above 8M", RING("'minimumRingSize':'8388609'"),
			FIRST "ring_hash: " MIN_RANGE},
		{"max 0", RING("'maximumRingSize':'0'"), FIRST "ring_hash: " MAX_RANGE},
		{"max above 8M", RING("'maximumRingSize':'8388609'"),
			FIRST "ring_hash: " MAX_RANGE},
		{"max far above", RING("'maximumRingSize':'18446744073709551615'"),
			FIRST "ring_hash: " MAX_RANGE},
		{"min above max", RING("'minimumRingSize':'8','maximumRingSize':'7'"),
			FIRST "ring_hash: " OVER},
		{"min of 1024 above max", RING("'maximumRingSize':'1023'"),
			FIRST "ring_hash: " OVER},
		{"both above the cap, wrong before it",
			RING("'minimumRingSize':'6000','maximumRingSize':'5000'"),
			FIRST "ring_hash: " OVER},
		{"XX_HASH", RING("'hashFunction':'XX_HASH'"), NULL},
		{"default hash", RING("'hashFunction':'DEFAULT_HASH'"), NULL},
		{"MURMUR_HASH_2", RING("'hashFunction':'MURMUR_HASH_2'"),
			FIRST "ring_hash: hash_function: must be XX_HASH"},
		{"unknown hash", RING("'hashFunction':9"),
			FIRST "ring_hash: hash_function: must be XX_HASH"},
		{"bounded loads", RING("'consistentHashingLbConfig':{'hashBalanceFactor':150}"),
			NULL, "ring_hash: hash_balance_factor is ignored"},
		{"bounded loads, old field", RING("'hashBalanceFactor':150"), NULL,
			"ring_hash: hash_balance_factor is ignored"},
		{"names as keys",
			RING("'consistentHashingLbConfig':{'useHostnameForHashing':true}"), NULL,
			"ring_hash: use_hostname_for_hashing is ignored"},
		{"old sizes", OLD_RING("'minimumRingSize':'5','maximumRingSize':'6'"), NULL},
		{"old min 0", OLD_RING("'minimumRingSize':'0'"),
			"=ring_hash_lb_config: " MIN_RANGE},
		{"old max above 8M", OLD_RING("'maximumRingSize':'8388609'"),
			"=ring_hash_lb_config: " MAX_RANGE},
		{"old min above max", OLD_RING("'minimumRingSize':'8','maximumRingSize':'7'"),
			"=ring_hash_lb_config: " OVER},
		{"old MURMUR_HASH_2", OLD_RING("'hashFunction':'MURMUR_HASH_2'"),
			"=ring_hash_lb_config: hash_function: must be XX_HASH"},
		{"old sizes of another policy are not read",
			EDS_AND("'ringHashLbConfig':{'minimumRingSize':'0'}"), NULL},
	};
	RUN_ROWS(&res_type_cluster, rows);
}

// A48-01, A48-03.
static void choices(void **state)
{
#define LEAST(fields) BY(LEAST_REQUEST_TYPE, fields)
#define OLD_LEAST(fields) EDS_AND("'lbPolicy':'LEAST_REQUEST','leastRequestLbConfig':{" fields "}")
#define FEW "choice_count: must be at least 2"
	static const struct res_row rows[] = {
		{"two", LEAST("'choiceCount':2"), NULL},
		{"one", LEAST("'choiceCount':1"), FIRST "least_request: " FEW},
		{"zero", LEAST("'choiceCount':0"), FIRST "least_request: " FEW},
		{"many", LEAST("'choiceCount':4294967295"), NULL},
		{"bias", LEAST("'activeRequestBias':{'defaultValue':1.5}"), NULL,
			"least_request: active_request_bias is ignored"},
		{"slow start", LEAST("'slowStartConfig':{}"), NULL,
			"least_request: slow_start_config is ignored"},
		{"localities", LEAST("'localityLbConfig':{}"), NULL,
			"least_request: locality_lb_config is ignored"},
		{"full scan", LEAST("'selectionMethod':'FULL_SCAN'"), NULL,
			"least_request: selection_method is ignored"},
		{"old, three", OLD_LEAST("'choiceCount':3"), NULL},
		{"old, one", OLD_LEAST("'choiceCount':1"), "=least_request_lb_config: " FEW},
		{"old bias", OLD_LEAST("'activeRequestBias':{}"), NULL,
			"least_request_lb_config: active_request_bias is ignored"},
		{"old slow start", OLD_LEAST("'slowStartConfig':{}"), NULL,
			"least_request_lb_config: slow_start_config is ignored"},
	};
	RUN_ROWS(&res_type_cluster, rows);
}

// A58-02.
static void weights_by_load(void **state)
{
#define BY_LOAD(fields) BY(WEIGHTED_TYPE, fields)
#define WEIGHTED_0 FIRST "client_side_weighted_round_robin: "
#define SECONDS ": seconds must be in [0, 315576000000]"
#define PENALTY "error_utilization_penalty: must be a number and not negative"
	static const struct res_row rows[] = {
		{"no fields", BALANCED(ENTRY(ANY(WEIGHTED_TYPE, ""))), NULL},
		{"oob_reporting_period", BY_LOAD("'oobReportingPeriod':'-1s'"),
			WEIGHTED_0 "oob_reporting_period" SECONDS},
		{"blackout_period", BY_LOAD("'blackoutPeriod':'-1s'"),
			WEIGHTED_0 "blackout_period" SECONDS},
		{"weight_expiration_period", BY_LOAD("'weightExpirationPeriod':'-1s'"),
			WEIGHTED_0 "weight_expiration_period" SECONDS},
		{"weight_update_period", BY_LOAD("'weightUpdatePeriod':'-1s'"),
			WEIGHTED_0 "weight_update_period" SECONDS},
		{"penalty of 0", BY_LOAD("'errorUtilizationPenalty':0"), NULL},
		{"negative penalty", BY_LOAD("'errorUtilizationPenalty':-0.5"), WEIGHTED_0 PENALTY},
		{"penalty that is no number", BY_LOAD("'errorUtilizationPenalty':'NaN'"),
			WEIGHTED_0 PENALTY},
		{"endless penalty", BY_LOAD("'errorUtilizationPenalty':'Infinity'"),
			WEIGHTED_0 PENALTY},
		{"metrics by name", BY_LOAD("'metricNamesForComputingUtilization':['a']"), NULL,
			"client_side_weighted_round_robin: "
			"metric_names_for_computing_utilization is ignored"},
		{"A58-06 no stream", BY_LOAD("'enableOobLoadReport':false"), NULL},
		{"A58-06 reports by a stream", BY_LOAD("'enableOobLoadReport':true"), NULL,
			"client_side_weighted_round_robin: enable_oob_load_report: "
			"reports of answers are used instead"},
		{"within localities",
			BALANCED(WRR(ENTRY(ANY(WEIGHTED_TYPE, ",'blackoutPeriod':'-1s'")))),
			FIRST "wrr_locality: endpoint_picking_policy: policies[0]: "
			      "client_side_weighted_round_robin: blackout_period" SECONDS},
	};
	RUN_ROWS(&res_type_cluster, rows);
}

// A68-01, A68-05
static void subsets(void **state)
{
#define SUBSET_TYPE LB "random_subsetting.v3.RandomSubsetting"
#define SUBSET(size, entries)                                                                      \
	ENTRY(ANY(SUBSET_TYPE, ",'subsetSize':" #size ",'childPolicy':" LIST(entries)))
#define SUBSET_0 FIRST "random_subsetting: "
#define NAMED_SUBSET(fields) NAMED("random_subsetting_experimental", fields)
#define NAMED_0 FIRST "random_subsetting_experimental: "
#define ROBIN "'childPolicy':[{'round_robin':{}}]"
#define SIZE_0 "subset_size: must be greater than 0"
	static const struct res_row rows[] = {
		{"of localities", BALANCED(SUBSET(20, WRR(ROUND_ROBIN))), NULL},
		{"of each locality", BALANCED(WRR(SUBSET(1, ROUND_ROBIN))), NULL},
		{"the largest", BALANCED(SUBSET(4294967295, PICK_FIRST)), NULL},
		{"of none", BALANCED(SUBSET(0, ROUND_ROBIN)), SUBSET_0 SIZE_0},
		{"of nobody knows how many",
			BALANCED(ENTRY(ANY(SUBSET_TYPE, ",'childPolicy':" LIST(ROUND_ROBIN)))),
			SUBSET_0 SIZE_0},
		{"for nobody", BALANCED(ENTRY(ANY(SUBSET_TYPE, ",'subsetSize':3"))),
			SUBSET_0 "no child_policy"},
		{"for nobody known", BALANCED(SUBSET(3, UNKNOWN)),
			SUBSET_0 "child_policy: no supported policy"},
		{"for one that is wrong",
			BALANCED(SUBSET(3, ENTRY(ANY(LEAST_REQUEST_TYPE, ",'choiceCount':1")))),
			SUBSET_0 "child_policy: policies[0]: least_request: choice_count: "
				 "must be at least 2"},
		{"within localities, of none", BALANCED(WRR(SUBSET(0, ROUND_ROBIN))),
			FIRST INNER "random_subsetting: " SIZE_0},
		{"too deep",
			BALANCED(WRR_4(WRR_4(WRR_4(WRR(WRR(WRR(SUBSET(2, WRR(ROUND_ROBIN))))))))),
			"nested deeper than 16"},
		{"named", NAMED_SUBSET("'subsetSize':2," ROBIN), NULL},
		{"named, of none", NAMED_SUBSET("'subsetSize':0," ROBIN), NAMED_0 SIZE_0},
		{"named, of nobody knows how many", NAMED_SUBSET(ROBIN),
			NAMED_0 "subsetSize: must be a whole number"},
		{"named, of a half", NAMED_SUBSET("'subsetSize':2.5," ROBIN),
			NAMED_0 "subsetSize: must be a whole number"},
		{"named, of less than none", NAMED_SUBSET("'subsetSize':-1," ROBIN),
			NAMED_0 "subsetSize: must be a whole number"},
		{"named, of too many", NAMED_SUBSET("'subsetSize':4294967296," ROBIN),
			NAMED_0 "subsetSize: must be a whole number"},
		{"named, a text", NAMED_SUBSET("'subsetSize':'2'," ROBIN),
			NAMED_0 "subsetSize: must be a whole number"},
		{"named, for nobody", NAMED_SUBSET("'subsetSize':2"),
			NAMED_0 "childPolicy: no supported policy"},
		{"named, within localities",
			CHILDREN("[{'random_subsetting_experimental':{'subsetSize':0," ROBIN "}}]"),
			NAMED_WRR SIZE_0},
	};
	RUN_ROWS(&res_type_cluster, rows);
}

static void rotations(void **state)
{
	static const struct res_row rows[] = {
		{"slow start", BY(ROUND_ROBIN_TYPE, "'slowStartConfig':{}"), NULL,
			"round_robin: slow_start_config is ignored"},
		{"localities", BY(ROUND_ROBIN_TYPE, "'localityLbConfig':{}"), NULL,
			"round_robin: locality_lb_config is ignored"},
		{"old slow start", EDS_AND("'roundRobinLbConfig':{'slowStartConfig':{}}"), NULL,
			"round_robin_lb_config: slow_start_config is ignored"},
		{"old, nothing", EDS_AND("'roundRobinLbConfig':{}"), NULL},
		{"PF-01 shuffle", BY(PICK_FIRST_TYPE, "'shuffleAddressList':true"), NULL},
	};
	RUN_ROWS(&res_type_cluster, rows);
}

#define S NS_PER_SECOND
#define SPREAD(kind_of, ...)                                                                       \
	{                                                                                          \
		.kind = LB_POLICY_WRR_LOCALITY,                                                    \
		.child = &(const struct lb_policy_spec){.kind = kind_of, __VA_ARGS__},             \
	}
#define RING_OF(min, max)                                                                          \
	{                                                                                          \
		.kind = LB_POLICY_RING_HASH, .ring_hash = { min, max }                             \
	}
#define WEIGHTED_OF(...)                                                                           \
	{                                                                                          \
		.kind = LB_POLICY_WEIGHTED_ROUND_ROBIN, .wrr = { __VA_ARGS__ }                     \
	}

static const struct {
	const char *json;
	struct lb_policy_spec spec;
} trees[] = {
	// A68-05: it is the inner policy's; one within another leaves the fewer.
	{BALANCED(SUBSET(20, WRR(ROUND_ROBIN))),
		{.kind = LB_POLICY_WRR_LOCALITY,
			.subset_size = 20,
			.child = &(const struct lb_policy_spec){.kind = LB_POLICY_ROUND_ROBIN}}},
	{BALANCED(WRR(SUBSET(5, ROUND_ROBIN))), SPREAD(LB_POLICY_ROUND_ROBIN, .subset_size = 5)},
	{BALANCED(SUBSET(4, SUBSET(3, SUBSET(5, PICK_FIRST)))),
		{.kind = LB_POLICY_PICK_FIRST, .subset_size = 3}},
	{NAMED_SUBSET("'subsetSize':7,'childPolicy':[{'pick_first':{}}]"),
		{.kind = LB_POLICY_PICK_FIRST, .subset_size = 7}},
	// A52-L04
	{CLUSTER(FROM_EDS), SPREAD(LB_POLICY_ROUND_ROBIN)},
	{EDS_AND("'lbPolicy':'LEAST_REQUEST'"),
		SPREAD(LB_POLICY_LEAST_REQUEST, .least_request = {2})},
	{EDS_AND("'lbPolicy':'LEAST_REQUEST','leastRequestLbConfig':{'choiceCount':11}"),
		SPREAD(LB_POLICY_LEAST_REQUEST, .least_request = {10})},
	// RH-03
	{EDS_AND("'lbPolicy':'RING_HASH'"), RING_OF(1024, 4096)},
	{EDS_AND("'lbPolicy':'RING_HASH','ringHashLbConfig':{'minimumRingSize':'5',"
		 "'maximumRingSize':'6'}"),
		RING_OF(5, 6)},
	// TH-59
	{BY(RING_HASH_TYPE, "'minimumRingSize':'5000','maximumRingSize':'8388608'"),
		RING_OF(4096, 4096)},
	{BY(RING_HASH_TYPE, "'minimumRingSize':'4095','maximumRingSize':'4097'"),
		RING_OF(4095, 4096)},
	// A48-01
	{BALANCED(ENTRY(ANY(LEAST_REQUEST_TYPE, ""))),
		{.kind = LB_POLICY_LEAST_REQUEST, .least_request = {2}}},
	{BY(LEAST_REQUEST_TYPE, "'choiceCount':10"),
		{.kind = LB_POLICY_LEAST_REQUEST, .least_request = {10}}},
	{BALANCED(ROUND_ROBIN), {.kind = LB_POLICY_ROUND_ROBIN}},
	{BALANCED(PICK_FIRST), {.kind = LB_POLICY_PICK_FIRST}},
	{BY(PICK_FIRST_TYPE, "'shuffleAddressList':true"),
		{.kind = LB_POLICY_PICK_FIRST, .pick_first = {true}}},
	{BALANCED(WRR(UNKNOWN "," PICK_FIRST)), SPREAD(LB_POLICY_PICK_FIRST)},
	// A58-02
	{BALANCED(ENTRY(ANY(WEIGHTED_TYPE, ""))),
		WEIGHTED_OF(false, 10 * S, 10 * S, 180 * S, S, 1.0)},
	{BALANCED(WRR(ENTRY(ANY(WEIGHTED_TYPE,
		 ",'enableOobLoadReport':true,'oobReportingPeriod':'1s','blackoutPeriod':'0s',"
		 "'weightExpirationPeriod':'3s','weightUpdatePeriod':'0.099999999s',"
		 "'errorUtilizationPenalty':0.5")))),
		SPREAD(LB_POLICY_WEIGHTED_ROUND_ROBIN, .wrr = {true, S, 0, 3 * S, S / 10, 0.5})},
	{BY(WEIGHTED_TYPE, "'enableOobLoadReport':false,'weightUpdatePeriod':'0.2s'"),
		WEIGHTED_OF(false, 10 * S, 10 * S, 180 * S, S / 5, 1.0)},
	// A52, A76: by gRPC's names
	{NAMED_RING("'minRingSize':5,'maxRingSize':'6','requestHashHeader':'X-Key'"),
		{.kind = LB_POLICY_RING_HASH, .ring_hash = {5, 6, {"x-key", 5}}}},
	{NAMED("weighted_round_robin",
		 "'enableOobLoadReport':true,'oobReportingPeriod':'1s','blackoutPeriod':'2s',"
		 "'weightExpirationPeriod':'3s','weightUpdatePeriod':'4s',"
		 "'errorUtilizationPenalty':0.25"),
		WEIGHTED_OF(true, S, 2 * S, 3 * S, 4 * S, 0.25)},
	{CHILDREN("[{'least_request_experimental':{'choiceCount':3}}]"),
		SPREAD(LB_POLICY_LEAST_REQUEST, .least_request = {3})},
	// A75-G07: a default that nobody asked for
	{CLUSTER(OF("'a'") ",'lbPolicy':'CLUSTER_PROVIDED'"), SPREAD(LB_POLICY_ROUND_ROBIN)},
};
#define N_TREES (sizeof(trees) / sizeof(trees[0]))

static void a_policy_becomes_a_tree(void **state)
{
	for (size_t i = 0; i < N_TREES; i++) {
		struct xds_res *r = res_decode(&res_type_cluster, trees[i].json);
		if (!lb_policy_spec_same(res_cluster_from(r)->spec, &trees[i].spec))
			fail_msg("another tree of %s", trees[i].json);
		xds_res_put(r);
	}
}

// Each resource against each: the same tree exactly where the table has the same one. The few that
// are equal come of different texts.
static void trees_of_different_policies_differ(void **state)
{
	struct xds_res *r[N_TREES];
	unsigned n_same = 0;
	for (size_t i = 0; i < N_TREES; i++)
		r[i] = res_decode(&res_type_cluster, trees[i].json);
	for (size_t i = 0; i < N_TREES; i++)
		for (size_t k = 0; k < i; k++)
			n_same += lb_policy_spec_same(
				res_cluster_from(r[i])->spec, res_cluster_from(r[k])->spec);
	assert_int_equal(n_same, 1); // the first and the last
	assert_true(lb_policy_spec_same(NULL, NULL));
	assert_false(lb_policy_spec_same(NULL, res_cluster_from(r[0])->spec));
	assert_false(lb_policy_spec_same(res_cluster_from(r[0])->spec, NULL));
	for (size_t i = 0; i < N_TREES; i++)
		xds_res_put(r[i]);
}

static void each_parameter_tells_two_trees_apart(void **state)
{
	static const struct lb_policy_spec some[] = {
		WEIGHTED_OF(false, 1, 2, 3, 4, 1.0),
		WEIGHTED_OF(true, 1, 2, 3, 4, 1.0),
		WEIGHTED_OF(false, 9, 2, 3, 4, 1.0),
		WEIGHTED_OF(false, 1, 9, 3, 4, 1.0),
		WEIGHTED_OF(false, 1, 2, 9, 4, 1.0),
		WEIGHTED_OF(false, 1, 2, 3, 9, 1.0),
		WEIGHTED_OF(false, 1, 2, 3, 4, 0.5),
		WEIGHTED_OF(false, 1, 2, 3, 4, 1.5),
		RING_OF(1, 2),
		RING_OF(1, 3),
		RING_OF(2, 2),
		{.kind = LB_POLICY_RING_HASH, .ring_hash = {1, 2, {"x", 1}}},
		{.kind = LB_POLICY_RING_HASH, .ring_hash = {1, 2, {"y", 1}}},
		{.kind = LB_POLICY_RING_HASH, .ring_hash = {1, 2, {"y", 1}}, .subset_size = 1},
	};
	size_t n = sizeof(some) / sizeof(some[0]);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			assert_int_equal(lb_policy_spec_same(&some[i], &some[k]), i == k);
}

RUN_SUITE("res/policy", cmocka_unit_test(which_entry_counts),
	cmocka_unit_test(policies_of_a_service_config),
	cmocka_unit_test(an_entry_must_name_a_type_and_hold_it), cmocka_unit_test(rings),
	cmocka_unit_test(choices), cmocka_unit_test(weights_by_load), cmocka_unit_test(rotations),
	cmocka_unit_test(subsets), cmocka_unit_test(a_policy_becomes_a_tree),
	cmocka_unit_test(trees_of_different_policies_differ),
	cmocka_unit_test(each_parameter_tells_two_trees_apart))
