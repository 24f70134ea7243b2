// SPDX-License-Identifier: Apache-2.0
#include "dataplane/bpf_fds.h"

#include <dirent.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// What a map's and a program's begin with alike.
struct info {
	uint32_t type, id;
};

bool bpf_fd_look(int fd, struct bpf_fd *ret)
{
	char path[64], is[32] = "";
	struct info info = {0};
	union bpf_attr attr = {.info = {.bpf_fd = (uint32_t)fd,
				       .info_len = sizeof(info),
				       .info = (uintptr_t)&info}};
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (readlink(path, is, sizeof(is) - 1) < 0)
		return false;
	bool is_map = strcmp(is, "anon_inode:bpf-map") == 0;
	if ((!is_map && strcmp(is, "anon_inode:bpf-prog") != 0) ||
		syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)) < 0)
		return false;
	*ret = (struct bpf_fd){.fd = fd,
		.id = info.id,
		.is_map = is_map,
		.is_xsk_map = is_map && info.type == BPF_MAP_TYPE_XSKMAP};
	return true;
}

void bpf_fds_list(struct bpf_fds *fds)
{
	DIR *dir = opendir("/proc/self/fd");
	fds->n = 0;
	for (struct dirent *e; dir && fds->n < BPF_FDS_MAX && (e = readdir(dir));)
		fds->n += e->d_name[0] != '.' && bpf_fd_look(atoi(e->d_name), &fds->list[fds->n]);
	if (dir)
		closedir(dir);
}

// One of the same map or program.
static bool has(const struct bpf_fds *fds, const struct bpf_fd *fd)
{
	for (uint32_t i = 0; i < fds->n; i++)
		if (fds->list[i].id == fd->id && fds->list[i].is_map == fd->is_map)
			return true;
	return false;
}

void bpf_fds_keep_new(struct bpf_fds *fds, const struct bpf_fds *before)
{
	uint32_t n = 0;
	bool all = before->n < BPF_FDS_MAX; // else others may have been there
	for (uint32_t i = 0; i < fds->n && all; i++)
		if (!has(before, &fds->list[i]))
			fds->list[n++] = fds->list[i];
	fds->n = n;
}

void bpf_fds_close(struct bpf_fds *fds)
{
	struct bpf_fds now = {.n = 0};
	if (fds->n)
		bpf_fds_list(&now);
	for (uint32_t i = 0; i < now.n; i++)
		if (has(fds, &now.list[i]))
			close(now.list[i].fd);
	fds->n = 0;
}
