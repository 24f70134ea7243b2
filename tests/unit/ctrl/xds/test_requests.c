// SPDX-License-Identifier: Apache-2.0
// What goes over the wire: first requests, answers, versions, nonces (PC-*, SW-*).
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/client_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// SW-01, PC-03, BT-08, RS-05, WF-06
static void first_request_carries_the_node_and_all_names(void **state)
{
	struct fixture f;
	struct ear a, b;
	fixture_init(&f, "");
	xds_client_begin(f.client);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "b", &b);
	xds_client_end(f.client);

	// SW-01, PC-03, BT-08
	const Envoy__Service__Discovery__V3__DiscoveryRequest *r = fake_ads_next(&f.server);
	assert_non_null(r);
	assert_int_equal(r->n_resource_names, 2);
	assert_string_equal(r->version_info, "");
	assert_string_equal(r->response_nonce, "");
	assert_non_null(r->node);
	assert_string_equal(r->node->id, "me");
	assert_string_equal(r->node->cluster, "here");
	assert_string_equal(r->node->user_agent_name, "shunt");
	assert_string_equal(r->node->user_agent_version, "1.2.3");
	assert_int_equal(r->node->n_client_features, 3);
	assert_string_equal(
		r->node->client_features[0], "envoy.lb.does_not_support_overprovisioning");
	assert_string_equal(r->node->client_features[1], "xds.config.resource-in-sotw"); // RS-05
	assert_string_equal(r->node->client_features[2], "xds.config.supports-resource-ttl");
	assert_int_equal(r->node->metadata->n_fields, 1);
	const Google__Protobuf__ListValue *list = r->node->metadata->fields[0]->value->list_value;
	assert_int_equal(list->n_values, 4);
	assert_true(list->values[0]->number_value == 1);
	assert_int_equal(list->values[1]->kind_case, GOOGLE__PROTOBUF__VALUE__KIND_BOOL_VALUE);
	assert_true(list->values[1]->bool_value);
	assert_int_equal(list->values[2]->kind_case, GOOGLE__PROTOBUF__VALUE__KIND_NULL_VALUE);
	assert_string_equal(list->values[3]->string_value, "x");
	expect_silence(&f);

	listen_to(&f, &toy_endpoints, "e", &a);
	r = fake_ads_next(&f.server);
	assert_null(r->node);
	fixture_fini(&f);
}

static void nothing_is_sent_before_the_first_watch(void **state)
{
	struct fixture f;
	fixture_init(&f, "");
	pass_time(&f, 60 * S);
	assert_int_equal(f.server.n_streams, 0);
	fixture_fini(&f);
}

// PC-06, SW-02
static void good_response_is_acked_with_its_version_and_nonce(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	expect_request(&f, &toy_cluster, "a", "", "");
	respond(&f, &toy_cluster, "v1", "n1", "a=1", NULL);
	expect_request(&f, &toy_cluster, "a", "v1", "n1"); // SW-02
	assert_string_equal(heard(&a), "=1");
	assert_string_equal(state_of(&f, "a"), "ACKED v1");
	expect_silence(&f); // PC-06: once
	fixture_fini(&f);
}

// SW-03, SW-06
static void bad_response_is_nacked_with_the_last_good_version(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	expect_request(&f, &toy_cluster, "a", "", "");
	respond(&f, &toy_cluster, "v1", "n1", "a=BAD1", NULL);
	expect_nack(&f, &toy_cluster, "a", "", "n1", "content is BAD1"); // SW-03
	assert_string_equal(heard(&a), "!3");

	respond(&f, &toy_cluster, "v2", "n2", "a=2", NULL);
	expect_request(&f, &toy_cluster, "a", "v2", "n2");
	assert_string_equal(heard(&a), "=2");
	respond(&f, &toy_cluster, "v3", "n3", "a=BAD3", NULL);
	expect_nack(&f, &toy_cluster, "a", "v2", "n3", "cluster \"a\"");
	// SW-04, SW-06: a later request has the nonce of the NACKed response and the good version
	struct ear b;
	listen_to(&f, &toy_cluster, "b", &b);
	expect_request(&f, &toy_cluster, "a b", "v2", "n3");
	fixture_fini(&f);
}

// PC-09, PC-10
static void valid_siblings_of_bad_resources_are_used(void **state)
{
	struct fixture f;
	struct ear a, b, c;
	fixture_init(&f, "");
	xds_client_begin(f.client);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "b", &b);
	listen_to(&f, &toy_cluster, "c", &c);
	xds_client_end(f.client);
	expect_request(&f, &toy_cluster, "a b c", "", "");
	// PC-09, PC-10: all bad ones are named, also the one whose name cannot be read
	respond(&f, &toy_cluster, "v1", "n1", "a=BAD", "b=1", "no name", "c=BAD2", NULL);
	const Envoy__Service__Discovery__V3__DiscoveryRequest *r = fake_ads_next(&f.server);
	assert_non_null(r->error_detail);
	assert_int_equal(r->error_detail->code, 3);
	assert_string_equal(r->error_detail->message,
		"cluster \"a\": content is BAD; resource 2: has no name; "
		"cluster \"c\": content is BAD2");
	assert_string_equal(heard(&a), "!3");
	assert_string_equal(heard(&b), "=1");
	assert_string_equal(heard(&c), "!3");
	assert_string_equal(state_of(&f, "b"), "ACKED v1"); // CS-07
	assert_string_equal(state_of(&f, "c"), "NACKED  with error");
	fixture_fini(&f);
}

static void nack_text_is_utf8_whatever_the_names_are(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	expect_request(&f, &toy_cluster, "a", "", "");
	respond(&f, &toy_cluster, "v1", "n1", "a=BAD\xff\xc3", NULL);
	expect_nack(&f, &toy_cluster, "a", "", "n1", "content is BAD??");
	fixture_fini(&f);
}

// A server that can't receive the NACK would end the stream, and send the same again on the next.
static void nack_of_very_many_names_the_first_and_counts_the_others(void **state)
{
	enum { N = 5000, TEXT_LEN = 16 };
	struct fixture f;
	struct ear a;
	struct fake_resource *list = calloc(N, sizeof(*list));
	char(*texts)[TEXT_LEN] = calloc(N, TEXT_LEN);
	assert_non_null(list);
	assert_non_null(texts);
	for (unsigned i = 0; i < N; i++) {
		int len = snprintf(texts[i], TEXT_LEN, "c%u=BAD%u", i, i);
		list[i] = (struct fake_resource){
			.bytes = (const uint8_t *)texts[i], .len = (size_t)len};
	}
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "c4999", &a);
	expect_request(&f, &toy_cluster, "c4999", "", "");
	fake_ads_respond(&f.server, toy_cluster.url, "v1", "n1", list, N);
	const Envoy__Service__Discovery__V3__DiscoveryRequest *r = fake_ads_next(&f.server);
	assert_non_null(r->error_detail);
	const char *text = r->error_detail->message;
	assert_in_range(strlen(text), 64 << 10, (64 << 10) + 2048);
	assert_non_null(strstr(text, "cluster \"c0\": content is BAD0; cluster \"c1\": "));
	unsigned n_named = 1, n_more = 0;
	const char *end = text;
	for (const char *at = text; (at = strstr(at, "; ")); at += 2, n_named++)
		end = at;
	assert_int_equal(sscanf(end, "; and %u more", &n_more), 1);
	assert_int_equal(n_named - 1 + n_more, N);
	assert_string_equal(heard(&a), "!3"); // although the text doesn't name it
	fixture_fini(&f);
	free(texts);
	free(list);
}

static void nack_cuts_long_names(void **state)
{
	struct fixture f;
	struct ear a;
	char text[3000];
	memset(text, 'x', sizeof(text));
	strcpy(text + sizeof(text) - 5, "=BAD");
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	expect_request(&f, &toy_cluster, "a", "", "");
	respond(&f, &toy_cluster, "v1", "n1", text, NULL);
	const Envoy__Service__Discovery__V3__DiscoveryRequest *r = fake_ads_next(&f.server);
	assert_non_null(r->error_detail);
	assert_int_equal(strspn(strchr(r->error_detail->message, '"') + 1, "x"), 1024);
	assert_non_null(strstr(r->error_detail->message, "\": content is BAD"));
	fixture_fini(&f);
}

static void same_resource_twice_is_nacked(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	expect_request(&f, &toy_cluster, "a", "", "");
	respond(&f, &toy_cluster, "v1", "n1", "a=1", "a=2", NULL); // PC-07
	expect_nack(&f, &toy_cluster, "a", "", "n1", "more than once");
	assert_string_equal(heard(&a), "!3");
	assert_string_equal(state_of(&f, "a"), "NACKED  with error");
	fixture_fini(&f);
}

static void nothing_is_used_of_a_response_that_lists_a_resource_twice(void **state)
{
	struct fixture f;
	struct ear a, b, c;
	fixture_init(&f, "");
	xds_client_begin(f.client);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "b", &b);
	listen_to(&f, &toy_cluster, "c", &c);
	xds_client_end(f.client);
	expect_request(&f, &toy_cluster, "a b c", "", "");
	respond(&f, &toy_cluster, "v1", "n1", "a=1", "b=1", "c=1", NULL);
	expect_request(&f, &toy_cluster, "a b c", "v1", "n1");
	assert_string_equal(heard(&a), "=1");
	assert_string_equal(heard(&b), "=1");
	assert_string_equal(heard(&c), "=1");
	respond(&f, &toy_cluster, "v2", "n2", "b=2", "a=1", "a=2", NULL);
	expect_nack(&f, &toy_cluster, "a b c", "v1", "n2",
		"cluster \"a\": is listed more than once; nothing of this response is used");
	assert_string_equal(heard(&a), "~3");
	assert_string_equal(heard(&b), "~3");
	assert_string_equal(heard(&c), ""); // SW-11: it would be gone
	assert_string_equal(state_of(&f, "a"), "NACKED v1 with error");
	assert_string_equal(state_of(&f, "b"), "NACKED v1 with error");
	assert_string_equal(state_of(&f, "c"), "ACKED v1");
	respond(&f, &toy_cluster, "v3", "n3", "b=2", "a=1", NULL);
	expect_request(&f, &toy_cluster, "a b c", "v3", "n3");
	assert_string_equal(heard(&a), "~ok");
	assert_string_equal(heard(&b), "=2");
	assert_string_equal(heard(&c), "~5");
	fixture_fini(&f);
}

static void unknown_type_is_not_answered(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	expect_request(&f, &toy_cluster, "a", "", "");
	fake_ads_respond(&f.server, "type.googleapis.com/toy.Unknown", "v", "n", NULL, 0); // PC-04
	expect_silence(&f);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", NULL);
	expect_request(&f, &toy_cluster, "a", "v1", "n1");
	fixture_fini(&f);
}

// PC-05
static void undecodable_response_is_not_answered_and_the_stream_stays(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	expect_request(&f, &toy_cluster, "a", "", "");
	fake_ads_say(&f.server, (const uint8_t *)"\x0a\xff", 2); // PC-05
	expect_silence(&f);
	assert_non_null(f.server.stream);
	struct xds_server_info info;
	xds_client_server(f.client, &info);
	assert_int_equal(info.n_undecodable, 1);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", NULL);
	expect_request(&f, &toy_cluster, "a", "v1", "n1");
	fixture_fini(&f);
}

static void unsolicited_type_is_not_answered_since_an_empty_list_would_be_a_wildcard(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "");
	listen_to(&f, &toy_endpoints, "a", &a);
	expect_request(&f, &toy_endpoints, "a", "", "");
	respond(&f, &toy_cluster, "v1", "n1", "x=1", NULL); // SW-09
	expect_silence(&f);
	fixture_fini(&f);
}

static void resources_nobody_wants_are_dropped_but_still_checked(void **state)
{
	struct fixture f;
	struct ear a, b;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	expect_request(&f, &toy_cluster, "a", "", "");
	respond(&f, &toy_cluster, "v1", "n1", "a=1", "b=1", NULL);
	expect_request(&f, &toy_cluster, "a", "v1", "n1");
	listen_to(&f, &toy_cluster, "b", &b); // PC-08: not cached
	assert_string_equal(heard(&b), "");
	expect_request(&f, &toy_cluster, "a b", "v1", "n1");
	respond(&f, &toy_cluster, "v2", "n2", "a=1", "b=1", "c=BAD", NULL);
	expect_nack(&f, &toy_cluster, "a b", "v1", "n2", "cluster \"c\"");
	assert_string_equal(heard(&b), "=1");
	fixture_fini(&f);
}

// WF-04, PC-11
static void inner_type_must_be_the_responses(void **state)
{
	struct fixture f;
	struct ear a, b;
	fixture_init(&f, "");
	xds_client_begin(f.client);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "b", &b);
	xds_client_end(f.client);
	expect_request(&f, &toy_cluster, "a b", "", "");
	const struct fake_resource list[] = {
		{.type_url = ENDPOINTS_URL, .bytes = (const uint8_t *)"a=1", .len = 3},
		// WF-04: what stands before the last slash does not count
		{.type_url = "x/y/toy.Cluster", .bytes = (const uint8_t *)"b=1", .len = 3},
	};
	fake_ads_respond(&f.server, CLUSTER_URL, "v1", "n1", list, 2); // PC-11
	expect_nack(&f, &toy_cluster, "a b", "", "n1", "resource 0: is a \"" ENDPOINTS_URL "\"");
	assert_string_equal(heard(&a), "");
	assert_string_equal(heard(&b), "=1");
	fixture_fini(&f);
}

// RS-01
static void wrapped_resources_are_unwrapped_and_named_by_the_wrapper(void **state)
{
	struct fixture f;
	struct ear a, b;
	fixture_init(&f, "");
	xds_client_begin(f.client);
	listen_to(&f, &toy_cluster, "outer", &a);
	listen_to(&f, &toy_cluster, "b", &b);
	xds_client_end(f.client);
	expect_request(&f, &toy_cluster, "outer b", "", "");
	const struct fake_resource list[] = {
		{.bytes = (const uint8_t *)"inner=1", .len = 7, .wrapper_name = "outer"},
		{.bytes = (const uint8_t *)"b=2", .len = 3}, // RS-01: they may mix
	};
	fake_ads_respond(&f.server, CLUSTER_URL, "v1", "n1", list, 2);
	expect_request(&f, &toy_cluster, "outer b", "v1", "n1");
	assert_string_equal(heard(&a), "=1");
	assert_string_equal(heard(&b), "=2");
	fixture_fini(&f);
}

static void respond_with_wrapper(struct fixture *f, Envoy__Service__Discovery__V3__Resource *w,
	const char *version, const char *nonce)
{
	uint8_t bytes[256];
	struct fake_resource r = {
		.type_url = "type.googleapis.com/envoy.service.discovery.v3.Resource",
		.bytes = bytes,
		.len = envoy__service__discovery__v3__resource__pack(w, bytes),
	};
	fake_ads_respond(&f->server, CLUSTER_URL, version, nonce, &r, 1);
}

// RS-03, RS-02, RS-01
static void odd_wrappers_are_invalid_entries(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	expect_request(&f, &toy_cluster, "a", "", "");

	Envoy__Service__Discovery__V3__Resource w;
	Envoy__Service__Discovery__V3__ResourceName name;
	Google__Protobuf__Any any;
	envoy__service__discovery__v3__resource__init(&w);
	envoy__service__discovery__v3__resource_name__init(&name);
	google__protobuf__any__init(&any);
	any.type_url = (char[]){CLUSTER_URL};
	any.value = (ProtobufCBinaryData){3, (uint8_t *)(char[]){"z=7"}};
	name.name = (char[]){"a"};
	w.name = name.name;

	respond_with_wrapper(&f, &w, "v1", "n1"); // RS-03
	expect_nack(&f, &toy_cluster, "a", "", "n1", "holds no resource");
	assert_string_equal(heard(&a), "!3");
	w.resource = &any;
	w.resource_name = &name;
	respond_with_wrapper(&f, &w, "v2", "n2"); // RS-02
	expect_nack(&f, &toy_cluster, "a", "", "n2", "both name and resource_name");
	assert_string_equal(heard(&a), "!3");
	w.name = (char[]){""};
	respond_with_wrapper(&f, &w, "v3", "n3"); // RS-01
	expect_request(&f, &toy_cluster, "a", "v3", "n3");
	assert_string_equal(heard(&a), "=7");
	fixture_fini(&f);
}

// PC-12
static void changes_during_a_send_collapse_into_one_request(void **state)
{
	struct fixture f;
	struct ear a, b, c;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	assert_true(f.server.sending);
	listen_to(&f, &toy_cluster, "b", &b); // PC-12
	listen_to(&f, &toy_cluster, "c", &c);
	xds_client_cancel(f.client, &b.watcher);
	expect_request(&f, &toy_cluster, "a", "", "");
	expect_request(&f, &toy_cluster, "a c", "", "");
	expect_silence(&f);
	fixture_fini(&f);
}

// PC-06, PC-12
static void next_response_is_read_only_when_the_answer_is_on_its_way(void **state)
{
	struct fixture f;
	struct ear a, b;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	expect_request(&f, &toy_cluster, "a", "", "");
	listen_to(&f, &toy_endpoints, "b", &b); // under way, not sent
	assert_true(f.server.sending);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", NULL);
	assert_false(f.server.reading); // PC-06: else two answers could become one
	expect_request(&f, &toy_endpoints, "b", "", "");
	expect_request(&f, &toy_cluster, "a", "v1", "n1");
	assert_true(f.server.reading);
	fixture_fini(&f);
}

static void ack_carries_the_names_of_now(void **state)
{
	struct fixture f;
	struct ear a, b;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	expect_request(&f, &toy_cluster, "a", "", "");
	xds_client_begin(f.client); // SW-05
	respond(&f, &toy_cluster, "v1", "n1", "a=1", NULL);
	listen_to(&f, &toy_cluster, "b", &b);
	xds_client_end(f.client);
	expect_request(&f, &toy_cluster, "a b", "v1", "n1");
	expect_silence(&f);
	fixture_fini(&f);
}

// PC-02
static void types_do_not_leak_into_each_other(void **state)
{
	struct fixture f;
	struct ear a, b;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "x", &a);
	listen_to(&f, &toy_endpoints, "x", &b);
	expect_request(&f, &toy_cluster, "x", "", "");
	expect_request(&f, &toy_endpoints, "x", "", "");
	respond(&f, &toy_endpoints, "e1", "en", "x=e", NULL); // PC-02
	expect_request(&f, &toy_endpoints, "x", "e1", "en");
	assert_string_equal(heard(&a), "");
	assert_string_equal(heard(&b), "=e");
	respond(&f, &toy_cluster, "c1", "cn", "x=BADc", NULL);
	expect_nack(&f, &toy_cluster, "x", "", "cn", "BADc");
	assert_string_equal(heard(&b), "");
	fixture_fini(&f);
}

// PC-03, SW-07, SW-08
static void restart_asks_for_all_again_with_versions_and_without_nonces(void **state)
{
	struct fixture f;
	struct ear a, b, c;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_endpoints, "b", &b);
	expect_request(&f, &toy_cluster, "a", "", "");
	expect_request(&f, &toy_endpoints, "b", "", "");
	respond(&f, &toy_cluster, "v1", "n1", "a=1", NULL);
	expect_request(&f, &toy_cluster, "a", "v1", "n1");
	respond(&f, &toy_cluster, "v2", "n2", "a=BAD", NULL);
	expect_nack(&f, &toy_cluster, "a", "v1", "n2", "BAD");
	listen_to(&f, &toy_endpoints, "c", &c);
	expect_request(&f, &toy_endpoints, "b c", "", "");
	xds_client_cancel(f.client, &b.watcher);
	xds_client_cancel(f.client, &c.watcher);
	fake_ads_settle(&f.server);
	f.server.n_read = f.server.n_sent;

	fake_ads_close(&f.server, "bye");
	pass_time(&f, 3 * S);
	assert_int_equal(f.server.n_streams, 2);
	const Envoy__Service__Discovery__V3__DiscoveryRequest *r = fake_ads_next(&f.server);
	assert_non_null(r->node); // PC-03: on every stream
	assert_string_equal(r->version_info, "v1"); // SW-07
	assert_string_equal(r->response_nonce, "");
	assert_string_equal(r->resource_names[0], "a");
	expect_silence(&f); // SW-08: no request for a type without names
	fixture_fini(&f);
}

// DE-03, SW-12, DE-09, SW-15, SW-17
static void missing_cluster_was_deleted_and_missing_endpoints_mean_nothing(void **state)
{
	struct fixture f;
	struct ear a, b, c, e;
	fixture_init(&f, "");
	xds_client_begin(f.client);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "b", &b);
	listen_to(&f, &toy_cluster, "c", &c);
	listen_to(&f, &toy_endpoints, "e", &e);
	xds_client_end(f.client);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", "b=1", NULL);
	fake_ads_settle(&f.server);
	respond(&f, &toy_endpoints, "v1", "n2", "e=1", NULL);
	fake_ads_settle(&f.server);
	heard(&a), heard(&b), heard(&e);
	f.server.n_read = f.server.n_sent;

	respond(&f, &toy_cluster, "v2", "n3", "a=1", NULL);
	expect_request(&f, &toy_cluster, "a b c", "v2", "n3");
	assert_string_equal(heard(&a), ""); // SW-16
	assert_string_equal(heard(&b), "~5"); // SW-11, DE-03
	assert_string_equal(state_of(&f, "b"), "DOES_NOT_EXIST v1 with error");
	assert_string_equal(heard(&c), ""); // SW-12: not received yet
	assert_string_equal(state_of(&f, "c"), "REQUESTED ");
	respond(&f, &toy_endpoints, "v2", "n4", NULL); // SW-14
	expect_request(&f, &toy_endpoints, "e", "v2", "n4");
	assert_string_equal(heard(&e), "");
	assert_string_equal(state_of(&f, "e"), "ACKED v1");

	respond(&f, &toy_cluster, "v3", "n5", NULL); // all gone; b is not told twice (DE-09)
	expect_request(&f, &toy_cluster, "a b c", "v3", "n5");
	assert_string_equal(heard(&a), "~5");
	assert_string_equal(heard(&b), "");
	respond(&f, &toy_cluster, "v4", "n6", "a=1", "b=2", "c=3", NULL); // SW-15, SW-17
	assert_string_equal(heard(&a), "~ok");
	assert_string_equal(heard(&b), "=2");
	assert_string_equal(heard(&c), "=3");
	fixture_fini(&f);
}

static void invalid_or_unreadable_resources_are_not_deleted(void **state)
{
	struct fixture f;
	struct ear a, b;
	fixture_init(&f, "\"fail_on_data_errors\"");
	xds_client_begin(f.client);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "b", &b);
	xds_client_end(f.client);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", "b=1", NULL);
	fake_ads_settle(&f.server);
	heard(&a), heard(&b);
	// SW-13: the nameless one may be b
	respond(&f, &toy_cluster, "v2", "n2", "a=BAD", "gibberish", NULL);
	assert_string_equal(heard(&a), "!3");
	assert_string_equal(heard(&b), "");
	assert_string_equal(state_of(&f, "a"), "NACKED  with error");
	assert_string_equal(state_of(&f, "b"), "ACKED v1");
	fixture_fini(&f);
}

RUN_SUITE("xds/requests", cmocka_unit_test(first_request_carries_the_node_and_all_names),
	cmocka_unit_test(nothing_is_sent_before_the_first_watch),
	cmocka_unit_test(good_response_is_acked_with_its_version_and_nonce),
	cmocka_unit_test(bad_response_is_nacked_with_the_last_good_version),
	cmocka_unit_test(valid_siblings_of_bad_resources_are_used),
	cmocka_unit_test(nack_text_is_utf8_whatever_the_names_are),
	cmocka_unit_test(nack_of_very_many_names_the_first_and_counts_the_others),
	cmocka_unit_test(nack_cuts_long_names), cmocka_unit_test(same_resource_twice_is_nacked),
	cmocka_unit_test(nothing_is_used_of_a_response_that_lists_a_resource_twice),
	cmocka_unit_test(unknown_type_is_not_answered),
	cmocka_unit_test(undecodable_response_is_not_answered_and_the_stream_stays),
	cmocka_unit_test(unsolicited_type_is_not_answered_since_an_empty_list_would_be_a_wildcard),
	cmocka_unit_test(resources_nobody_wants_are_dropped_but_still_checked),
	cmocka_unit_test(inner_type_must_be_the_responses),
	cmocka_unit_test(wrapped_resources_are_unwrapped_and_named_by_the_wrapper),
	cmocka_unit_test(odd_wrappers_are_invalid_entries),
	cmocka_unit_test(changes_during_a_send_collapse_into_one_request),
	cmocka_unit_test(next_response_is_read_only_when_the_answer_is_on_its_way),
	cmocka_unit_test(ack_carries_the_names_of_now),
	cmocka_unit_test(types_do_not_leak_into_each_other),
	cmocka_unit_test(restart_asks_for_all_again_with_versions_and_without_nonces),
	cmocka_unit_test(missing_cluster_was_deleted_and_missing_endpoints_mean_nothing),
	cmocka_unit_test(invalid_or_unreadable_resources_are_not_deleted))
