// SPDX-License-Identifier: Apache-2.0
// Keeps the kernel from handing over what no wire carries: segments of many frames, which an
// interface merged (GRO, LRO), or which a sender of the same machine never split (TSO over a veth).
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct gso {
	bool holds; // the descriptors below are open
	int program, link; // of a veth; while they are open its peer splits
};

// Switches merging off at this interface, which stays so, and of a veth has the peer, in whatever
// namespace, split segments itself until gso_release(). said: what was done, for the log. False =
// nothing could be done; said: why, and the remedy.
[[nodiscard]] bool gso_refuse(struct gso *, unsigned if_index, char *said, size_t size);
void gso_release(struct gso *); // a zeroed one is fine
