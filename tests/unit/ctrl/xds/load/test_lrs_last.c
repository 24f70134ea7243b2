// SPDX-License-Identifier: Apache-2.0
// The last report, when the process ends (LR-12), in virtual time.
#include "lb/base/twheel.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/load/lrs_fixture.h"

#include <string.h>

struct last {
	struct lrs_fixture f;
	struct xds_load_cluster *cluster;
	struct source *source;
};

static void begin_unanswered(struct last *l)
{
	lrs_init(&l->f);
	l->cluster = lrs_get(&l->f, "a", "");
	l->source = lrs_source(&l->f, l->cluster);
	assert_string_equal(lrs_sent(&l->f), "hello");
	lrs_settle(&l->f);
}

// The stream is up, and the server wants a report each minute.
static void begin(struct last *l)
{
	begin_unanswered(l);
	lrs_settings(&l->f, NULL, 60 * S);
}

static void count(struct last *l, uint64_t n)
{
	l->source->requests.issued += n;
	l->source->requests.ok += n;
}

// What was counted is on its way.
static void begin_to_finish(struct last *l)
{
	begin(l);
	count(l, 3);
	assert_false(xds_lrs_finish(l->f.lrs));
	assert_string_equal(lrs_sent(&l->f), "a/ 0s r/z/s 3 3 0 0");
}

static void end(struct last *l)
{
	assert_true(xds_lrs_finish(l->f.lrs));
	assert_null(l->f.stream);
	lrs_pass_time(&l->f, 100 * S); // no stream is opened, nothing is reported
	assert_null(l->f.stream);
	assert_string_equal(lrs_sent(&l->f), "");
	xds_lrs_cluster_put(l->f.lrs, l->cluster);
	l->source->cluster = NULL;
	lrs_fini(&l->f);
}

static void assert_logged(const struct last *l, const char *text)
{
	if (!strstr(l->f.logged, text))
		fail_msg("\"%s\" is not in \"%s\"", text, l->f.logged);
}

static void what_was_counted_is_told_at_once_and_the_servers_end_is_waited_for(void **state)
{
	struct last l;
	begin(&l);
	count(&l, 3);
	lrs_pass_time(&l.f, 5 * S);
	assert_false(xds_lrs_finish(l.f.lrs));
	assert_string_equal(lrs_sent(&l.f), "a/ 5s r/z/s 3 3 0 0");
	assert_false(l.f.ended);
	lrs_settle(&l.f);
	assert_true(l.f.ended);
	assert_false(xds_lrs_finish(l.f.lrs));
	lrs_close(&l.f, "OK: ");
	assert_int_equal(l.f.n_logged, 0);
	end(&l);
}

static void a_server_that_does_not_end_the_stream_is_waited_for_a_second(void **state)
{
	struct last l;
	begin_to_finish(&l);
	lrs_settle(&l.f);
	lrs_pass_time(&l.f, S - S / 10);
	assert_false(xds_lrs_finish(l.f.lrs));
	lrs_pass_time(&l.f, S / 5);
	assert_int_equal(l.f.n_logged, 0); // it had left
	end(&l);
}

static void a_report_under_way_is_followed_by_the_last_one(void **state)
{
	struct last l;
	begin(&l);
	count(&l, 3);
	lrs_pass_time(&l.f, 60 * S);
	assert_string_equal(lrs_sent(&l.f), "a/ 60s r/z/s 3 3 0 0");
	count(&l, 4);
	assert_false(xds_lrs_finish(l.f.lrs));
	assert_string_equal(lrs_sent(&l.f), "");
	lrs_settle(&l.f);
	assert_string_equal(lrs_sent(&l.f), "a/ 0s r/z/s 4 4 0 0");
	assert_false(l.f.ended);
	lrs_settings(&l.f, NULL, 30 * S); // too late for anything
	lrs_settle(&l.f);
	assert_true(l.f.ended);
	lrs_close(&l.f, "OK: ");
	end(&l);
}

static void with_nothing_to_tell_nothing_is_waited_for(void **state)
{
	struct last l;
	begin(&l);
	assert_true(xds_lrs_finish(l.f.lrs));
	assert_string_equal(lrs_sent(&l.f), "");
	assert_int_equal(l.f.n_logged, 0);
	end(&l);
}

// A stream that ends at once takes along what its server has not read.
static void a_report_that_has_just_left_is_waited_for_as_well(void **state)
{
	struct last l;
	begin(&l);
	count(&l, 3);
	lrs_pass_time(&l.f, 60 * S);
	lrs_settle(&l.f);
	assert_string_equal(lrs_sent(&l.f), "a/ 60s r/z/s 3 3 0 0");
	lrs_pass_time(&l.f, S / 2);
	assert_false(xds_lrs_finish(l.f.lrs));
	assert_true(l.f.ended);
	lrs_close(&l.f, "OK: ");
	end(&l);
}

static void a_server_that_takes_nothing_is_told_of_in_the_log(void **state)
{
	struct last l;
	begin(&l);
	count(&l, 3);
	l.source->requests.error = 2;
	l.source->category = "half";
	l.source->n_dropped = 7;
	assert_false(xds_lrs_finish(l.f.lrs));
	lrs_pass_time(&l.f, S + S / 10);
	assert_int_equal(l.f.n_logged, 1);
	assert_logged(&l, "lrs:1 was not told of 12 requests: it does not read");
	assert_string_equal(lrs_sent(&l.f), "a/ 0s r/z/s 3 3 2 0 drops 7 half=7");
	end(&l);
}

static void a_stream_that_breaks_meanwhile_is_not_made_anew(void **state)
{
	struct last l;
	begin(&l);
	count(&l, 3);
	assert_false(xds_lrs_finish(l.f.lrs));
	lrs_close(&l.f, "UNAVAILABLE: gone");
	assert_string_equal(lrs_sent(&l.f), "a/ 0s r/z/s 3 3 0 0");
	assert_int_equal(l.f.n_streams, 1);
	assert_logged(&l, "was not told of 3 requests: UNAVAILABLE: gone");
	end(&l);
}

static void without_a_stream_the_loss_is_told_at_once(void **state)
{
	struct last l;
	begin(&l);
	lrs_close(&l.f, "UNAVAILABLE: gone");
	l.f.n_logged = 0;
	count(&l, 5);
	assert_true(xds_lrs_finish(l.f.lrs));
	assert_int_equal(l.f.n_logged, 1);
	assert_logged(&l, "was not told of 5 requests: UNAVAILABLE: gone");
	end(&l);
}

static void a_server_that_never_answered_is_not_waited_for(void **state)
{
	struct last l;
	begin_unanswered(&l);
	count(&l, 5);
	assert_true(xds_lrs_finish(l.f.lrs));
	assert_logged(&l, "was not told of 5 requests: it has not answered yet");
	end(&l);
}

static void what_the_server_does_not_want_is_no_loss(void **state)
{
	struct last l;
	begin_unanswered(&l);
	lrs_settings(&l.f, "other", 60 * S);
	count(&l, 5);
	assert_true(xds_lrs_finish(l.f.lrs));
	assert_int_equal(l.f.n_logged, 0);
	end(&l);
}

static void a_cluster_that_comes_or_goes_meanwhile_changes_nothing(void **state)
{
	struct last l;
	begin_to_finish(&l);
	struct xds_load_cluster *b = lrs_get(&l.f, "b", "");
	xds_lrs_cluster_put(l.f.lrs, b);
	lrs_settle(&l.f);
	assert_true(l.f.ended);
	lrs_close(&l.f, "OK: ");
	assert_true(xds_lrs_finish(l.f.lrs));
	xds_lrs_cluster_put(l.f.lrs, lrs_get(&l.f, "b", ""));
	assert_int_equal(l.f.n_streams, 1);
	end(&l);
}

static void a_stream_that_lingers_without_clusters_ends(void **state)
{
	struct last l;
	begin(&l);
	count(&l, 3);
	lrs_pass_time(&l.f, 60 * S);
	xds_lrs_cluster_put(l.f.lrs, l.cluster);
	l.source->cluster = NULL;
	lrs_settle(&l.f);
	assert_string_equal(lrs_sent(&l.f), "a/ 60s r/z/s 3 3 0 0");
	assert_non_null(l.f.stream); // for a moment
	assert_false(xds_lrs_finish(l.f.lrs));
	assert_true(l.f.ended);
	lrs_pass_time(&l.f, 2 * S);
	assert_true(xds_lrs_finish(l.f.lrs));
	lrs_fini(&l.f);
}

static void the_last_cluster_that_goes_meanwhile_changes_nothing(void **state)
{
	struct last l;
	begin_to_finish(&l);
	lrs_settle(&l.f);
	xds_lrs_cluster_put(l.f.lrs, l.cluster);
	l.cluster = lrs_get(&l.f, "a", "");
	l.source->cluster = l.cluster;
	count(&l, 4); // too late
	lrs_pass_time(&l.f, S - S / 10);
	assert_false(xds_lrs_finish(l.f.lrs));
	assert_string_equal(lrs_sent(&l.f), "");
	lrs_pass_time(&l.f, S / 5);
	end(&l);
}

// LR-12
RUN_SUITE("xds/lrs_last",
	cmocka_unit_test(what_was_counted_is_told_at_once_and_the_servers_end_is_waited_for),
	cmocka_unit_test(a_server_that_does_not_end_the_stream_is_waited_for_a_second),
	cmocka_unit_test(a_report_under_way_is_followed_by_the_last_one),
	cmocka_unit_test(with_nothing_to_tell_nothing_is_waited_for),
	cmocka_unit_test(a_report_that_has_just_left_is_waited_for_as_well),
	cmocka_unit_test(a_server_that_takes_nothing_is_told_of_in_the_log),
	cmocka_unit_test(the_last_cluster_that_goes_meanwhile_changes_nothing),
	cmocka_unit_test(a_stream_that_breaks_meanwhile_is_not_made_anew),
	cmocka_unit_test(without_a_stream_the_loss_is_told_at_once),
	cmocka_unit_test(a_server_that_never_answered_is_not_waited_for),
	cmocka_unit_test(what_the_server_does_not_want_is_no_loss),
	cmocka_unit_test(a_cluster_that_comes_or_goes_meanwhile_changes_nothing),
	cmocka_unit_test(a_stream_that_lingers_without_clusters_ends))
