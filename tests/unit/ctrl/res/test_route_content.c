// SPDX-License-Identifier: Apache-2.0
// What decoded route configurations hold.
#include "ctrl/res/route.h"
#include "ctrl/xds/type.h"
#include "lb/base/time.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/res/decode.h"
#include "tests/unit/ctrl/res/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS NS_PER_MS

static void assert_str(struct str s, const char *wanted)
{
	if (!str_eq(s, str_from(wanted)))
		fail_msg("\"%.*s\" is not \"%s\"", (int)s.len, s.p, wanted);
}

// A configuration with one route, and the route.
static const struct res_route *decode_route(const char *json, struct xds_res **ret)
{
	*ret = res_decode(&res_type_route_config, json);
	const struct res_route_config *c = res_route_config_from(*ret);
	assert_int_equal(c->n_vhosts, 1);
	assert_int_equal(c->vhosts[0].n_routes, 1);
	return &c->vhosts[0].routes[0];
}

static void paths_keep_their_kind_and_case(void **state)
{
	static const struct {
		const char *json;
		enum lb_path_kind kind;
		const char *path;
		bool case_sensitive;
	} rows[] = {
		{MATCH("'prefix':'/Ab'"), LB_PATH_PREFIX, "/Ab", true},
		{MATCH("'prefix':''"), LB_PATH_PREFIX, "", true},
		{MATCH("'path':'/a','caseSensitive':true"), LB_PATH_EXACT, "/a", true},
		{MATCH("'path':'/A','caseSensitive':false"), LB_PATH_EXACT, "/A", false}, // A28-P04
		{MATCH("'safeRegex':{'regex':'/a|/b'}"), LB_PATH_REGEX, "/a|/b", true},
		{MATCH("'safeRegex':{'regex':''}"), LB_PATH_REGEX, "", true}, // RX-11
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xds_res *res;
		const struct res_route *r = decode_route(rows[i].json, &res);
		assert_int_equal(r->path_kind, rows[i].kind);
		assert_string_equal(r->path, rows[i].path);
		assert_int_equal(r->path_len, strlen(rows[i].path));
		assert_int_equal(r->case_sensitive, rows[i].case_sensitive);
		assert_int_equal(r->n_headers, 0);
		assert_int_equal(r->ppm, LB_PPM_ALWAYS);
		assert_false(r->grpc_only);
		xds_res_put(res);
	}
}

// A28-H01 to A28-H13, SM-01, SM-02.
static void header_matchers_say_what_they_compare(void **state)
{
	static const struct {
		const char *json;
		struct lb_header_match_conf wanted;
	} rows[] = {
		{HEADER("'name':'X-Aa','exactMatch':'V'"),
			{.name = STR("x-aa"), .kind = LB_HEADER_EXACT, .text = STR("V")}},
		{HEADER("'name':'x','exactMatch':'','invertMatch':true"),
			{.name = STR("x"), .kind = LB_HEADER_EXACT, .invert = true}},
		{HEADER("'name':'x','prefixMatch':'p'"),
			{.name = STR("x"), .kind = LB_HEADER_PREFIX, .text = STR("p")}},
		{HEADER("'name':'x','suffixMatch':'s'"),
			{.name = STR("x"), .kind = LB_HEADER_SUFFIX, .text = STR("s")}},
		{HEADER("'name':'x','containsMatch':'c'"),
			{.name = STR("x"), .kind = LB_HEADER_CONTAINS, .text = STR("c")}},
		{HEADER("'name':'x','safeRegexMatch':{'regex':'a+'}"),
			{.name = STR("x"), .kind = LB_HEADER_REGEX, .text = STR("a+")}},
		{HEADER("'name':'x','rangeMatch':{'start':-3,'end':'9223372036854775807'}"),
			{.name = STR("x"), .kind = LB_HEADER_RANGE, .start = -3, .end = INT64_MAX}},
		{HEADER("'name':'x','presentMatch':true"),
			{.name = STR("x"), .kind = LB_HEADER_PRESENT, .present = true}},
		{HEADER("'name':'x','presentMatch':false,'invertMatch':true"),
			{.name = STR("x"), .kind = LB_HEADER_PRESENT, .invert = true}},
		{STRING("'exact':'e','ignoreCase':true"), {.name = STR("x"),
								  .text = STR("e"),
								  .kind = LB_HEADER_EXACT,
								  .ignore_case = true}},
		{STRING("'prefix':'P'"),
			{.name = STR("x"), .kind = LB_HEADER_PREFIX, .text = STR("P")}},
		{STRING("'suffix':'s'"),
			{.name = STR("x"), .kind = LB_HEADER_SUFFIX, .text = STR("s")}},
		{STRING("'contains':'c'"),
			{.name = STR("x"), .kind = LB_HEADER_CONTAINS, .text = STR("c")}},
		{STRING("'safeRegex':{'regex':'r'},'ignoreCase':true"),
			{.name = STR("x"), .kind = LB_HEADER_REGEX, .text = STR("r")}},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xds_res *res;
		const struct res_route *r = decode_route(rows[i].json, &res);
		assert_int_equal(r->n_headers, 1);
		const struct lb_header_match_conf *h = &r->headers[0], *w = &rows[i].wanted;
		assert_true(str_eq(h->name, w->name));
		assert_int_equal(h->kind, w->kind);
		assert_true(str_eq(h->text, w->text));
		assert_int_equal(h->ignore_case, w->ignore_case);
		assert_int_equal(h->invert, w->invert);
		assert_int_equal(h->present, w->present);
		assert_true(h->start == w->start && h->end == w->end);
		assert_null(h->regex.set);
		xds_res_put(res);
	}
}

// A28-O02: in 64 bits, so that 429497 % does not become 0.27 %.
static void fractions_are_scaled_to_parts_per_million(void **state)
{
	static const struct {
		const char *json;
		uint32_t ppm;
	} rows[] = {
		{FRACTION("'defaultValue':{}"), 0},
		{FRACTION("'defaultValue':{'numerator':1}"), 10000},
		{FRACTION("'defaultValue':{'numerator':100}"), LB_PPM_ALWAYS},
		{FRACTION("'defaultValue':{'numerator':101}"), LB_PPM_ALWAYS},
		{FRACTION("'defaultValue':{'numerator':429497}"), LB_PPM_ALWAYS},
		{FRACTION("'defaultValue':{'numerator':4294967295}"), LB_PPM_ALWAYS},
		{FRACTION("'defaultValue':{'numerator':2501,'denominator':'TEN_THOUSAND'}"),
			250100},
		{FRACTION("'defaultValue':{'numerator':42949673,'denominator':'TEN_THOUSAND'}"),
			LB_PPM_ALWAYS},
		{FRACTION("'defaultValue':{'numerator':999999,'denominator':'MILLION'}"), 999999},
		{FRACTION("'defaultValue':{'numerator':1000001,'denominator':'MILLION'}"),
			LB_PPM_ALWAYS},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xds_res *res;
		assert_int_equal(decode_route(rows[i].json, &res)->ppm, rows[i].ppm);
		xds_res_put(res);
	}
}

static void a_grpc_criterion_is_kept(void **state) // A28-O07
{
	struct xds_res *res;
	assert_true(decode_route(MATCH("'prefix':'/','grpc':{}"), &res)->grpc_only);
	xds_res_put(res);
}

// A31-T01 to A31-T04: what is unset, what is 0, and what is more.
static void timeouts_say_what_is_set(void **state)
{
	struct xds_res *res;
	const struct lb_timeouts *t =
		&decode_route(ACTION("'cluster':'c'"), &res)->policy->timeouts;
	assert_false(t->has_max || t->has_header_max);
	xds_res_put(res);

	t = &decode_route(WITH("'maxStreamDuration':{}"), &res)->policy->timeouts;
	assert_false(t->has_max || t->has_header_max);
	xds_res_put(res);

	t = &decode_route(WITH("'maxStreamDuration':{'maxStreamDuration':'0s'}"), &res)
	             ->policy->timeouts;
	assert_true(t->has_max && !t->has_header_max);
	assert_true(t->max_ns == 0);
	xds_res_put(res);

	t = &decode_route(WITH("'maxStreamDuration':{'maxStreamDuration':'1.5s',"
			       "'grpcTimeoutHeaderMax':'0s'}"),
		&res)
	             ->policy->timeouts;
	assert_true(t->has_max && t->has_header_max);
	assert_true(t->max_ns == 1500 * MS && t->header_max_ns == 0);
	assert_true(t->idle_ns == 0);
	xds_res_put(res);

	t = &decode_route(WITH("'idleTimeout':'1.5s'"), &res)->policy->timeouts; // TH-98
	assert_true(t->idle_ns == 1500 * MS);
	xds_res_put(res);

	t = &decode_route(WITH("'idleTimeout':'0s'"), &res)->policy->timeouts;
	assert_true(t->idle_ns == LB_NO_TIMEOUT);
	xds_res_put(res);
}

// HP-01, HP-03, HP-05, HP-07, HP-08.
static void hash_policies_that_do_not_hash_are_gone_with_their_terminal_flags(void **state)
{
	struct xds_res *res;
	const struct res_route *r =
		decode_route(WITH("'hashPolicy':[{'cookie':{'name':'c'},'terminal':true},"
				  "{'header':{'headerName':'X-User','regexRewrite':{'pattern':"
				  "{'regex':'a(.)'},'substitution':'\\\\1'}},'terminal':true},"
				  "{'filterState':{'key':'other'},'terminal':true},"
				  "{'filterState':{'key':'io.grpc.channel_id'}},"
				  "{'header':{'headerName':'y'}}]"),
			&res);
	assert_int_equal(r->policy->n_hash, 3);
	const struct lb_hash_policy *h = r->policy->hash;
	assert_int_equal(h[0].kind, LB_HASH_HEADER);
	assert_true(h[0].terminal);
	assert_str(h[0].header, "x-user");
	assert_str(h[0].pattern, "a(.)");
	assert_str(h[0].substitution, "\\1");
	assert_null(h[0].rewrite);
	assert_int_equal(h[1].kind, LB_HASH_CONNECTION);
	assert_false(h[1].terminal);
	assert_int_equal(h[2].kind, LB_HASH_HEADER);
	assert_str(h[2].header, "y");
	assert_str(h[2].pattern, "");
	xds_res_put(res);
}

#define STATUS(x) (1u << (x))

static void retry_policies_are_within_bounds(void **state)
{
	static const struct {
		const char *json;
		struct lb_retry wanted;
	} rows[] = {
		{ACTION("'cluster':'c'"), {0, 1, 25 * MS, 250 * MS}},
		// RT-01
		{WITH("'retryPolicy':{'retryOn':'cancelled,deadline-exceeded,internal,"
		      "resource-exhausted,unavailable'}"),
			{STATUS(1) | STATUS(4) | STATUS(13) | STATUS(8) | STATUS(14), 2, 25 * MS,
				250 * MS}},
		{WITH("'retryPolicy':{'retryOn':' INTERNAL\\t,5xx,reset, Unavailable,'}"),
			{STATUS(13) | STATUS(14), 2, 25 * MS, 250 * MS}},
		{WITH("'retryPolicy':{'retryOn':'5xx','numRetries':3}"), {0, 1, 25 * MS, 250 * MS}},
		// RT-03
		{WITH("'retryPolicy':{'retryOn':'internal','numRetries':4}"),
			{STATUS(13), 5, 25 * MS, 250 * MS}},
		{WITH("'retryPolicy':{'retryOn':'internal','numRetries':4294967295}"),
			{STATUS(13), 5, 25 * MS, 250 * MS}},
		// RT-04
		{WITH("'retryPolicy':{'retryOn':'internal','retryBackOff':"
		      "{'baseInterval':'0.01s'}}"),
			{STATUS(13), 2, 10 * MS, 100 * MS}},
		{WITH("'retryPolicy':{'retryOn':'internal','retryBackOff':"
		      "{'baseInterval':'0.000000001s','maxInterval':'0.000000002s'}}"),
			{STATUS(13), 2, MS, MS}},
		{WITH("'retryPolicy':{'retryOn':'internal','retryBackOff':"
		      "{'baseInterval':'2s','maxInterval':'3s'}}"),
			{STATUS(13), 2, 2000 * MS, 3000 * MS}},
		{WITH("'retryPolicy':{'retryOn':'internal','retryBackOff':"
		      "{'baseInterval':'315576000000s'}}"),
			{STATUS(13), 2, UINT64_MAX, UINT64_MAX}},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xds_res *res;
		const struct lb_retry *r = &decode_route(rows[i].json, &res)->policy->retry;
		const struct lb_retry *w = &rows[i].wanted;
		if (r->statuses != w->statuses || r->max_attempts != w->max_attempts ||
			r->base_ns != w->base_ns || r->max_ns != w->max_ns)
			fail_msg("%s: statuses %x, %u attempts, %llu to %llu ns", rows[i].json,
				r->statuses, r->max_attempts, (unsigned long long)r->base_ns,
				(unsigned long long)r->max_ns);
		xds_res_put(res);
	}
}

static void a_routes_retry_policy_replaces_the_virtual_hosts(void **state) // RT-02
{
	struct xds_res *res = res_decode(&res_type_route_config,
		VHOST_AND("'*'",
			"{'match':{'prefix':'/a'},'route':{'cluster':'c'}},"
			"{'match':{'prefix':'/b'},'route':{'cluster':'c','retryPolicy':"
			"{'retryOn':'internal','numRetries':3}}},"
			"{'match':{'prefix':'/c'},'route':{'cluster':'c','retryPolicy':{}}},"
			"{'match':{'prefix':'/d'},'redirect':{}}",
			",'retryPolicy':{'retryOn':'unavailable'}"));
	const struct res_route *r = res_route_config_from(res)->vhosts[0].routes;
	assert_int_equal(r[0].policy->retry.statuses, STATUS(14));
	assert_int_equal(r[0].policy->retry.max_attempts, 2);
	assert_int_equal(r[1].policy->retry.statuses, STATUS(13));
	assert_int_equal(r[1].policy->retry.max_attempts, 4);
	assert_int_equal(r[2].policy->retry.statuses, 0); // though it retries nothing
	assert_int_equal(r[2].policy->retry.max_attempts, 1);
	assert_int_equal(r[3].policy->retry.statuses, 0);
	xds_res_put(res);
}

static void auto_host_rewrite_is_kept_for_whom_the_server_is_trusted(void **state) // AR-02
{
	struct xds_res *res;
	assert_true(decode_route(WITH("'autoHostRewrite':true"), &res)->policy->auto_host_rewrite);
	xds_res_put(res);
	assert_false(
		decode_route(WITH("'autoHostRewrite':false"), &res)->policy->auto_host_rewrite);
	xds_res_put(res);
	assert_false(
		decode_route(WITH("'hostRewriteLiteral':'x'"), &res)->policy->auto_host_rewrite);
	xds_res_put(res);
}

// A28-O06, A28-V02, A28-V06: they are told of, under the numbers and names that they have in the
// resource.
static void ignored_routes_are_told_of_and_the_others_keep_their_numbers(void **state)
{
	struct xds_res *res = res_decode(&res_type_route_config,
		VHOST("'*'",
			"{'name':'q','match':{'path':'/a','queryParameters':[{'name':'q'}]}," TO_C
			"},{'name':'one','match':{'prefix':'/b'}," TO_C
			"},{'match':{'prefix':'/c'},'route':{'clusterHeader':'h'}},"
			"{'name':'two','match':{'prefix':'/d'},'redirect':{}}"));
	const struct res_vhost *v = &res_route_config_from(res)->vhosts[0];
	assert_int_equal(v->n_routes, 2);
	assert_string_equal(v->routes[0].name, "one");
	assert_int_equal(v->routes[0].index, 1);
	assert_string_equal(v->routes[1].name, "two");
	assert_int_equal(v->routes[1].index, 3);
	assert_int_equal(v->routes[1].action, LB_ACTION_UNSUPPORTED); // A28-V04
	assert_int_equal(v->routes[1].n_clusters, 0);
	assert_int_equal(v->n_ignored, 2);
	assert_int_equal(v->ignored[0].index, 0);
	assert_string_equal(v->ignored[0].name, "q");
	assert_string_equal(v->ignored[0].reason, "match.query_parameters is not supported");
	assert_int_equal(v->ignored[1].index, 2);
	assert_string_equal(v->ignored[1].name, "");
	assert_string_equal(v->ignored[1].reason, "cluster_header is not supported");
	xds_res_put(res);
}

// A28-W04, A28-W07.
static void weighted_clusters_keep_their_order_weights_and_repetitions(void **state)
{
	struct xds_res *res;
	const struct res_route *r =
		decode_route(WEIGHTED("'clusters':[{'name':'a','weight':3},{'name':'b','weight':0},"
				      "{'name':'a','weight':4}]"),
			&res);
	assert_int_equal(r->action, LB_ACTION_CLUSTERS);
	assert_int_equal(r->n_clusters, 3);
	assert_string_equal(r->clusters[0].name, "a");
	assert_int_equal(r->clusters[0].weight, 3);
	assert_string_equal(r->clusters[1].name, "b");
	assert_int_equal(r->clusters[1].weight, 0);
	assert_string_equal(r->clusters[2].name, "a");
	assert_int_equal(r->clusters[2].weight, 4);
	xds_res_put(res);
}

static bool same_hash(const struct res_vhost *a, const struct res_vhost *b)
{
	return a->hash[0] == b->hash[0] && a->hash[1] == b->hash[1];
}

// VH-06, too.
static void virtual_hosts_have_one_hash_as_long_as_their_bytes_are_the_same(void **state)
{
#define V(name, cluster)                                                                           \
	"{'name':'" name "','domains':['" name "'],'routes':[{'match':{'prefix':'/'},"             \
	"'route':{'cluster':'" cluster "'}}]}"
	struct xds_res *old = res_decode(&res_type_route_config,
		"{'name':'r','virtualHosts':[" V("a", "c") "," V("b", "c") "]}");
	struct xds_res *new = res_decode(&res_type_route_config,
		"{'name':'s','ignorePortInHostMatching':true,'requestHeadersToRemove':['x'],"
		"'virtualHosts':[" V("b", "c") "," V("a", "d") "]}");
	const struct res_route_config *o = res_route_config_from(old);
	const struct res_route_config *n = res_route_config_from(new);
	assert_true(n->ignore_port && !o->ignore_port);
	assert_true(o->vhosts[0].hash[0] && o->vhosts[0].hash[1]);
	assert_true(same_hash(&o->vhosts[1], &n->vhosts[0]));
	assert_false(same_hash(&o->vhosts[0], &n->vhosts[1]));
	assert_false(same_hash(&o->vhosts[0], &o->vhosts[1]));
	xds_res_put(old);
	xds_res_put(new);
}

// One virtual host, with a copy of the route for each: '#' in it is the number.
static struct xds_res *with_routes(const char *route, unsigned n)
{
	char *json = NULL;
	size_t len;
	FILE *f = open_memstream(&json, &len);
	assert_non_null(f);
	fputs("{'name':'r','virtualHosts':[{'name':'v','domains':['*'],'routes':[", f);
	for (unsigned i = 0; i < n; i++) {
		fputs(i ? "," : "", f);
		for (const char *c = route; *c; c++)
			if (*c == '#')
				fprintf(f, "%u", i);
			else
				fputc(*c, f);
	}
	fputs("]}]}", f);
	assert_int_equal(fclose(f), 0);
	struct xds_res *res = res_decode(&res_type_route_config, json);
	free(json);
	return res;
}

static void equal_warnings_are_one_with_its_number_and_first_place(void **state)
{
	struct xds_res *res = with_routes("{'match':{'prefix':'/','tlsContext':{}},'route':"
					  "{'cluster':'c','prefixRewrite':'/#'}}",
		40);
	const struct res_warnings *w = &res_route_config_from(res)->warnings;
	assert_int_equal(w->n, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(w->list[i].n, 40);
		assert_string_equal(w->list[i].where, "virtual host \"v\": route 0");
	}
	assert_string_equal(w->list[0].text, "match.tls_context is ignored");
	xds_res_put(res);
}

static void words_of_retry_on_that_mean_nothing_are_one_warning(void **state)
{
	// Istio's default.
	struct xds_res *res = with_routes("{'match':{'prefix':'/'},'route':{'cluster':'c',"
					  "'retryPolicy':{'retryOn':'connect-failure,"
					  "refused-stream,unavailable,cancelled,"
					  "retriable-status-codes'}}}",
		3);
	const struct res_warnings *w = &res_route_config_from(res)->warnings;
	assert_int_equal(w->n, 1);
	assert_int_equal(w->list[0].n, 3);
	assert_string_equal(w->list[0].text,
		"retry_policy.retry_on: ignored: connect-failure, refused-stream, "
		"retriable-status-codes");
	xds_res_put(res);
}

static void warnings_end_somewhere(void **state)
{
	struct xds_res *res =
		with_routes("{'match':{'prefix':'/'},'route':{'cluster':'c','retryPolicy':"
			    "{'retryOn':'word-#'}}}",
			RES_WARNINGS_MAX + 24);
	const struct res_warnings *w = &res_route_config_from(res)->warnings;
	assert_int_equal(w->n, RES_WARNINGS_MAX + 1);
	assert_string_equal(w->list[15].text, "retry_policy.retry_on: ignored: word-15");
	assert_string_equal(w->list[15].where, "virtual host \"v\": route 15");
	assert_string_equal(w->list[RES_WARNINGS_MAX].text, "24 more warnings are left out");
	xds_res_put(res);
}

RUN_SUITE("res/route_content", cmocka_unit_test(paths_keep_their_kind_and_case),
	cmocka_unit_test(header_matchers_say_what_they_compare),
	cmocka_unit_test(fractions_are_scaled_to_parts_per_million),
	cmocka_unit_test(a_grpc_criterion_is_kept), cmocka_unit_test(timeouts_say_what_is_set),
	cmocka_unit_test(hash_policies_that_do_not_hash_are_gone_with_their_terminal_flags),
	cmocka_unit_test(retry_policies_are_within_bounds),
	cmocka_unit_test(a_routes_retry_policy_replaces_the_virtual_hosts),
	cmocka_unit_test(auto_host_rewrite_is_kept_for_whom_the_server_is_trusted),
	cmocka_unit_test(ignored_routes_are_told_of_and_the_others_keep_their_numbers),
	cmocka_unit_test(weighted_clusters_keep_their_order_weights_and_repetitions),
	cmocka_unit_test(virtual_hosts_have_one_hash_as_long_as_their_bytes_are_the_same),
	cmocka_unit_test(equal_warnings_are_one_with_its_number_and_first_place),
	cmocka_unit_test(words_of_retry_on_that_mean_nothing_are_one_warning),
	cmocka_unit_test(warnings_end_somewhere))
