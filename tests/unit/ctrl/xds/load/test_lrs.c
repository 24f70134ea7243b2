// SPDX-License-Identifier: Apache-2.0
// Load reporting, in virtual time (LR-*, A27-I10).
#include "lb/base/twheel.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/load/lrs_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

// The stream is up and the server wants all clusters every 10 s.
static void begin(struct lrs_fixture *f)
{
	assert_string_equal(lrs_sent(f), "hello");
	lrs_settle(f);
	lrs_settings(f, NULL, 10 * S);
}

static const char *next_report(struct lrs_fixture *f)
{
	lrs_pass_time(f, 10 * S);
	const char *text = lrs_sent(f);
	lrs_settle(f);
	return text;
}

static void first_cluster_opens_the_stream_and_the_last_one_ends_it_LR_01(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	lrs_pass_time(&f, 100 * S);
	assert_int_equal(f.n_streams, 0);
	struct xds_load_cluster *a = lrs_get(&f, "a", ""), *b = lrs_get(&f, "b", "");
	assert_ptr_equal(lrs_get(&f, "a", ""), a); // counted
	assert_int_equal(f.n_streams, 1);
	begin(&f);
	xds_lrs_cluster_put(f.lrs, a);
	xds_lrs_cluster_put(f.lrs, b);
	assert_non_null(f.stream);
	xds_lrs_cluster_put(f.lrs, a);
	assert_null(f.stream);
	assert_int_equal(f.n_transports, 0);
	assert_true(twheel_next_ns(f.wheel) == UINT64_MAX);
	lrs_get(&f, "a", "");
	assert_int_equal(f.n_streams, 2);
	lrs_fini(&f);
}

static void first_message_holds_the_node_alone_LR_02(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	lrs_get(&f, "a", "");
	assert_int_equal(f.n_sent, 1);
	const Envoy__Config__Core__V3__Node *node = f.sent[0]->node;
	assert_string_equal(lrs_sent(&f), "hello");
	assert_string_equal(node->id, "me");
	assert_string_equal(node->user_agent_version, "1.2.3");
	bool send_all = false, wrapped = false; // BT-08
	for (size_t i = 0; i < node->n_client_features; i++) {
		send_all |= strcmp(node->client_features[i],
				    "envoy.lrs.supports_send_all_clusters") == 0;
		wrapped |= strcmp(node->client_features[i], "xds.config.resource-in-sotw") == 0;
	}
	assert_true(send_all && wrapped);
	for (size_t i = 0; i < f.node.msg.n_client_features; i++) // not on ADS
		assert_null(strstr(f.node.msg.client_features[i], "lrs"));
	lrs_settle(&f);
	lrs_settings(&f, NULL, 10 * S);
	assert_string_equal(next_report(&f), "a/ 10s");
	lrs_fini(&f);
}

static void nothing_is_reported_before_the_first_response_LR_03(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	struct source *s = lrs_source(&f, lrs_get(&f, "a", ""));
	s->requests.issued = 3;
	assert_string_equal(lrs_sent(&f), "hello");
	lrs_settle(&f);
	lrs_pass_time(&f, 3600 * S);
	assert_string_equal(lrs_sent(&f), "");
	lrs_settings(&f, NULL, 10 * S);
	assert_string_equal(lrs_sent(&f), "");
	lrs_pass_time(&f, 9 * S);
	assert_string_equal(lrs_sent(&f), "");
	lrs_pass_time(&f, 1 * S);
	assert_string_equal(lrs_sent(&f), "a/ 3610s r/z/s 3 0 0 0"); // LR-05
	lrs_fini(&f);
}

static void response_may_come_before_word_that_the_hello_has_left(void **state)
{
	struct lrs_fixture f;
	struct xds_lrs_info info;
	lrs_init(&f);
	struct source *s = lrs_source(&f, lrs_get(&f, "a", ""));
	s->requests.ok = 1;
	assert_string_equal(lrs_sent(&f), "hello");
	lrs_settings(&f, NULL, 10 * S);
	lrs_pass_time(&f, 20 * S);
	assert_string_equal(lrs_sent(&f), ""); // one message at a time
	lrs_settle(&f);
	xds_lrs_info(f.lrs, &info);
	assert_int_equal(info.n_reports, 0);
	assert_string_equal(next_report(&f), "a/ 30s r/z/s 0 1 0 0");
	xds_lrs_info(f.lrs, &info);
	assert_int_equal(info.n_reports, 1);
	lrs_fini(&f);
}

static void interval_below_a_second_is_a_second_LR_03(void **state)
{
	const uint64_t odd[] = {0, 1, S / 2, S - 1};
	for (unsigned i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct lrs_fixture f;
		lrs_init(&f);
		struct source *s = lrs_source(&f, lrs_get(&f, "a", ""));
		s->requests.in_progress = 1;
		begin(&f);
		lrs_settings(&f, NULL, odd[i]);
		lrs_pass_time(&f, S - 2000000);
		assert_string_equal(lrs_sent(&f), "");
		lrs_pass_time(&f, 2000000);
		assert_string_equal(lrs_sent(&f), "a/ 1s r/z/s 0 0 0 1");
		lrs_fini(&f);
	}
}

static void malformed_intervals_are_harmless(void **state)
{
	// load_reporting_interval (2) = { seconds (1), nanos (2) }, send_all_clusters (4)
	static const uint8_t NONE[] = {0x20, 1};
	static const uint8_t NEGATIVE[] = {
		0x12, 11, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0x20, 1};
	static const uint8_t NANOS[] = {0x12, 8, 8, 50, 16, 0xff, 0xff, 0xff, 0xff, 7, 0x20, 1};
	static const uint8_t ENDLESS[] = {
		0x12, 10, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x20, 1};
	const struct {
		const uint8_t *bytes;
		size_t len;
		uint64_t interval_ns;
	} cases[] = {{NONE, sizeof(NONE), S}, {NEGATIVE, sizeof(NEGATIVE), S},
		{NANOS, sizeof(NANOS), S}, {ENDLESS, sizeof(ENDLESS), 24 * 3600 * S}};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct lrs_fixture f;
		struct xds_lrs_info info;
		lrs_init(&f);
		lrs_get(&f, "a", "");
		lrs_settle(&f);
		lrs_say(&f, cases[i].bytes, cases[i].len);
		xds_lrs_info(f.lrs, &info);
		assert_int_equal(info.n_responses, 1);
		assert_true(info.interval_ns == cases[i].interval_ns);
		lrs_fini(&f);
	}
}

static void later_response_changes_the_interval_an_equal_one_nothing_LR_04(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	struct source *s = lrs_source(&f, lrs_get(&f, "a", ""));
	s->requests.in_progress = 1;
	begin(&f);
	lrs_pass_time(&f, 6 * S);
	lrs_settings(&f, NULL, 10 * S);
	lrs_pass_time(&f, 4 * S);
	assert_string_equal(lrs_sent(&f), "a/ 10s r/z/s 0 0 0 1");
	lrs_settle(&f);
	lrs_pass_time(&f, 6 * S);
	lrs_settings(&f, NULL, 5 * S);
	lrs_pass_time(&f, 4 * S);
	assert_string_equal(lrs_sent(&f), "");
	lrs_pass_time(&f, 1 * S);
	assert_string_equal(lrs_sent(&f), "a/ 11s r/z/s 0 0 0 1");
	lrs_settings(&f, NULL, 2 * S); // while the report is on its way
	lrs_pass_time(&f, 20 * S);
	lrs_settle(&f);
	lrs_pass_time(&f, 2 * S);
	assert_string_equal(lrs_sent(&f), "a/ 22s r/z/s 0 0 0 1");
	lrs_fini(&f);
}

static void clusters_that_are_not_listed_are_not_reported_and_their_counts_void_LR_04(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	struct source *a = lrs_source(&f, lrs_get(&f, "a", ""));
	struct source *b = lrs_source(&f, lrs_get(&f, "b", "x"));
	struct source *c = lrs_source(&f, lrs_get(&f, "b", "y"));
	lrs_settle(&f);
	lrs_sent(&f);
	lrs_settings(&f, "z m b b", 10 * S);
	a->requests.issued = b->requests.issued = c->requests.issued = 1;
	a->category = "lb";
	a->n_dropped = 5;
	assert_string_equal(next_report(&f), "b/x 10s r/z/s 1 0 0 0; b/y 10s r/z/s 1 0 0 0");
	lrs_pass_time(&f, 3 * S);
	lrs_settings(&f, "z m a", 10 * S); // the time goes on
	a->requests.issued = b->requests.issued = 2;
	lrs_pass_time(&f, 7 * S);
	assert_string_equal(lrs_sent(&f), "a/ 10s r/z/s 2 0 0 0");
	lrs_settle(&f);
	lrs_settings(&f, NULL, 10 * S);
	a->requests.issued = 3;
	assert_string_equal(next_report(&f),
		"a/ 10s r/z/s 3 0 0 0; b/x 10s r/z/s 0 0 0 0; b/y 10s r/z/s 0 0 0 0");
	lrs_fini(&f);
}

static void empty_list_wants_nothing_LR_04(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	struct source *a = lrs_source(&f, lrs_get(&f, "a", ""));
	lrs_settle(&f);
	lrs_sent(&f);
	lrs_settings(&f, "", 10 * S);
	a->requests.issued = 1;
	assert_string_equal(next_report(&f), "nothing"); // LR-08: the first one
	a->requests.issued = 1;
	assert_string_equal(next_report(&f), "");
	assert_int_equal(f.n_harvests, 2);
	lrs_fini(&f);
}

static void each_service_name_is_reported_by_itself_LR_05(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	struct source *a = lrs_source(&f, lrs_get(&f, "a", ""));
	begin(&f);
	lrs_pass_time(&f, 4 * S);
	struct source *b = lrs_source(&f, lrs_get(&f, "a", "x"));
	lrs_get(&f, "a x", "y"); // not to be taken for one another
	lrs_get(&f, "a", "x y");
	a->requests.ok = 1;
	b->requests.ok = 2;
	lrs_pass_time(&f, 6 * S);
	assert_string_equal(
		lrs_sent(&f), "a/ 10s r/z/s 0 1 0 0; a/x 6s r/z/s 0 2 0 0; a x/y 6s; a/x y 6s");
	lrs_fini(&f);
}

static void counts_start_anew_and_the_gauge_does_not_LR_06(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	struct source *s = lrs_source(&f, lrs_get(&f, "a", ""));
	s->requests = (struct xds_load_requests){9, 5, 1, 3};
	begin(&f);
	assert_string_equal(next_report(&f), "a/ 10s r/z/s 9 5 1 3");
	s->requests.ok = 2;
	assert_string_equal(next_report(&f), "a/ 10s r/z/s 0 2 0 3");
	s->requests = (struct xds_load_requests){1, 0, 0, 2};
	assert_string_equal(next_report(&f), "a/ 10s r/z/s 1 0 0 2");
	lrs_fini(&f);
}

static void logical_dns_has_the_empty_locality_A27_I10(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	struct source *s = lrs_source(&f, lrs_get(&f, "a", ""));
	s->place = (struct xds_load_place){"", "", ""};
	s->requests.issued = 1;
	begin(&f);
	assert_string_equal(next_report(&f), "a/ 10s // 1 0 0 0");
	lrs_fini(&f);
}

static void drops_have_a_category_or_none_LR_07(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	struct xds_load_cluster *c = lrs_get(&f, "a", "");
	begin(&f);
	assert_int_equal(xds_load_add_drops(c, "throttle", 2), 0);
	assert_int_equal(xds_load_add_drops(c, "", 7), 0); // circuit breaker
	assert_int_equal(xds_load_add_drops(c, "throttle", 3), 0);
	assert_string_equal(next_report(&f), "a/ 10s drops 12 throttle=5");
	assert_int_equal(xds_load_add_drops(c, "", 1), 0);
	assert_string_equal(next_report(&f), "a/ 10s drops 1");
	assert_string_equal(next_report(&f), "a/ 10s");
	lrs_fini(&f);
}

static void second_report_of_zeros_is_left_out_LR_08(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	struct source *s = lrs_source(&f, lrs_get(&f, "a", ""));
	begin(&f);
	assert_string_equal(next_report(&f), "a/ 10s r/z/s 0 0 0 0");
	for (int i = 0; i < 3; i++)
		assert_string_equal(next_report(&f), "");
	assert_int_equal(f.n_harvests, 4);
	s->requests.error = 1;
	// Of the last interval alone: the ones before were zero.
	assert_string_equal(next_report(&f), "a/ 10s r/z/s 0 0 1 0");
	assert_string_equal(next_report(&f), "a/ 10s r/z/s 0 0 0 0");
	assert_string_equal(next_report(&f), "");
	s->requests.in_progress = 1; // a gauge that stands is no zero
	assert_string_equal(next_report(&f), "a/ 10s r/z/s 0 0 0 1");
	assert_string_equal(next_report(&f), "a/ 10s r/z/s 0 0 0 1");
	s->requests.in_progress = 0;
	next_report(&f);
	assert_string_equal(next_report(&f), "");
	lrs_close(&f, "broken");
	lrs_pass_time(&f, 1 * S);
	begin(&f);
	assert_string_equal(next_report(&f), "a/ 11s r/z/s 0 0 0 0"); // a stream begins anew
	lrs_fini(&f);
}

static void removed_cluster_is_reported_once_more_LR_09(void **state)
{
	struct lrs_fixture f;
	struct xds_lrs_info info;
	lrs_init(&f);
	struct xds_load_cluster *c = lrs_get(&f, "gone", "");
	lrs_get(&f, "a", "");
	begin(&f);
	struct xds_load_requests last = {.issued = 4, .ok = 4};
	assert_int_equal(
		xds_load_add_requests(c, &(struct xds_load_place){"r", "z", "s"}, &last), 0);
	xds_lrs_cluster_put(f.lrs, c);
	assert_string_equal(next_report(&f), "gone/ 10s r/z/s 4 4 0 0; a/ 10s");
	assert_string_equal(next_report(&f), "a/ 10s");
	xds_lrs_info(f.lrs, &info);
	assert_int_equal(info.n_clusters, 1);
	lrs_fini(&f);
}

static void last_counts_of_the_last_cluster_leave_before_the_stream_ends_LR_09(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	struct xds_load_cluster *c = lrs_get(&f, "a", "");
	begin(&f);
	assert_int_equal(xds_load_add_drops(c, "lb", 1), 0);
	xds_lrs_cluster_put(f.lrs, c);
	assert_non_null(f.stream);
	lrs_pass_time(&f, 10 * S);
	assert_string_equal(lrs_sent(&f), "a/ 10s drops 1 lb=1");
	lrs_settle(&f);
	assert_non_null(f.stream); // it has left, the server may not have read it yet
	lrs_pass_time(&f, S);
	assert_null(f.stream);
	assert_int_equal(f.n_transports, 0);
	lrs_fini(&f);
}

static void stream_that_is_about_to_end_serves_a_cluster_that_comes(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	struct xds_load_cluster *c = lrs_get(&f, "a", "");
	begin(&f);
	assert_int_equal(xds_load_add_drops(c, "lb", 1), 0);
	xds_lrs_cluster_put(f.lrs, c);
	assert_string_equal(next_report(&f), "a/ 10s drops 1 lb=1");
	lrs_settings(&f, NULL, 7 * S); // does not make it longer
	struct source *s = lrs_source(&f, lrs_get(&f, "b", ""));
	s->requests.issued = 1;
	lrs_pass_time(&f, 6 * S);
	assert_string_equal(lrs_sent(&f), "");
	lrs_pass_time(&f, S);
	assert_string_equal(lrs_sent(&f), "b/ 7s r/z/s 1 0 0 0");
	assert_int_equal(f.n_streams, 1);
	lrs_fini(&f);
}

static void stream_that_breaks_when_all_is_told_is_not_made_anew(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	struct xds_load_cluster *c = lrs_get(&f, "a", "");
	begin(&f);
	assert_int_equal(xds_load_add_drops(c, "lb", 1), 0);
	xds_lrs_cluster_put(f.lrs, c);
	assert_string_equal(next_report(&f), "a/ 10s drops 1 lb=1");
	lrs_settings(&f, NULL, 7 * S);
	lrs_close(&f, "broken");
	assert_true(twheel_next_ns(f.wheel) == UINT64_MAX);
	lrs_pass_time(&f, 100 * S);
	assert_int_equal(f.n_streams, 1);
	assert_int_equal(f.n_logged, 0);
	lrs_fini(&f);
}

static void removed_locality_is_reported_once_more_LR_09(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	struct xds_load_cluster *c = lrs_get(&f, "a", "");
	struct source *one = lrs_source(&f, c), *two = lrs_source(&f, c);
	two->place.region = "s";
	one->requests.issued = two->requests.issued = 1;
	begin(&f);
	assert_string_equal(next_report(&f), "a/ 10s r/z/s 1 0 0 0 s/z/s 1 0 0 0");
	two->cluster = NULL;
	struct xds_load_requests last = {.ok = 1};
	assert_int_equal(xds_load_add_requests(c, &two->place, &last), 0);
	assert_string_equal(next_report(&f), "a/ 10s r/z/s 0 0 0 0 s/z/s 0 1 0 0");
	one->requests.ok = 1;
	assert_string_equal(next_report(&f), "a/ 10s r/z/s 0 1 0 0");
	lrs_fini(&f);
}

static void cluster_that_comes_back_goes_on_counting(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	struct xds_load_cluster *c = lrs_get(&f, "a", "");
	begin(&f);
	assert_int_equal(xds_load_add_drops(c, "lb", 1), 0);
	xds_lrs_cluster_put(f.lrs, c);
	lrs_pass_time(&f, 3 * S);
	assert_ptr_equal(lrs_get(&f, "a", ""), c);
	assert_int_equal(xds_load_add_drops(c, "lb", 1), 0);
	lrs_pass_time(&f, 7 * S);
	assert_string_equal(lrs_sent(&f), "a/ 10s drops 2 lb=2");
	lrs_settle(&f);
	assert_non_null(f.stream);
	lrs_fini(&f);
}

static void metrics_are_summed_and_start_anew_LR_10(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	struct source *s = lrs_source(&f, lrs_get(&f, "a", ""));
	struct source *t = lrs_source(&f, s->cluster);
	begin(&f);
	s->metric = t->metric = "named_metrics.queue"; // A85
	s->n_metric = 3;
	s->total = 1.5;
	t->n_metric = 1;
	t->total = 2;
	assert_string_equal(next_report(&f), "a/ 10s r/z/s 0 0 0 0 named_metrics.queue=4:3.5");
	assert_string_equal(next_report(&f), "a/ 10s r/z/s 0 0 0 0");
	s->metric = "cpu_utilization"; // A85: fields of their own
	s->n_metric = 2;
	s->total = 0.5;
	t->metric = "application_utilization";
	t->n_metric = 1;
	t->total = 0.25;
	assert_string_equal(next_report(&f), "a/ 10s r/z/s 0 0 0 0 cpu=2:0.5 app=1:0.25");
	s->metric = "mem_utilization";
	s->n_metric = 1;
	s->total = 0.125;
	assert_string_equal(next_report(&f), "a/ 10s r/z/s 0 0 0 0 mem=1:0.125");
	lrs_fini(&f);
}

static void names_of_metrics_are_bounded_between_reports(void **state)
{
	struct lrs_fixture f;
	struct xds_load_place place = {"r", "z", "s"};
	lrs_init(&f);
	struct xds_load_cluster *c = lrs_get(&f, "a", "");
	begin(&f);
	for (int round = 0; round < 2; round++) {
		for (unsigned i = 0; i <= XDS_LOAD_MAX_METRICS; i++) {
			char name[32];
			snprintf(name, sizeof(name), "m%d.%u", round, i);
			assert_int_equal(xds_load_add_metric(c, &place, name, 1, 1),
				i < XDS_LOAD_MAX_METRICS ? 0 : -ENOSPC);
		}
		assert_int_equal(xds_load_add_metric(c, &place, "m0.0", 1, 1), round ? -ENOSPC : 0);
		assert_non_null(strstr(next_report(&f), "63=1:1"));
		next_report(&f);
	}
	lrs_fini(&f);
}

static void counts_of_many_workers_are_summed_LR_11(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	struct xds_load_cluster *c = lrs_get(&f, "a", "");
	for (unsigned i = 0; i < 5; i++)
		lrs_source(&f, c)->requests = (struct xds_load_requests){10 + i, i, 1, 2};
	begin(&f);
	assert_string_equal(next_report(&f), "a/ 10s r/z/s 60 10 5 10");
	assert_string_equal(next_report(&f), "a/ 10s r/z/s 0 0 0 10");
	lrs_fini(&f);
}

static void report_that_did_not_leave_comes_again_LR_11(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	struct source *s = lrs_source(&f, lrs_get(&f, "a", ""));
	s->requests = (struct xds_load_requests){3, 2, 1, 4};
	s->category = "lb";
	s->n_dropped = 2;
	s->metric = "k";
	s->n_metric = 1;
	s->total = 7;
	begin(&f);
	lrs_pass_time(&f, 10 * S);
	const char first[] = "a/ 10s r/z/s 3 2 1 4 k=1:7 drops 2 lb=2";
	assert_string_equal(lrs_sent(&f), first);
	struct xds_load_requests more = {.ok = 5}; // meanwhile
	assert_int_equal(xds_load_add_requests(s->cluster, &s->place, &more), 0);
	assert_int_equal(xds_load_add_metric(s->cluster, &s->place, "k", 2, 3), 0);
	s->requests.issued = 1;
	s->requests.in_progress = 5;
	lrs_close(&f, "broken"); // before on_sent
	lrs_pass_time(&f, 2 * S);
	begin(&f);
	assert_string_equal(next_report(&f), "a/ 22s r/z/s 4 7 1 5 k=3:10 drops 2 lb=2");
	lrs_fini(&f);
}

static void report_that_left_does_not_come_again_LR_11(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	struct source *s = lrs_source(&f, lrs_get(&f, "a", ""));
	s->requests.issued = 3;
	begin(&f);
	assert_string_equal(next_report(&f), "a/ 10s r/z/s 3 0 0 0");
	lrs_close(&f, "broken");
	lrs_pass_time(&f, 2 * S);
	s->requests.issued = 1;
	begin(&f);
	assert_string_equal(next_report(&f), "a/ 12s r/z/s 1 0 0 0");
	lrs_fini(&f);
}

static void removed_cluster_survives_a_broken_stream_LR_09(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	struct xds_load_cluster *c = lrs_get(&f, "a", "");
	begin(&f);
	assert_int_equal(xds_load_add_drops(c, "lb", 1), 0);
	lrs_pass_time(&f, 10 * S);
	xds_lrs_cluster_put(f.lrs, c); // its report is on its way
	lrs_sent(&f);
	lrs_close(&f, "broken");
	lrs_pass_time(&f, 2 * S);
	begin(&f);
	assert_string_equal(next_report(&f), "a/ 22s drops 1 lb=1");
	lrs_pass_time(&f, S);
	assert_null(f.stream);
	lrs_fini(&f);
}

static void clusters_gone_without_a_server_are_bounded(void **state)
{
	struct lrs_fixture f;
	struct xds_lrs_info info;
	lrs_init(&f);
	lrs_get(&f, "a", "");
	lrs_close(&f, "refused");
	for (unsigned i = 0; i < 5000; i++) {
		char name[16];
		snprintf(name, sizeof(name), "gone%u", i);
		struct xds_load_cluster *c = lrs_get(&f, name, "");
		assert_int_equal(xds_load_add_drops(c, "lb", 1), 0);
		xds_lrs_cluster_put(f.lrs, c);
	}
	xds_lrs_info(f.lrs, &info);
	assert_int_equal(info.n_clusters, 1 + 4096);
	assert_int_equal(info.n_given_up, 5000 - 4096);
	lrs_fini(&f);
}

// FM-03
static void server_without_answers_is_tried_with_backoff(void **state)
{
	struct lrs_fixture f;
	struct xds_lrs_info info;
	lrs_init(&f);
	lrs_get(&f, "a", "");
	double wait_s = 1;
	for (unsigned i = 1; i <= 14; i++) {
		lrs_close(&f, "UNIMPLEMENTED");
		lrs_pass_time(&f, (uint64_t)(wait_s * 0.79 * S));
		assert_int_equal(f.n_streams, i);
		lrs_pass_time(&f, (uint64_t)(wait_s * 0.42 * S));
		assert_int_equal(f.n_streams, i + 1);
		wait_s = wait_s * 1.6 < 120 ? wait_s * 1.6 : 120;
	}
	assert_int_equal(f.n_logged, 1); // once an outage
	xds_lrs_info(f.lrs, &info);
	assert_int_equal(info.state, XDS_SERVER_CONNECTING);
	assert_string_equal(info.error, "UNIMPLEMENTED");
	lrs_settle(&f);
	lrs_settings(&f, NULL, 10 * S); // starts the backoff anew
	xds_lrs_info(f.lrs, &info);
	assert_int_equal(info.state, XDS_SERVER_CONNECTED);
	assert_string_equal(info.error, "");
	lrs_pass_time(&f, 5 * S);
	lrs_close(&f, "restart"); // it had worked for longer than the first wait: at once
	lrs_pass_time(&f, 2000000);
	assert_int_equal(f.n_streams, 16);
	lrs_fini(&f);
}

static void last_cluster_ends_the_attempts_too_LR_01(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	struct xds_load_cluster *c = lrs_get(&f, "a", "");
	lrs_close(&f, "refused");
	xds_lrs_cluster_put(f.lrs, c);
	lrs_pass_time(&f, 500 * S);
	assert_int_equal(f.n_streams, 1);
	lrs_fini(&f);
}

static void connection_that_cannot_be_made_is_tried_again(void **state)
{
	struct lrs_fixture f;
	struct xds_lrs_info info;
	lrs_init(&f);
	f.refuse = true;
	lrs_get(&f, "a", "");
	xds_lrs_info(f.lrs, &info);
	assert_string_equal(info.error, "no credentials");
	f.refuse = false;
	lrs_pass_time(&f, 2 * S);
	assert_int_equal(f.n_streams, 1);
	lrs_fini(&f);
}

static void bytes_that_are_no_response_change_nothing(void **state)
{
	struct lrs_fixture f;
	struct xds_lrs_info info;
	lrs_init(&f);
	struct source *s = lrs_source(&f, lrs_get(&f, "a", ""));
	s->requests.in_progress = 1;
	begin(&f);
	lrs_say(&f, (const uint8_t *)"\x0a\xff", 2);
	lrs_say(&f, (const uint8_t *)"\x0a\x02\xff\xfe", 4); // a name that is no text
	assert_string_equal(next_report(&f), "a/ 10s r/z/s 0 0 0 1");
	xds_lrs_info(f.lrs, &info);
	assert_int_equal(info.n_undecodable, 2);
	assert_int_equal(info.n_responses, 1);
	lrs_fini(&f);
}

static void stream_that_begins_with_no_response_is_replaced(void **state)
{
	struct lrs_fixture f;
	lrs_init(&f);
	struct source *s = lrs_source(&f, lrs_get(&f, "a", ""));
	s->requests.issued = 1;
	lrs_settle(&f);
	lrs_sent(&f);
	lrs_say(&f, (const uint8_t *)"\x0a\xff", 2);
	assert_null(f.stream);
	lrs_pass_time(&f, S * 7 / 10);
	assert_int_equal(f.n_streams, 1); // not before the backoff is over
	lrs_pass_time(&f, S);
	begin(&f);
	assert_string_equal(next_report(&f), "a/ 11.7s r/z/s 1 0 0 0");
	lrs_fini(&f);
}

// Whatever breaks when, in the end the reports that left hold exactly what was counted.

static uint64_t number_after(const char *text, const char *word)
{
	const char *at = strstr(text, word);
	unsigned long long n = 0;
	if (at)
		sscanf(at + strlen(word), "%llu", &n);
	return n;
}

struct tally {
	uint64_t issued, dropped;
};

static void read_report(const char *text, struct tally *t)
{
	t->issued += number_after(text, "r/z/s ");
	t->dropped += number_after(text, "drops ");
}

static void random_life(uint64_t seed)
{
	struct lrs_fixture f;
	struct rand r;
	struct tally counted = {0}, told = {0};
	char report[256] = ""; // on its way
	lrs_init(&f);
	rand_init(&r, seed);
	struct xds_load_cluster *c = lrs_get(&f, "a", "");
	struct source *s = lrs_source(&f, c);
	s->category = "lb";
	for (unsigned step = 0; step < 60 || *report || !f.stream; step++) {
		assert_in_range(step, 0, 1000);
		uint64_t n = rand_below(&r, 50);
		switch (rand_below(&r, 6)) {
		case 0:
			s->requests.issued += n;
			s->n_dropped += n / 2;
			counted.issued += n;
			counted.dropped += n / 2;
			break;
		case 1:
			if (f.stream && f.n_sent < LRS_MAX_SENT / 2)
				lrs_close(&f, "broken");
			break;
		case 2:
			if (f.sending && *report)
				read_report(report, &told);
			lrs_settle(&f);
			break;
		case 3:
			if (f.stream)
				lrs_settings(&f, rand_below(&r, 2) ? NULL : "a b", (1 + n) * S);
			break;
		default:
			if (f.n_sent < LRS_MAX_SENT - 8)
				lrs_pass_time(&f, n * S / 5);
			break;
		}
		const char *text = lrs_sent(&f);
		if (*text)
			snprintf(report, sizeof(report), "%s", text);
		if (!f.sending)
			report[0] = '\0';
	}
	lrs_settle(&f);
	lrs_settings(&f, NULL, 77 * S);
	lrs_pass_time(&f, 77 * S);
	read_report(lrs_sent(&f), &told);
	assert_int_equal(told.issued, counted.issued);
	assert_int_equal(told.dropped, counted.dropped);
	lrs_fini(&f);
}

static void nothing_is_lost_or_told_twice_in_random_lives_LR_11(void **state)
{
	for (uint64_t seed = 1; seed <= 300; seed++)
		random_life(seed);
}

RUN_SUITE("xds/lrs",
	cmocka_unit_test(first_cluster_opens_the_stream_and_the_last_one_ends_it_LR_01),
	cmocka_unit_test(first_message_holds_the_node_alone_LR_02),
	cmocka_unit_test(nothing_is_reported_before_the_first_response_LR_03),
	cmocka_unit_test(response_may_come_before_word_that_the_hello_has_left),
	cmocka_unit_test(interval_below_a_second_is_a_second_LR_03),
	cmocka_unit_test(malformed_intervals_are_harmless),
	cmocka_unit_test(later_response_changes_the_interval_an_equal_one_nothing_LR_04),
	cmocka_unit_test(clusters_that_are_not_listed_are_not_reported_and_their_counts_void_LR_04),
	cmocka_unit_test(empty_list_wants_nothing_LR_04),
	cmocka_unit_test(each_service_name_is_reported_by_itself_LR_05),
	cmocka_unit_test(counts_start_anew_and_the_gauge_does_not_LR_06),
	cmocka_unit_test(logical_dns_has_the_empty_locality_A27_I10),
	cmocka_unit_test(drops_have_a_category_or_none_LR_07),
	cmocka_unit_test(second_report_of_zeros_is_left_out_LR_08),
	cmocka_unit_test(removed_cluster_is_reported_once_more_LR_09),
	cmocka_unit_test(last_counts_of_the_last_cluster_leave_before_the_stream_ends_LR_09),
	cmocka_unit_test(stream_that_is_about_to_end_serves_a_cluster_that_comes),
	cmocka_unit_test(stream_that_breaks_when_all_is_told_is_not_made_anew),
	cmocka_unit_test(removed_locality_is_reported_once_more_LR_09),
	cmocka_unit_test(cluster_that_comes_back_goes_on_counting),
	cmocka_unit_test(metrics_are_summed_and_start_anew_LR_10),
	cmocka_unit_test(names_of_metrics_are_bounded_between_reports),
	cmocka_unit_test(counts_of_many_workers_are_summed_LR_11),
	cmocka_unit_test(report_that_did_not_leave_comes_again_LR_11),
	cmocka_unit_test(report_that_left_does_not_come_again_LR_11),
	cmocka_unit_test(removed_cluster_survives_a_broken_stream_LR_09),
	cmocka_unit_test(clusters_gone_without_a_server_are_bounded),
	cmocka_unit_test(server_without_answers_is_tried_with_backoff),
	cmocka_unit_test(last_cluster_ends_the_attempts_too_LR_01),
	cmocka_unit_test(connection_that_cannot_be_made_is_tried_again),
	cmocka_unit_test(bytes_that_are_no_response_change_nothing),
	cmocka_unit_test(stream_that_begins_with_no_response_is_replaced),
	cmocka_unit_test(nothing_is_lost_or_told_twice_in_random_lives_LR_11))
