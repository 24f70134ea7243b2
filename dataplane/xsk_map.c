// SPDX-License-Identifier: Apache-2.0
#include "dataplane/xsk_map.h"

#include "lb/pick/limits.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct entry {
	int map, socket;
	uint32_t queue;
};

static __thread struct {
	bool on;
	uint32_t n;
	struct entry list[LB_MAX_WORKERS];
} held;

static int bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr)) < 0 ? -errno : 0;
}

uint32_t xsk_map_find(const struct bpf_fds *fds)
{
	uint32_t found = 0;
	for (uint32_t i = 0; i < fds->n; i++) {
		const struct bpf_fd *fd = &fds->list[i];
		if (fd->is_xsk_map && found && found != fd->id)
			return 0;
		if (fd->is_xsk_map)
			found = fd->id;
	}
	return found;
}

static int find_fd(uint32_t id)
{
	struct bpf_fds fds;
	bpf_fds_list(&fds);
	for (uint32_t i = 0; i < fds.n; i++)
		if (fds.list[i].is_xsk_map && fds.list[i].id == id)
			return fds.list[i].fd;
	return -1;
}

int xsk_map_empty(uint32_t id, uint32_t first_queue, uint32_t n)
{
	int fd = id ? find_fd(id) : -1, rc = fd < 0 ? -ENOENT : 0;
	for (uint32_t queue = first_queue; fd >= 0 && queue < first_queue + n; queue++) {
		union bpf_attr attr = {.map_fd = (uint32_t)fd, .key = (uintptr_t)&queue};
		int failed = bpf(BPF_MAP_DELETE_ELEM, &attr);
		rc = rc ? rc : failed;
	}
	return rc;
}

static int put(const struct entry *e)
{
	union bpf_attr attr = {.map_fd = (uint32_t)e->map,
		.key = (uintptr_t)&e->queue,
		.value = (uintptr_t)&e->socket};
	return bpf(BPF_MAP_UPDATE_ELEM, &attr);
}

void xsk_map_hold(void)
{
	held.on = true;
	held.n = 0;
}

void xsk_map_drop(void)
{
	held.on = false;
}

int xsk_map_let_in(void)
{
	int rc = 0;
	for (uint32_t i = 0; held.on && rc == 0 && i < held.n; i++)
		rc = put(&held.list[i]);
	held.on = false;
	return rc;
}

// libbpf's, for libxdp (dataplane/meson.build exports it).
int bpf_map_update_elem(int map, const void *key, const void *value, uint64_t flags);

int bpf_map_update_elem(int map, const void *key, const void *value, uint64_t flags)
{
	struct bpf_fd is;
	if (!held.on || held.n == LB_MAX_WORKERS || !bpf_fd_look(map, &is) || !is.is_xsk_map) {
		union bpf_attr attr = {.map_fd = (uint32_t)map,
			.key = (uintptr_t)key,
			.value = (uintptr_t)value,
			.flags = flags};
		return bpf(BPF_MAP_UPDATE_ELEM, &attr);
	}
	struct entry *e = &held.list[held.n++];
	e->map = map;
	memcpy(&e->queue, key, sizeof(e->queue));
	memcpy(&e->socket, value, sizeof(e->socket));
	return 0;
}
