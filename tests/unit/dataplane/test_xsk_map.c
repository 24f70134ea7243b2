// SPDX-License-Identifier: Apache-2.0
// Which sockets of AF_XDP a map has, and when.
#include "dataplane/xsk_map.h"
#include "tests/support/check.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_xdp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define N_ENTRIES 4

// libbpf's, as libxdp calls it.
int bpf_map_update_elem(int map, const void *key, const void *value, uint64_t flags);

static const uint32_t first = 0, second = 1;

static int make_map(enum bpf_map_type type)
{
	union bpf_attr attr = {
		.map_type = type, .key_size = 4, .value_size = 4, .max_entries = N_ENTRIES};
	int map = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	if (map < 0)
		skip(); // not root, or a kernel without
	return map;
}

// With as much as a map asks for.
static int make_socket(void)
{
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0), n = 64;
	if (fd < 0)
		skip();
	assert_int_equal(setsockopt(fd, SOL_XDP, XDP_UMEM_FILL_RING, &n, sizeof(n)), 0);
	return fd;
}

// Maps of this kind cannot be read; but who may come only where somebody is tells.
static bool has(int map, const uint32_t *queue, int socket)
{
	union bpf_attr attr = {.map_fd = (uint32_t)map,
		.key = (uintptr_t)queue,
		.value = (uintptr_t)&socket,
		.flags = BPF_EXIST};
	return syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &attr, sizeof(attr)) == 0;
}

// FL-128
static void sockets_that_are_held_back_come_in_together(void **state)
{
	int map = make_map(BPF_MAP_TYPE_XSKMAP), one = make_socket(), other = make_socket();
	xsk_map_hold();
	assert_int_equal(bpf_map_update_elem(map, &first, &one, 0), 0);
	assert_int_equal(bpf_map_update_elem(map, &second, &other, 0), 0);
	assert_false(has(map, &first, one) || has(map, &second, other));
	assert_int_equal(xsk_map_let_in(), 0);
	assert_true(has(map, &first, one) && has(map, &second, other));
	assert_int_equal(bpf_map_update_elem(map, &(uint32_t){2}, &one, 0), 0);
	assert_true(has(map, &(uint32_t){2}, one)); // as ever
	close(map);
	close(one);
	close(other);
}

static void those_of_a_device_that_could_not_be_opened_never_come(void **state)
{
	int map = make_map(BPF_MAP_TYPE_XSKMAP), one = make_socket();
	xsk_map_hold();
	assert_int_equal(bpf_map_update_elem(map, &first, &one, 0), 0);
	xsk_map_drop();
	assert_int_equal(xsk_map_let_in(), 0);
	assert_false(has(map, &first, one));
	close(one);
	xsk_map_hold();
	one = make_socket();
	close(one);
	assert_int_equal(bpf_map_update_elem(map, &first, &one, 0), 0);
	assert_int_equal(xsk_map_let_in(), -EBADF);
	close(map);
}

// libxdp counts in one who uses its program.
static void other_maps_are_written_at_once(void **state)
{
	int map = make_map(BPF_MAP_TYPE_ARRAY);
	uint32_t value = 7, beyond = N_ENTRIES;
	xsk_map_hold();
	assert_int_equal(bpf_map_update_elem(map, &first, &value, 0), 0);
	assert_int_equal(bpf_map_update_elem(map, &beyond, &value, 0), -E2BIG);
	xsk_map_drop();
	union bpf_attr attr = {
		.map_fd = (uint32_t)map, .key = (uintptr_t)&first, .value = (uintptr_t)&value};
	value = 0;
	assert_int_equal(syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &attr, sizeof(attr)), 0);
	assert_int_equal(value, 7);
	close(map);
}

// libxdp and libbpf are to find ours, as in shuntd, which is linked likewise.
static void libraries_find_it_before_libbpfs(void **state)
{
	assert_ptr_equal(dlsym(RTLD_DEFAULT, "bpf_map_update_elem"), bpf_map_update_elem);
	assert_ptr_not_equal(dlsym(RTLD_NEXT, "bpf_map_update_elem"), bpf_map_update_elem);
}

RUN_SUITE("dataplane/xsk_map", cmocka_unit_test(sockets_that_are_held_back_come_in_together),
	cmocka_unit_test(those_of_a_device_that_could_not_be_opened_never_come),
	cmocka_unit_test(other_maps_are_written_at_once),
	cmocka_unit_test(libraries_find_it_before_libbpfs))
