// SPDX-License-Identifier: Apache-2.0
// The thread that writes: one job after the other, and what went wrong.
#include "ctrl/xds/state/state_dir.h"
#include "ctrl/xds/state/state_writer.h"
#include "tests/support/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_MS 30000
#define URL "type.googleapis.com/toy"

static const struct xds_state_item ITEM = {.name = {"a", 1}, .bytes = {"a=1", 3}};
static const struct xds_state_part FRESH[] = {
	{.server = "ads:1", .type_url = URL, .items = &ITEM, .n_items = 1},
	{.server = "ads:2", .type_url = URL},
};
static const struct xds_state_part CARRIED[] = {{.server = "ads:1"}};

static struct xds_state_job job_of(const char *node, const struct xds_state_part *parts, size_t n)
{
	return (struct xds_state_job){
		.image = {.node_id = node, .written_s = 1, .parts = parts, .n_parts = n}};
}

static void run(struct xds_state_writer *w, struct xds_state_job *j)
{
	xds_state_writer_give(w, j);
	assert_ptr_equal(xds_state_writer_wait(w, WAIT_MS), j);
	assert_null(xds_state_writer_wait(w, WAIT_MS)); // it does not wait for nothing
}

static size_t count_sections(const char *directory)
{
	struct xds_state s;
	struct lb_err err;
	assert_int_equal(xds_state_load(directory, &s, &err), 0);
	size_t n = s.n_sections;
	xds_state_fini(&s);
	return n;
}

static void a_silent_server_keeps_its_part_of_the_file(void **state)
{
	char directory[] = "/tmp/shunt-writer-XXXXXX", path[64];
	assert_non_null(mkdtemp(directory));
	struct xds_state_writer *w = xds_state_writer_new(directory);
	struct xds_state_job fresh = job_of("me", FRESH, 2), carried = job_of("me", CARRIED, 1),
			     other = job_of("another node", CARRIED, 1);
	assert_non_null(w);
	run(w, &fresh);
	assert_int_equal(fresh.rc, 0);
	assert_int_equal(count_sections(directory), 2);
	run(w, &carried);
	assert_int_equal(carried.rc, 0);
	assert_int_equal(count_sections(directory), 1);
	run(w, &other); // what was another node's is nobody's
	assert_int_equal(count_sections(directory), 0);
	assert_true(xds_state_writer_free(w));
	snprintf(path, sizeof(path), "%s/%s", directory, XDS_STATE_NAME);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(directory), 0);
}

static void a_failure_says_where_and_why(void **state)
{
	struct xds_state_writer *w = xds_state_writer_new("/nowhere/at/all");
	struct xds_state_job j = job_of("me", FRESH, 2);
	assert_non_null(w);
	run(w, &j);
	assert_int_equal(j.rc, -ENOENT);
	assert_non_null(strstr(j.err.text, "/nowhere/at/all"));
	assert_true(xds_state_writer_free(w));
}

RUN_SUITE("xds/state_writer", cmocka_unit_test(a_silent_server_keeps_its_part_of_the_file),
	cmocka_unit_test(a_failure_says_where_and_why))
