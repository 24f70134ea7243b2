// SPDX-License-Identifier: Apache-2.0
// The map by which an interface's XDP program finds the sockets of AF_XDP. DPDK's driver keeps it
// to itself: it is known by having come while the device was opened.
// Thread: ctrl.
#pragma once

#include "dataplane/bpf_fds.h"

// The kernel's id of the only one among those; 0 = there is none, or several.
uint32_t xsk_map_find(const struct bpf_fds *);
// Of n queues, from the first of all: their frames go on to the kernel's stack. Returns 0 or
// -errno; -ENOENT: the process has no such map.
[[nodiscard]] int xsk_map_empty(uint32_t id, uint32_t first_queue, uint32_t n);
// Of a queue: from now on they come to that socket, which has it. Errors as above.
[[nodiscard]] int xsk_map_put(uint32_t id, uint32_t queue, int socket);
