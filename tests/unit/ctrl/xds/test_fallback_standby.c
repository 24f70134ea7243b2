// SPDX-License-Identifier: Apache-2.0
// What an earlier run kept of several servers of one authority (FB-*): it is worth less than what
// any of them says.
#include "ctrl/xds/standby.h"
#include "ctrl/xds/state/state_file.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/federation_fixture.h"

#include <stdlib.h>
#include <string.h>

#define TWO "{'xds_servers':[" ADS(0) "," ADS(1) "],'node':{'id':'me'}}"
#define MOMENT (NS_PER_MS * 100)

static const struct xds_state_item OF_FIRST[] = {
	{.name = {"x", 1}, .version = {"1", 1}, .bytes = {"x=first", 7}},
	{.name = {"only", 4}, .version = {"1", 1}, .bytes = {"only=first", 10}},
};
static const struct xds_state_item OF_SECOND = {
	.name = {"x", 1}, .version = {"2", 1}, .bytes = {"x=second", 8}};
static const struct str ABSENT = {"\x0a\x06nosuch", 8};
static const struct xds_state_part PARTS[] = {
	{.server = "ads:0",
		.type_url = CLUSTER_URL,
		.items = OF_FIRST,
		.n_items = 2,
		.absent = &ABSENT,
		.n_absent = 1},
	{.server = "ads:1", .type_url = CLUSTER_URL, .items = &OF_SECOND, .n_items = 1},
};

static struct xds_state kept;

static void begin(struct world *w, size_t n_parts)
{
	static const struct xds_state empty;
	struct xds_state_image image = {"me", 1700000000, PARTS, n_parts};
	struct lb_err err;
	uint8_t *bytes;
	size_t len;
	assert_int_equal(xds_state_encode(&image, &empty, &bytes, &len), 0);
	assert_int_equal(xds_state_parse(bytes, len, &kept, &err), 0);
	world_init_kept(w, TWO, &kept);
}

static void end(struct world *w)
{
	world_fini(w);
	xds_state_fini(&kept);
}

static void wait_ns(struct world *w, uint64_t ns)
{
	for (; ns > MOMENT; ns -= MOMENT)
		world_pass(w, MOMENT);
	world_pass(w, ns);
}

struct seen {
	bool found, is_stale;
};

static void see(void *ctx, const struct xds_entry_info *info)
{
	struct seen *s = ctx;
	*s = (struct seen){true, info->is_stale};
}

static bool is_stale(const struct world *w)
{
	struct seen s = {false, false};
	xds_federation_each(w->federation, see, &s);
	assert_true(s.found);
	return s.is_stale;
}

static void with_all_servers_away_the_last_one_that_was_used_counts(void **state)
{
	struct world w;
	struct ear x;
	begin(&w, 2);
	w.at[0].server.refuse = w.at[1].server.refuse = true;
	world_listen(&w, &toy_cluster, "x", &x);
	wait_ns(&w, 700 * NS_PER_MS);
	assert_string_equal(heard(&x), ""); // FB-03 would tell of the failure
	wait_ns(&w, 3 * S);
	assert_non_null(strstr(heard(&x), "=second"));
	assert_true(is_stale(&w));
	assert_string_equal(world_state(&w, "x"), "REQUESTED 2");
	end(&w);
}

static void what_only_the_first_server_left_is_used_too(void **state)
{
	struct world w;
	struct ear x, y;
	begin(&w, 1);
	w.at[0].server.refuse = w.at[1].server.refuse = true;
	xds_federation_begin(w.federation);
	world_listen(&w, &toy_cluster, "x", &x);
	world_listen(&w, &toy_cluster, "y", &y);
	xds_federation_end(w.federation);
	wait_ns(&w, 4 * S);
	assert_string_equal(heard(&x), "=first ~14");
	assert_string_equal(heard(&y), "!14");
	end(&w);
}

static void ops_94_a_dead_first_server_does_not_hurry_the_second_one(void **state)
{
	struct world w;
	struct ear x;
	begin(&w, 2);
	w.at[0].server.refuse = true;
	world_listen(&w, &toy_cluster, "x", &x);
	expect_request(&w.at[1], &toy_cluster, "x", "", "");
	wait_ns(&w, 1500 * NS_PER_MS); // the first one has failed twice
	assert_string_equal(heard(&x), "");
	respond(&w.at[1], &toy_cluster, "7", "n1", "x=live", NULL);
	wait_ns(&w, 4 * S);
	assert_string_equal(heard(&x), "=live");
	assert_false(is_stale(&w));
	end(&w);
}

static void ops_94_what_only_the_first_one_had_is_used_when_the_second_is_silent(void **state)
{
	struct world w;
	struct ear only;
	begin(&w, 2);
	w.at[0].server.refuse = true;
	world_listen(&w, &toy_cluster, "only", &only);
	expect_request(&w.at[1], &toy_cluster, "only", "", "");
	wait_ns(&w, 1500 * NS_PER_MS);
	assert_string_equal(heard(&only), "");
	wait_ns(&w, S);
	assert_string_equal(heard(&only), "=first");
	assert_true(is_stale(&w));
	end(&w);
}

static void ops_96_a_server_that_returns_does_not_bring_back_what_is_stale(void **state)
{
	struct world w;
	struct ear x;
	begin(&w, 1);
	w.at[0].server.refuse = true;
	world_listen(&w, &toy_cluster, "x", &x);
	expect_request(&w.at[1], &toy_cluster, "x", "", ""); // FB-01
	respond(&w.at[1], &toy_cluster, "7", "n1", "x=live", NULL);
	fake_ads_settle(&w.at[1].server);
	assert_string_equal(heard(&x), "=live");
	wait_ns(&w, 4 * S);
	w.at[0].server.refuse = false;
	wait_ns(&w, 5 * S);
	fake_ads_settle(&w.at[0].server);
	assert_string_equal(heard(&x), "");
	assert_false(is_stale(&w));
	respond(&w.at[0], &toy_cluster, "8", "n1", "x=again", NULL);
	assert_string_equal(heard(&x), "=again");
	end(&w);
}

static void ops_96_a_bad_word_of_a_server_that_returns_does_not_bring_it_back_either(void **state)
{
	struct world w;
	struct ear x;
	begin(&w, 1);
	w.at[0].server.refuse = true;
	world_listen(&w, &toy_cluster, "x", &x);
	expect_request(&w.at[1], &toy_cluster, "x", "", "");
	respond(&w.at[1], &toy_cluster, "7", "n1", "x=live", NULL);
	fake_ads_settle(&w.at[1].server);
	assert_string_equal(heard(&x), "=live");
	wait_ns(&w, 4 * S);
	w.at[0].server.refuse = false;
	wait_ns(&w, 5 * S);
	fake_ads_settle(&w.at[0].server);
	respond(&w.at[0], &toy_cluster, "8", "n1", "x=BAD", NULL);
	assert_string_equal(heard(&x), "~3");
	assert_false(is_stale(&w));
	end(&w);
}

static void fb_01_what_is_stale_keeps_nobody_from_asking_the_next_server(void **state)
{
	struct world w;
	struct ear x;
	begin(&w, 1);
	world_listen(&w, &toy_cluster, "x", &x); // the first one says nothing
	fake_ads_settle(&w.at[0].server);
	wait_ns(&w, 4 * S);
	assert_string_equal(heard(&x), "=first");
	assert_true(is_stale(&w));
	assert_false(world_connected(&w, 1));
	fake_ads_close(&w.at[0].server, "timed out");
	expect_request(&w.at[1], &toy_cluster, "x", "", "");
	respond(&w.at[1], &toy_cluster, "7", "n1", "x=live", NULL);
	assert_string_equal(heard(&x), "=live");
	assert_false(is_stale(&w));
	end(&w);
}

static void fb_01_what_was_absent_keeps_nobody_from_asking_the_next_server(void **state)
{
	struct world w;
	struct ear nosuch;
	begin(&w, 1);
	world_listen(&w, &toy_cluster, "nosuch", &nosuch); // the first one says nothing
	fake_ads_settle(&w.at[0].server);
	wait_ns(&w, 4 * S);
	assert_string_equal(heard(&nosuch), "!5");
	assert_true(is_stale(&w));
	assert_string_equal(world_state(&w, "nosuch"), "DOES_NOT_EXIST  with error");
	assert_false(world_connected(&w, 1));
	fake_ads_close(&w.at[0].server, "timed out");
	expect_request(&w.at[1], &toy_cluster, "nosuch", "", "");
	respond(&w.at[1], &toy_cluster, "7", "n1", "nosuch=live", NULL);
	assert_string_equal(heard(&nosuch), "=live");
	assert_false(is_stale(&w));
	assert_string_equal(world_state(&w, "nosuch"), "ACKED 7");
	end(&w);
}

static void ops_280_what_was_absent_is_so_at_once_if_the_first_server_speaks_of_others(void **state)
{
	struct world w;
	struct ear x, nosuch;
	begin(&w, 1);
	xds_federation_begin(w.federation);
	world_listen(&w, &toy_cluster, "x", &x);
	world_listen(&w, &toy_cluster, "nosuch", &nosuch);
	xds_federation_end(w.federation);
	fake_ads_settle(&w.at[0].server);
	respond(&w.at[0], &toy_cluster, "7", "n1", "x=live", NULL);
	wait_ns(&w, S);
	assert_string_equal(heard(&x), "=live");
	assert_string_equal(heard(&nosuch), "!5");
	respond(&w.at[0], &toy_cluster, "8", "n2", "x=live", "nosuch=live", NULL);
	assert_string_equal(heard(&nosuch), "=live");
	end(&w);
}

RUN_SUITE("xds/fallback_standby",
	cmocka_unit_test(with_all_servers_away_the_last_one_that_was_used_counts),
	cmocka_unit_test(what_only_the_first_server_left_is_used_too),
	cmocka_unit_test(ops_94_a_dead_first_server_does_not_hurry_the_second_one),
	cmocka_unit_test(ops_94_what_only_the_first_one_had_is_used_when_the_second_is_silent),
	cmocka_unit_test(ops_96_a_server_that_returns_does_not_bring_back_what_is_stale),
	cmocka_unit_test(ops_96_a_bad_word_of_a_server_that_returns_does_not_bring_it_back_either),
	cmocka_unit_test(fb_01_what_is_stale_keeps_nobody_from_asking_the_next_server),
	cmocka_unit_test(fb_01_what_was_absent_keeps_nobody_from_asking_the_next_server),
	cmocka_unit_test(
		ops_280_what_was_absent_is_so_at_once_if_the_first_server_speaks_of_others))
