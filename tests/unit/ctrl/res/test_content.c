// SPDX-License-Identifier: Apache-2.0
// What decoded resources hold, and what hostile bytes do to the decoders.
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "ctrl/res/types.h"
#include "ctrl/xds/type.h"
#include "lb/base/rand.h"
#include "lb/policy/policy_spec.h"
#include "tests/support/check.h"
#include "tests/support/res_json.h"
#include "tests/unit/ctrl/res/decode.h"

#include <stdlib.h>
#include <string.h>

static void routes_keep_their_order_and_ignored_ones_are_gone(void **state)
{
	struct xds_res *r = res_decode(&res_type_route_config,
		"{'name':'rc','virtualHosts':[{'name':'v','domains':['a.b','*'],'routes':["
		"{'name':'one','match':{'prefix':'/x','caseSensitive':false},"
		"'route':{'cluster':'c1'}},"
		"{'match':{'prefix':'','queryParameters':[{'name':'q'}]},'route':{'cluster':'no'}},"
		"{'match':{'path':'/y'},'route':{'weightedClusters':{'clusters':["
		"{'name':'c2','weight':30},{'name':'c3','weight':70}]}}},"
		"{'match':{'prefix':'/r'},'redirect':{}}]},"
		"{'name':'w','domains':['w']}]}");
	const struct res_route_config *c = res_route_config_from(r);
	assert_string_equal(r->name, "rc");
	assert_int_equal(c->n_vhosts, 2);
	const struct res_vhost *v = &c->vhosts[0];
	assert_string_equal(v->name, "v");
	assert_int_equal(v->n_domains, 2);
	assert_string_equal(v->domains[0], "a.b");
	assert_int_equal(v->n_routes, 3);
	assert_string_equal(v->routes[0].name, "one");
	assert_int_equal(v->routes[0].path_kind, LB_PATH_PREFIX);
	assert_string_equal(v->routes[0].path, "/x");
	assert_false(v->routes[0].case_sensitive); // A28-P04
	assert_int_equal(v->routes[0].n_clusters, 1);
	assert_string_equal(v->routes[0].clusters[0].name, "c1");
	assert_int_equal(v->routes[1].path_kind, LB_PATH_EXACT);
	assert_true(v->routes[1].case_sensitive);
	assert_int_equal(v->routes[1].n_clusters, 2);
	assert_string_equal(v->routes[1].clusters[1].name, "c3");
	assert_int_equal(v->routes[1].clusters[1].weight, 70);
	assert_int_equal(v->routes[2].action, LB_ACTION_UNSUPPORTED); // A28-V04
	assert_int_equal(v->routes[2].n_clusters, 0);

	assert_int_equal(res_route_config_choose(c, "a.b"), 0);
	assert_int_equal(res_route_config_choose(c, "w"), 1); // VH-02: exact beats '*'
	assert_int_equal(res_route_config_choose(c, "z"), 0);
	xds_res_put(r);
	r = res_decode(&res_type_route_config,
		"{'name':'rc','virtualHosts':[{'name':'v','domains':['a.b']}]}");
	assert_int_equal(res_route_config_choose(res_route_config_from(r), "b.a"), -1);
	xds_res_put(r);
}

// VH-06: as the table of the chosen virtual host will be asked.
static void an_authority_is_chosen_with_its_port_unless_that_is_ignored(void **state)
{
#define HOSTS                                                                                      \
	"'virtualHosts':[{'name':'a','domains':['foo.com:8080']},"                                 \
	"{'name':'b','domains':['foo.com','[::1]']}]}"
	static const struct {
		const char *authority;
		int plain, without_port; // -1 = none
	} rows[] = {{"foo.com", 1, 1}, {"foo.com:8080", 0, 1}, {"foo.com:81", -1, 1},
		{"[::1]:80", -1, 1}, {"[::1]", 1, 1}, {"bar.com:8080", -1, -1}};
	struct xds_res *plain = res_decode(&res_type_route_config, "{'name':'rc'," HOSTS);
	struct xds_res *without = res_decode(
		&res_type_route_config, "{'name':'rc','ignorePortInHostMatching':true," HOSTS);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *a = rows[i].authority;
		assert_int_equal(
			res_route_config_choose(res_route_config_from(plain), a), rows[i].plain);
		assert_int_equal(res_route_config_choose(res_route_config_from(without), a),
			rows[i].without_port);
	}
	xds_res_put(plain);
	xds_res_put(without);
}

static void listener_holds_the_route_name_or_the_routes(void **state)
{
#define HCM                                                                                        \
	"'@type':'type.googleapis.com/"                                                            \
	"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager'"
#define ROUTER                                                                                     \
	"'httpFilters':[{'name':'router','typedConfig':{'@type':"                                  \
	"'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router'}}]"
	struct xds_res *r = res_decode(&res_type_listener,
		"{'name':'l','apiListener':{'apiListener':{" HCM ",'rds':"
		"{'configSource':{'ads':{}},'routeConfigName':'rc'}," ROUTER "}}}");
	assert_true(res_listener_from(r)->is_api);
	assert_string_equal(res_listener_from(r)->rds_name, "rc");
	assert_null(res_listener_from(r)->routes);
	xds_res_put(r);

	r = res_decode(&res_type_listener,
		"{'name':'l','apiListener':{'apiListener':{" HCM ",'routeConfig':"
		"{'name':'rc','virtualHosts':[{'name':'v','domains':['x']}]}," ROUTER "}}}");
	assert_null(res_listener_from(r)->rds_name);
	const struct res_route_config *routes = res_listener_from(r)->routes;
	assert_string_equal(routes->base.name, "rc");
	assert_string_equal(routes->vhosts[0].domains[0], "x");
	// Inline routes are comparable: their bytes are those of the message by itself.
	struct xds_res *alone = res_decode(&res_type_route_config,
		"{'name':'rc','virtualHosts':[{'name':'v','domains':['x']}]}");
	assert_true(xds_res_eq(alone, &routes->base));
	xds_res_put(alone);
	xds_res_put(r);
}

// A52-L04
static void cluster_names_its_endpoints_and_limits(void **state)
{
#define EDS "'type':'EDS','edsClusterConfig':{'edsConfig':{'ads':{}}"
#define OPTIONS                                                                                    \
	"{'@type':'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',"   \
	"'commonHttpProtocolOptions':{'idleTimeout':'1.5s'}}"
	struct xds_res *r = res_decode(&res_type_cluster, "{'name':'c'," EDS "}}");
	const struct res_cluster *c = res_cluster_from(r);
	assert_string_equal(c->eds_name, "c"); // CL-04
	assert_int_equal(c->spec->kind, LB_POLICY_WRR_LOCALITY); // A52-L04
	assert_int_equal(c->spec->child->kind, LB_POLICY_ROUND_ROBIN);
	assert_int_equal(c->max_requests, 1024); // CB-01
	assert_int_equal(c->idle_timeout_ns, 3600000000000); // A75
	xds_res_put(r);

	r = res_decode(&res_type_cluster,
		"{'name':'c'," EDS ",'serviceName':'s'},'circuitBreakers':{'thresholds':["
		"{'priority':'HIGH','maxRequests':1},{'maxRequests':7},{'maxRequests':9}]},"
		"'loadBalancingPolicy':{'policies':[{'typedExtensionConfig':{'name':'x',"
		"'typedConfig':{'@type':'type.googleapis.com/envoy.extensions."
		"load_balancing_policies.round_robin.v3.RoundRobin'}}}]},"
		"'typedExtensionProtocolOptions':{'x':" OPTIONS "}}");
	c = res_cluster_from(r);
	assert_string_equal(c->eds_name, "s");
	assert_int_equal(c->spec->kind, LB_POLICY_ROUND_ROBIN);
	assert_int_equal(c->max_requests, 7);
	assert_int_equal(c->idle_timeout_ns, 1500000000); // CL-08
	xds_res_put(r);
}

// CL-09: in milliseconds; what is too long for them is the longest.
static void times_of_connections_are_those_of_the_cluster(void **state)
{
#define HTTP2_AT(where)                                                                            \
	"'typedExtensionProtocolOptions':{'x':{'@type':'type.googleapis.com/envoy.extensions."     \
	"upstreams.http.v3.HttpProtocolOptions','" where                                           \
	"':{'http2ProtocolOptions':{'connectionKeepalive':{"                                       \
	"'interval':'1.5s','timeout':'999999999s'}}}}}"
	static const char *const places[] = {
		"{'name':'c'," EDS "}," HTTP2_AT("explicitHttpConfig") "}",
		"{'name':'c'," EDS "}," HTTP2_AT("useDownstreamProtocolConfig") "}",
		"{'name':'c'," EDS "}," HTTP2_AT("autoConfig") "}",
	};
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct xds_res *r = res_decode(&res_type_cluster, places[i]);
		const struct lb_timers wanted = {
			.ping_interval_ms = 1500, .ping_timeout_ms = UINT32_MAX};
		assert_true(lb_timers_eq(res_cluster_from(r)->timers, wanted));
		xds_res_put(r);
	}
	struct xds_res *r = res_decode(&res_type_cluster,
		"{'name':'c'," EDS "},'connectTimeout':'0.25s',"
		"'upstreamConnectionOptions':{'tcpKeepalive':{'keepaliveTime':7}}}");
	const struct lb_timers wanted = {.connect_ms = 250, .tcp_keepalive_ms = 7000};
	assert_true(lb_timers_eq(res_cluster_from(r)->timers, wanted));
	xds_res_put(r);
}

// SA-12.
static void sessions_hold_endpoints_of_the_statuses_that_count(void **state)
{
#define STATUSES(list) "'commonLbConfig':{'overrideHostStatus':{'statuses':[" list "]}}"
	static const struct {
		const char *json;
		uint32_t mask;
	} rows[] = {
		{"{'name':'c'," EDS "}}", 1u << LB_LEAF_UNKNOWN | 1u << LB_LEAF_HEALTHY},
		{"{'name':'c'," EDS "},'commonLbConfig':{}}",
			1u << LB_LEAF_UNKNOWN | 1u << LB_LEAF_HEALTHY},
		{"{'name':'c'," EDS "}," STATUSES("") "}", 0},
		{"{'name':'c'," EDS "}," STATUSES("'DRAINING','HEALTHY','DRAINING'") "}",
			1u << LB_LEAF_DRAINING | 1u << LB_LEAF_HEALTHY},
		{"{'name':'c'," EDS "}," STATUSES("'UNHEALTHY','TIMEOUT','DEGRADED',77") "}", 0},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xds_res *r = res_decode(&res_type_cluster, rows[i].json);
		assert_int_equal(res_cluster_from(r)->session_health, rows[i].mask);
		xds_res_put(r);
	}
}

static void endpoints_are_grouped_by_priority(void **state)
{
	struct xds_res *r = res_decode(&res_type_endpoints,
		"{'clusterName':'e','endpoints':["
		"{'locality':{'region':'r','zone':'z1','subZone':'s'},'loadBalancingWeight':3,"
		"'priority':1,'lbEndpoints':[{'healthStatus':'DRAINING','loadBalancingWeight':5,"
		"'endpoint':{'address':{'socketAddress':{'address':'10.0.0.1','portValue':81}}}}]},"
		"{'locality':{'zone':'z2'},'loadBalancingWeight':4,'lbEndpoints':["
		"{'endpoint':{'address':{'socketAddress':{'address':'fd00::7','portValue':82}}}}]},"
		"{'locality':{'zone':'z0'},'loadBalancingWeight':0,'lbEndpoints':[{}]}],"
		"'policy':{'dropOverloads':["
		"{'category':'a','dropPercentage':{'numerator':5}},"
		"{'category':'b','dropPercentage':{'numerator':5,'denominator':'MILLION'}},"
		"{'category':'c','dropPercentage':{'numerator':4294967295}}]}}");
	const struct res_endpoints *e = res_endpoints_from(r);
	const struct lb_leaf_endpoints *l = e->list;
	assert_int_equal(l->n_priorities, 2);
	assert_int_equal(lb_leaf_endpoints_ends(l)[0], 1);
	assert_int_equal(lb_leaf_endpoints_ends(l)[1], 2);
	assert_true(str_eq(l->spans[0].name, STR("/z2/")));
	assert_int_equal(l->spans[0].weight, 4);
	char text[IP_PORT_TEXT_MAX];
	assert_string_equal(ip_port_print(&l->addresses[0], text), "[fd00::7]:82");
	assert_int_equal(l->weights[0], 1); // A27-V06
	assert_int_equal(l->health[0], LB_LEAF_UNKNOWN);
	assert_true(str_eq(l->spans[1].name, STR("r/z1/s")));
	assert_int_equal(l->spans[1].first, 1);
	assert_int_equal(l->spans[1].n_draining, 1);
	assert_int_equal(l->weights[1], 5);
	assert_int_equal(l->health[1], LB_LEAF_DRAINING);
	assert_int_equal(e->n_drops, 3);
	assert_int_equal(e->drops[0].per_million, 50000);
	assert_int_equal(e->drops[1].per_million, 5);
	assert_int_equal(e->drops[2].per_million, 1000000); // WF-05
	xds_res_put(r);
}

static void resources_are_equal_by_bytes(void **state)
{
	struct xds_res *a = res_decode(&res_type_cluster, "{'name':'c'," EDS "}}");
	struct xds_res *b = res_decode(&res_type_cluster, "{'name':'c'," EDS "}}");
	struct xds_res *c =
		res_decode(&res_type_cluster, "{'name':'c'," EDS "},'connectTimeout':'1s'}");
	assert_true(xds_res_eq(a, b));
	assert_false(xds_res_eq(a, c)); // though no field of ours differs
	xds_res_put(a);
	xds_res_put(b);
	xds_res_put(c);
}

static void names_must_be_utf8_without_nul(void **state)
{
	res_refuse_bytes(
		&res_type_cluster, (const uint8_t *)"\x0a\x02\xff\xfe", 4, "name: not UTF-8");
	res_refuse_bytes(&res_type_cluster,
		(const uint8_t *)"\x0a\x03"
				 "a\0b",
		5, "name: holds a NUL");
	res_refuse_bytes(
		&res_type_cluster, (const uint8_t *)"\x0a\x02\xc0\x80", 4, "name: not UTF-8");
	res_refuse_bytes(&res_type_cluster,
		(const uint8_t *)"\x0a\x7f"
				 "a",
		3, "malformed");
}

static void a_resource_that_cannot_be_decoded_is_named_all_the_same(void **state)
{
	const struct xds_type *const types[] = {
		&res_type_listener, &res_type_route_config, &res_type_cluster, &res_type_endpoints};
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct xds_decoded d = {0};
		types[i]->decode((const uint8_t *)"\x0a\x02me\x0b", 5, &d);
		assert_null(d.res);
		assert_true(d.err.text[0]);
		assert_string_equal(d.name, "me");
		free(d.name);
		d = (struct xds_decoded){0};
		types[i]->decode((const uint8_t *)"\x0a\x02m\xff\x0b", 5, &d);
		assert_null(d.name);
		assert_true(d.err.text[0]);
	}
}

// TH-59: metadata {filter_metadata {value {fields {value {struct_value {fields …: a Struct in a
// Struct, each level a few bytes.
static void bottomless_nesting_is_refused_before_it_uses_up_the_stack(void **state)
{
	static const uint8_t path[] = {0x2a, 0x12, 0x0a}; // Value.struct_value, Field.value, fields
	size_t room = 4 << 20, at = room;
	uint8_t *b = malloc(room);
	assert_non_null(b);
	for (unsigned level = 0; at > 64; level++) {
		size_t len = room - at;
		uint8_t varint[8];
		size_t n = 0;
		do {
			varint[n++] = (uint8_t)((len & 0x7f) | (len > 0x7f ? 0x80 : 0));
			len >>= 7;
		} while (len);
		at -= n;
		memcpy(b + at, varint, n);
		b[--at] = path[level % 3];
	}
	// Metadata.filter_metadata[].value and Cluster.metadata around it.
	struct {
		uint8_t tag[2];
		size_t n_tag;
	} outer[] = {{{0x12}, 1}, {{0x0a}, 1}, {{0xca, 0x01}, 2}};
	for (size_t i = 0; i < 3; i++) {
		size_t len = room - at;
		at -= 4;
		b[at] = (uint8_t)(len | 0x80);
		b[at + 1] = (uint8_t)(len >> 7 | 0x80);
		b[at + 2] = (uint8_t)(len >> 14 | 0x80);
		b[at + 3] = (uint8_t)(len >> 21);
		at -= outer[i].n_tag;
		memcpy(b + at, outer[i].tag, outer[i].n_tag);
	}
	res_refuse_bytes(&res_type_cluster, b + at, room - at, "nested deeper than");
	free(b);
}

// Random damage to good resources: any verdict, no crash; an accepted one can be walked.
static void damaged_bytes_never_crash_a_decoder(void **state)
{
	static const char *const GOOD[] = {
		"{'name':'c'," EDS "},'circuitBreakers':{'thresholds':[{'maxRequests':7}]}}",
		"{'clusterName':'e','endpoints':[{'locality':{'zone':'z'},'loadBalancingWeight':4,"
		"'lbEndpoints':[{'endpoint':{'address':{'socketAddress':{'address':'10.0.0.7',"
		"'portValue':82}}}}]}]}",
		"{'name':'l','apiListener':{'apiListener':{" HCM ",'routeConfig':"
		"{'name':'rc','virtualHosts':[{'name':'v','domains':['x']}]}," ROUTER "}}}",
		"{'name':'r','virtualHosts':[{'name':'v','domains':['x'],'routes':[{'match':"
		"{'prefix':'/"
		"'},'route':{'weightedClusters':{'clusters':[{'name':'a','weight':9}]}}}"
		"]}]}",
	};
	struct rand rand;
	rand_init(&rand, 42);
	unsigned n_accepted = 0;
	for (unsigned round = 0; round < 20000; round++) {
		const struct xds_type *type = res_types[round % RES_N_TYPES];
		size_t len;
		uint8_t *bytes = res_bytes_from_json(type, GOOD[round % RES_N_TYPES], &len);
		for (uint64_t n = 1 + rand_below(&rand, 3); n; n--)
			bytes[rand_below(&rand, len)] = (uint8_t)rand_u64(&rand);
		if (rand_below(&rand, 4) == 0)
			len = rand_below(&rand, len + 1);
		struct xds_decoded d = {0};
		type->decode(bytes, len, &d);
		assert_true(!d.res == !!*d.err.text);
		n_accepted += d.res != NULL;
		xds_res_put(d.res);
		free(d.name);
		free(bytes);
	}
	assert_in_range(n_accepted, 100, 19900);
}

RUN_SUITE("res/content", cmocka_unit_test(routes_keep_their_order_and_ignored_ones_are_gone),
	cmocka_unit_test(an_authority_is_chosen_with_its_port_unless_that_is_ignored),
	cmocka_unit_test(listener_holds_the_route_name_or_the_routes),
	cmocka_unit_test(cluster_names_its_endpoints_and_limits),
	cmocka_unit_test(times_of_connections_are_those_of_the_cluster),
	cmocka_unit_test(sessions_hold_endpoints_of_the_statuses_that_count),
	cmocka_unit_test(endpoints_are_grouped_by_priority),
	cmocka_unit_test(resources_are_equal_by_bytes),
	cmocka_unit_test(names_must_be_utf8_without_nul),
	cmocka_unit_test(a_resource_that_cannot_be_decoded_is_named_all_the_same),
	cmocka_unit_test(bottomless_nesting_is_refused_before_it_uses_up_the_stack),
	cmocka_unit_test(damaged_bytes_never_crash_a_decoder))
