// SPDX-License-Identifier: Apache-2.0
// Access control from its configuration to the verdict on a request (A41-*): the rows of
// tests/support/rbac_rows.json, which Envoy is asked, too, and what is refused with what words.
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "ctrl/xds/type.h"
#include "lb/route/rbac.h"
#include "lb/route/req.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/res/decode.h"
#include "tests/unit/ctrl/res/json.h"
#include "tests/unit/ctrl/res/rows.h"

#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RBAC_TYPE HTTP_FILTERS "rbac.v3.RBAC"
#define RBAC_PER_ROUTE_TYPE HTTP_FILTERS "rbac.v3.RBACPerRoute"
#define MAX_FIELDS 8
#define MAX_SANS 8

struct subject {
	struct lb_req req;
	struct lb_peer_info peer;
	struct field fields[MAX_FIELDS];
	struct lb_san sans[MAX_SANS];
	char server_name[32];
};

static struct str text_in(const json_t *o, const char *key, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(o, key));
	return str_from(text ? text : otherwise);
}

static void read_address(
	const json_t *o, const char *key, const char *otherwise, struct ip_addr *to)
{
	assert_true(ip_parse_str(text_in(o, key, otherwise), to));
}

static void add_sans(struct subject *s, const json_t *tls, const char *key, enum lb_san_kind kind)
{
	size_t i;
	json_t *name;
	json_array_foreach(json_object_get(tls, key), i, name)
	{
		assert_true(s->peer.n_sans < MAX_SANS);
		s->sans[s->peer.n_sans++] =
			(struct lb_san){kind, str_from(json_string_value(name))};
	}
}

// As a handshake tells it.
static void read_server_name(struct subject *s, const json_t *tls)
{
	struct str asked = text_in(tls, "sni", "");
	assert_true(asked.len <= sizeof(s->server_name));
	for (size_t i = 0; i < asked.len; i++)
		s->server_name[i] = str_fold(asked.p[i]);
	s->peer.server_name = (struct str){s->server_name, asked.len};
}

// Borrows from the JSON.
static void read_subject(struct subject *s, const json_t *o)
{
	size_t i;
	json_t *pair, *tls = json_object_get(o, "tls");
	*s = (struct subject){.req = {.authority = text_in(o, "authority", "row.test"),
				      .path = text_in(o, "path", "/"),
				      .method = text_in(o, "method", "GET"),
				      .scheme = STR("http"),
				      .fields = s->fields}};
	json_array_foreach(json_object_get(o, "headers"), i, pair)
	{
		assert_true(i < MAX_FIELDS);
		s->fields[s->req.n_fields++] =
			(struct field){str_from(json_string_value(json_array_get(pair, 0))),
				str_from(json_string_value(json_array_get(pair, 1))), false};
	}
	const char *source = text_in(o, "source", "192.0.2.1").p;
	read_address(o, "source", source, &s->peer.source);
	read_address(o, "direct", source, &s->peer.direct);
	read_address(o, "remote", source, &s->peer.remote);
	read_address(o, "destination", "198.51.100.1", &s->peer.destination.ip);
	s->peer.destination.port = (uint16_t)json_integer_value(json_object_get(o, "port"));
	s->peer.is_tls = tls != NULL;
	read_server_name(s, tls);
	s->peer.subject = text_in(tls, "subject", "");
	s->peer.sans = s->sans;
	add_sans(s, tls, "dns", LB_SAN_DNS);
	add_sans(s, tls, "uri", LB_SAN_URI);
}

static struct lb_rbac_verdict check(const struct lb_filter *f, const struct subject *s)
{
	char buf[1024];
	struct lb_err err = {""};
	assert_int_equal(f->kind, LB_FILTER_RBAC);
	struct lb_rbac *r = lb_rbac_new(f->rbac.conf, &err);
	if (!r)
		fail_msg("%s", err.text);
	struct lb_rbac_verdict v = lb_rbac_check(r, &s->req, &s->peer, buf, sizeof(buf));
	static char name[32]; // the object's own goes with it
	assert_true(v.rules.policy.len < sizeof(name));
	if (v.rules.policy.p)
		v.rules.policy.p = memcpy(name, v.rules.policy.p, v.rules.policy.len);
	lb_rbac_free(r);
	return v;
}

// The verdict of a listener's only filter, with these fields of it.
static struct lb_rbac_verdict check_json(const char *fields, const struct subject *s)
{
	char json[4096];
	int len = snprintf(json, sizeof(json), FILTER(ANY(RBAC_TYPE, "%s")), fields);
	assert_true(len > 0 && (size_t)len < sizeof(json));
	struct xds_res *res = res_decode(&res_type_listener, json);
	struct lb_rbac_verdict v = check(&res_listener_from(res)->filters[0], s);
	xds_res_put(res);
	return v;
}

static struct lb_rbac_verdict check_row(json_t *row, const char *action, const struct subject *s)
{
	json_t *any = json_pack("{s:b}", "any", true);
	json_t *permission = json_object_get(row, "permission");
	json_t *principal = json_object_get(row, "principal");
	json_t *rules = json_pack("{s:s, s:{s:{s:[O], s:[O]}}}", "action", action, "policies", "p",
		"permissions", permission ? permission : any, "principals",
		principal ? principal : any);
	char *text = json_dumps(rules, JSON_COMPACT), fields[2048];
	int len = snprintf(fields, sizeof(fields), ",'rules':%s", text);
	assert_true(len > 0 && (size_t)len < sizeof(fields));
	free(text);
	json_decref(rules);
	json_decref(any);
	return check_json(fields, s);
}

// A41-04, A41-05, A41-07 to A41-13, as the rows say.
static void rows_hit_or_not_whatever_the_action(void **state)
{
	json_error_t error;
	json_t *rows = json_load_file(getenv("RBAC_ROWS"), 0, &error), *row;
	size_t i;
	if (!rows)
		fail_msg("%s: %s", getenv("RBAC_ROWS"), error.text);
	assert_true(json_array_size(rows) >= 80);
	json_array_foreach(rows, i, row)
	{
		const char *name = json_string_value(json_object_get(row, "name"));
		bool hit = json_is_true(json_object_get(row, "hit"));
		struct subject s;
		read_subject(&s, json_object_get(row, "request"));
		struct lb_rbac_verdict allow = check_row(row, "ALLOW", &s);
		struct lb_rbac_verdict deny = check_row(row, "DENY", &s);
		struct lb_rbac_verdict log = check_row(row, "LOG", &s);
		if (allow.rules.denies == hit || deny.rules.denies != hit || log.rules.denies)
			fail_msg("%s: %s", name, hit ? "does not hit" : "hits");
		if ((allow.rules.policy.p != NULL) != hit || (log.rules.policy.p != NULL) != hit)
			fail_msg("%s: the policy", name);
	}
	json_decref(rows);
}

#define POLICY(permission, principal)                                                              \
	"{'permissions':[{" permission "}],'principals':[{" principal "}]}"
#define POLICIES(action, list) "'action':'" action "','policies':{" list "}"
#define PATH_A "'urlPath':{'path':{'exact':'/a'}}"

// A41-01, A41-02, A41-03.
static void lists_of_policies(void **state)
{
	static const struct {
		const char *fields;
		bool exists, denies, matches;
	} rows[] = {
		{"", false, false, false}, // A41-01
		{",'rules':{}", true, true, false},
		{",'rules':{'action':'DENY'}", true, false, false},
		{",'rules':{'action':'LOG'}", true, false, false},
		{",'matcher':{}", false, false, false}, // A41-02
		{",'rules':{" POLICIES("ALLOW", "'p':{}") "}", true, true, false}, // A41-05
		{",'rules':{" POLICIES("DENY", "'p':{}") "}", true, false, false},
		{",'rules':{" POLICIES("ALLOW", "'p':" POLICY("'any':true", PATH_A)) "}", true,
			false, true},
		{",'rules':{" POLICIES("ALLOW",
			 "'p':" POLICY("'notRule':{" PATH_A "}", "'any':true") ",'q':" POLICY(
				 PATH_A, "'any':true")) "}",
			true, false, true},
		{",'rules':{" POLICIES("DENY",
			 "'p':" POLICY("'notRule':{" PATH_A "}", "'any':true") ",'q':" POLICY(
				 PATH_A, "'any':true")) "}",
			true, true, true},
	};
	struct subject s;
	json_t *request = json_pack("{s:s}", "path", "/a");
	read_subject(&s, request);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_rbac_decision d = check_json(rows[i].fields, &s).rules;
		if (d.exists != rows[i].exists || d.denies != rows[i].denies ||
			(d.policy.p != NULL) != rows[i].matches)
			fail_msg("row %zu", i);
	}
	json_decref(request);
}

static void a41_18_policies_are_asked_by_name(void **state)
{
	struct subject s;
	read_subject(&s, NULL);
	struct lb_rbac_decision d = check_json(
		",'rules':{" POLICIES("DENY",
			"'b':" POLICY("'any':true", "'any':true") ",'ab':" POLICY("'any':true",
				"'any':true") ",'aa':" POLICY("'notRule':{'any':true}",
				"'any':true")) "}",
		&s)
	                                    .rules;
	assert_true(d.denies);
	assert_true(str_eq(d.policy, STR("ab")));
}

// A41-03, A41-15.
static void shadow_rules_are_judged_beside_the_rules(void **state)
{
	struct subject s;
	read_subject(&s, NULL);
	struct lb_rbac_verdict v = check_json(",'rules':{'action':'DENY'},'shadowRules':{}", &s);
	assert_false(v.rules.denies);
	assert_true(v.shadow.exists && v.shadow.denies);
	v = check_json(",'shadowRules':{'action':'DENY'}", &s);
	assert_false(v.rules.exists);
	assert_true(v.shadow.exists && !v.shadow.denies);
}

// A41-12: nobody can say whether a certificate has a name that was left out.
static void a_name_that_may_have_been_left_out_is_no_reason_to_let_through(void **state)
{
	static const char *const rules[] = {
		",'rules':{" POLICIES("ALLOW",
			"'p':" POLICY("'any':true",
				"'authenticated':{'principalName':{'exact':'spiffe://x'}}")) "}",
		",'rules':{" POLICIES("DENY",
			"'p':" POLICY("'any':true",
				"'authenticated':{'principalName':{'exact':'spiffe://x'}}")) "}",
		",'rules':{" POLICIES("ALLOW",
			"'p':" POLICY("'any':true", "'notId':{'authenticated':{'principalName':{'"
						    "exact':'d.test'}}}")) "}",
	};
	struct subject s;
	read_subject(&s, NULL);
	s.peer.is_tls = s.peer.cut = true;
	for (size_t i = 0; i < 2; i++, s.peer.n_sans = 1) {
		for (size_t k = 0; k < 3; k++)
			assert_true(check_json(rules[k], &s).rules.denies);
		s.sans[0] = (struct lb_san){LB_SAN_URI, STR("spiffe://y")};
	}
	s.sans[0].text = STR("spiffe://x");
	assert_false(check_json(rules[0], &s).rules.denies);
}

#define RULES(list) FILTER(ANY(RBAC_TYPE, ",'rules':{" POLICIES("DENY", list) "}"))
#define PERMISSION(p) RULES("'p':" POLICY(p, "'any':true"))
#define PRINCIPAL(p) RULES("'p':" POLICY("'any':true", p))
#define IN_RULES FILTER_F "rules: "
#define IN_P IN_RULES "policies[p]: "
#define PERMISSION_F IN_P "permissions[0]: "
#define PRINCIPAL_F IN_P "principals[0]: "
#define NOT_4(rule) "'notRule':{'notRule':{'notRule':{'notRule':{" rule "}}}}"
#define NOT_16(rule) NOT_4(NOT_4(NOT_4(NOT_4(rule))))
#define LEFT_OUT(field) "rbac: " field " left out: policies[p]: permissions[0]: "
#define BAD_RULES(action) POLICIES(action, "'p':" POLICY("", "'any':true"))
#define NO_RULE "no rule, or one that is not supported"

static void filters(void **state)
{
	static const struct res_row rows[] = {
		{"A41-01 nothing", FILTER(ANY(RBAC_TYPE, ""))},
		{"A41-02 matcher", FILTER(ANY(RBAC_TYPE, ",'matcher':{}")),
			.warning = "rbac: matcher and shadow_matcher are ignored"},
		{"A41-02 shadow matcher", FILTER(ANY(RBAC_TYPE, ",'shadowMatcher':{}")),
			.warning = "rbac: matcher and shadow_matcher are ignored"},
		{"A41-03 bad shadow rules",
			FILTER(ANY(RBAC_TYPE, ",'shadowRules':{" BAD_RULES("DENY") "}")),
			.warning = LEFT_OUT("shadow_rules") NO_RULE},
		{"A41-03 bad rules that log",
			FILTER(ANY(RBAC_TYPE, ",'rules':{" BAD_RULES("LOG") "}")),
			.warning = LEFT_OUT("rules") NO_RULE},
		{"A41-04 16 deep", PERMISSION(NOT_16("'any':true"))},
		{"A41-04 17 deep", PERMISSION("'andRules':{'rules':[{" NOT_16("'any':true") "}]}"),
			IN_P "rules are nested more than 16 deep"},
		{"A41-05 unknown action", FILTER(ANY(RBAC_TYPE, ",'rules':{'action':7}")),
			IN_RULES "action: unknown value 7"},
		{"A41-05 no rule", PERMISSION(""), PERMISSION_F NO_RULE},
		{"A41-05 no identifier", PRINCIPAL(""),
			PRINCIPAL_F "no identifier, or one that is not supported"},
		{"A41-05 no rule within not", PERMISSION("'notRule':{}"),
			PERMISSION_F "not_rule: " NO_RULE},
		{"A41-05 no rule within and", PERMISSION("'andRules':{'rules':[{'any':true},{}]}"),
			PERMISSION_F "and_rules: rules[1]: " NO_RULE},
		{"A41-05 no identifier within or", PRINCIPAL("'orIds':{'ids':[{}]}"),
			PRINCIPAL_F "or_ids: ids[0]: no identifier, or one that is not supported"},
		{"A41-05 no path", PERMISSION("'urlPath':{}"), PERMISSION_F "url_path: no path"},
		{"SM-03 a path without a pattern", PERMISSION("'urlPath':{'path':{}}"),
			PERMISSION_F "url_path.path: no pattern"},
		{"SM-03 an empty prefix", PRINCIPAL("'urlPath':{'path':{'prefix':''}}"),
			PRINCIPAL_F "url_path.path: prefix: empty"},
		{"RX-03 a bad pattern",
			PRINCIPAL("'authenticated':{'principalName':{'safeRegex':{'regex':'('}}}"),
			PRINCIPAL_F "authenticated.principal_name: safe_regex.regex: missing ): ("},
		{"A41-05 a server name without a pattern", PERMISSION("'requestedServerName':{}"),
			PERMISSION_F "requested_server_name: no pattern"},
		{"A41-05 condition", RULES("'p':{'permissions':[],'principals':[],'condition':{}}"),
			IN_P "condition: not supported"},
		{"A41-05 checked condition",
			RULES("'p':{'permissions':[],'principals':[],'checkedCondition':{}}"),
			IN_P "checked_condition: not supported"},
		{"A41-06 :scheme", PERMISSION("'header':{'name':':scheme','presentMatch':true}"),
			PERMISSION_F "header: name: \":scheme\" is not allowed"},
		{"A41-06 gRPC's own",
			PRINCIPAL("'notId':{'header':{'name':'Grpc-Timeout','presentMatch':true}}"),
			PRINCIPAL_F "not_id: header: name: \"Grpc-Timeout\" is not allowed"},
		{"A28-H14 no match specifier", PERMISSION("'header':{'name':'k'}"),
			PERMISSION_F "header: no match specifier"},
		{"A28-H06 missing as empty",
			PERMISSION("'header':{'name':'k','treatMissingHeaderAsEmpty':true,"
				   "'stringMatch':{'exact':''}}"),
			.warning = "rbac: treat_missing_header_as_empty is ignored"},
		{"A41-07 no address", PRINCIPAL("'sourceIp':{'prefixLen':8}"),
			PRINCIPAL_F "source_ip: address_prefix: \"\" is not an IP address"},
		{"A41-07 a name",
			PERMISSION("'destinationIp':{'addressPrefix':'a.test','prefixLen':8}"),
			PERMISSION_F
			"destination_ip: address_prefix: \"a.test\" is not an IP address"},
		{"A41-07 33 bits of IPv4",
			PRINCIPAL("'remoteIp':{'addressPrefix':'10.0.0.0','prefixLen':33}"),
			PRINCIPAL_F "remote_ip: prefix_len: 33 is more than 32"},
		{"A41-07 129 bits of IPv6",
			PRINCIPAL("'directRemoteIp':{'addressPrefix':'::','prefixLen':129}"),
			PRINCIPAL_F "direct_remote_ip: prefix_len: 129 is more than 128"},
		{"A41-16 audit loggers",
			FILTER(ANY(RBAC_TYPE, ",'rules':{'auditLoggingOptions':{}}")),
			.warning = "rbac: audit_logging_options is ignored"},
		{"FLT-08 override's type as a filter", FILTER(ANY(RBAC_PER_ROUTE_TYPE, "")),
			FILTER_F "type \"" URL RBAC_PER_ROUTE_TYPE "\" is one for overrides"},
	};
	RUN_ROWS(&res_type_listener, rows);
}

static void overrides(void **state)
{
	static const struct res_row rows[] = {
		{"A41-17 none", OVERRIDE(ANY(RBAC_PER_ROUTE_TYPE, ""))},
		{"A41-17 rules", OVERRIDE(ANY(RBAC_PER_ROUTE_TYPE, ",'rbac':{'rules':{}}"))},
		{"A41-17 bad rules",
			OVERRIDE(ANY(RBAC_PER_ROUTE_TYPE, ",'rbac':{'rules':{'action':3}}")),
			ROUTE_0 "typed_per_filter_config[f]: rbac: rules: action: unknown value 3"},
		{"FLT-08 a filter's type", OVERRIDE(ANY(RBAC_TYPE, "")),
			ROUTE_0 "typed_per_filter_config[f]: type \"" URL RBAC_TYPE
				"\" is not one for overrides"},
	};
	RUN_ROWS(&res_type_route_config, rows);
}

static void an_override_without_rules_switches_the_filter_off(void **state) // A41-17
{
	struct subject s;
	read_subject(&s, NULL);
	struct xds_res *res =
		res_decode(&res_type_route_config, OVERRIDE(ANY(RBAC_PER_ROUTE_TYPE, "")));
	const struct lb_filter_overrides *o =
		&res_route_config_from(res)->vhosts[0].routes[0].policy->overrides;
	assert_int_equal(o->n, 1);
	assert_false(check(&o->list[0], &s).rules.exists);
	xds_res_put(res);
}

RUN_SUITE("res/filter_rbac", cmocka_unit_test(rows_hit_or_not_whatever_the_action),
	cmocka_unit_test(lists_of_policies), cmocka_unit_test(a41_18_policies_are_asked_by_name),
	cmocka_unit_test(shadow_rules_are_judged_beside_the_rules),
	cmocka_unit_test(a_name_that_may_have_been_left_out_is_no_reason_to_let_through),
	cmocka_unit_test(filters), cmocka_unit_test(overrides),
	cmocka_unit_test(an_override_without_rules_switches_the_filter_off))
