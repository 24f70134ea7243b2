// SPDX-License-Identifier: Apache-2.0
// What the kernel notes on frames in an AF_PACKET ring and DPDK's driver leaves there: that a
// checksum was never made, since no wire lay between the sender and us, and that a frame is longer
// than its place. Reads a mapping of its own of the same ring, before the driver takes the frames.
// Thread: open and close on ctrl while the queue rests; else the queue's worker.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define RING_MARKS_MAX 32 // frames of one look

struct ring_marks {
	const uint8_t *map; // NULL = none
	size_t len;
	uint32_t frame_size, n_frames;
	uint32_t at; // the frame that the driver takes next
};

// fd: the queue's socket, with no frame taken yet; devargs: net_af_packet's. Returns 0 or -errno;
// -EINVAL: the ring is not as devargs say.
[[nodiscard]] int ring_marks_open(struct ring_marks *, int fd, const char *devargs);
void ring_marks_close(struct ring_marks *); // a zeroed one is fine

struct ring_look {
	uint32_t n; // frames that are ready
	uint32_t unmade, cut; // bit i: of the i-th, the checksum was not made; the end is missing
};
// max: at most RING_MARKS_MAX.
struct ring_look ring_marks_look(const struct ring_marks *, uint32_t max);
// The driver took n of those, in order.
void ring_marks_pass(struct ring_marks *, uint32_t n);
