// SPDX-License-Identifier: Apache-2.0
// Names of sockets that change hands. A socket is told by its file's inode.
#include "ctrl/base/socket_file.h"
#include "tests/support/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static struct {
	char dir[32], name[64], aside[64], other[64];
	int fds[2], n_fds;
} w;

static struct socket_file listen_at(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct socket_file f;
	strcpy(addr.sun_path, path);
	int fd = w.fds[w.n_fds++] = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 4), 0);
	socket_file_note(&f, path);
	return f;
}

static void expect_leads(const char *path, const struct socket_file *to)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct stat st;
	strcpy(addr.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_ino, to->inode);
}

static void expect_nothing(const char *path)
{
	assert_int_equal(access(path, F_OK), -1);
}

static int set_up(void **state)
{
	memset(&w, 0, sizeof(w));
	strcpy(w.dir, "/tmp/socket-file-XXXXXX");
	assert_non_null(mkdtemp(w.dir));
	snprintf(w.name, sizeof(w.name), "%s/sock", w.dir);
	snprintf(w.aside, sizeof(w.aside), "%s/sock.1", w.dir);
	snprintf(w.other, sizeof(w.other), "%s/sock.2", w.dir);
	return 0;
}

static int tear_down(void **state)
{
	while (w.n_fds)
		close(w.fds[--w.n_fds]);
	unlink(w.name);
	unlink(w.aside);
	unlink(w.other);
	return rmdir(w.dir);
}

// FL-12
static void a_name_goes_from_one_socket_to_the_other_at_once(void **state)
{
	struct socket_file old = listen_at(w.name), new = listen_at(w.other);
	assert_int_equal(socket_file_share(&old, w.name, w.aside), 0);
	expect_leads(w.name, &old);
	expect_leads(w.aside, &old);
	assert_int_equal(socket_file_move(&new, w.other, w.name), 0);
	expect_leads(w.name, &new);
	expect_leads(w.aside, &old);
	expect_nothing(w.other);
	socket_file_remove(&old, w.name); // it is not its own any more
	expect_leads(w.name, &new);
}

// FL-08: whether somebody took it meanwhile or not.
static void a_name_that_was_shared_is_taken_back(void **state)
{
	struct socket_file old = listen_at(w.name), new = listen_at(w.other);
	assert_int_equal(socket_file_share(&old, w.name, w.aside), 0);
	assert_int_equal(socket_file_share(&old, w.name, w.aside), 0);
	assert_int_equal(socket_file_move(&old, w.aside, w.name), 0);
	expect_leads(w.name, &old);
	expect_nothing(w.aside);
	assert_int_equal(socket_file_share(&old, w.name, w.aside), 0);
	assert_int_equal(socket_file_move(&new, w.other, w.name), 0);
	assert_int_equal(socket_file_move(&old, w.aside, w.name), 0);
	expect_leads(w.name, &old);
	expect_nothing(w.aside);
}

// FL-172: without a second name nothing has gone from the first one.
static void a_name_that_was_not_shared_stays(void **state)
{
	struct socket_file old = listen_at(w.name);
	FILE *file = fopen(w.aside, "we"); // where no other name can be
	assert_non_null(file);
	fclose(file);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(socket_file_share(&old, w.name, w.aside), -EEXIST);
		assert_int_equal(socket_file_move(&old, w.name, w.name), 0);
		expect_leads(w.name, &old);
	}
}

static void what_is_another_ones_is_neither_shared_nor_moved(void **state)
{
	struct socket_file old = listen_at(w.name), none = {0};
	assert_int_equal(socket_file_share(&none, w.name, w.aside), -ENOENT);
	assert_int_equal(socket_file_move(&none, w.name, w.aside), -ENOENT);
	assert_int_equal(socket_file_move(&old, w.aside, w.other), -ENOENT);
	expect_leads(w.name, &old);
	expect_nothing(w.aside);
}

static void the_socket_of_a_process_that_died_gives_way(void **state)
{
	struct socket_file old = listen_at(w.name);
	(void)listen_at(w.aside);
	close(w.fds[--w.n_fds]);
	assert_int_equal(socket_file_share(&old, w.name, w.aside), 0);
	expect_leads(w.aside, &old);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
RUN_SUITE("base/socket_file", CASE(a_name_goes_from_one_socket_to_the_other_at_once),
	CASE(a_name_that_was_shared_is_taken_back), CASE(a_name_that_was_not_shared_stays),
	CASE(what_is_another_ones_is_neither_shared_nor_moved),
	CASE(the_socket_of_a_process_that_died_gives_way))
