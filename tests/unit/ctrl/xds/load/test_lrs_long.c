// SPDX-License-Identifier: Apache-2.0
// Reports that are too long for one message (LR-13), in virtual time.
#include "ctrl/xds/load/lrs_wire.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/load/lrs_fixture.h"

#include <string.h>

#define CLUSTERS 3
#define LONG (XDS_LRS_MESSAGE_LEN * 2 / 5) // bytes: a message has two such names, and no three

typedef Envoy__Service__LoadStats__V3__LoadStatsRequest Request;

struct crowd {
	struct lrs_fixture f;
	struct xds_load_cluster *clusters[CLUSTERS];
	struct source *sources[CLUSTERS];
};

static void count(struct crowd *c)
{
	for (int i = 0; i < CLUSTERS; i++)
		c->sources[i]->requests.issued++;
}

// The server wants all of them every 10 s.
static void begin(struct crowd *c)
{
	assert_string_equal(lrs_sent(&c->f), "hello");
	lrs_settle(&c->f);
	lrs_settings(&c->f, NULL, 10 * S);
}

static void with_long_names(struct crowd *c)
{
	static char name[LONG + 1];
	lrs_init(&c->f);
	for (int i = 0; i < CLUSTERS; i++) {
		memset(name, 'a' + i, LONG);
		c->clusters[i] = lrs_get(&c->f, name, "");
		c->sources[i] = lrs_source(&c->f, c->clusters[i]);
	}
	count(c);
	begin(c);
	lrs_pass_time(&c->f, 10 * S);
}

static const Request *next_message(struct crowd *c)
{
	assert_true(c->f.n_read < c->f.n_sent);
	return c->f.sent[c->f.n_read++];
}

// The first letters of its clusters' names, each of which has that many requests.
static void expect_message(struct crowd *c, const char *letters, uint64_t issued)
{
	const Request *r = next_message(c);
	assert_int_equal(r->n_cluster_stats, strlen(letters));
	for (size_t i = 0; i < r->n_cluster_stats; i++) {
		assert_int_equal(r->cluster_stats[i]->cluster_name[0], letters[i]);
		assert_int_equal(
			r->cluster_stats[i]->upstream_locality_stats[0]->total_issued_requests,
			issued);
	}
}

static uint64_t n_reports(const struct crowd *c)
{
	struct xds_lrs_info info;
	xds_lrs_info(c->f.lrs, &info);
	return info.n_reports;
}

static void a_long_report_is_several_messages_LR_13(void **state)
{
	struct crowd c;
	with_long_names(&c);
	for (uint64_t round = 0; round < 2; round++) {
		expect_message(&c, "ab", 1);
		lrs_settle(&c.f);
		assert_int_equal(n_reports(&c), round);
		expect_message(&c, "c", 1);
		lrs_pass_time(&c.f, 100 * S); // the next one waits for it
		assert_int_equal(c.f.n_read, c.f.n_sent);
		lrs_settle(&c.f);
		assert_int_equal(n_reports(&c), round + 1);
		count(&c);
		lrs_pass_time(&c.f, 10 * S);
	}
	lrs_fini(&c.f);
}

static void of_a_long_report_what_has_left_does_not_come_again_LR_11(void **state)
{
	struct crowd c;
	with_long_names(&c);
	expect_message(&c, "ab", 1);
	lrs_settle(&c.f);
	expect_message(&c, "c", 1);
	lrs_close(&c.f, "broken");
	lrs_pass_time(&c.f, 2 * S);
	begin(&c);
	lrs_pass_time(&c.f, 10 * S);
	expect_message(&c, "ab", 0);
	lrs_settle(&c.f);
	expect_message(&c, "c", 1);
	lrs_fini(&c.f);
}

// LR-12, LR-13
static void the_last_report_is_told_to_its_end(void **state)
{
	struct crowd c;
	with_long_names(&c);
	expect_message(&c, "ab", 1);
	count(&c);
	assert_false(xds_lrs_finish(c.f.lrs));
	lrs_settle(&c.f);
	expect_message(&c, "c", 1);
	lrs_settle(&c.f);
	expect_message(&c, "ab", 1);
	lrs_settle(&c.f);
	assert_false(c.f.ended);
	expect_message(&c, "c", 1);
	lrs_settle(&c.f);
	assert_true(c.f.ended);
	lrs_close(&c.f, "OK: ");
	assert_true(xds_lrs_finish(c.f.lrs));
	assert_int_equal(c.f.n_logged, 0);
	lrs_fini(&c.f);
}

// LR-09: its counts leave with its message, whatever becomes of the others.
static void a_cluster_that_goes_between_messages_is_told_once(void **state)
{
	struct crowd c;
	with_long_names(&c);
	for (int i = 0; i < CLUSTERS; i++) {
		c.sources[i]->cluster = NULL;
		xds_lrs_cluster_put(c.f.lrs, c.clusters[i]);
	}
	expect_message(&c, "ab", 1);
	lrs_settle(&c.f);
	expect_message(&c, "c", 1);
	lrs_settle(&c.f);
	lrs_pass_time(&c.f, S);
	assert_null(c.f.stream);
	lrs_fini(&c.f);
}

RUN_SUITE("xds/lrs_long", cmocka_unit_test(a_long_report_is_several_messages_LR_13),
	cmocka_unit_test(of_a_long_report_what_has_left_does_not_come_again_LR_11),
	cmocka_unit_test(the_last_report_is_told_to_its_end),
	cmocka_unit_test(a_cluster_that_goes_between_messages_is_told_once))
