// SPDX-License-Identifier: Apache-2.0
#include "dataplane/xsk_map.h"

#include <dirent.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr)) < 0 ? -errno : 0;
}

// 0 = that descriptor is no such map.
static uint32_t id_of(int fd)
{
	char path[64], is[32] = "";
	struct bpf_map_info info = {0};
	union bpf_attr attr = {.info = {.bpf_fd = (uint32_t)fd,
				       .info_len = sizeof(info),
				       .info = (uintptr_t)&info}};
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (readlink(path, is, sizeof(is) - 1) < 0 || strcmp(is, "anon_inode:bpf-map") != 0 ||
		bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) != 0)
		return 0;
	return info.type == BPF_MAP_TYPE_XSKMAP ? info.id : 0;
}

static bool has(const struct xsk_maps *m, uint32_t id)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (m->ids[i] == id)
			return true;
	return false;
}

void xsk_maps_list(struct xsk_maps *m)
{
	DIR *dir = opendir("/proc/self/fd");
	m->n = 0;
	for (struct dirent *e; dir && m->n < XSK_MAP_MAX && (e = readdir(dir));) {
		uint32_t id = e->d_name[0] == '.' ? 0 : id_of(atoi(e->d_name));
		if (id && !has(m, id))
			m->ids[m->n++] = id;
	}
	if (dir)
		closedir(dir);
}

uint32_t xsk_maps_find_new(const struct xsk_maps *before)
{
	struct xsk_maps now;
	uint32_t n = 0, found = 0;
	xsk_maps_list(&now);
	for (uint32_t i = 0; i < now.n; i++)
		if (!has(before, now.ids[i])) {
			found = now.ids[i];
			n++;
		}
	return n == 1 ? found : 0;
}

static int find_fd(uint32_t id)
{
	int found = -1;
	DIR *dir = opendir("/proc/self/fd");
	for (struct dirent *e; dir && found < 0 && (e = readdir(dir));)
		if (e->d_name[0] != '.' && id_of(atoi(e->d_name)) == id)
			found = atoi(e->d_name);
	if (dir)
		closedir(dir);
	return found;
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
