// SPDX-License-Identifier: Apache-2.0
// What serves is written when all that was asked for has come, and read again at the next start.
// The disk and its thread are real, the rest is in virtual time.
#include "ctrl/xds/keeper.h"
#include "ctrl/xds/protocol.h"
#include "ctrl/xds/state/state_dir.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/client_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TRIES 3000 // of 10 ms: a busy machine takes seconds

static char directory[64];

static int make_directory(void **state)
{
	snprintf(directory, sizeof(directory), "/tmp/shunt-keeper-XXXXXX");
	return mkdtemp(directory) ? 0 : -1;
}

static const char *path_of(const char *name)
{
	static char path[128];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static int drop_directory(void **state)
{
	(void)remove(path_of(XDS_STATE_NAME));
	(void)remove(path_of(XDS_STATE_NAME ".corrupt"));
	return rmdir(directory);
}

static uint64_t wall_ns(void)
{
	return 1700000000 * S;
}

static void each_client(void *of, void (*fn)(void *ctx, struct xds_client *), void *ctx)
{
	fn(ctx, of);
}

static int try_keeper(
	struct fixture *f, uint64_t hold_ns, struct xds_keeper **ret, struct lb_err *err)
{
	struct xds_keeper_conf conf = {
		.directory = directory,
		.bootstrap = f->bootstrap,
		.wheel = f->wheel,
		.wall_ns = wall_ns,
		.hold_ns = hold_ns,
	};
	return xds_keeper_new(&conf, ret, err);
}

static struct xds_keeper *keeper_of(struct fixture *f, uint64_t hold_ns)
{
	struct xds_keeper *k;
	struct lb_err err;
	assert_int_equal(try_keeper(f, hold_ns, &k, &err), 0);
	xds_client_add_settled(f->client, xds_keeper_follow(k, each_client, f->client));
	return k;
}

static struct xds_keeper_info info_of(const struct xds_keeper *k)
{
	struct xds_keeper_info i;
	xds_keeper_info(k, &i);
	return i;
}

// Lets the writer get done, in a time that the keeper looks after it but begins nothing more.
static void wait_written(struct fixture *f, const struct xds_keeper *k, uint64_t n)
{
	pass_time(f, 1500 * NS_PER_MS);
	for (int i = 0; i < TRIES && info_of(k).n_written + info_of(k).n_failed < n; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		pass_time(f, 100 * NS_PER_MS);
	}
	assert_int_equal(info_of(k).n_written + info_of(k).n_failed, n);
}

static bool file_has(const char *text)
{
	struct xds_state s;
	struct lb_err err;
	if (xds_state_load(directory, &s, &err))
		return false;
	bool found = false;
	for (size_t i = 0; i < s.n_sections; i++) {
		struct str r = s.sections[i].response;
		found = found || (r.len && memmem(r.p, r.len, text, strlen(text)));
	}
	xds_state_fini(&s);
	return found;
}

static bool file_is_there(void)
{
	return access(path_of(XDS_STATE_NAME), F_OK) == 0;
}

static void end(struct fixture *f, struct xds_keeper *k)
{
	xds_keeper_finish(k);
	xds_client_free(f->client);
	f->client = NULL;
	xds_keeper_free(k);
	fixture_fini(f);
}

static void ops_91_half_a_configuration_is_not_written(void **state)
{
	struct fixture f;
	struct ear a, e;
	fixture_init(&f, "");
	struct xds_keeper *k = keeper_of(&f, 0);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_endpoints, "e", &e);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", NULL);
	fake_ads_settle(&f.server);
	pass_time(&f, 10 * S);
	assert_false(file_is_there());
	respond(&f, &toy_endpoints, "v1", "n2", "e=2", NULL);
	pass_time(&f, 5 * S);
	wait_written(&f, k, 1);
	assert_true(file_has("a=1") && file_has("e=2"));
	end(&f, k);
}

static void ops_91_changes_in_a_row_make_one_file_and_the_last_is_written_at_the_end(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "");
	struct xds_keeper *k = keeper_of(&f, 0);
	listen_to(&f, &toy_cluster, "a", &a);
	fake_ads_settle(&f.server);
	for (int i = 0; i < 5; i++) {
		char text[8];
		snprintf(text, sizeof(text), "a=%d", i);
		respond(&f, &toy_cluster, text, "n", text, NULL);
		fake_ads_settle(&f.server);
		pass_time(&f, 100 * NS_PER_MS);
	}
	wait_written(&f, k, 1);
	assert_true(file_has("a=4"));
	respond(&f, &toy_cluster, "last", "n", "a=last", NULL);
	pass_time(&f, S);
	assert_int_equal(info_of(k).n_written, 1); // it rests
	end(&f, k);
	assert_true(file_has("a=last"));
}

static void ops_99_what_was_read_is_held_for_who_is_not_back_yet(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "");
	struct xds_keeper *k = keeper_of(&f, 60 * S); // nothing is there to be held
	listen_to(&f, &toy_cluster, "a", &a);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", "b=1", NULL);
	wait_written(&f, k, 1);
	end(&f, k);

	fixture_init(&f, "");
	k = keeper_of(&f, 60 * S);
	assert_int_equal(info_of(k).read_s, 1700000000);
	listen_to(&f, &toy_cluster, "c", &a);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v1", "n1", "c=1", NULL);
	fake_ads_settle(&f.server);
	pass_time(&f, 50 * S);
	assert_true(file_has("a=1"));
	pass_time(&f, 10 * S);
	wait_written(&f, k, 1);
	assert_true(file_has("c=1") && !file_has("a=1"));
	end(&f, k);
}

static void a_silent_server_changes_nothing_of_the_file(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "");
	struct xds_keeper *k = keeper_of(&f, 0);
	listen_to(&f, &toy_cluster, "a", &a);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", NULL);
	wait_written(&f, k, 1);
	end(&f, k);

	fixture_init(&f, "");
	k = keeper_of(&f, 0);
	f.server.refuse = true;
	listen_to(&f, &toy_cluster, "x", &a);
	pass_time(&f, 30 * S);
	assert_int_equal(info_of(k).n_written, 0);
	end(&f, k);
	assert_true(file_has("a=1"));
}

// OPS-98
static void a_name_that_the_server_no_longer_has_does_not_keep_the_file_as_it_was(void **state)
{
	struct xds_state kept;
	struct fixture f;
	struct ear a, b;
	struct lb_err err;
	fixture_init(&f, "");
	struct xds_keeper *k = keeper_of(&f, 0);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "b", &b);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", "b=1", NULL);
	wait_written(&f, k, 1);
	end(&f, k);

	assert_int_equal(xds_state_load(directory, &kept, &err), 0);
	fixture_init_kept(&f, NULL, "", &kept);
	k = keeper_of(&f, 0);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "b", &b);
	fake_ads_settle(&f.server);
	for (int i = 0; i < 30; i++) // each turn of a slice takes one
		pass_time(&f, 100 * NS_PER_MS);
	assert_string_equal(heard(&b), "=1");
	respond(&f, &toy_cluster, "v2", "n1", "a=2", NULL);
	assert_string_equal(heard(&b), "~5");
	pass_time(&f, 5 * S);
	wait_written(&f, k, 1);
	assert_true(file_has("a=2") && file_has("b=1")); // it serves (A88)
	end(&f, k);
	xds_state_fini(&kept);
}

static struct xds_keeper *go_on_from(struct fixture *f, struct xds_state *kept)
{
	struct lb_err err;
	assert_int_equal(xds_state_load(directory, kept, &err), 0);
	fixture_init_kept(f, NULL, "", kept);
	return keeper_of(f, 0);
}

static void ops_280_what_was_asked_for_and_is_absent_is_kept(void **state)
{
	struct xds_state kept;
	struct fixture f;
	struct ear a, nosuch, later;
	fixture_init(&f, "");
	struct xds_keeper *k = keeper_of(&f, 0);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "nosuch", &nosuch);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", NULL);
	pass_time(&f, 14 * S);
	assert_int_equal(info_of(k).n_written, 0);
	pass_time(&f, 2 * S);
	assert_string_equal(heard(&nosuch), "!5");
	wait_written(&f, k, 1);
	end(&f, k);

	k = go_on_from(&f, &kept);
	assert_int_equal(kept.n_absent, 1);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "nosuch", &nosuch);
	listen_to(&f, &toy_cluster, "later", &later);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v2", "n1", "a=2", "later=2", NULL);
	pass_time(&f, S);
	assert_string_equal(heard(&nosuch), "!5");
	// OPS-281: that is no word of the server's, and so the file stays as it is.
	pass_time(&f, 10 * S);
	assert_int_equal(info_of(k).n_written, 0);
	assert_true(file_has("a=1"));
	pass_time(&f, 10 * S);
	wait_written(&f, k, 1);
	assert_true(file_has("a=2"));
	end(&f, k);
	xds_state_fini(&kept);

	k = go_on_from(&f, &kept);
	assert_int_equal(kept.n_absent, 1);
	listen_to(&f, &toy_cluster, "a", &a);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v2", "n1", "a=2", NULL);
	wait_written(&f, k, 1);
	end(&f, k);
	xds_state_fini(&kept);

	k = go_on_from(&f, &kept);
	assert_int_equal(kept.n_absent, 0); // nobody asks for it any more
	end(&f, k);
	xds_state_fini(&kept);
}

static void ops_282_long_names_that_are_absent_do_not_fill_the_file(void **state)
{
	enum { N = 3 };
	size_t len = XDS_STATE_MAX_ABSENT_LEN / 2 - 64; // two of them fit
	struct xds_state kept;
	struct fixture f;
	struct ear a, missing[N];
	struct lb_err err;
	char *name = malloc(len + 1);
	assert_non_null(name);
	fixture_init(&f, "");
	struct xds_keeper *k = keeper_of(&f, 0);
	listen_to(&f, &toy_cluster, "a", &a);
	for (int i = 0; i < N; i++) {
		memset(name, 'a' + i, len);
		name[len] = 0;
		listen_to(&f, &toy_cluster, name, &missing[i]);
	}
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", NULL);
	pass_time(&f, 16 * S);
	wait_written(&f, k, 1);
	end(&f, k);
	assert_true(file_has("a=1"));
	assert_int_equal(xds_state_load(directory, &kept, &err), 0);
	assert_int_equal(kept.n_absent, 2);
	xds_state_fini(&kept);
	free(name);
}

// OPS-91
static void a_second_keeper_of_a_directory_is_refused_until_the_first_ends(void **state)
{
	struct fixture f;
	struct xds_keeper *k, *second;
	struct lb_err err;
	fixture_init(&f, "");
	k = keeper_of(&f, 0);
	assert_int_equal(try_keeper(&f, 0, &second, &err), -EWOULDBLOCK);
	assert_null(second);
	assert_non_null(strstr(err.text, directory));
	end(&f, k);
	fixture_init(&f, "");
	end(&f, keeper_of(&f, 0));
}

static void fl_14_one_that_waits_reads_at_once_and_writes_when_the_other_has_ended(void **state)
{
	struct fixture f, other;
	struct xds_keeper *k, *second;
	struct lb_err err;
	struct ear a;
	fixture_init(&other, "");
	k = keeper_of(&other, 0);
	fixture_init(&f, "");
	struct xds_keeper_conf conf = {.directory = directory,
		.bootstrap = f.bootstrap,
		.wheel = f.wheel,
		.wall_ns = wall_ns,
		.waits = true};
	assert_int_equal(xds_keeper_new(&conf, &second, &err), 0);
	xds_client_add_settled(f.client, xds_keeper_follow(second, each_client, f.client));
	listen_to(&f, &toy_cluster, "a", &a);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", NULL);
	pass_time(&f, 10 * S);
	assert_int_equal(info_of(second).n_written, 0);
	end(&other, k);
	pass_time(&f, 10 * S);
	wait_written(&f, second, 1);
	assert_int_equal(info_of(second).n_written, 1);
	end(&f, second);
}

// OPS-95
static void what_another_node_left_is_not_used(void **state)
{
	static const struct xds_state empty;
	struct xds_state_part part = {.server = "ads:1", .type_url = CLUSTER_URL};
	struct xds_state_image image = {"somebody else", 5, &part, 1};
	struct fixture f;
	struct lb_err err;
	uint8_t *bytes;
	size_t len;
	assert_int_equal(xds_state_encode(&image, &empty, &bytes, &len), 0);
	assert_int_equal(xds_state_save(directory, bytes, len, &err), 0);
	free(bytes);
	fixture_init(&f, "");
	struct xds_keeper *k = keeper_of(&f, 0);
	assert_int_equal(xds_keeper_state(k)->n_sections, 0);
	assert_int_equal(info_of(k).read_s, 0);
	end(&f, k);
	assert_true(file_is_there()); // it is not broken
}

static void ops_93_a_failure_is_counted_and_tried_again(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "");
	struct xds_keeper *k = keeper_of(&f, 0);
	assert_int_equal(rmdir(directory), 0);
	listen_to(&f, &toy_cluster, "a", &a);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", NULL);
	wait_written(&f, k, 1);
	assert_int_equal(info_of(k).n_failed, 1);
	assert_non_null(strstr(info_of(k).error, "No such file"));
	assert_int_equal(mkdir(directory, 0700), 0);
	pass_time(&f, 31 * S);
	wait_written(&f, k, 2);
	assert_string_equal(info_of(k).error, "");
	assert_true(file_has("a=1"));
	end(&f, k);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, drop_directory)

RUN_SUITE("xds/keeper", TEST(ops_91_half_a_configuration_is_not_written),
	TEST(ops_91_changes_in_a_row_make_one_file_and_the_last_is_written_at_the_end),
	TEST(ops_99_what_was_read_is_held_for_who_is_not_back_yet),
	TEST(a_silent_server_changes_nothing_of_the_file),
	TEST(ops_280_what_was_asked_for_and_is_absent_is_kept),
	TEST(ops_282_long_names_that_are_absent_do_not_fill_the_file),
	TEST(a_second_keeper_of_a_directory_is_refused_until_the_first_ends),
	TEST(fl_14_one_that_waits_reads_at_once_and_writes_when_the_other_has_ended),
	TEST(a_name_that_the_server_no_longer_has_does_not_keep_the_file_as_it_was),
	TEST(what_another_node_left_is_not_used), TEST(ops_93_a_failure_is_counted_and_tried_again))
