// SPDX-License-Identifier: Apache-2.0
// Finds what DPDK does not tell of drivers on top of the kernel: the descriptor behind a queue, so
// that an idle worker can sleep in poll(2) until a frame arrives, the marks of its ring
// (ring_marks.h), and the frames lost there; and so that AF_XDP's is closed with its device.
// Optional: without it idle latency or CPU use is worse, AF_PACKET's frames without a checksum are
// dropped as corrupt, and an interface behind AF_XDP cannot be passed on.
// Thread: ctrl, while the port is made, unless noted.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// A process's sockets of one domain: queues of as many ports and workers as there may be.
#define WAIT_FD_MAX 1024

struct wait_fd_search {
	bool interrupt; // DPDK knows the descriptor
	bool by_queue; // each queue comes with a socket
	// Some that are not of these queues, then one a queue, which may be lower than that of the
	// queue before, as descriptors go.
	int sockets[WAIT_FD_MAX];
	uint64_t inodes[WAIT_FD_MAX]; // of them, where they come with queues
	uint32_t first, n; // first: the first queue's
};

// Call when the device is there and its queues are not, and wait_fd_queue_made() after each.
void wait_fd_begin(
	struct wait_fd_search *, const char *driver, unsigned if_index, uint32_t n_queues);
void wait_fd_queue_made(struct wait_fd_search *);
// For a started port. -1 = none, or not known.
int wait_fd_find(const struct wait_fd_search *, uint16_t port_id, uint16_t queue);
// When the device has been closed. DPDK 22.11's driver of AF_XDP leaves a socket open with its
// queue's memory, so that the kernel gives the queue to nobody: it is closed here, if it is still
// there.
void wait_fd_close_left(struct wait_fd_search *);
// Frames dropped because an AF_PACKET socket's ring was full, since the last call; 0 for other
// descriptors and -1. On the worker.
uint32_t wait_fd_take_drops(int fd);
