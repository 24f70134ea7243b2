// SPDX-License-Identifier: Apache-2.0
// When the heap is given back to the system: what servers sent leaves holes in it, in libgrpc's
// threads' too, but giving back stops the caller for tens of milliseconds on a large heap. So it is
// done seldom, and in a second in which servers are quiet. Zeroed = nothing was heard yet.
// What is large never lies in the heap.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_trim {
	size_t n_heard; // bytes since the heap was trimmed
	size_t n_recent; // of them, since it was asked last
	uint64_t next_ns; // not before
};

// Of the process, before it has threads: blocks of 64 KiB and more are the system's own, and go
// back to it at once. malloc would begin so, but leave them in the heap as soon as one was freed.
void heap_trim_begin(void);
void heap_trim_heard(struct heap_trim *, size_t len); // from a server
// To be asked every second. True = trim now.
bool heap_trim_due(struct heap_trim *, uint64_t now_ns);
