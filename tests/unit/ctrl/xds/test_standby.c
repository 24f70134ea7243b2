// SPDX-License-Identifier: Apache-2.0
// What an earlier run kept stands in for a server that is silent (OPS-94 to OPS-97), and says of
// which names it had nothing (OPS-280 to OPS-283).
#include "ctrl/xds/protocol.h"
#include "ctrl/xds/standby.h"
#include "ctrl/xds/state/state_file.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/client_fixture.h"

#include <stdlib.h>
#include <string.h>

#define MOMENT (NS_PER_MS * 100)
#define TEXT(s)                                                                                    \
	{                                                                                          \
		s, sizeof(s) - 1                                                                   \
	}

static const struct xds_state_item CLUSTERS[] = {
	{.name = TEXT("a"), .version = TEXT("v7"), .bytes = TEXT("a=old")},
	{.name = TEXT("b"), .version = TEXT("v7"), .bytes = TEXT("b=old")},
	{.name = TEXT("c"), .version = TEXT("v7"), .bytes = TEXT("c=BAD")},
};
static const struct xds_state_item ENDPOINTS[] = {
	{.name = TEXT("a"), .version = TEXT("v8"), .bytes = TEXT("a=there")},
};
static const struct str WILDCARDS[] = {TEXT("\x0a\x01*")};
static const struct str ABSENT[] = {TEXT("\x0a\x06nosuch")};
static const struct xds_state_part PARTS[] = {
	{.server = "ads:1",
		.type_url = CLUSTER_URL,
		.items = CLUSTERS,
		.n_items = 3,
		.wildcards = WILDCARDS,
		.n_wildcards = 1,
		.absent = ABSENT,
		.n_absent = 1},
	{.server = "ads:1", .type_url = ENDPOINTS_URL, .items = ENDPOINTS, .n_items = 1},
};

static struct xds_state kept;

static void keep(const struct xds_state_part *parts, size_t n)
{
	static const struct xds_state empty;
	struct xds_state_image image = {"me", 1700000000, parts, n};
	struct lb_err err;
	uint8_t *bytes;
	size_t len;
	assert_int_equal(xds_state_encode(&image, &empty, &bytes, &len), 0);
	assert_int_equal(xds_state_parse(bytes, len, &kept, &err), 0);
}

static void begin(struct fixture *f, const struct xds_protocol *protocol)
{
	keep(PARTS, 2);
	fixture_init_kept(f, protocol, "", &kept);
}

static void end(struct fixture *f)
{
	fixture_fini(f);
	xds_state_fini(&kept);
}

// In steps, since each turn of a slice takes one.
static void wait_ns(struct fixture *f, uint64_t ns)
{
	for (; ns > MOMENT; ns -= MOMENT)
		pass_time(f, MOMENT);
	pass_time(f, ns);
}

static bool is_stale(struct ear *e)
{
	struct xds_entry_info info;
	xds_watcher_info(&e->watcher, &info);
	return info.is_stale;
}

static size_t n_stale(struct fixture *f)
{
	struct xds_server_info info;
	xds_client_server(f->client, &info);
	return info.n_stale;
}

static void ops_94_a_silent_server_is_waited_for_and_then_stood_in_for(void **state)
{
	struct fixture f;
	struct ear a, b, e;
	begin(&f, NULL);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "b", &b);
	fake_ads_settle(&f.server);
	wait_ns(&f, XDS_STANDBY_NS - MOMENT);
	assert_string_equal(heard(&a), "");
	wait_ns(&f, 2 * S);
	assert_string_equal(heard(&a), "=old");
	assert_string_equal(heard(&b), "=old");
	assert_true(is_stale(&a) && is_stale(&b));
	assert_int_equal(n_stale(&f), 2);
	assert_string_equal(state_of(&f, "a"), "REQUESTED v7");
	assert_non_null(strstr(f.log_line, "from disk"));
	// What is asked for later comes at once.
	listen_to(&f, &toy_endpoints, "a", &e);
	wait_ns(&f, 2 * S);
	assert_string_equal(heard(&e), "=there");
	end(&f);
}

static void ops_94_a_server_that_is_slow_but_there_is_believed_alone(void **state)
{
	struct fixture f;
	struct ear a, b;
	begin(&f, NULL);
	listen_to(&f, &toy_endpoints, "a", &a);
	fake_ads_settle(&f.server);
	wait_ns(&f, XDS_STANDBY_NS - MOMENT);
	respond(&f, &toy_endpoints, "v9", "n1", "a=new", NULL);
	assert_string_equal(heard(&a), "=new");
	listen_to(&f, &toy_cluster, "b", &b);
	wait_ns(&f, 10 * S);
	assert_string_equal(heard(&a), "");
	assert_string_equal(heard(&b), "");
	assert_int_equal(n_stale(&f), 0);
	end(&f);
}

static void ops_95_the_failure_of_a_server_is_told_of_what_was_not_kept(void **state)
{
	struct fixture f;
	struct ear a, z, y;
	begin(&f, NULL);
	f.server.refuse = true;
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "z", &z);
	wait_ns(&f, 700 * NS_PER_MS);
	assert_string_equal(heard(&a), "");
	assert_string_equal(heard(&z), "");
	wait_ns(&f, 2 * S);
	assert_string_equal(heard(&a), "=old ~14");
	assert_string_equal(heard(&z), "!14");
	listen_to(&f, &toy_cluster, "y", &y);
	wait_ns(&f, S);
	assert_string_equal(heard(&y), "!14");
	end(&f);
}

// The second attempt is made after 1 s, 20 % more or less.
static void ops_283_a_server_that_failed_twice_is_not_waited_for(void **state)
{
	struct fixture f;
	struct ear a;
	begin(&f, NULL);
	f.server.refuse = true;
	listen_to(&f, &toy_cluster, "a", &a);
	wait_ns(&f, 700 * NS_PER_MS);
	assert_string_equal(heard(&a), "");
	wait_ns(&f, 1200 * NS_PER_MS); // in all it is less than the time for a silent one
	assert_string_equal(heard(&a), "=old ~14");
	end(&f);
}

static void ops_283_a_server_that_is_back_at_the_second_attempt_is_believed_alone(void **state)
{
	struct fixture f;
	struct ear a;
	begin(&f, NULL);
	f.server.refuse = true;
	listen_to(&f, &toy_cluster, "a", &a);
	wait_ns(&f, 700 * NS_PER_MS);
	f.server.refuse = false;
	wait_ns(&f, S);
	respond(&f, &toy_cluster, "v9", "n1", "a=new", NULL);
	wait_ns(&f, 2 * S);
	assert_string_equal(heard(&a), "=new");
	assert_int_equal(n_stale(&f), 0);
	end(&f);
}

static void ops_95_what_does_not_pass_the_checks_is_not_used(void **state)
{
	struct fixture f;
	struct ear a, c;
	begin(&f, NULL);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "c", &c);
	fake_ads_settle(&f.server);
	wait_ns(&f, 3 * S);
	assert_string_equal(heard(&a), "=old");
	assert_string_equal(heard(&c), "");
	assert_int_equal(n_stale(&f), 1);
	assert_int_equal(f.server.n_read, 0); // the server is told nothing of that
	expect_request(&f, &toy_cluster, "a", "", "");
	expect_request(&f, &toy_cluster, "a c", "", "");
	expect_silence(&f);
	end(&f);
}

static void ops_96_the_servers_word_takes_the_place_of_what_is_stale_one_by_one(void **state)
{
	struct fixture f;
	struct ear a, b, e;
	begin(&f, NULL);
	listen_to(&f, &toy_endpoints, "a", &e);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "b", &b);
	fake_ads_settle(&f.server);
	wait_ns(&f, 3 * S);
	assert_int_equal(n_stale(&f), 3);
	(void)heard(&a);
	(void)heard(&b);
	(void)heard(&e);
	respond(&f, &toy_cluster, "v9", "n1", "a=new", "b=old", NULL);
	assert_string_equal(heard(&a), "=new");
	assert_string_equal(heard(&b), ""); // SW-16: it is the same
	assert_true(!is_stale(&a) && !is_stale(&b) && is_stale(&e));
	assert_string_equal(state_of(&f, "b"), "ACKED v9");
	assert_int_equal(n_stale(&f), 1);
	// The server is there, and knows no such endpoints.
	fake_ads_settle(&f.server);
	wait_ns(&f, 16 * S);
	assert_string_equal(heard(&e), "~5"); // kept (A88), and not stale: it has had its time
	assert_int_equal(n_stale(&f), 0);
	end(&f);
}

static void ops_96_deletion_is_the_servers_to_say(void **state)
{
	struct fixture f;
	struct ear a, b;
	keep(PARTS, 2);
	fixture_init_kept(&f, NULL, "\"fail_on_data_errors\"", &kept);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "b", &b);
	fake_ads_settle(&f.server);
	wait_ns(&f, 60 * S); // FM-04 would have ended them long ago
	assert_string_equal(heard(&a), "=old");
	assert_string_equal(heard(&b), "=old");
	respond(&f, &toy_cluster, "v9", "n1", "a=new", NULL);
	assert_string_equal(heard(&a), "=new");
	assert_string_equal(heard(&b), "!5");
	assert_int_equal(n_stale(&f), 0);
	end(&f);
}

static void ops_96_a_delta_server_is_not_told_that_what_is_stale_is_held(void **state)
{
	struct fixture f;
	struct ear a;
	begin(&f, &xds_protocol_delta);
	f.server.refuse = true;
	listen_to(&f, &toy_cluster, "a", &a);
	wait_ns(&f, 3 * S);
	assert_string_equal(heard(&a), "=old ~14");
	f.server.refuse = false;
	wait_ns(&f, 5 * S);
	expect_delta(&f, &toy_cluster, "+a", "");
	respond_delta(&f, &toy_cluster, "n1", "a=new@v9", NULL);
	assert_string_equal(heard(&a), "=new");
	assert_false(is_stale(&a));
	end(&f);
}

static void ops_96_a_refused_update_leaves_what_is_stale_in_use(void **state)
{
	struct fixture f;
	struct ear a;
	begin(&f, NULL);
	listen_to(&f, &toy_cluster, "a", &a);
	fake_ads_settle(&f.server);
	wait_ns(&f, 3 * S);
	respond(&f, &toy_cluster, "v9", "n1", "a=BAD", NULL);
	assert_string_equal(heard(&a), "=old ~3");
	assert_false(is_stale(&a));
	assert_string_equal(state_of(&f, "a"), "NACKED v7 with error");
	end(&f);
}

// What was absent

static void ops_280_who_was_absent_is_waited_for_but_a_moment(void **state)
{
	struct fixture f;
	struct ear a, nosuch, z;
	begin(&f, NULL);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "nosuch", &nosuch);
	listen_to(&f, &toy_cluster, "z", &z);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v9", "n1", "a=new", NULL);
	fake_ads_settle(&f.server);
	wait_ns(&f, 200 * NS_PER_MS);
	assert_string_equal(heard(&a), "=new");
	assert_string_equal(heard(&nosuch), "");
	wait_ns(&f, 200 * NS_PER_MS);
	assert_string_equal(heard(&nosuch), "!5");
	assert_non_null(strstr(nosuch.text, "cluster \"nosuch\" was not on xDS server ads:1"));
	assert_string_equal(state_of(&f, "nosuch"), "DOES_NOT_EXIST  with error");
	assert_true(is_stale(&nosuch));
	assert_int_equal(n_stale(&f), 1);
	wait_ns(&f, 10 * S);
	assert_string_equal(heard(&z), ""); // nobody knew of that one
	wait_ns(&f, 6 * S);
	assert_string_equal(heard(&z), "!5");
	// OPS-281: nor did the server have it now.
	assert_string_equal(heard(&nosuch), "!5");
	assert_non_null(strstr(nosuch.text, "no answer"));
	assert_int_equal(n_stale(&f), 0);
	end(&f);
}

static void ops_280_who_was_absent_is_so_beside_what_stands_in_for_a_silent_server(void **state)
{
	struct fixture f;
	struct ear a, nosuch;
	begin(&f, NULL);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "nosuch", &nosuch);
	fake_ads_settle(&f.server);
	wait_ns(&f, XDS_STANDBY_NS - MOMENT);
	assert_string_equal(heard(&nosuch), ""); // the server is to be heard first
	wait_ns(&f, S);
	assert_string_equal(heard(&a), "=old");
	assert_string_equal(heard(&nosuch), "!5");
	assert_int_equal(n_stale(&f), 2);
	wait_ns(&f, 60 * S); // silence says nothing before it ever spoke
	assert_string_equal(heard(&nosuch), "");
	assert_int_equal(n_stale(&f), 2);
	respond(&f, &toy_cluster, "v9", "n1", "a=new", "nosuch=new", NULL);
	assert_string_equal(heard(&nosuch), "=new");
	assert_int_equal(n_stale(&f), 0);
	end(&f);
}

static void ops_281_who_was_absent_and_is_there_is_used_at_once(void **state)
{
	struct fixture f;
	struct ear nosuch;
	begin(&f, NULL);
	listen_to(&f, &toy_cluster, "nosuch", &nosuch);
	fake_ads_settle(&f.server);
	wait_ns(&f, 100 * NS_PER_MS);
	respond(&f, &toy_cluster, "v9", "n1", "nosuch=new", NULL);
	wait_ns(&f, 20 * S);
	assert_string_equal(heard(&nosuch), "=new"); // and was never absent
	assert_int_equal(n_stale(&f), 0);
	end(&f);
}

static void ops_281_who_comes_late_is_used_and_no_longer_known_as_absent(void **state)
{
	struct fixture f;
	struct ear a, nosuch;
	begin(&f, NULL);
	listen_to(&f, &toy_endpoints, "a", &a);
	listen_to(&f, &toy_cluster, "nosuch", &nosuch);
	fake_ads_settle(&f.server);
	respond(&f, &toy_endpoints, "v9", "n1", "a=new", NULL);
	wait_ns(&f, S);
	assert_string_equal(heard(&nosuch), "!5");
	respond(&f, &toy_cluster, "v9", "n1", "nosuch=new", NULL);
	assert_string_equal(heard(&nosuch), "=new");
	assert_string_equal(state_of(&f, "nosuch"), "ACKED v9");
	wait_ns(&f, 20 * S);
	assert_string_equal(heard(&nosuch), "");
	assert_false(is_stale(&nosuch));
	end(&f);
}

static void ops_281_a_delta_server_says_itself_that_it_is_absent(void **state)
{
	struct fixture f;
	struct ear a, nosuch;
	begin(&f, &xds_protocol_delta);
	listen_to(&f, &toy_endpoints, "a", &a);
	listen_to(&f, &toy_cluster, "nosuch", &nosuch);
	fake_ads_settle(&f.server);
	respond_delta(&f, &toy_endpoints, "n1", "a=new@v9", NULL);
	wait_ns(&f, S);
	assert_string_equal(heard(&nosuch), "!5");
	assert_true(is_stale(&nosuch));
	respond_delta(&f, &toy_cluster, "n2", "-nosuch", NULL);
	assert_string_equal(heard(&nosuch), "!5");
	assert_non_null(strstr(nosuch.text, "does not exist on"));
	assert_false(is_stale(&nosuch));
	end(&f);
}

static void ops_281_a_stream_that_is_lost_gives_the_server_its_time_anew(void **state)
{
	struct fixture f;
	struct ear a, nosuch;
	begin(&f, NULL);
	listen_to(&f, &toy_endpoints, "a", &a);
	listen_to(&f, &toy_cluster, "nosuch", &nosuch);
	fake_ads_settle(&f.server);
	respond(&f, &toy_endpoints, "v9", "n1", "a=new", NULL);
	wait_ns(&f, 10 * S);
	assert_string_equal(heard(&nosuch), "!5");
	fake_ads_close(&f.server, "restarted");
	wait_ns(&f, 10 * S);
	fake_ads_settle(&f.server);
	assert_string_equal(heard(&nosuch), "");
	assert_true(is_stale(&nosuch));
	wait_ns(&f, 16 * S);
	assert_string_equal(heard(&nosuch), "!5");
	assert_false(is_stale(&nosuch));
	assert_null(strstr(f.log_line, "no answer")); // one line a start
	end(&f);
}

static void ops_280_the_moment_begins_when_the_server_speaks(void **state)
{
	struct fixture f;
	struct ear a, nosuch;
	begin(&f, NULL);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "nosuch", &nosuch);
	fake_ads_settle(&f.server);
	wait_ns(&f, 200 * NS_PER_MS);
	respond(&f, &toy_cluster, "v9", "n1", "a=new", NULL);
	wait_ns(&f, 200 * NS_PER_MS);
	assert_string_equal(heard(&nosuch), "");
	wait_ns(&f, 100 * NS_PER_MS);
	assert_string_equal(heard(&nosuch), "!5");
	end(&f);
}

static void ops_96_a_server_has_its_whole_time_from_when_it_speaks(void **state)
{
	struct fixture f;
	struct ear a, b, nosuch;
	begin(&f, NULL);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "b", &b);
	listen_to(&f, &toy_cluster, "nosuch", &nosuch);
	fake_ads_settle(&f.server);
	wait_ns(&f, 14 * S);
	assert_string_equal(heard(&b), "=old");
	assert_string_equal(heard(&nosuch), "!5");
	respond(&f, &toy_endpoints, "v9", "n1", "a=new", NULL);
	wait_ns(&f, 14 * S);
	assert_string_equal(heard(&b), "");
	assert_string_equal(heard(&nosuch), "");
	assert_int_equal(n_stale(&f), 3);
	wait_ns(&f, 2 * S);
	assert_int_equal(n_stale(&f), 0);
	assert_string_equal(heard(&nosuch), "!5");
	end(&f);
}

static void ops_280_who_is_asked_for_long_after_the_start_is_waited_for_like_others(void **state)
{
	struct fixture f;
	struct ear a, nosuch;
	begin(&f, NULL);
	listen_to(&f, &toy_cluster, "a", &a);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v9", "n1", "a=new", NULL);
	wait_ns(&f, XDS_STANDBY_ABSENT_NS + MOMENT);
	listen_to(&f, &toy_cluster, "nosuch", &nosuch);
	fake_ads_settle(&f.server);
	wait_ns(&f, 14 * S);
	assert_string_equal(heard(&nosuch), "");
	wait_ns(&f, 2 * S);
	assert_string_equal(heard(&nosuch), "!5");
	assert_int_equal(n_stale(&f), 0);
	end(&f);
}

static void ops_280_who_has_come_is_not_presumed_absent_anew(void **state)
{
	struct fixture f;
	struct ear a, nosuch;
	begin(&f, NULL);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "nosuch", &nosuch);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v9", "n1", "a=new", "nosuch=new", NULL);
	assert_string_equal(heard(&nosuch), "=new");
	xds_client_cancel(f.client, &nosuch.watcher);
	fake_ads_settle(&f.server);
	listen_to(&f, &toy_cluster, "nosuch", &nosuch);
	fake_ads_settle(&f.server);
	wait_ns(&f, S);
	assert_string_equal(heard(&nosuch), "");
	end(&f);
}

// TH-57
static void ops_281_a_response_that_is_not_read_may_have_had_who_was_absent(void **state)
{
	static const struct xds_type *const TYPES[] = {&toy_cluster, &toy_endpoints};
	struct fixture f;
	struct ear a, nosuch;
	begin(&f, NULL);
	xds_client_free(f.client);
	f.client = xds_client_new(&(struct xds_client_conf){
		.bootstrap = f.bootstrap,
		.types = TYPES,
		.n_types = 2,
		.transport = fake_ads_factory(&f.server),
		.wheel = f.wheel,
		.rand = &f.rand,
		.user_agent_version = "1",
		.state = &kept,
		.limits = {.n_resources = 2},
	});
	assert_non_null(f.client);
	listen_to(&f, &toy_endpoints, "a", &a);
	listen_to(&f, &toy_cluster, "nosuch", &nosuch);
	fake_ads_settle(&f.server);
	respond(&f, &toy_endpoints, "v9", "n1", "a=new", NULL);
	wait_ns(&f, S);
	assert_string_equal(heard(&nosuch), "!5");
	respond(&f, &toy_cluster, "v9", "n2", "nosuch=new", "b=new", "c=new", NULL);
	assert_string_equal(heard(&nosuch), "!3");
	assert_non_null(strstr(nosuch.text, "was not read"));
	assert_int_equal(n_stale(&f), 0);
	end(&f);
}

// FM-08
static void ops_280_what_never_came_is_no_more_than_a_transient_error_where_it_was_one(void **state)
{
	struct fixture f;
	struct ear a, nosuch;
	keep(PARTS, 2);
	fixture_init_kept(&f, NULL, "\"resource_timer_is_transient_error\"", &kept);
	listen_to(&f, &toy_endpoints, "a", &a);
	listen_to(&f, &toy_cluster, "nosuch", &nosuch);
	fake_ads_settle(&f.server);
	respond(&f, &toy_endpoints, "v9", "n1", "a=new", NULL);
	wait_ns(&f, S);
	assert_string_equal(heard(&nosuch), "!14");
	assert_string_equal(state_of(&f, "nosuch"), "TIMEOUT  with error");
	assert_true(is_stale(&nosuch));
	wait_ns(&f, 31 * S);
	assert_string_equal(heard(&nosuch), "!14");
	assert_false(is_stale(&nosuch));
	end(&f);
}

// A wildcard

struct all {
	struct xds_watcher watcher; // first member
	struct fixture *f;
	struct ear parts[4];
	unsigned n_parts, n_told;
};

static int on_name(struct xds_watcher *w, const char *name)
{
	struct all *all = (struct all *)w;
	assert_true(all->n_parts < 4);
	struct ear *e = &all->parts[all->n_parts++];
	prepare_ear(e);
	e->watcher.by_wildcard = true;
	return xds_client_watch(all->f->client, &toy_cluster, name, &e->watcher);
}

static void on_all(struct xds_watcher *w, const struct xds_event *event)
{
	struct all *all = (struct all *)w;
	all->n_told += event->kind == XDS_EVENT_RESOURCE;
}

static void watch_all(struct fixture *f, struct all *all)
{
	*all = (struct all){.watcher = {.on_event = on_all, .on_name = on_name}, .f = f};
	assert_int_equal(xds_client_watch(f->client, &toy_cluster, "*", &all->watcher), 0);
}

static void ops_97_a_wildcards_list_is_whole_if_it_was(void **state)
{
	struct fixture f;
	struct all all;
	begin(&f, NULL);
	watch_all(&f, &all);
	fake_ads_settle(&f.server);
	wait_ns(&f, 3 * S);
	assert_int_equal(all.n_parts, 2);
	assert_int_equal(all.n_told, 1);
	assert_string_equal(heard(&all.parts[0]), "=old");
	respond(&f, &toy_cluster, "v9", "n1", "b=new", NULL);
	assert_string_equal(heard(&all.parts[0]), "~5"); // deleted, and kept (A88)
	assert_string_equal(heard(&all.parts[1]), "=old =new");
	assert_int_equal(n_stale(&f), 0);
	end(&f);
}

static void ops_97_names_alone_make_no_list(void **state)
{
	struct fixture f;
	struct all all;
	struct xds_state_part named = PARTS[0];
	named.n_wildcards = 0;
	keep(&named, 1);
	fixture_init_kept(&f, NULL, "", &kept);
	watch_all(&f, &all);
	fake_ads_settle(&f.server);
	wait_ns(&f, 3 * S);
	assert_int_equal(all.n_parts, 2);
	assert_int_equal(all.n_told, 0);
	end(&f);
}

static void what_another_server_sent_is_not_used(void **state)
{
	struct fixture f;
	struct ear a;
	struct xds_state_part other = PARTS[0];
	other.server = "ads:2";
	keep(&other, 1);
	fixture_init_kept(&f, NULL, "", &kept);
	f.server.refuse = true;
	listen_to(&f, &toy_cluster, "a", &a);
	assert_string_equal(heard(&a), "!14"); // at once: there is nothing to wait for
	end(&f);
}

RUN_SUITE("xds/standby",
	cmocka_unit_test(ops_94_a_silent_server_is_waited_for_and_then_stood_in_for),
	cmocka_unit_test(ops_94_a_server_that_is_slow_but_there_is_believed_alone),
	cmocka_unit_test(ops_95_the_failure_of_a_server_is_told_of_what_was_not_kept),
	cmocka_unit_test(ops_95_what_does_not_pass_the_checks_is_not_used),
	cmocka_unit_test(ops_96_the_servers_word_takes_the_place_of_what_is_stale_one_by_one),
	cmocka_unit_test(ops_96_deletion_is_the_servers_to_say),
	cmocka_unit_test(ops_96_a_delta_server_is_not_told_that_what_is_stale_is_held),
	cmocka_unit_test(ops_96_a_refused_update_leaves_what_is_stale_in_use),
	cmocka_unit_test(ops_283_a_server_that_failed_twice_is_not_waited_for),
	cmocka_unit_test(ops_283_a_server_that_is_back_at_the_second_attempt_is_believed_alone),
	cmocka_unit_test(ops_280_who_was_absent_is_waited_for_but_a_moment),
	cmocka_unit_test(ops_280_who_was_absent_is_so_beside_what_stands_in_for_a_silent_server),
	cmocka_unit_test(ops_281_who_was_absent_and_is_there_is_used_at_once),
	cmocka_unit_test(ops_281_who_comes_late_is_used_and_no_longer_known_as_absent),
	cmocka_unit_test(ops_281_a_delta_server_says_itself_that_it_is_absent),
	cmocka_unit_test(ops_281_a_stream_that_is_lost_gives_the_server_its_time_anew),
	cmocka_unit_test(ops_280_the_moment_begins_when_the_server_speaks),
	cmocka_unit_test(ops_96_a_server_has_its_whole_time_from_when_it_speaks),
	cmocka_unit_test(ops_280_who_is_asked_for_long_after_the_start_is_waited_for_like_others),
	cmocka_unit_test(ops_280_who_has_come_is_not_presumed_absent_anew),
	cmocka_unit_test(ops_281_a_response_that_is_not_read_may_have_had_who_was_absent),
	cmocka_unit_test(
		ops_280_what_never_came_is_no_more_than_a_transient_error_where_it_was_one),
	cmocka_unit_test(ops_97_a_wildcards_list_is_whole_if_it_was),
	cmocka_unit_test(ops_97_names_alone_make_no_list),
	cmocka_unit_test(what_another_server_sent_is_not_used))
