// SPDX-License-Identifier: Apache-2.0
#include "dataplane/xsk_map.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

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

int xsk_map_put(uint32_t id, uint32_t queue, int socket)
{
	int fd = id ? find_fd(id) : -1;
	union bpf_attr attr = {
		.map_fd = (uint32_t)fd, .key = (uintptr_t)&queue, .value = (uintptr_t)&socket};
	return fd < 0 ? -ENOENT : bpf(BPF_MAP_UPDATE_ELEM, &attr);
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
