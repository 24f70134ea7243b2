// SPDX-License-Identifier: Apache-2.0
// Descriptors of BPF's maps and programs, which DPDK's driver of AF_XDP and libxdp below it keep to
// themselves: known by having come while a device was opened, and closed behind it, as libxdp
// leaves one open when that is opened, and another one when it is closed.
// Thread: ctrl, or whoever closes the device.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define BPF_FDS_MAX 512 // of a process

struct bpf_fd {
	int fd;
	uint32_t id; // the kernel's, of what it is of; maps and programs have their own
	bool is_map, is_xsk_map; // is_xsk_map: by which a program finds sockets of AF_XDP
};
struct bpf_fds {
	uint32_t n;
	struct bpf_fd list[BPF_FDS_MAX];
};

// What a descriptor is of. False = neither a map nor a program.
bool bpf_fd_look(int fd, struct bpf_fd *ret);
// The process's, as of now, in no order.
void bpf_fds_list(struct bpf_fds *);
// Leaves those of maps and programs of which there was none before; nothing if that cannot be told,
// since there were too many.
void bpf_fds_keep_new(struct bpf_fds *, const struct bpf_fds *before);
// All of the process that are of the same maps and programs, also those that came since; the list
// is empty then.
void bpf_fds_close(struct bpf_fds *);
