// SPDX-License-Identifier: Apache-2.0
// What becomes of a resource that the server deletes, where gRFC A53 counts and not A88
// (DE-06; for A88 see test_failures.c).
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/federation_fixture.h"

#include <stdlib.h>
#include <string.h>

#define TWO "{'xds_servers':[" ADS(0) "," ADS(1) "],'node':{'id':'me'}}"
#define IGNORES "\"ignore_resource_deletion\""

static void serve(struct fixture *f, struct ear *a)
{
	listen_to(f, &toy_cluster, "a", a);
	fake_ads_settle(&f->server);
	respond(f, &toy_cluster, "v1", "n1", "a=1", NULL);
	fake_ads_settle(&f->server);
	assert_string_equal(heard(a), "=1");
}

static void say(struct fixture *f, const char *version, const char *text)
{
	respond(f, &toy_cluster, version, version, text, NULL);
	fake_ads_settle(&f->server);
}

static void de_06_a_deleted_resource_is_dropped_and_others_are_not(void **state)
{
	struct fixture f;
	struct ear a, b;
	fixture_init_dropping(&f, &xds_protocol_sotw, "");
	listen_to(&f, &toy_cluster, "b", &b);
	serve(&f, &a);
	say(&f, "v2", "b=1");
	assert_string_equal(heard(&a), "!5");
	assert_string_equal(heard(&b), "=1");
	assert_string_equal(state_of(&f, "a"), "DOES_NOT_EXIST  with error");
	say(&f, "v3", "b=1"); // DE-09
	assert_string_equal(heard(&a), "");
	// A refusal is no deletion.
	say(&f, "v4", "b=BAD");
	assert_string_equal(heard(&b), "~3");
	assert_string_equal(state_of(&f, "b"), "NACKED v3 with error");
	say(&f, "v5", "a=1");
	assert_string_equal(heard(&a), "=1");
	fixture_fini(&f);
}

static void de_06_a_deletion_is_ignored_with_one_line_when_it_begins_and_one_when_it_ends(
	void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init_dropping(&f, &xds_protocol_sotw, IGNORES);
	serve(&f, &a);
	unsigned n_logged = f.n_logged;
	say(&f, "v2", NULL);
	say(&f, "v3", NULL);
	assert_string_equal(heard(&a), "");
	assert_string_equal(state_of(&f, "a"), "ACKED v1");
	assert_int_equal(f.n_logged, n_logged + 1);
	assert_non_null(strstr(f.log_line, "cluster \"a\" was deleted by xDS server ads:1, which"));
	say(&f, "v4", "a=1");
	assert_string_equal(heard(&a), "");
	assert_string_equal(state_of(&f, "a"), "ACKED v4");
	assert_int_equal(f.n_logged, n_logged + 2);
	assert_non_null(strstr(f.log_line, "is there again"));
	say(&f, "v5", "a=1");
	assert_int_equal(f.n_logged, n_logged + 2);
	// Again, and now it ends with the watch.
	say(&f, "v6", NULL);
	assert_int_equal(f.n_logged, n_logged + 3);
	xds_client_cancel(f.client, &a.watcher);
	assert_int_equal(f.n_logged, n_logged + 4);
	assert_non_null(strstr(f.log_line, "is not needed any more"));
	fixture_fini(&f);
}

static void de_06_a_name_that_never_came_does_not_exist_whatever_is_ignored(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init_dropping(&f, &xds_protocol_sotw, IGNORES);
	listen_to(&f, &toy_cluster, "a", &a);
	fake_ads_settle(&f.server);
	pass_time(&f, 16 * S);
	assert_string_equal(heard(&a), "!5");
	fixture_fini(&f);
}

static void de_06_removals_of_delta_go_by_the_same_rule(void **state)
{
	struct fixture f;
	struct ear e;
	for (int ignores = 0; ignores < 2; ignores++) {
		fixture_init_dropping(&f, &xds_protocol_delta, ignores ? IGNORES : "");
		listen_to(&f, &toy_endpoints, "e", &e);
		fake_ads_settle(&f.server);
		respond_delta(&f, &toy_endpoints, "n1", "e=1@v1", NULL);
		fake_ads_settle(&f.server);
		respond_delta(&f, &toy_endpoints, "n2", "-e", NULL);
		fake_ads_settle(&f.server);
		assert_string_equal(heard(&e), ignores ? "=1" : "=1 !5");
		assert_string_equal(
			state_of(&f, "e"), ignores ? "ACKED v1" : "DOES_NOT_EXIST  with error");
		fixture_fini(&f);
	}
}

static void say_not_found(struct fixture *f, const char *name, const char *nonce)
{
	struct fake_resource r = {.wrapper_name = name, .error_code = 5};
	size_t len;
	uint8_t *bytes = fake_ads_encode_delta(ENDPOINTS_URL, nonce, &r, 1, NULL, 0, &len);
	fake_ads_say(&f->server, bytes, len);
	fake_ads_settle(&f->server);
	free(bytes);
}

static void dl_06_an_error_that_says_not_found_is_a_deletion(void **state)
{
	struct fixture f;
	struct ear e;
	for (int ignores = 0; ignores < 2; ignores++) {
		fixture_init_dropping(&f, &xds_protocol_delta, ignores ? IGNORES : "");
		listen_to(&f, &toy_endpoints, "e", &e);
		fake_ads_settle(&f.server);
		respond_delta(&f, &toy_endpoints, "n1", "e=1@v1", NULL);
		fake_ads_settle(&f.server);
		assert_string_equal(heard(&e), "=1");
		unsigned n_logged = f.n_logged;
		say_not_found(&f, "e", "n2");
		assert_string_equal(heard(&e), ignores ? "" : "!5");
		assert_string_equal(
			state_of(&f, "e"), ignores ? "ACKED v1" : "RECEIVED_ERROR  with error");
		respond_delta(&f, &toy_endpoints, "n3", "-e", NULL); // DE-09
		fake_ads_settle(&f.server);
		assert_string_equal(heard(&e), "");
		assert_int_equal(f.n_logged, n_logged + ignores);
		respond_delta(&f, &toy_endpoints, "n4", "e=1@v2", NULL);
		assert_string_equal(heard(&e), ignores ? "" : "=1");
		assert_string_equal(state_of(&f, "e"), "ACKED v2");
		fixture_fini(&f);
	}
}

// The value of the server before it, too.
static void de_06_the_next_server_deletes_what_it_does_not_have(void **state)
{
	struct world w;
	struct ear x, y;
	world_init_dropping(&w, TWO);
	world_listen(&w, &toy_cluster, "x", &x);
	expect_request(&w.at[0], &toy_cluster, "x", "", "");
	respond(&w.at[0], &toy_cluster, "1", "n1", "x=1", NULL);
	expect_request(&w.at[0], &toy_cluster, "x", "1", "n1");
	fake_ads_close(&w.at[0].server, "bye");
	world_pass(&w, 2 * S);
	fake_ads_settle(&w.at[0].server);
	w.at[0].server.n_read = w.at[0].server.n_sent;
	world_refuse(&w, 0);
	assert_string_equal(heard(&x), "=1 ~14");
	world_listen(&w, &toy_cluster, "y", &y);
	expect_request(&w.at[1], &toy_cluster, "x y", "", "");
	respond(&w.at[1], &toy_cluster, "1", "n1", "x=2", "y=1", NULL);
	fake_ads_settle(&w.at[1].server);
	assert_string_equal(heard(&x), "=2");
	respond(&w.at[1], &toy_cluster, "2", "n2", "y=1", NULL);
	assert_string_equal(heard(&x), "!5");
	assert_string_equal(world_state(&w, "x"), "DOES_NOT_EXIST  with error");
	assert_string_equal(world_state(&w, "y"), "ACKED 2");
	world_fini(&w);
}

// DL-06: that server says so in an error.
static void dl_06_the_next_server_deletes_what_it_does_not_find(void **state)
{
	static const char *const bootstraps[] = {TWO,
		"{'xds_servers':[" ADS(
			0) ",{'server_uri':'ads:1','channel_creds':[{'type':"
			   "'insecure'}],'server_features':['ignore_resource_deletion']}],"
			   "'node':{'id':'me'}}"};
	for (int ignores = 0; ignores < 2; ignores++) {
		struct world w;
		struct ear x, y;
		world_init_dropping(&w, bootstraps[ignores]);
		world_listen(&w, &toy_cluster, "x", &x);
		fake_ads_settle(&w.at[0].server);
		respond(&w.at[0], &toy_cluster, "1", "n1", "x=1", NULL);
		fake_ads_settle(&w.at[0].server);
		fake_ads_close(&w.at[0].server, "bye");
		world_pass(&w, 2 * S);
		world_refuse(&w, 0);
		assert_string_equal(heard(&x), "=1 ~14");
		world_listen(&w, &toy_cluster, "y", &y);
		fake_ads_settle(&w.at[1].server);
		struct fake_resource not_found = {.wrapper_name = "x", .error_code = 5};
		fake_ads_respond(&w.at[1].server, CLUSTER_URL, "1", "n1", &not_found, 1);
		assert_string_equal(heard(&x), ignores ? "~5" : "!5");
		assert_string_equal(world_state(&w, "x"),
			ignores ? "RECEIVED_ERROR 1 with error" : "RECEIVED_ERROR  with error");
		world_fini(&w);
	}
}

// Here the value is of the server that was left, and the one before it says that there is none.
static void de_06_a_server_that_is_back_deletes_what_it_has_no_more(void **state)
{
	static const char *const bootstraps[] = {TWO,
		"{'xds_servers':[{'server_uri':'ads:0','channel_creds':[{'type':'insecure'}],"
		"'server_features':['ignore_resource_deletion']}," ADS(1) "],'node':{'id':'me'}}"};
	for (int ignores = 0; ignores < 2; ignores++) {
		struct world w;
		struct ear x, y;
		world_init_dropping(&w, bootstraps[ignores]);
		world_listen(&w, &toy_cluster, "x", &x);
		fake_ads_settle(&w.at[0].server);
		respond(&w.at[0], &toy_cluster, "1", "n1", "x=1", NULL);
		fake_ads_settle(&w.at[0].server);
		fake_ads_close(&w.at[0].server, "bye");
		world_pass(&w, 2 * S);
		world_refuse(&w, 0);
		world_listen(&w, &toy_cluster, "y", &y);
		fake_ads_settle(&w.at[1].server);
		respond(&w.at[1], &toy_cluster, "1", "n1", "x=2", "y=1", NULL);
		assert_string_equal(heard(&x), "=1 ~14 =2");
		world_pass(&w, 5 * S);
		fake_ads_settle(&w.at[0].server);
		respond(&w.at[0], &toy_cluster, "2", "n1", "y=1", NULL);
		assert_string_equal(heard(&x), ignores ? "~5" : "!5");
		assert_string_equal(world_state(&w, "x"),
			ignores ? "DOES_NOT_EXIST 1 with error" : "DOES_NOT_EXIST  with error");
		world_fini(&w);
	}
}

RUN_SUITE("xds/deletion", cmocka_unit_test(de_06_a_deleted_resource_is_dropped_and_others_are_not),
	cmocka_unit_test(
		de_06_a_deletion_is_ignored_with_one_line_when_it_begins_and_one_when_it_ends),
	cmocka_unit_test(de_06_a_name_that_never_came_does_not_exist_whatever_is_ignored),
	cmocka_unit_test(de_06_removals_of_delta_go_by_the_same_rule),
	cmocka_unit_test(dl_06_an_error_that_says_not_found_is_a_deletion),
	cmocka_unit_test(dl_06_the_next_server_deletes_what_it_does_not_find),
	cmocka_unit_test(de_06_the_next_server_deletes_what_it_does_not_have),
	cmocka_unit_test(de_06_a_server_that_is_back_deletes_what_it_has_no_more))
