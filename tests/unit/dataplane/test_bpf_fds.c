// SPDX-License-Identifier: Apache-2.0
#include "dataplane/bpf_fds.h"
#include "tests/support/check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

static int make_map(void)
{
	union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY,
		.key_size = sizeof(uint32_t),
		.value_size = sizeof(uint32_t),
		.max_entries = 1};
	int fd = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	if (fd < 0)
		skip(); // not root
	return fd;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

// FL-132: what another device has is not this one's, also if it is being closed meanwhile, for
// which libxdp opens it once more.
static void what_came_is_closed_with_its_copies_and_nothing_else(void **state)
{
	struct bpf_fds before, came;
	int old = make_map(), old_copy, file, map, copy;
	bpf_fds_list(&before);
	assert_int_equal(before.n, 1);
	map = make_map();
	file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	old_copy = fcntl(old, F_DUPFD_CLOEXEC, 0);
	bpf_fds_list(&came);
	bpf_fds_keep_new(&came, &before);
	assert_int_equal(came.n, 1);
	assert_int_equal(came.list[0].fd, map);
	copy = fcntl(map, F_DUPFD_CLOEXEC, 0);
	bpf_fds_close(&came);
	assert_int_equal(came.n, 0);
	assert_false(is_open(map) || is_open(copy));
	assert_true(is_open(old) && is_open(old_copy) && is_open(file));
	close(old);
	close(old_copy);
	close(file);
}

// FL-132: a number that is another's by now.
static void what_has_the_number_of_one_that_came_stays(void **state)
{
	struct bpf_fds before = {.n = 0}, came;
	int map = make_map();
	bpf_fds_list(&came);
	bpf_fds_keep_new(&came, &before);
	assert_int_equal(came.n, 1);
	close(map);
	int other = make_map();
	assert_int_equal(other, map);
	bpf_fds_close(&came);
	assert_true(is_open(other));
	close(other);
}

// FL-132: what came cannot be told from what is not in the list.
static void among_too_many_none_counts_as_new(void **state)
{
	static struct bpf_fds before;
	struct bpf_fds now = {.n = 1, .list = {{.fd = 5000, .id = 7}}};
	bpf_fds_keep_new(&now, &before);
	assert_int_equal(now.n, 1);
	before.n = BPF_FDS_MAX;
	bpf_fds_keep_new(&now, &before);
	assert_int_equal(now.n, 0);
}

RUN_SUITE("dataplane/bpf_fds",
	cmocka_unit_test(what_came_is_closed_with_its_copies_and_nothing_else),
	cmocka_unit_test(what_has_the_number_of_one_that_came_stays),
	cmocka_unit_test(among_too_many_none_counts_as_new))
