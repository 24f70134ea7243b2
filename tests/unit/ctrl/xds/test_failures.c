// SPDX-License-Identifier: Apache-2.0
// Lost servers, absence timers and data errors (FM-*, DE-*).
#include "lb/base/twheel.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/client_fixture.h"

#include <string.h>

// TH-55, FM-11, SW-15
static void unanswered_resource_does_not_exist_after_15_s(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	pass_time(&f, 20 * S); // FM-04: not yet sent, no timer
	assert_string_equal(heard(&a), "");
	expect_request(&f, &toy_cluster, "a", "", "");
	pass_time(&f, 14 * S);
	assert_string_equal(heard(&a), "");
	pass_time(&f, 2 * S);
	assert_string_equal(heard(&a), "!5"); // FM-07
	assert_non_null(strstr(a.text, "node id \"me\"")); // FM-11
	assert_string_equal(state_of(&f, "a"), "DOES_NOT_EXIST  with error");
	pass_time(&f, 60 * S);
	assert_string_equal(heard(&a), "");
	struct ear b;
	listen_to(&f, &toy_cluster, "b", &b); // the name stays in later requests
	expect_request(&f, &toy_cluster, "a b", "", "");
	respond(&f, &toy_cluster, "v1", "n1", "a=1", NULL); // SW-15
	assert_string_equal(heard(&a), "=1");
	fixture_fini(&f);
}

// A new stream asks for it again, but does not wait for it again.
static void fm_07_absence_is_told_once_over_streams(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	fake_ads_settle(&f.server);
	pass_time(&f, 16 * S);
	assert_string_equal(heard(&a), "!5");
	respond(&f, &toy_endpoints, "v1", "n1", NULL); // the stream works
	fake_ads_settle(&f.server);
	fake_ads_close(&f.server, "bye");
	pass_time(&f, 2 * S);
	assert_int_equal(f.server.n_streams, 2);
	f.server.n_read = f.server.n_sent - 1;
	expect_request(&f, &toy_cluster, "a", "", "");
	pass_time(&f, 60 * S);
	assert_string_equal(heard(&a), "");
	assert_string_equal(state_of(&f, "a"), "DOES_NOT_EXIST  with error");
	fixture_fini(&f);
}

static void cs_06_what_was_refused_is_kept_until_it_is_mended(void **state)
{
	struct fixture f;
	struct ear a;
	struct xds_entry_info info;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	fake_ads_settle(&f.server);
	for (int i = 0; i < 3; i++) {
		respond(&f, &toy_cluster, "v1", "n1", "a=BAD", NULL);
		fake_ads_settle(&f.server);
		xds_watcher_info(&a.watcher, &info);
		assert_non_null(info.refused);
		assert_int_equal(info.refused->len, strlen("a=BAD"));
		assert_string_equal(info.refused->type_url, CLUSTER_URL);
		if (i == 0) // mended
			respond(&f, &toy_cluster, "v2", "n2", "a=1", NULL);
		else if (i == 1) // deleted
			respond(&f, &toy_cluster, "v2", "n2", NULL);
		else // not asked for any more, which frees it
			break;
		fake_ads_settle(&f.server);
		xds_watcher_info(&a.watcher, &info);
		assert_null(info.refused);
	}
	fixture_fini(&f);
}

// FM-06
static void answer_of_any_kind_stops_the_timer(void **state)
{
	struct fixture f;
	struct ear a, b;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "b", &b);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", "b=BAD", NULL); // FM-06
	fake_ads_settle(&f.server);
	struct ear c;
	listen_to(&f, &toy_cluster, "c", &c); // one more request must not start timers of others
	fake_ads_settle(&f.server);
	heard(&a), heard(&b);
	pass_time(&f, 20 * S);
	assert_string_equal(heard(&a), "");
	assert_string_equal(heard(&b), "");
	assert_string_equal(heard(&c), "!5");
	assert_string_equal(state_of(&f, "b"), "NACKED  with error");
	fixture_fini(&f);
}

// FM-08
static void timer_may_be_a_transient_error(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "\"resource_timer_is_transient_error\"");
	listen_to(&f, &toy_cluster, "a", &a);
	fake_ads_settle(&f.server);
	pass_time(&f, 29 * S);
	assert_string_equal(heard(&a), "");
	pass_time(&f, 2 * S);
	assert_string_equal(heard(&a), "!14"); // FM-08
	assert_string_equal(state_of(&f, "a"), "TIMEOUT  with error");
	fixture_fini(&f);
}

// FM-02, FM-05
static void stream_loss_stops_timers_and_the_next_stream_starts_them_anew(void **state)
{
	struct fixture f;
	struct ear a, b;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "b", &b);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v1", "n1", "b=1", NULL);
	fake_ads_settle(&f.server);
	heard(&b);
	pass_time(&f, 14 * S);
	fake_ads_close(&f.server, "bye");
	pass_time(&f, 1); // the stream had worked and lived long: at once
	assert_int_equal(f.server.n_streams, 2);
	assert_string_equal(heard(&a), ""); // FM-02
	pass_time(&f, 14 * S); // FM-05: still not sent
	fake_ads_settle(&f.server);
	pass_time(&f, 14 * S);
	assert_string_equal(heard(&a), "");
	pass_time(&f, 2 * S);
	assert_string_equal(heard(&a), "!5");
	assert_string_equal(heard(&b), ""); // cached: no timer
	fixture_fini(&f);
}

// FM-05
static void refused_resource_is_waited_for_again_on_the_next_stream(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v1", "n1", "a=BAD", NULL);
	fake_ads_settle(&f.server);
	pass_time(&f, 20 * S);
	assert_string_equal(heard(&a), "!3");
	fake_ads_close(&f.server, "bye");
	pass_time(&f, 1);
	fake_ads_settle(&f.server);
	pass_time(&f, 16 * S); // FM-05: it is not cached
	assert_string_equal(heard(&a), "!5");
	fixture_fini(&f);
}

// FM-10
static void failure_before_any_response_is_told_once_an_outage(void **state)
{
	struct fixture f;
	struct ear a, b;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", NULL);
	fake_ads_settle(&f.server);
	listen_to(&f, &toy_cluster, "b", &b);
	heard(&a);
	fake_ads_close(&f.server, "bye");
	pass_time(&f, 2 * S);
	assert_int_equal(f.server.n_streams, 2);
	fake_ads_close(&f.server, "connection refused"); // FM-01
	assert_string_equal(heard(&a), "~14"); // FM-09: the value stays
	assert_string_equal(heard(&b), "!14");
	assert_non_null(strstr(b.text, "connection refused"));
	assert_non_null(strstr(b.text, "ads:1"));
	pass_time(&f, 3 * S);
	fake_ads_close(&f.server, "connection refused");
	assert_string_equal(heard(&a), "");
	struct ear c;
	listen_to(&f, &toy_cluster, "a", &c); // FM-10
	assert_string_equal(heard(&c), "=1 ~14");
	listen_to(&f, &toy_cluster, "c", &c);
	assert_string_equal(heard(&c), "!14");
	struct xds_server_info info;
	xds_client_server(f.client, &info);
	assert_int_equal(info.state, XDS_SERVER_BACKOFF);
	assert_string_equal(info.error, "connection refused");

	pass_time(&f, 200 * S);
	fake_ads_settle(&f.server);
	unsigned n_logged = f.n_logged;
	assert_int_equal(f.n_noted, 0);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", "b=2", NULL);
	assert_string_equal(heard(&a), "~ok");
	assert_string_equal(f.note_line, "xDS server ads:1 answers again"); // which is no trouble
	assert_int_equal(f.n_noted, 1);
	assert_int_equal(f.n_logged, n_logged);
	assert_string_equal(heard(&b), "=2");
	fixture_fini(&f);
}

// Fails the open stream and returns how long the client waits for the next one, in ms.
static unsigned wait_ms(struct fixture *f)
{
	unsigned n = f->server.n_streams, ms = 0;
	fake_ads_close(&f->server, "no");
	while (f->server.n_streams == n) {
		pass_time(f, S / 1000);
		ms++;
		assert_true(ms < 200000);
	}
	return ms;
}

// TH-53
static void reconnects_back_off_and_a_response_resets(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	double expected = 1000;
	for (int i = 0; i < 14; i++) { // FM-03
		unsigned ms = wait_ms(&f);
		assert_in_range(ms, (unsigned)(expected * 0.79), (unsigned)(expected * 1.21) + 2);
		expected = expected * 1.6 < 120000 ? expected * 1.6 : 120000;
	}
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", NULL);
	// The stream had worked, but for no time at all: spaced as first attempts are.
	assert_in_range(wait_ms(&f), 790, 1210);
	fake_ads_settle(&f.server);
	assert_in_range(wait_ms(&f), 1260, 1940); // and no response since: the second wait
	fixture_fini(&f);
}

static void unusable_credentials_are_an_outage(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "");
	f.server.refuse = true;
	listen_to(&f, &toy_cluster, "a", &a);
	assert_string_equal(heard(&a), "!14");
	assert_non_null(strstr(a.text, "no credentials"));
	f.server.refuse = false;
	pass_time(&f, 2 * S);
	expect_request(&f, &toy_cluster, "a", "", "");
	fixture_fini(&f);
}

static void no_stream_is_kept_up_for_nothing(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	xds_client_cancel(f.client, &a.watcher);
	fake_ads_settle(&f.server);
	fake_ads_close(&f.server, "bye");
	pass_time(&f, 300 * S);
	assert_int_equal(f.server.n_streams, 1);
	listen_to(&f, &toy_cluster, "a", &a);
	assert_int_equal(f.server.n_streams, 2);
	fixture_fini(&f);
}

// TH-55, DE-01, DE-03, DE-05, SW-17
static void cached_value_survives_nack_and_deletion(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", NULL);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v2", "n2", "a=BAD", NULL);
	fake_ads_settle(&f.server);
	assert_string_equal(heard(&a), "=1 ~3"); // DE-01, DE-03
	assert_string_equal(state_of(&f, "a"), "NACKED v1 with error");
	respond(&f, &toy_cluster, "v3", "n3", NULL);
	fake_ads_settle(&f.server);
	assert_string_equal(heard(&a), "~5"); // DE-05
	assert_string_equal(state_of(&f, "a"), "DOES_NOT_EXIST v1 with error");
	respond(&f, &toy_cluster, "v4", "n4", "a=1", NULL);
	assert_string_equal(heard(&a), "~ok"); // SW-17
	assert_string_equal(state_of(&f, "a"), "ACKED v4");
	fixture_fini(&f);
}

// A server says that a cluster is gone before it says so of the routes to it.
static void a_deletion_is_logged_only_if_the_resource_is_in_use_still(void **state)
{
	struct fixture f;
	struct ear a, b;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "b", &b);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", "b=1", NULL);
	fake_ads_settle(&f.server);
	unsigned n_logged = f.n_logged;
	respond(&f, &toy_cluster, "v2", "n2", NULL);
	fake_ads_settle(&f.server);
	xds_client_cancel(f.client, &a.watcher);
	pass_time(&f, 4 * S);
	assert_int_equal(f.n_logged, n_logged);
	respond(&f, &toy_cluster, "v3", "n3", NULL);
	fake_ads_settle(&f.server);
	pass_time(&f, 2 * S);
	assert_int_equal(f.n_logged, n_logged + 1);
	assert_non_null(strstr(f.log_line, "cluster \"b\" was deleted by xDS server ads:1 "));
	assert_non_null(strstr(f.log_line, ", but is in use still"));
	pass_time(&f, 60 * S);
	assert_int_equal(f.n_logged, n_logged + 1);
	// One that comes back in time.
	respond(&f, &toy_cluster, "v4", "n4", "b=1", NULL);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v5", "n5", NULL);
	fake_ads_settle(&f.server);
	pass_time(&f, 4 * S);
	respond(&f, &toy_cluster, "v6", "n6", "b=1", NULL);
	fake_ads_settle(&f.server);
	pass_time(&f, 60 * S);
	assert_int_equal(f.n_logged, n_logged + 1);
	fixture_fini(&f);
}

static void de_06_ignore_resource_deletion_changes_nothing_where_a88_rules(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "\"ignore_resource_deletion\"");
	listen_to(&f, &toy_cluster, "a", &a);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", NULL);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v2", "n2", NULL);
	fake_ads_settle(&f.server);
	assert_string_equal(heard(&a), "=1 ~5");
	assert_string_equal(state_of(&f, "a"), "DOES_NOT_EXIST v1 with error");
	fixture_fini(&f);
}

// DE-02
static void data_errors_drop_the_value_where_the_server_says_so(void **state)
{
	struct fixture f;
	struct ear a, b;
	fixture_init(&f, "\"fail_on_data_errors\", {\"unknown\": 1}");
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "b", &b);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", "b=1", NULL);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v2", "n2", "a=BAD", NULL);
	fake_ads_settle(&f.server);
	assert_string_equal(heard(&a), "=1 !3"); // DE-04
	assert_string_equal(heard(&b), "=1 !5");
	fake_ads_close(&f.server, "bye"); // DE-02: connectivity is no data error
	pass_time(&f, 2 * S);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v3", "n1", "a=1", "b=1", NULL);
	fake_ads_settle(&f.server);
	assert_string_equal(heard(&a), "=1");
	fake_ads_close(&f.server, "bye");
	pass_time(&f, 2 * S);
	fake_ads_close(&f.server, "gone");
	assert_string_equal(heard(&a), "~14");
	fixture_fini(&f);
}

static void resource_errors(struct fixture *f, const char *nonce, const char *name, int code)
{
	Envoy__Service__Discovery__V3__DiscoveryResponse m;
	Envoy__Service__Discovery__V3__ResourceError error, *list = &error;
	Envoy__Service__Discovery__V3__ResourceName resource;
	Google__Rpc__Status status;
	envoy__service__discovery__v3__discovery_response__init(&m);
	envoy__service__discovery__v3__resource_error__init(&error);
	envoy__service__discovery__v3__resource_name__init(&resource);
	google__rpc__status__init(&status);
	m.type_url = (char[]){CLUSTER_URL};
	m.version_info = (char[]){"v9"};
	m.nonce = (char *)(uintptr_t)nonce;
	m.resource_errors = &list;
	m.n_resource_errors = 1;
	resource.name = (char *)(uintptr_t)name;
	status.code = code;
	status.message = (char[]){"not for you"};
	error.resource_name = &resource;
	error.error_detail = &status;
	uint8_t bytes[256];
	size_t len = envoy__service__discovery__v3__discovery_response__pack(&m, bytes);
	fake_ads_say(&f->server, bytes, len);
}

// DE-07, DE-08
static void resource_errors_are_answers(void **state)
{
	struct fixture f;
	struct ear a, b;
	fixture_init(&f, "");
	xds_client_begin(f.client);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "b", &b);
	xds_client_end(f.client);
	expect_request(&f, &toy_cluster, "a b", "", "");
	respond(&f, &toy_cluster, "v1", "n1", "b=1", NULL);
	expect_request(&f, &toy_cluster, "a b", "v1", "n1");
	heard(&b);
	resource_errors(&f, "n2", "a", 7); // DE-07
	expect_request(&f, &toy_cluster, "a b", "v9", "n2"); // DE-08: by itself it is an ACK
	assert_string_equal(heard(&a), "!14");
	assert_non_null(strstr(a.text, "not for you"));
	assert_string_equal(state_of(&f, "a"), "RECEIVED_ERROR  with error");
	assert_string_equal(heard(&b), "~5"); // missing in the same response
	resource_errors(&f, "n3", "b", 5);
	expect_request(&f, &toy_cluster, "a b", "v9", "n3");
	assert_string_equal(heard(&b), "~5"); // SW-13
	assert_string_equal(state_of(&f, "b"), "RECEIVED_ERROR v1 with error");
	resource_errors(&f, "n4", "a", 0);
	expect_nack(&f, &toy_cluster, "a b", "v9", "n4", "resource_errors");
	pass_time(&f, 20 * S);
	assert_string_equal(heard(&a), "");
	fixture_fini(&f);
}

RUN_SUITE("xds/failures", cmocka_unit_test(unanswered_resource_does_not_exist_after_15_s),
	cmocka_unit_test(fm_07_absence_is_told_once_over_streams),
	cmocka_unit_test(cs_06_what_was_refused_is_kept_until_it_is_mended),
	cmocka_unit_test(answer_of_any_kind_stops_the_timer),
	cmocka_unit_test(timer_may_be_a_transient_error),
	cmocka_unit_test(stream_loss_stops_timers_and_the_next_stream_starts_them_anew),
	cmocka_unit_test(refused_resource_is_waited_for_again_on_the_next_stream),
	cmocka_unit_test(failure_before_any_response_is_told_once_an_outage),
	cmocka_unit_test(reconnects_back_off_and_a_response_resets),
	cmocka_unit_test(unusable_credentials_are_an_outage),
	cmocka_unit_test(no_stream_is_kept_up_for_nothing),
	cmocka_unit_test(cached_value_survives_nack_and_deletion),
	cmocka_unit_test(a_deletion_is_logged_only_if_the_resource_is_in_use_still),
	cmocka_unit_test(de_06_ignore_resource_deletion_changes_nothing_where_a88_rules),
	cmocka_unit_test(data_errors_drop_the_value_where_the_server_says_so),
	cmocka_unit_test(resource_errors_are_answers))
