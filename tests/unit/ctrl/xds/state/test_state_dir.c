// SPDX-License-Identifier: Apache-2.0
// The file in its directory, which others may have changed.
#include "ctrl/xds/state/state_dir.h"
#include "tests/support/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct place {
	char directory[64];
};

static int make_place(void **state)
{
	static struct place p;
	snprintf(p.directory, sizeof(p.directory), "/tmp/shunt-state-XXXXXX");
	*state = &p;
	return mkdtemp(p.directory) ? 0 : -1;
}

static const char *path_of(const struct place *p, const char *name)
{
	static char path[128];
	snprintf(path, sizeof(path), "%s/%s", p->directory, name);
	return path;
}

static int drop_place(void **state)
{
	static const char *const names[] = {
		XDS_STATE_NAME, XDS_STATE_NAME ".new", XDS_STATE_NAME ".corrupt", "other"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)remove(path_of(*state, names[i]));
	return rmdir(((struct place *)*state)->directory);
}

static void save(const struct place *p, const char *node)
{
	static const struct xds_state empty;
	struct xds_state_image image = {.node_id = node, .written_s = 5};
	struct lb_err err;
	uint8_t *bytes;
	size_t len;
	assert_int_equal(xds_state_encode(&image, &empty, &bytes, &len), 0);
	assert_int_equal(xds_state_save(p->directory, bytes, len, &err), 0);
	free(bytes);
}

static void assert_node(const struct place *p, const char *node)
{
	struct xds_state s;
	struct lb_err err;
	assert_int_equal(xds_state_load(p->directory, &s, &err), 0);
	assert_true(str_eq(s.node_id, str_from(node)));
	xds_state_fini(&s);
}

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
}

static void ops_91_a_file_is_replaced_and_only_its_owner_reads_it(void **state)
{
	const struct place *p = *state;
	struct stat st;
	write_text(path_of(p, XDS_STATE_NAME ".new"), "of a process that died");
	save(p, "one");
	assert_node(p, "one");
	save(p, "two");
	assert_node(p, "two");
	assert_int_equal(stat(path_of(p, XDS_STATE_NAME), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(access(path_of(p, XDS_STATE_NAME ".new"), F_OK), -1);
}

static void a_file_that_is_not_there_is_told_from_a_directory_that_is_not(void **state)
{
	const struct place *p = *state;
	struct xds_state s;
	struct lb_err err;
	assert_int_equal(xds_state_load(p->directory, &s, &err), -ENOENT);
	assert_int_equal(xds_state_load(path_of(p, "nowhere"), &s, &err), -ENOTDIR);
	assert_non_null(strstr(err.text, "nowhere"));
	assert_int_equal(xds_state_save(path_of(p, "nowhere"), NULL, 0, &err), -ENOENT);
}

static void ops_92_a_broken_file_is_set_aside_and_one_is_kept(void **state)
{
	const struct place *p = *state;
	struct xds_state s;
	struct lb_err err;
	for (int i = 0; i < 2; i++) {
		write_text(path_of(p, XDS_STATE_NAME), i ? "second" : "first");
		assert_int_equal(xds_state_load(p->directory, &s, &err), -EINVAL);
		assert_non_null(strstr(err.text, path_of(p, XDS_STATE_NAME)));
		assert_int_equal(xds_state_set_aside(p->directory), 0);
	}
	char text[16] = "";
	FILE *f = fopen(path_of(p, XDS_STATE_NAME ".corrupt"), "r");
	assert_true(f && fgets(text, sizeof(text), f));
	(void)fclose(f);
	assert_string_equal(text, "second");
	assert_int_equal(xds_state_load(p->directory, &s, &err), -ENOENT);
}

// A pipe would make its reader wait, and a link leads elsewhere.
static void what_is_no_file_is_not_read(void **state)
{
	const struct place *p = *state;
	struct xds_state s;
	struct lb_err err;
	assert_int_equal(mkfifo(path_of(p, XDS_STATE_NAME), 0600), 0);
	assert_int_equal(xds_state_load(p->directory, &s, &err), -EINVAL);
	assert_int_equal(unlink(path_of(p, XDS_STATE_NAME)), 0);
	save(p, "one");
	char other[128];
	snprintf(other, sizeof(other), "%s", path_of(p, "other"));
	assert_int_equal(rename(path_of(p, XDS_STATE_NAME), other), 0);
	assert_int_equal(symlink("other", path_of(p, XDS_STATE_NAME)), 0);
	assert_int_equal(xds_state_load(p->directory, &s, &err), -ELOOP);
}

static void ops_93_what_is_too_large_is_not_read(void **state)
{
	const struct place *p = *state;
	struct xds_state s;
	struct lb_err err;
	int fd = open(path_of(p, XDS_STATE_NAME), O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)XDS_STATE_MAX_LEN + 1), 0); // a hole
	close(fd);
	assert_int_equal(xds_state_load(p->directory, &s, &err), -EINVAL);
	assert_non_null(strstr(err.text, "256 MiB"));
}

// OPS-91
static void a_directory_has_one_process_at_a_time(void **state)
{
	const struct place *p = *state;
	struct lb_err err;
	int first = xds_state_claim(p->directory, &err);
	assert_true(first >= 0);
	assert_int_equal(xds_state_claim(p->directory, &err), -EWOULDBLOCK);
	assert_non_null(strstr(err.text, p->directory));
	assert_non_null(strstr(err.text, "another process"));
	save(p, "one"); // the file is another one then, the claim is the same
	assert_int_equal(xds_state_claim(p->directory, &err), -EWOULDBLOCK);
	xds_state_release(first);
	int second = xds_state_claim(p->directory, &err);
	assert_true(second >= 0);
	xds_state_release(second);
	assert_int_equal(xds_state_claim(path_of(p, "nowhere"), &err), -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, drop_place)

RUN_SUITE("xds/state_dir", TEST(ops_91_a_file_is_replaced_and_only_its_owner_reads_it),
	TEST(a_file_that_is_not_there_is_told_from_a_directory_that_is_not),
	TEST(ops_92_a_broken_file_is_set_aside_and_one_is_kept), TEST(what_is_no_file_is_not_read),
	TEST(a_directory_has_one_process_at_a_time), TEST(ops_93_what_is_too_large_is_not_read))
