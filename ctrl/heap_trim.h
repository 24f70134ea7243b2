// SPDX-License-Identifier: Apache-2.0
// When the heap is given back to the system: what servers sent leaves holes in it, in libgrpc's
// threads' too, but giving back stops the caller for tens of milliseconds on a large heap. So it is
// done seldom, and in a second in which servers are quiet. Zeroed = nothing was heard yet.
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

void heap_trim_heard(struct heap_trim *, size_t len); // from a server
// To be asked every second. True = trim now.
bool heap_trim_due(struct heap_trim *, uint64_t now_ns);
