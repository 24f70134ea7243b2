// SPDX-License-Identifier: Apache-2.0
// What servers have sent one process stands in for them at the next, in memory alone (FL-177,
// FL-178).
#include "ctrl/base/sealed_file.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/legacy.h"
#include "ctrl/xds/standby.h"
#include "ctrl/xds/state/state_file.h"
#include "lb/base/log.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/client_fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct xds_state none;

static void each_client(void *of, void (*fn)(void *ctx, struct xds_client *), void *ctx)
{
	fn(ctx, of);
}

static int make(struct fixture *f, const struct xds_state *before)
{
	return xds_legacy_make(each_client, f->client, f->bootstrap, before, 1700000000);
}

// An older process, whose server has said this; "b" it does not know, and "later" is not answered.
static int left_by_one(const char *later)
{
	struct fixture f;
	struct ear a, e, l;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_endpoints, "a", &e);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v1", "n1", "a=first", NULL);
	respond(&f, &toy_endpoints, "v2", "n2", "a=there", NULL);
	if (later)
		listen_to(&f, &toy_endpoints, later, &l);
	int fd = make(&f, &none);
	assert_true(fd >= 0);
	fixture_fini(&f);
	return fd;
}

struct heir {
	struct fixture f;
	struct xds_legacy *legacy;
	struct ear a, e;
};

// A newer one, whose server is away.
static void inherit(struct heir *h, int fd)
{
	struct fixture first;
	fixture_init(&first, ""); // for a bootstrap, which all of them have alike
	h->legacy = xds_legacy_take(fd, first.bootstrap);
	assert_non_null(h->legacy);
	fixture_fini(&first);
	fixture_init_kept(&h->f, NULL, "", xds_legacy_state(h->legacy));
	xds_client_add_settled(h->f.client, xds_legacy_follow(h->legacy, each_client, h->f.client));
	h->f.server.refuse = true;
	listen_to(&h->f, &toy_cluster, "a", &h->a);
	listen_to(&h->f, &toy_endpoints, "a", &h->e);
	for (int i = 0; i < 30; i++)
		pass_time(&h->f, 100 * NS_PER_MS);
}

static void end(struct heir *h)
{
	fixture_fini(&h->f);
	xds_legacy_free(h->legacy);
}

static void fl_177_a_newer_process_without_its_server_serves(void **state)
{
	struct heir h;
	inherit(&h, left_by_one(NULL));
	assert_string_equal(heard(&h.a), "=first ~14");
	assert_string_equal(heard(&h.e), "=there ~14");
	assert_non_null(strstr(h.f.log_line, "from the older process"));
	end(&h);
}

// There is no file that would have the whole of before.
static void fl_177_what_serves_is_left_though_a_name_is_still_awaited(void **state)
{
	struct heir h;
	inherit(&h, left_by_one("later"));
	assert_string_equal(heard(&h.e), "=there ~14");
	end(&h);
}

static void fl_177_it_is_passed_on_until_the_server_speaks(void **state)
{
	struct heir second, third;
	inherit(&second, left_by_one(NULL));
	int fd = make(&second.f, xds_legacy_state(second.legacy));
	assert_true(fd >= 0);
	end(&second);
	inherit(&third, fd);
	assert_string_equal(heard(&third.a), "=first ~14");
	third.f.server.refuse = false;
	for (int i = 0; i < 100; i++)
		pass_time(&third.f, 100 * NS_PER_MS);
	respond(&third.f, &toy_cluster, "v3", "n3", "a=second", NULL);
	assert_non_null(strstr(heard(&third.a), "=second"));
	assert_int_equal(xds_legacy_state(third.legacy)->n_sections, 0);
	end(&third);
}

static void fl_177_a_server_that_answers_is_believed_alone(void **state)
{
	struct heir h;
	struct fixture first;
	fixture_init(&first, "");
	h.legacy = xds_legacy_take(left_by_one(NULL), first.bootstrap);
	fixture_fini(&first);
	fixture_init_kept(&h.f, NULL, "", xds_legacy_state(h.legacy));
	listen_to(&h.f, &toy_cluster, "a", &h.a);
	fake_ads_settle(&h.f.server);
	respond(&h.f, &toy_cluster, "v9", "n1", "a=new", NULL);
	assert_string_equal(heard(&h.a), "=new");
	end(&h);
}

static void nothing_is_left_where_nobody_has_spoken(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	assert_int_equal(make(&f, &none), -1);
	fixture_fini(&f);
}

// A file with a byte of it changed, if at all.
static int changed(int fd, size_t at, uint8_t by)
{
	uint8_t *bytes;
	size_t len;
	assert_int_equal(sealed_file_read(fd, 1 << 20, &bytes, &len), 0);
	close(fd);
	bytes[at] ^= by;
	fd = sealed_file_make("test", bytes, len);
	free(bytes);
	return fd;
}

static void fl_178_what_is_no_use_is_not_taken(void **state)
{
	struct fixture f;
	int fds[2];
	fixture_init(&f, "");
	assert_int_equal(pipe(fds), 0);
	close(fds[1]);
	assert_null(xds_legacy_take(-1, f.bootstrap)); // nothing came
	assert_null(xds_legacy_take(fds[0], f.bootstrap)); // no file
	assert_null(xds_legacy_take(sealed_file_make("test", NULL, 0), f.bootstrap));
	assert_null(xds_legacy_take(changed(left_by_one(NULL), 40, 1), f.bootstrap));
	int fd = left_by_one(NULL);
	char *node_id = f.bootstrap->node_id, other[] = "another";
	f.bootstrap->node_id = other;
	assert_null(xds_legacy_take(fd, f.bootstrap));
	f.bootstrap->node_id = node_id;
	fixture_fini(&f);
}

static void what_is_passed_on_cannot_be_changed_and_is_bounded(void **state)
{
	uint8_t *bytes;
	size_t len;
	int fd = sealed_file_make("test", (const uint8_t *)"abc", 3);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(ftruncate(fd, 2), -1);
	assert_int_equal(sealed_file_read(fd, 2, &bytes, &len), -EFBIG);
	assert_int_equal(sealed_file_read(fd, 3, &bytes, &len), 0);
	assert_int_equal(len, 3);
	assert_memory_equal(bytes, "abc", 3);
	free(bytes);
	close(fd);
}

RUN_SUITE("xds/legacy", cmocka_unit_test(fl_177_a_newer_process_without_its_server_serves),
	cmocka_unit_test(fl_177_what_serves_is_left_though_a_name_is_still_awaited),
	cmocka_unit_test(fl_177_it_is_passed_on_until_the_server_speaks),
	cmocka_unit_test(fl_177_a_server_that_answers_is_believed_alone),
	cmocka_unit_test(nothing_is_left_where_nobody_has_spoken),
	cmocka_unit_test(fl_178_what_is_no_use_is_not_taken),
	cmocka_unit_test(what_is_passed_on_cannot_be_changed_and_is_bounded))
