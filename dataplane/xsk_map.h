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
// To begin with libxdp puts a socket into the map as soon as it is there, and its frames wait in it
// until a worker can read them: until ctrl has had its turns on the CPU to open the rest, which on
// a busy machine may be half a second later. From here on such sockets stay out, those that this
// thread opens: libxdp finds our bpf_map_update_elem() before libbpf's.
void xsk_map_hold(void);
// That is over, and those that are waiting come in, or never do. Returns 0 or -errno.
[[nodiscard]] int xsk_map_let_in(void);
void xsk_map_drop(void);
