// SPDX-License-Identifier: Apache-2.0
// Incremental ADS on the wire, and what it does to the cache (DL-*, and what of PC-*, SW-*, FM-*,
// WA-* and DE-* it has in a form of its own).
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/client_fixture.h"

#include <stdlib.h>
#include <string.h>

typedef Envoy__Service__Discovery__V3__DeltaDiscoveryRequest Request;

// A client that has cluster a=1 in version v1, and has sent its ACK.
static void with_a(struct fixture *f, struct ear *a, const char *features)
{
	fixture_init_delta(f, features);
	listen_to(f, &toy_cluster, "a", a);
	expect_delta(f, &toy_cluster, "+a", "");
	respond_delta(f, &toy_cluster, "n1", "a=1@v1", NULL);
	expect_delta(f, &toy_cluster, "", "n1");
	assert_string_equal(heard(a), "=1");
}

// The stream breaks after it had worked: the next one is up.
static void next_stream(struct fixture *f)
{
	unsigned n = f->server.n_streams;
	fake_ads_close(&f->server, "bye");
	pass_time(f, 3 * S);
	assert_int_equal(f->server.n_streams, n + 1);
}

// PC-01, PC-03, DL-01
static void first_request_subscribes_to_all_names_and_has_the_node(void **state)
{
	struct fixture f;
	struct ear a, b, e;
	fixture_init_delta(&f, "");
	xds_client_begin(f.client);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "b", &b);
	listen_to(&f, &toy_endpoints, "e", &e);
	xds_client_end(f.client);
	const Request *r = fake_ads_next_delta(&f.server); // PC-01: fake_ads CHECKs the method
	assert_non_null(r->node); // PC-03
	assert_string_equal(r->node->id, "me");
	assert_string_equal(r->type_url, CLUSTER_URL);
	assert_int_equal(r->n_resource_names_subscribe, 2); // DL-01
	assert_int_equal(r->n_initial_resource_versions, 0);
	assert_string_equal(r->response_nonce, "");
	r = fake_ads_next_delta(&f.server);
	assert_null(r->node);
	assert_string_equal(r->resource_names_subscribe[0], "e");
	expect_silence(&f);
	fixture_fini(&f);
}

// DL-03, WA-07, WA-08, WA-09
static void requests_say_only_what_changes(void **state)
{
	struct fixture f;
	struct ear a, b, c;
	with_a(&f, &a, "");
	listen_to(&f, &toy_cluster, "b", &b);
	expect_delta(&f, &toy_cluster, "+b", ""); // DL-03: no nonce
	xds_client_begin(f.client);
	xds_client_cancel(f.client, &a.watcher);
	listen_to(&f, &toy_cluster, "c", &c);
	xds_client_end(f.client);
	expect_delta(&f, &toy_cluster, "+c -a", "");
	xds_client_cancel(f.client, &b.watcher); // WA-07
	expect_delta(&f, &toy_cluster, "-b", "");
	xds_client_cancel(f.client, &c.watcher);
	expect_delta(&f, &toy_cluster, "-c", ""); // DL-10, WA-08
	listen_to(&f, &toy_cluster, "a", &a); // WA-09: the cache had been cleared
	assert_string_equal(heard(&a), "");
	expect_delta(&f, &toy_cluster, "+a", "");
	expect_silence(&f);
	fixture_fini(&f);
}

// DL-11
static void watch_that_ends_before_it_was_asked_for_leaves_no_trace(void **state)
{
	struct fixture f;
	struct ear a, b;
	with_a(&f, &a, "");
	xds_client_begin(f.client);
	listen_to(&f, &toy_cluster, "b", &b);
	xds_client_cancel(f.client, &b.watcher);
	xds_client_end(f.client);
	expect_silence(&f);
	// DL-11: of a type that was never asked for, too
	xds_client_begin(f.client);
	listen_to(&f, &toy_endpoints, "e", &b);
	xds_client_cancel(f.client, &b.watcher);
	xds_client_end(f.client);
	expect_silence(&f);
	fixture_fini(&f);
}

// WA-01, WA-06
static void second_watcher_sends_nothing_and_gets_the_value(void **state)
{
	struct fixture f;
	struct ear a, b;
	with_a(&f, &a, "");
	listen_to(&f, &toy_cluster, "a", &b);
	assert_string_equal(heard(&b), "=1"); // WA-02
	expect_silence(&f); // WA-01
	xds_client_cancel(f.client, &a.watcher);
	expect_silence(&f); // WA-06
	fixture_fini(&f);
}

static void name_wanted_again_before_the_server_knew_is_subscribed_to_again(void **state)
{
	struct fixture f;
	struct ear a;
	with_a(&f, &a, "");
	xds_client_begin(f.client);
	xds_client_cancel(f.client, &a.watcher);
	listen_to(&f, &toy_cluster, "a", &a);
	xds_client_end(f.client);
	expect_delta(&f, &toy_cluster, "+a", ""); // DL-09
	assert_string_equal(heard(&a), "=1"); // WA-13
	respond_delta(&f, &toy_cluster, "n2", "a=1@v1", NULL);
	expect_delta(&f, &toy_cluster, "", "n2");
	assert_string_equal(heard(&a), ""); // SW-16
	fixture_fini(&f);
}

static void what_is_said_again_is_not_decoded_again(void **state)
{
	struct fixture f;
	struct ear a;
	with_a(&f, &a, "");
	unsigned before = n_toys_decoded;
	respond_delta(&f, &toy_cluster, "n2", "a=1@v2", NULL);
	expect_delta(&f, &toy_cluster, "", "n2");
	assert_int_equal(n_toys_decoded, before);
	assert_string_equal(heard(&a), ""); // SW-16
	assert_string_equal(state_of(&f, "a"), "ACKED v2");
	respond_delta(&f, &toy_cluster, "n3", "a=2@v3", NULL);
	expect_delta(&f, &toy_cluster, "", "n3");
	assert_int_equal(n_toys_decoded, before + 1);
	respond_delta(&f, &toy_cluster, "n4", "a=BAD@v4", NULL);
	expect_delta_nack(&f, &toy_cluster, "", "n4", "BAD");
	assert_string_equal(heard(&a), "=2 ~3");
	respond_delta(&f, &toy_cluster, "n5", "a=2@v5", NULL); // the good one again
	expect_delta(&f, &toy_cluster, "", "n5");
	assert_int_equal(n_toys_decoded, before + 2);
	assert_string_equal(heard(&a), "~ok");
	fixture_fini(&f);
}

// DL-04, PC-09
static void ack_and_nack_carry_the_nonce_and_the_changes_of_now(void **state)
{
	struct fixture f;
	struct ear a, b, c;
	with_a(&f, &a, "");
	xds_client_begin(f.client);
	respond_delta(&f, &toy_cluster, "n2", "a=2@v2", NULL);
	listen_to(&f, &toy_cluster, "b", &b);
	xds_client_end(f.client);
	expect_delta(&f, &toy_cluster, "+b", "n2"); // DL-04
	xds_client_begin(f.client);
	respond_delta(&f, &toy_cluster, "n3", "a=BAD@v3", "b=1@v1", NULL);
	listen_to(&f, &toy_cluster, "c", &c);
	xds_client_end(f.client);
	expect_delta_nack(&f, &toy_cluster, "+c", "n3", "cluster \"a\": content is BAD");
	assert_string_equal(heard(&a), "=2 ~3");
	assert_string_equal(heard(&b), "=1"); // PC-09
	expect_silence(&f); // PC-06
	fixture_fini(&f);
}

// SW-17
static void resources_have_versions_of_their_own(void **state)
{
	struct fixture f;
	struct ear a, b;
	with_a(&f, &a, "");
	listen_to(&f, &toy_cluster, "b", &b);
	expect_delta(&f, &toy_cluster, "+b", "");
	respond_delta(&f, &toy_cluster, "n2", "b=1@w7", NULL);
	expect_delta(&f, &toy_cluster, "", "n2");
	assert_string_equal(state_of(&f, "a"), "ACKED v1"); // DL-05: unlisted is unchanged
	assert_string_equal(state_of(&f, "b"), "ACKED w7");
	assert_string_equal(heard(&a), "");
	respond_delta(&f, &toy_cluster, "n3", "b=BAD@w8", "a=2@v2", NULL);
	expect_delta_nack(&f, &toy_cluster, "", "n3", "\"b\"");
	assert_string_equal(state_of(&f, "b"), "NACKED w7 with error");
	assert_string_equal(state_of(&f, "a"), "ACKED v2");
	assert_string_equal(heard(&b), "=1 ~3");
	respond_delta(&f, &toy_cluster, "n4", "b=1@w9", NULL);
	assert_string_equal(heard(&b), "~ok"); // SW-17
	assert_string_equal(state_of(&f, "b"), "ACKED w9");
	fixture_fini(&f);
}

// PC-03
static void next_stream_asks_for_everything_with_the_versions_held(void **state)
{
	struct fixture f;
	struct ear a, b, c, d, e;
	with_a(&f, &a, "");
	xds_client_begin(f.client);
	listen_to(&f, &toy_cluster, "b", &b);
	listen_to(&f, &toy_cluster, "c", &c);
	listen_to(&f, &toy_cluster, "d", &d);
	listen_to(&f, &toy_endpoints, "e", &e);
	xds_client_end(f.client);
	expect_delta(&f, &toy_cluster, "+b +c +d", "");
	expect_delta(&f, &toy_endpoints, "+e", "");
	respond_delta(&f, &toy_cluster, "n2", "b=1@w1", "c=1@x1", NULL);
	expect_delta(&f, &toy_cluster, "", "n2");
	respond_delta(&f, &toy_cluster, "n3", "b=BAD@w2", "-c", NULL);
	expect_delta_nack(&f, &toy_cluster, "", "n3", "\"b\"");
	assert_string_equal(heard(&c), "=1 ~5");

	next_stream(&f);
	const Request *r = f.server.n_sent ? (const Request *)f.server.sent[f.server.n_read] : NULL;
	assert_non_null(r && r->node ? r : NULL); // PC-03
	// DL-02: b in the version that was accepted (DL-05); c was removed, d never came
	expect_delta(&f, &toy_cluster, "+a +b +c +d a@v1 b@w1", "");
	expect_delta(&f, &toy_endpoints, "+e", "");
	struct ear g;
	listen_to(&f, &toy_cluster, "g", &g);
	expect_delta(&f, &toy_cluster, "+g", ""); // and never again on this stream
	respond_delta(&f, &toy_cluster, "m1", "g=1@z1", NULL);
	expect_delta(&f, &toy_cluster, "", "m1");
	fixture_fini(&f);
}

// DL-11, SW-08
static void next_stream_asks_for_no_type_without_names(void **state)
{
	struct fixture f;
	struct ear a, e;
	with_a(&f, &a, "");
	listen_to(&f, &toy_endpoints, "e", &e);
	expect_delta(&f, &toy_endpoints, "+e", "");
	xds_client_cancel(f.client, &a.watcher);
	expect_delta(&f, &toy_cluster, "-a", "");
	next_stream(&f);
	expect_delta(&f, &toy_endpoints, "+e", ""); // DL-11, SW-08
	expect_silence(&f);
	fixture_fini(&f);
}

// DL-08
static void server_may_be_silent_on_what_is_held(void **state)
{
	struct fixture f;
	struct ear a, b;
	with_a(&f, &a, "");
	listen_to(&f, &toy_cluster, "b", &b);
	fake_ads_settle(&f.server);
	next_stream(&f);
	fake_ads_settle(&f.server);
	pass_time(&f, 60 * S);
	assert_string_equal(heard(&a), ""); // DL-13: no timer, the cache is kept
	assert_string_equal(state_of(&f, "a"), "ACKED v1");
	assert_string_equal(heard(&b), "!5"); // DL-08
	fixture_fini(&f);
}

// DL-08, SW-15
static void unanswered_name_does_not_exist_after_15_s(void **state)
{
	struct fixture f;
	struct ear a, b;
	fixture_init_delta(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	pass_time(&f, 20 * S); // FM-04: not yet sent, no timer
	assert_string_equal(heard(&a), "");
	expect_delta(&f, &toy_cluster, "+a", "");
	pass_time(&f, 10 * S);
	listen_to(&f, &toy_cluster, "b", &b); // starts no timer but its own
	expect_delta(&f, &toy_cluster, "+b", "");
	pass_time(&f, 6 * S);
	assert_string_equal(heard(&a), "!5"); // DL-08, FM-07
	assert_string_equal(heard(&b), "");
	assert_string_equal(state_of(&f, "a"), "DOES_NOT_EXIST  with error");
	pass_time(&f, 60 * S);
	assert_string_equal(heard(&a), "");
	assert_string_equal(heard(&b), "!5");
	respond_delta(&f, &toy_cluster, "n1", "a=1@v1", NULL); // SW-15
	assert_string_equal(heard(&a), "=1");
	fixture_fini(&f);
}

static void timer_starts_anew_with_the_stream(void **state)
{
	struct fixture f;
	struct ear a, b;
	with_a(&f, &a, "");
	listen_to(&f, &toy_cluster, "b", &b);
	fake_ads_settle(&f.server);
	pass_time(&f, 14 * S);
	next_stream(&f);
	pass_time(&f, 14 * S); // FM-05: still not sent
	fake_ads_settle(&f.server);
	pass_time(&f, 14 * S);
	assert_string_equal(heard(&b), "");
	pass_time(&f, 2 * S);
	assert_string_equal(heard(&b), "!5");
	fixture_fini(&f);
}

// DL-06, DE-03, DE-09, SW-17
static void removal_deletes_of_every_type_and_is_told_once(void **state)
{
	struct fixture f;
	struct ear a, e;
	with_a(&f, &a, "");
	listen_to(&f, &toy_endpoints, "e", &e);
	expect_delta(&f, &toy_endpoints, "+e", "");
	respond_delta(&f, &toy_endpoints, "m1", "e=1@v1", NULL);
	expect_delta(&f, &toy_endpoints, "", "m1");
	respond_delta(&f, &toy_endpoints, "m2", "-e", "-stranger", NULL); // DL-06
	expect_delta(&f, &toy_endpoints, "", "m2");
	assert_string_equal(heard(&e), "=1 ~5"); // DE-03: the value stays
	assert_string_equal(state_of(&f, "e"), "DOES_NOT_EXIST v1 with error");
	respond_delta(&f, &toy_cluster, "n2", "-a", NULL);
	expect_delta(&f, &toy_cluster, "", "n2");
	assert_string_equal(heard(&a), "~5");
	respond_delta(&f, &toy_cluster, "n3", "-a", NULL);
	expect_delta(&f, &toy_cluster, "", "n3");
	assert_string_equal(heard(&a), ""); // DE-09
	respond_delta(&f, &toy_cluster, "n4", "a=1@v1", NULL);
	assert_string_equal(heard(&a), "~ok"); // SW-17
	assert_string_equal(state_of(&f, "a"), "ACKED v1");
	fixture_fini(&f);
}

static void removal_drops_the_value_where_the_server_says_so(void **state)
{
	struct fixture f;
	struct ear a;
	with_a(&f, &a, "\"fail_on_data_errors\"");
	respond_delta(&f, &toy_cluster, "n2", "-a", NULL);
	expect_delta(&f, &toy_cluster, "", "n2");
	assert_string_equal(heard(&a), "!5"); // DE-04
	assert_string_equal(state_of(&f, "a"), "DOES_NOT_EXIST  with error");
	respond_delta(&f, &toy_cluster, "n3", "a=1@v1", NULL);
	expect_delta(&f, &toy_cluster, "", "n3");
	assert_string_equal(heard(&a), "=1");
	respond_delta(&f, &toy_cluster, "n4", "a=BAD@v2", NULL);
	expect_delta_nack(&f, &toy_cluster, "", "n4", "BAD");
	assert_string_equal(heard(&a), "!3");
	next_stream(&f);
	expect_delta(&f, &toy_cluster, "+a", ""); // DL-02: nothing is held any more
	fixture_fini(&f);
}

static void removal_of_what_never_came_ends_the_wait(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init_delta(&f, "");
	listen_to(&f, &toy_endpoints, "a", &a);
	expect_delta(&f, &toy_endpoints, "+a", "");
	respond_delta(&f, &toy_endpoints, "n1", "-a", NULL); // DL-07
	expect_delta(&f, &toy_endpoints, "", "n1"); // the subscription stays
	assert_string_equal(heard(&a), "!5");
	assert_non_null(strstr(a.text, "does not exist"));
	assert_string_equal(state_of(&f, "a"), "DOES_NOT_EXIST  with error");
	pass_time(&f, 60 * S);
	assert_string_equal(heard(&a), "");
	respond_delta(&f, &toy_endpoints, "n2", "a=1@v1", NULL);
	assert_string_equal(heard(&a), "=1");
	fixture_fini(&f);
}

static void name_both_there_and_removed_is_nacked(void **state)
{
	struct fixture f;
	struct ear a, b;
	with_a(&f, &a, "");
	listen_to(&f, &toy_cluster, "b", &b);
	expect_delta(&f, &toy_cluster, "+b", "");
	respond_delta(&f, &toy_cluster, "n2", "-a", "a=2@v2", "b=1@v1", NULL); // DL-12
	expect_delta_nack(&f, &toy_cluster, "", "n2",
		"cluster \"a\": is listed more than once; nothing of this response is used");
	assert_string_equal(heard(&a), "~3");
	assert_string_equal(heard(&b), "!3"); // rather than after 15 s, of "no answer"
	assert_non_null(
		strstr(b.text, "came in a response that lists cluster \"a\" more than once"));
	respond_delta(&f, &toy_cluster, "n3", "a=2@v3", "b=1@v1", NULL);
	expect_delta(&f, &toy_cluster, "", "n3");
	assert_string_equal(heard(&a), "=2");
	assert_string_equal(heard(&b), "=1");
	fixture_fini(&f);
}

static void same_name_twice_is_nacked(void **state)
{
	struct fixture f;
	struct ear a;
	with_a(&f, &a, "");
	respond_delta(&f, &toy_cluster, "n2", "a=2@v2", "a=3@v3", NULL); // PC-07
	expect_delta_nack(&f, &toy_cluster, "", "n2", "more than once");
	assert_string_equal(heard(&a), "~3");
	assert_string_equal(state_of(&f, "a"), "NACKED v1 with error");
	next_stream(&f);
	expect_delta(&f, &toy_cluster, "+a a@v1", ""); // it is v1 that is held
	respond_delta(&f, &toy_cluster, "n1", "a=1@v1", NULL);
	expect_delta(&f, &toy_cluster, "", "n1");
	assert_string_equal(heard(&a), "~ok");
	assert_string_equal(state_of(&f, "a"), "ACKED v1");
	fixture_fini(&f);
}

static void removals_beside_a_name_that_is_there_twice_are_not_made(void **state)
{
	struct fixture f;
	struct ear a, b;
	with_a(&f, &a, "");
	listen_to(&f, &toy_cluster, "b", &b);
	expect_delta(&f, &toy_cluster, "+b", "");
	respond_delta(&f, &toy_cluster, "n2", "-a", "b=1@v1", "b=2@v2", NULL);
	expect_delta_nack(&f, &toy_cluster, "", "n2", "cluster \"b\": is listed more than once");
	assert_string_equal(heard(&a), "");
	assert_string_equal(state_of(&f, "a"), "ACKED v1");
	fixture_fini(&f);
}

static void response_that_lists_a_name_twice_drops_nothing_that_serves(void **state)
{
	struct fixture f;
	struct ear a;
	struct ear b;
	with_a(&f, &a, "\"fail_on_data_errors\"");
	listen_to(&f, &toy_cluster, "b", &b);
	expect_delta(&f, &toy_cluster, "+b", "");
	respond_delta(&f, &toy_cluster, "n2", "a=2@v2", "b=1@v1", "b=1@v1", NULL);
	expect_delta_nack(&f, &toy_cluster, "", "n2", "cluster \"b\": is listed more than once");
	assert_string_equal(heard(&a), "~3");
	assert_string_equal(state_of(&f, "a"), "NACKED v1 with error");
	fixture_fini(&f);
}

// WA-12
static void late_resource_of_a_cancelled_name_is_dropped_and_acked(void **state)
{
	struct fixture f;
	struct ear a, b;
	with_a(&f, &a, "");
	listen_to(&f, &toy_cluster, "b", &b);
	expect_delta(&f, &toy_cluster, "+b", "");
	xds_client_cancel(f.client, &a.watcher);
	expect_delta(&f, &toy_cluster, "-a", "");
	respond_delta(&f, &toy_cluster, "n2", "a=2@v2", "b=1@v1", NULL); // WA-12, PC-08
	expect_delta(&f, &toy_cluster, "", "n2");
	respond_delta(&f, &toy_cluster, "n3", "a=BAD@v3", NULL); // nor looked at
	expect_delta(&f, &toy_cluster, "", "n3");
	next_stream(&f);
	expect_delta(&f, &toy_cluster, "+b b@v1", "");
	fixture_fini(&f);
}

// PC-05, DL-11
static void other_types_and_garbage_are_not_answered(void **state)
{
	struct fixture f;
	struct ear a;
	with_a(&f, &a, "");
	fake_ads_say(&f.server, (const uint8_t *)"\x12\xff", 2); // PC-05
	respond_delta(&f, &toy_endpoints, "m1", "e=1@v1", NULL); // never asked for (DL-11)
	const struct xds_type unknown = {.url = "type.googleapis.com/toy.Unknown"};
	respond_delta(&f, &unknown, "m2", "e=1@v1", NULL); // PC-04
	expect_silence(&f);
	struct xds_server_info info;
	xds_client_server(f.client, &info);
	assert_int_equal(info.n_undecodable, 1);
	assert_int_equal(info.n_unknown_type, 2);
	fixture_fini(&f);
}

static void say(struct fixture *f, Envoy__Service__Discovery__V3__DeltaDiscoveryResponse *m)
{
	uint8_t bytes[512];
	m->type_url = (char[]){CLUSTER_URL};
	size_t len = envoy__service__discovery__v3__delta_discovery_response__pack(m, bytes);
	assert_true(len <= sizeof(bytes));
	fake_ads_say(&f->server, bytes, len);
}

// DE-01, DE-02, DE-07, DE-08, DL-06, FM-06
static void resource_errors_are_answers(void **state)
{
	struct fixture f;
	struct ear a, b;
	with_a(&f, &a, "");
	listen_to(&f, &toy_cluster, "b", &b);
	expect_delta(&f, &toy_cluster, "+b", "");
	Envoy__Service__Discovery__V3__DeltaDiscoveryResponse m;
	Envoy__Service__Discovery__V3__ResourceError error, *list = &error;
	Envoy__Service__Discovery__V3__ResourceName name;
	Google__Rpc__Status status;
	envoy__service__discovery__v3__delta_discovery_response__init(&m);
	envoy__service__discovery__v3__resource_error__init(&error);
	envoy__service__discovery__v3__resource_name__init(&name);
	google__rpc__status__init(&status);
	error.resource_name = &name;
	error.error_detail = &status;
	m.resource_errors = &list;
	m.n_resource_errors = 1;
	m.nonce = (char[]){"n2"};
	name.name = (char[]){"b"};
	status.code = 7;
	status.message = (char[]){"not for you"};
	say(&f, &m);
	expect_delta(&f, &toy_cluster, "", "n2"); // DE-08
	assert_string_equal(heard(&b), "!14"); // DE-07
	assert_non_null(strstr(b.text, "not for you"));
	assert_string_equal(state_of(&f, "b"), "RECEIVED_ERROR  with error");
	pass_time(&f, 60 * S);
	assert_string_equal(heard(&b), ""); // FM-06
	respond_delta(&f, &toy_cluster, "n3", "a=2@v2", NULL);
	expect_delta(&f, &toy_cluster, "", "n3");
	assert_string_equal(
		state_of(&f, "b"), "RECEIVED_ERROR  with error"); // silence clears nothing

	name.name = (char[]){"a"};
	status.code = 5;
	m.nonce = (char[]){"n4"};
	say(&f, &m); // DL-06: as a removal
	expect_delta(&f, &toy_cluster, "", "n4");
	assert_string_equal(heard(&a), "=2 ~5");
	status.code = 14; // DE-02: transient, and newer
	m.nonce = (char[]){"n5"};
	say(&f, &m);
	expect_delta(&f, &toy_cluster, "", "n5");
	assert_string_equal(heard(&a), "~14");
	status.code = 0;
	m.nonce = (char[]){"n6"};
	say(&f, &m);
	expect_delta_nack(&f, &toy_cluster, "", "n6", "resource_errors");
	next_stream(&f);
	expect_delta(&f, &toy_cluster, "+a +b", ""); // its last word on a was not v2
	fixture_fini(&f);
}

// RS-01
static void name_both_there_and_in_error_is_nacked(void **state)
{
	struct fixture f;
	struct ear a;
	with_a(&f, &a, "");
	Envoy__Service__Discovery__V3__DeltaDiscoveryResponse m;
	Envoy__Service__Discovery__V3__Resource resource, *resources = &resource;
	Envoy__Service__Discovery__V3__ResourceError error, *errors = &error;
	Envoy__Service__Discovery__V3__ResourceName name;
	Google__Protobuf__Any any;
	Google__Rpc__Status status;
	envoy__service__discovery__v3__delta_discovery_response__init(&m);
	envoy__service__discovery__v3__resource__init(&resource);
	envoy__service__discovery__v3__resource_error__init(&error);
	envoy__service__discovery__v3__resource_name__init(&name);
	google__protobuf__any__init(&any);
	google__rpc__status__init(&status);
	any.type_url = (char[]){CLUSTER_URL};
	any.value = (ProtobufCBinaryData){3, (uint8_t *)(char[]){"a=2"}};
	resource.resource = &any;
	resource.resource_name = &name; // RS-01
	resource.aliases = (char *[]){(char[]){"b"}}; // ignored
	resource.n_aliases = 1;
	name.name = (char[]){"a"};
	status.code = 5;
	error.resource_name = &name;
	error.error_detail = &status;
	m.resources = &resources;
	m.n_resources = 1;
	m.resource_errors = &errors;
	m.n_resource_errors = 1;
	m.nonce = (char[]){"n2"};
	say(&f, &m);
	expect_delta_nack(&f, &toy_cluster, "", "n2", "is listed more than once");
	assert_string_equal(heard(&a), "~3");
	fixture_fini(&f);
}

// PC-11, RS-02, RS-03, RS-01
static void odd_entries_are_invalid(void **state)
{
	struct fixture f;
	struct ear a;
	with_a(&f, &a, "");
	Envoy__Service__Discovery__V3__DeltaDiscoveryResponse m;
	Envoy__Service__Discovery__V3__Resource resource, *resources = &resource;
	Envoy__Service__Discovery__V3__ResourceName name;
	Google__Protobuf__Any any;
	envoy__service__discovery__v3__delta_discovery_response__init(&m);
	envoy__service__discovery__v3__resource__init(&resource);
	envoy__service__discovery__v3__resource_name__init(&name);
	google__protobuf__any__init(&any);
	m.resources = &resources;
	m.n_resources = 1;
	any.type_url = (char[]){ENDPOINTS_URL};
	any.value = (ProtobufCBinaryData){3, (uint8_t *)(char[]){"a=2"}};
	resource.name = name.name = (char[]){"a"};
	resource.resource = &any;
	m.nonce = (char[]){"n2"};
	say(&f, &m);
	expect_delta_nack(&f, &toy_cluster, "", "n2", "is a \"" ENDPOINTS_URL "\""); // PC-11
	assert_string_equal(heard(&a), "~3");
	any.type_url = (char[]){CLUSTER_URL};
	resource.resource_name = &name;
	m.nonce = (char[]){"n3"};
	say(&f, &m);
	expect_delta_nack(&f, &toy_cluster, "", "n3", "both name and resource_name"); // RS-02
	resource.resource_name = NULL;
	resource.resource = NULL;
	m.nonce = (char[]){"n4"};
	resource.version = (char[]){"v7"};
	say(&f, &m);
	expect_delta_nack(&f, &toy_cluster, "", "n4", "holds no resource"); // RS-03
	resource.resource = &any;
	resource.name = (char[]){""};
	m.nonce = (char[]){"n5"};
	say(&f, &m);
	expect_delta(&f, &toy_cluster, "", "n5"); // RS-01: the name inside
	assert_string_equal(state_of(&f, "a"), "ACKED v7");
	any.value = (ProtobufCBinaryData){2, (uint8_t *)(char[]){"=2"}};
	m.nonce = (char[]){"n6"};
	say(&f, &m);
	expect_delta_nack(&f, &toy_cluster, "", "n6", "resource 0: has no name");
	fixture_fini(&f);
}

static void server_that_is_lost_takes_nothing_away(void **state)
{
	struct fixture f;
	struct ear a, b;
	with_a(&f, &a, "\"fail_on_data_errors\"");
	next_stream(&f);
	listen_to(&f, &toy_cluster, "b", &b);
	fake_ads_close(&f.server, "connection refused"); // FM-01
	assert_string_equal(heard(&a), "~14"); // FM-09
	assert_string_equal(heard(&b), "!14");
	pass_time(&f, 200 * S);
	expect_delta(&f, &toy_cluster, "+a a@v1", "");
	f.server.n_read = f.server.n_sent;
	respond_delta(&f, &toy_cluster, "n1", "b=1@v1", NULL);
	assert_string_equal(heard(&a), "~ok");
	assert_string_equal(heard(&b), "=1");
	fixture_fini(&f);
}

// A wildcard, and what it has brought.
struct all {
	struct xds_watcher watcher; // first member
	struct fixture *f;
	struct ear parts[2];
	unsigned n;
};

static int on_name(struct xds_watcher *w, const char *name)
{
	struct all *all = (struct all *)w;
	assert_true(all->n < 2);
	struct ear *e = &all->parts[all->n++];
	prepare_ear(e);
	e->watcher.by_wildcard = true;
	return xds_client_watch(all->f->client, &toy_cluster, name, &e->watcher);
}

static void on_all(struct xds_watcher *w, const struct xds_event *event)
{
}

static void a36_64_a_wildcard_has_a_name_that_is_refused_until_it_is_gone(void **state)
{
	struct fixture f;
	struct all all = {.watcher = {.on_event = on_all, .on_name = on_name}, .f = &f};
	fixture_init_delta(&f, "");
	assert_int_equal(xds_client_watch(f.client, &toy_cluster, "*", &all.watcher), 0);
	expect_delta(&f, &toy_cluster, "+*", "");
	respond_delta(&f, &toy_cluster, "n1", "a=BAD@v1", "b=BAD@v1", NULL);
	expect_delta_nack(&f, &toy_cluster, "", "n1", "content is BAD");
	assert_int_equal(all.n, 2);
	assert_string_equal(heard(&all.parts[0]), "!3");
	assert_string_equal(heard(&all.parts[1]), "!3");
	respond_delta(&f, &toy_cluster, "n2", "-a", NULL);
	assert_string_equal(heard(&all.parts[0]), "!5");
	next_stream(&f);
	respond_delta(&f, &toy_cluster, "n1", NULL); // it lists all there are
	assert_string_equal(heard(&all.parts[0]), "");
	assert_string_equal(heard(&all.parts[1]), "!5");
	fixture_fini(&f);
}

RUN_SUITE("xds/delta", cmocka_unit_test(first_request_subscribes_to_all_names_and_has_the_node),
	cmocka_unit_test(requests_say_only_what_changes),
	cmocka_unit_test(watch_that_ends_before_it_was_asked_for_leaves_no_trace),
	cmocka_unit_test(second_watcher_sends_nothing_and_gets_the_value),
	cmocka_unit_test(name_wanted_again_before_the_server_knew_is_subscribed_to_again),
	cmocka_unit_test(what_is_said_again_is_not_decoded_again),
	cmocka_unit_test(ack_and_nack_carry_the_nonce_and_the_changes_of_now),
	cmocka_unit_test(resources_have_versions_of_their_own),
	cmocka_unit_test(next_stream_asks_for_everything_with_the_versions_held),
	cmocka_unit_test(next_stream_asks_for_no_type_without_names),
	cmocka_unit_test(server_may_be_silent_on_what_is_held),
	cmocka_unit_test(unanswered_name_does_not_exist_after_15_s),
	cmocka_unit_test(timer_starts_anew_with_the_stream),
	cmocka_unit_test(removal_deletes_of_every_type_and_is_told_once),
	cmocka_unit_test(removal_drops_the_value_where_the_server_says_so),
	cmocka_unit_test(removal_of_what_never_came_ends_the_wait),
	cmocka_unit_test(name_both_there_and_removed_is_nacked),
	cmocka_unit_test(same_name_twice_is_nacked),
	cmocka_unit_test(removals_beside_a_name_that_is_there_twice_are_not_made),
	cmocka_unit_test(response_that_lists_a_name_twice_drops_nothing_that_serves),
	cmocka_unit_test(late_resource_of_a_cancelled_name_is_dropped_and_acked),
	cmocka_unit_test(other_types_and_garbage_are_not_answered),
	cmocka_unit_test(resource_errors_are_answers),
	cmocka_unit_test(name_both_there_and_in_error_is_nacked),
	cmocka_unit_test(odd_entries_are_invalid),
	cmocka_unit_test(server_that_is_lost_takes_nothing_away),
	cmocka_unit_test(a36_64_a_wildcard_has_a_name_that_is_refused_until_it_is_gone))
