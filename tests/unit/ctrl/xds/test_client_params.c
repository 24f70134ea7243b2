// SPDX-License-Identifier: Apache-2.0
// The client's part of xRFC TP2 (TP2-*): parameters on the wire, constraints of what
// comes, and one variant that takes another's place.
#include "ctrl/xds/variants/params.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/client_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef Envoy__Service__Discovery__V3__DiscoveryRequest Request;
typedef Envoy__Service__Discovery__V3__DiscoveryResponse Response;
typedef Envoy__Service__Discovery__V3__DeltaDiscoveryRequest DeltaRequest;
typedef Envoy__Service__Discovery__V3__DeltaDiscoveryResponse DeltaResponse;
typedef Envoy__Service__Discovery__V3__DynamicParameterConstraints Constraints;
typedef Envoy__Service__Discovery__V3__Resource Resource;
typedef Envoy__Service__Discovery__V3__ResourceError Error;
typedef Envoy__Service__Discovery__V3__ResourceLocator Locator;
typedef Envoy__Service__Discovery__V3__ResourceName Name;

#define PROD "\"env\":\"prod\""
#define MAX 4

// What a response says of one variant.
struct said {
	const char *constraint; // "env=prod", "env" = it exists, "env?" = malformed; NULL = none
	const char *name;
	const char *content, *version; // NULL = it is removed, or if there is a version a heartbeat
	int code; // not 0 = it is in error
	int ttl_s; // 0 = none
};

// Messages around a list of them.
struct parts {
	Name names[MAX], *removed[MAX];
	Resource resources[MAX], *resource_list[MAX];
	Google__Protobuf__Any anys[MAX];
	Google__Protobuf__Duration ttls[MAX];
	Error errors[MAX], *error_list[MAX];
	Google__Rpc__Status statuses[MAX];
	char texts[MAX][64];
	size_t n, n_removed, n_resources, n_errors;
};

static Constraints *constraints_of(const char *text)
{
	uint8_t bytes[64];
	size_t key = strcspn(text, "=?"), value = text[key] == '=' ? strlen(text) - key - 1 : 0;
	size_t len = 2;
	bytes[len++] = 0x0a;
	bytes[len++] = (uint8_t)key;
	memcpy(bytes + len, text, key);
	len += key;
	if (text[key] != '?') {
		bytes[len++] = text[key] == '=' ? 0x12 : 0x1a;
		bytes[len++] = (uint8_t)value;
		memcpy(bytes + len, text + key + 1, value);
		len += value;
	}
	bytes[0] = 0x0a;
	bytes[1] = (uint8_t)(len - 2);
	Constraints *c = envoy__service__discovery__v3__dynamic_parameter_constraints__unpack(
		NULL, len, bytes);
	assert_non_null(c);
	return c;
}

static void add(struct parts *p, const struct said *s)
{
	size_t i = p->n++;
	assert_true(i < MAX);
	envoy__service__discovery__v3__resource_name__init(&p->names[i]);
	p->names[i].name = (char *)(uintptr_t)s->name;
	if (s->constraint)
		p->names[i].dynamic_parameter_constraints = constraints_of(s->constraint);
	if (s->code) {
		Error *e = &p->errors[i];
		envoy__service__discovery__v3__resource_error__init(e);
		google__rpc__status__init(&p->statuses[i]);
		p->statuses[i].code = s->code;
		e->resource_name = &p->names[i];
		e->error_detail = &p->statuses[i];
		p->error_list[p->n_errors++] = e;
	} else if (s->content || s->version) {
		Resource *r = &p->resources[i];
		envoy__service__discovery__v3__resource__init(r);
		google__protobuf__any__init(&p->anys[i]);
		int len = snprintf(p->texts[i], sizeof(p->texts[i]), "%s=%s", s->name,
			s->content ? s->content : "");
		p->anys[i].type_url = (char[]){CLUSTER_URL};
		p->anys[i].value = (ProtobufCBinaryData){(size_t)len, (uint8_t *)p->texts[i]};
		r->resource_name = &p->names[i];
		r->version = (char *)(uintptr_t)s->version;
		r->resource = s->content ? &p->anys[i] : NULL;
		google__protobuf__duration__init(&p->ttls[i]);
		p->ttls[i].seconds = s->ttl_s;
		r->ttl = s->ttl_s ? &p->ttls[i] : NULL;
		p->resource_list[p->n_resources++] = r;
	} else {
		p->removed[p->n_removed++] = &p->names[i];
	}
}

static void collect(struct parts *p, const struct xds_type *type, const struct said *s, size_t n)
{
	memset(p, 0, sizeof(*p));
	for (size_t i = 0; i < n; i++)
		add(p, &s[i]);
	for (size_t i = 0; i < n; i++)
		p->anys[i].type_url = (char *)(uintptr_t)type->url;
}

static void free_parts(struct parts *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->names[i].dynamic_parameter_constraints)
			envoy__service__discovery__v3__dynamic_parameter_constraints__free_unpacked(
				p->names[i].dynamic_parameter_constraints, NULL);
}

static void say_delta(struct fixture *f, const char *nonce, const struct said *s, size_t n)
{
	struct parts p;
	uint8_t bytes[1024];
	DeltaResponse m;
	envoy__service__discovery__v3__delta_discovery_response__init(&m);
	collect(&p, &toy_cluster, s, n);
	m.type_url = (char *)(uintptr_t)CLUSTER_URL;
	m.nonce = (char *)(uintptr_t)nonce;
	m.resources = p.resource_list;
	m.n_resources = p.n_resources;
	m.removed_resource_names = p.removed;
	m.n_removed_resource_names = p.n_removed;
	m.resource_errors = p.error_list;
	m.n_resource_errors = p.n_errors;
	fake_ads_say(&f->server, bytes,
		envoy__service__discovery__v3__delta_discovery_response__pack(&m, bytes));
	free_parts(&p);
}
#define DELTA(f, nonce, ...)                                                                       \
	say_delta(f, nonce, (struct said[]){__VA_ARGS__},                                          \
		sizeof((struct said[]){__VA_ARGS__}) / sizeof(struct said))

static void say_sotw(struct fixture *f, const struct xds_type *type, const char *version,
	const struct said *s, size_t n)
{
	struct parts p;
	uint8_t bytes[MAX][256];
	struct fake_resource list[MAX];
	collect(&p, type, s, n);
	for (size_t i = 0; i < p.n_resources; i++)
		list[i] = (struct fake_resource){
			.type_url = "type.googleapis.com/envoy.service.discovery.v3.Resource",
			.bytes = bytes[i],
			.len = envoy__service__discovery__v3__resource__pack(
				p.resource_list[i], bytes[i]),
		};
	fake_ads_respond(&f->server, type->url, version, version, list, p.n_resources);
	free_parts(&p);
}
#define SOTW(f, type, version, ...)                                                                \
	say_sotw(f, type, version, (struct said[]){__VA_ARGS__},                                   \
		sizeof((struct said[]){__VA_ARGS__}) / sizeof(struct said))

// "a{env=prod}", parameters by key.
static void check_locator(const Locator *l, const char *expected)
{
	char text[128];
	int len = sprintf(text, "%s{", l->name);
	for (size_t i = 0; i < l->n_dynamic_parameters; i++)
		len += sprintf(text + len, "%s%s=%s", i ? ", " : "", l->dynamic_parameters[i]->key,
			l->dynamic_parameters[i]->value);
	sprintf(text + len, "}");
	assert_string_equal(text, expected);
}

// An incremental client of env=prod that has cluster a=1, the variant for env=prod.
static void with_prod(struct fixture *f, struct ear *a)
{
	fixture_init_params(f, &xds_protocol_delta, PROD);
	listen_to(f, &toy_cluster, "a", a);
	fake_ads_settle(&f->server);
	f->server.n_read = f->server.n_sent;
	DELTA(f, "n1", {"env=prod", "a", "1", "v1"});
	expect_delta(f, &toy_cluster, "", "n1");
	assert_string_equal(heard(a), "=1");
}

// TP2-T03
static void parameters_go_as_locators_in_state_of_the_world(void **state)
{
	struct fixture f;
	struct ear a, b;
	fixture_init_params(&f, &xds_protocol_sotw, "\"version\":\"v1\"," PROD);
	xds_client_begin(f.client);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "b", &b);
	xds_client_end(f.client);
	const Request *r = fake_ads_next(&f.server); // TP2-T03
	assert_int_equal(r->n_resource_names, 0); // TP2-T04
	assert_int_equal(r->n_resource_locators, 2);
	check_locator(r->resource_locators[0], "a{env=prod, version=v1}");
	check_locator(r->resource_locators[1], "b{env=prod, version=v1}");
	xds_client_cancel(f.client, &a.watcher);
	r = fake_ads_next(&f.server);
	assert_int_equal(r->n_resource_locators, 1);
	check_locator(r->resource_locators[0], "b{env=prod, version=v1}");
	fixture_fini(&f);
}

static void without_parameters_there_are_names_only(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init_params(&f, &xds_protocol_sotw, ""); // TP2-B03, TP2-T14
	listen_to(&f, &toy_cluster, "a", &a);
	const Request *r = fake_ads_next(&f.server);
	assert_int_equal(r->n_resource_locators, 0);
	assert_int_equal(r->n_resource_names, 1);
	fixture_fini(&f);
}

static void parameters_go_as_locators_in_delta(void **state)
{
	struct fixture f;
	struct ear a, b;
	fixture_init_params(&f, &xds_protocol_delta, PROD);
	listen_to(&f, &toy_cluster, "a", &a);
	const DeltaRequest *r = fake_ads_next_delta(&f.server); // TP2-T05
	assert_int_equal(r->n_resource_names_subscribe, 0);
	assert_int_equal(r->n_resource_locators_subscribe, 1);
	check_locator(r->resource_locators_subscribe[0], "a{env=prod}");
	xds_client_begin(f.client);
	xds_client_cancel(f.client, &a.watcher);
	listen_to(&f, &toy_cluster, "b", &b);
	xds_client_end(f.client);
	r = fake_ads_next_delta(&f.server);
	assert_int_equal(r->n_resource_names_unsubscribe, 0);
	assert_int_equal(r->n_resource_locators_unsubscribe, 1);
	check_locator(r->resource_locators_unsubscribe[0], "a{env=prod}");
	assert_int_equal(r->n_resource_locators_subscribe, 1);
	check_locator(r->resource_locators_subscribe[0], "b{env=prod}");
	fixture_fini(&f);
}

// TP2-L01, TP2-L02
static void each_authority_has_its_own_parameters_and_names_stay_as_they_are(void **state)
{
	struct fixture f;
	struct ear a, b, c;
	fixture_init_params(&f, &xds_protocol_sotw,
		PROD "},\"authorities\":{\"y\":{},\"x\":{\"dynamic_parameters\":{\"zone\":\"b\"}}");
	xds_client_begin(f.client);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "xdstp://x/toy.Cluster/a", &b);
	listen_to(&f, &toy_cluster, "xdstp://y/toy.Cluster/a", &c);
	xds_client_end(f.client);
	const Request *r = fake_ads_next(&f.server);
	assert_int_equal(r->n_resource_locators, 2); // TP2-L01, TP2-B01: nothing is inherited
	check_locator(r->resource_locators[0], "a{env=prod}");
	check_locator(r->resource_locators[1], "xdstp://x/toy.Cluster/a{zone=b}");
	assert_int_equal(r->n_resource_names, 1); // TP2-T04
	assert_string_equal(r->resource_names[0], "xdstp://y/toy.Cluster/a");
	SOTW(&f, &toy_cluster, "1", {"env=prod", "a", "1", ""},
		{"env=prod", "xdstp://x/toy.Cluster/a", "9", ""},
		{"zone=b", "xdstp://x/toy.Cluster/a", "2", ""},
		{NULL, "xdstp://y/toy.Cluster/a", "3", ""});
	assert_string_equal(heard(&a), "=1");
	assert_string_equal(heard(&b), "=2");
	assert_string_equal(heard(&c), "=3");
	assert_string_equal(state_of(&f, "xdstp://x/toy.Cluster/a"), "ACKED 1"); // TP2-L02
	fixture_fini(&f);
}

// TP2-L02
static void variant_that_matches_is_used_and_shown_by_its_name_alone(void **state)
{
	struct fixture f;
	struct ear a, b;
	with_prod(&f, &a); // TP2-T06, TP2-T01
	assert_string_equal(state_of(&f, "a"), "ACKED v1"); // TP2-L02: no parameters in names
	listen_to(&f, &toy_cluster, "a", &b);
	assert_string_equal(heard(&b), "=1"); // TP2-L05
	expect_silence(&f);
	fixture_fini(&f);
}

static void variant_for_others_is_ignored_acked_and_counted(void **state)
{
	struct fixture f;
	struct ear a;
	struct xds_server_info info;
	with_prod(&f, &a);
	DELTA(&f, "n2", {"env=test", "a", "2", "v2"}, {"color", "a", "3", "v3"}); // TP2-L03
	expect_delta(&f, &toy_cluster, "", "n2");
	assert_string_equal(heard(&a), "");
	assert_string_equal(state_of(&f, "a"), "ACKED v1");
	xds_client_server(f.client, &info);
	assert_int_equal(info.n_unwanted, 2);
	DELTA(&f, "n3", {"env=test", "a", "BAD", "v4"}); // PC-08: but it is looked at
	expect_delta_nack(&f, &toy_cluster, "", "n3", "content is BAD");
	assert_string_equal(heard(&a), "");
	assert_string_equal(state_of(&f, "a"), "ACKED v1");
	fixture_fini(&f);
}

static void nothing_that_matches_is_not_there_after_15_s(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init_params(&f, &xds_protocol_delta, PROD);
	listen_to(&f, &toy_cluster, "a", &a);
	fake_ads_settle(&f.server);
	DELTA(&f, "n1", {"env=test", "a", "2", "v2"});
	fake_ads_settle(&f.server);
	pass_time(&f, 16 * S);
	assert_string_equal(heard(&a), "!5"); // TP2-L03, TP2-T13
	DELTA(&f, "n2", {"env", "a", "3", "v3"});
	assert_string_equal(heard(&a), "=3");
	fixture_fini(&f);
}

static void replaced_variant_leaves_no_gap_in_delta(void **state)
{
	struct fixture f;
	struct ear a;
	with_prod(&f, &a);
	DELTA(&f, "n2", {"env=prod", "a"}, {"env", "a", "2", "v2"}); // TP2-T08
	expect_delta(&f, &toy_cluster, "", "n2");
	assert_string_equal(heard(&a), "=2");
	DELTA(&f, "n3", {"env=prod", "a", "3", "v3"}, {"env", "a"});
	expect_delta(&f, &toy_cluster, "", "n3");
	assert_string_equal(heard(&a), "=3");
	assert_string_equal(state_of(&f, "a"), "ACKED v3");
	fixture_fini(&f);
}

static void replaced_variant_leaves_no_gap_in_state_of_the_world(void **state)
{
	struct fixture f;
	struct ear a, e;
	fixture_init_params(&f, &xds_protocol_sotw, PROD);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_endpoints, "e", &e);
	fake_ads_settle(&f.server);
	SOTW(&f, &toy_cluster, "1", {"env=prod", "a", "1", ""}, {"env=test", "a", "9", ""});
	fake_ads_settle(&f.server);
	SOTW(&f, &toy_cluster, "2", {"env", "a", "2", ""}); // TP2-T12
	fake_ads_settle(&f.server);
	assert_string_equal(heard(&a), "=1 =2");
	SOTW(&f, &toy_cluster, "3", {"env=test", "a", "9", ""});
	fake_ads_settle(&f.server);
	assert_string_equal(heard(&a), "~5");
	SOTW(&f, &toy_endpoints, "1", {"env=prod", "e", "1", ""});
	fake_ads_settle(&f.server);
	SOTW(&f, &toy_endpoints, "2", {"env", "e", "2", ""});
	fake_ads_settle(&f.server);
	SOTW(&f, &toy_endpoints, "3", {"env=test", "e", "3", ""});
	fake_ads_settle(&f.server);
	assert_string_equal(heard(&e), "=1 =2");
	fixture_fini(&f);
}

static void removal_without_another_variant_is_a_deletion(void **state)
{
	struct fixture f;
	struct ear a;
	with_prod(&f, &a);
	DELTA(&f, "n2", {"env=test", "a"}); // TP2-T07: of another variant
	expect_delta(&f, &toy_cluster, "", "n2");
	respond_delta(&f, &toy_cluster, "n3", "-a", NULL); // … of the unconstrained one
	expect_delta(&f, &toy_cluster, "", "n3");
	assert_string_equal(heard(&a), "");
	DELTA(&f, "n4", {"env=prod", "a"}); // TP2-T09
	expect_delta(&f, &toy_cluster, "", "n4");
	assert_string_equal(heard(&a), "~5");
	assert_string_equal(state_of(&f, "a"), "DOES_NOT_EXIST v1 with error");
	fixture_fini(&f);
}

static void absence_is_told_at_once_to_whom_it_concerns(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init_params(&f, &xds_protocol_delta, PROD);
	listen_to(&f, &toy_cluster, "a", &a);
	fake_ads_settle(&f.server);
	DELTA(&f, "n1", {"env=test", "a"});
	fake_ads_settle(&f.server);
	assert_string_equal(heard(&a), "");
	DELTA(&f, "n2", {NULL, "a"}); // DL-07
	fake_ads_settle(&f.server);
	assert_string_equal(heard(&a), "!5");
	fixture_fini(&f);
}

static void versions_held_leave_out_names_of_several_variants(void **state)
{
	struct fixture f;
	struct ear a, b;
	with_prod(&f, &a);
	listen_to(&f, &toy_cluster, "b", &b);
	fake_ads_settle(&f.server);
	DELTA(&f, "n2", {"env=prod", "b", "1", "w1"});
	// TP2-T11: the same name, and both match
	DELTA(&f, "n3", {"env", "a", "2", "v2"}, {"env=test", "b", "2", "w2"});
	assert_string_equal(heard(&a), ""); // TP2-L04: the one in use
	fake_ads_close(&f.server, "bye");
	pass_time(&f, 2 * S);
	f.server.n_read = f.server.n_sent - 1;
	const DeltaRequest *r = fake_ads_next_delta(&f.server);
	assert_int_equal(r->n_resource_locators_subscribe, 2);
	assert_int_equal(r->n_initial_resource_versions, 1); // TP2-T10
	assert_string_equal(r->initial_resource_versions[0]->key, "b");
	assert_string_equal(r->initial_resource_versions[0]->value, "w1");
	fixture_fini(&f);
}

static void same_variant_twice_is_nacked(void **state)
{
	struct fixture f;
	struct ear a;
	with_prod(&f, &a);
	DELTA(&f, "n2", {"env=prod", "a", "2", "v2"}, {"env=test", "a", "3", "v3"},
		{"env=prod", "a", "4", "v4"}); // TP2-T11
	expect_delta_nack(&f, &toy_cluster, "", "n2", "more than once");
	assert_string_equal(heard(&a), "~3");
	DELTA(&f, "n3", {"env=prod", "a", "3", "v3"}, {"env=prod", "a"}); // DL-12
	expect_delta_nack(&f, &toy_cluster, "", "n3", "more than once");
	assert_string_equal(heard(&a), "~3");
	assert_string_equal(state_of(&f, "a"), "NACKED v1 with error");
	fixture_fini(&f);
}

static void malformed_constraints_are_nacked(void **state)
{
	struct fixture f;
	struct ear a;
	with_prod(&f, &a);
	DELTA(&f, "n2", {"env?", "a", "2", "v2"}); // TP2-C08
	expect_delta_nack(&f, &toy_cluster, "", "n2", "neither value nor exists");
	assert_string_equal(heard(&a), "~3"); // it may have been meant for us
	DELTA(&f, "n3", {"env?", "a"});
	expect_delta_nack(&f, &toy_cluster, "", "n3", "malformed removed_resource_names");
	DELTA(&f, "n4", {"env?", "a", .code = 5});
	expect_delta_nack(&f, &toy_cluster, "", "n4", "resource_errors");
	assert_string_equal(heard(&a), "");
	fixture_fini(&f);
}

static void errors_concern_those_whose_parameters_match(void **state)
{
	struct fixture f;
	struct ear a;
	with_prod(&f, &a);
	DELTA(&f, "n2", {"env=test", "a", .code = 7}); // TP2-T13
	expect_delta(&f, &toy_cluster, "", "n2");
	assert_string_equal(heard(&a), "");
	DELTA(&f, "n3", {"env", "a", .code = 7});
	expect_delta(&f, &toy_cluster, "", "n3");
	assert_string_equal(heard(&a), "~14");
	assert_string_equal(state_of(&f, "a"), "RECEIVED_ERROR v1 with error");
	fixture_fini(&f);
}

static void resource_without_constraints_serves_any_parameters(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init_params(&f, &xds_protocol_sotw, PROD);
	listen_to(&f, &toy_cluster, "a", &a);
	fake_ads_settle(&f.server);
	f.server.n_read = f.server.n_sent;
	respond(&f, &toy_cluster, "v1", "n1", "a=1", NULL); // TP2-T15: and bare
	const Request *r = fake_ads_next(&f.server);
	assert_null(r->error_detail);
	check_locator(r->resource_locators[0], "a{env=prod}");
	assert_string_equal(heard(&a), "=1");
	fixture_fini(&f);
}

static void several_variants_that_match_are_told_of_once_and_do_not_flap(void **state)
{
	struct fixture f;
	struct ear a;
	with_prod(&f, &a);
	unsigned n = f.n_logged;
	DELTA(&f, "n2", {"env", "a", "2", "v2"}); // TP2-L04
	expect_delta(&f, &toy_cluster, "", "n2");
	DELTA(&f, "n3", {"env", "a", "3", "v3"});
	expect_delta(&f, &toy_cluster, "", "n3");
	assert_string_equal(heard(&a), "");
	assert_int_equal(f.n_logged, n + 1);
	DELTA(&f, "n4", {"env=prod", "a"}); // then the other one serves
	expect_delta(&f, &toy_cluster, "", "n4");
	assert_string_equal(heard(&a), "=3");
	assert_string_equal(state_of(&f, "a"), "ACKED v3");
	fixture_fini(&f);
}

static void variant_with_the_same_content_that_takes_its_place_keeps_its_ttl(void **state)
{
	struct fixture f;
	struct ear a;
	with_prod(&f, &a);
	DELTA(&f, "n2", {"env=prod", "a"}, {"env", "a", "1", "v2", .ttl_s = 10});
	expect_delta(&f, &toy_cluster, "", "n2");
	assert_string_equal(heard(&a), ""); // SW-16
	assert_string_equal(state_of(&f, "a"), "ACKED v2");
	pass_time(&f, 11 * S);
	assert_string_equal(heard(&a), "!5"); // RS-04
	fixture_fini(&f);
}

// RS-04: its time began when it came, and not when it was first of use.
static void variant_that_was_not_seen_ends_with_its_ttl(void **state)
{
	struct fixture f;
	struct ear a;
	for (int renewed = 0; renewed < 2; renewed++) {
		with_prod(&f, &a);
		DELTA(&f, "n2", {"env", "a", "2", "v2", .ttl_s = 10});
		fake_ads_settle(&f.server);
		pass_time(&f, 5 * S);
		if (renewed)
			DELTA(&f, "n3", {"env", "a", "2", "v2"});
		fake_ads_settle(&f.server);
		DELTA(&f, "n4", {"env=prod", "a"});
		assert_string_equal(heard(&a), "=2");
		pass_time(&f, 4 * S);
		assert_string_equal(heard(&a), "");
		pass_time(&f, 3 * S);
		assert_string_equal(heard(&a), renewed ? "" : "!5");
		fixture_fini(&f);
	}
}

// RS-03, RS-04: of two that see one variant, the server has denied it to one.
static void heartbeat_is_nothing_to_whom_the_value_was_denied(void **state)
{
	struct fixture f;
	struct ear a, b;
	struct xds_params *test;
	fixture_init_dropping(&f, &xds_protocol_delta, "");
	listen_to(&f, &toy_cluster, "a", &a);
	prepare_ear(&b);
	assert_int_equal(xds_params_new(&(struct xds_param){"env", "test"}, 1, &test), 0);
	assert_int_equal(
		xds_client_watch_locator(f.client, &toy_cluster, "a", test, &b.watcher), 0);
	xds_params_put(test);
	fake_ads_settle(&f.server);
	DELTA(&f, "n1", {NULL, "a", "1", "v1", .ttl_s = 10});
	fake_ads_settle(&f.server);
	assert_string_equal(heard(&a), "=1");
	assert_string_equal(heard(&b), "=1");
	DELTA(&f, "n2", {"env=test", "a", .code = 5});
	fake_ads_settle(&f.server);
	assert_string_equal(heard(&b), "!5");
	DELTA(&f, "n3", {NULL, "a", .version = "v1", .ttl_s = 10});
	fake_ads_settle(&f.server);
	pass_time(&f, 11 * S);
	assert_string_equal(heard(&a), "!5");
	assert_string_equal(heard(&b), "");
	fixture_fini(&f);
}

static void new_value_is_told_with_the_trouble_beside_it(void **state)
{
	struct fixture f;
	struct ear a;
	with_prod(&f, &a);
	// TP2-T11: another variant, that matches too. DE-02
	DELTA(&f, "n2", {"env=prod", "a", "2", "v2"}, {"env", "a", .code = 14});
	expect_delta(&f, &toy_cluster, "", "n2");
	assert_string_equal(heard(&a), "=2 ~14");
	DELTA(&f, "n3", {"env=prod", "a", "3", "v3"}, {"env", "a", "BAD", "w3"}); // A46
	expect_delta_nack(&f, &toy_cluster, "", "n3", "content is BAD");
	assert_string_equal(heard(&a), "=3 ~3");
	DELTA(&f, "n4", {"env=prod", "a", "3", "v4"});
	assert_string_equal(heard(&a), "~ok"); // SW-17
	fixture_fini(&f);
}

static void variant_of_another_server_takes_the_place_of_the_one_in_use(void **state)
{
	struct fixture f;
	struct ear a;
	with_prod(&f, &a);
	fake_ads_close(&f.server, "bye");
	pass_time(&f, 2 * S);
	fake_ads_settle(&f.server);
	f.server.n_read = f.server.n_sent;
	// TP2-L04: this server cannot know which variant the client's version was of.
	DELTA(&f, "n1", {"env", "a", "2", "w1"});
	expect_delta(&f, &toy_cluster, "", "n1");
	assert_string_equal(heard(&a), "=2");
	DELTA(&f, "n2", {"env", "a"}); // TP2-T09: nothing is left of the other one
	assert_string_equal(heard(&a), "~5");
	fixture_fini(&f);
}

RUN_SUITE("xds/client_params", cmocka_unit_test(parameters_go_as_locators_in_state_of_the_world),
	cmocka_unit_test(without_parameters_there_are_names_only),
	cmocka_unit_test(parameters_go_as_locators_in_delta),
	cmocka_unit_test(each_authority_has_its_own_parameters_and_names_stay_as_they_are),
	cmocka_unit_test(variant_that_matches_is_used_and_shown_by_its_name_alone),
	cmocka_unit_test(variant_for_others_is_ignored_acked_and_counted),
	cmocka_unit_test(nothing_that_matches_is_not_there_after_15_s),
	cmocka_unit_test(replaced_variant_leaves_no_gap_in_delta),
	cmocka_unit_test(replaced_variant_leaves_no_gap_in_state_of_the_world),
	cmocka_unit_test(removal_without_another_variant_is_a_deletion),
	cmocka_unit_test(absence_is_told_at_once_to_whom_it_concerns),
	cmocka_unit_test(versions_held_leave_out_names_of_several_variants),
	cmocka_unit_test(same_variant_twice_is_nacked),
	cmocka_unit_test(malformed_constraints_are_nacked),
	cmocka_unit_test(errors_concern_those_whose_parameters_match),
	cmocka_unit_test(heartbeat_is_nothing_to_whom_the_value_was_denied),
	cmocka_unit_test(new_value_is_told_with_the_trouble_beside_it),
	cmocka_unit_test(variant_of_another_server_takes_the_place_of_the_one_in_use),
	cmocka_unit_test(resource_without_constraints_serves_any_parameters),
	cmocka_unit_test(several_variants_that_match_are_told_of_once_and_do_not_flap),
	cmocka_unit_test(variant_that_was_not_seen_ends_with_its_ttl),
	cmocka_unit_test(variant_with_the_same_content_that_takes_its_place_keeps_its_ttl))
