// SPDX-License-Identifier: Apache-2.0
// What DPDK doesn't tell of the drivers on top of the kernel: the descriptor behind a queue, so
// that an idle worker can sleep in poll(2) until a frame arrives, and what was lost there. Never
// needed to work: what isn't found costs latency or CPU when idle.
// Thread: ctrl, while the port is made, but for what says otherwise.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define WAIT_FD_MAX 256

struct wait_fd_search {
	int domain; // of the driver's sockets; 0 = it has none
	bool interrupt; // DPDK does know the descriptor
	unsigned if_index;
	int before[WAIT_FD_MAX]; // sockets of that domain from earlier ports
	uint32_t n_before;
};

// Before the queues of a port are set up.
void wait_fd_begin(struct wait_fd_search *, const char *driver, unsigned if_index);
// Of a started port. -1 = none.
int wait_fd_find(const struct wait_fd_search *, uint16_t port_id, uint16_t queue);
// Frames that an AF_PACKET socket's ring had no room for, since the last call; other descriptors,
// and -1, have none. On the worker.
uint32_t wait_fd_take_drops(int fd);
