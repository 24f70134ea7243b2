// SPDX-License-Identifier: Apache-2.0
// Finds what DPDK does not tell of drivers on top of the kernel: the descriptor behind a queue, so
// that an idle worker can sleep in poll(2) until a frame arrives, and the frames lost there.
// Optional: without it, only idle latency or CPU use is worse.
// Thread: ctrl, while the port is made, unless noted.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define WAIT_FD_MAX 256

struct wait_fd_search {
	int domain; // of the driver's sockets; 0 = none
	bool interrupt; // DPDK knows the descriptor
	unsigned if_index;
	int before[WAIT_FD_MAX]; // sockets of that domain from earlier ports
	uint32_t n_before;
};

// Call before a port's queues are set up.
void wait_fd_begin(struct wait_fd_search *, const char *driver, unsigned if_index);
// For a started port. -1 = none.
int wait_fd_find(const struct wait_fd_search *, uint16_t port_id, uint16_t queue);
// Frames dropped because an AF_PACKET socket's ring was full, since the last call; 0 for other
// descriptors and -1. On the worker.
uint32_t wait_fd_take_drops(int fd);
