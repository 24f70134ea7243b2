// SPDX-License-Identifier: Apache-2.0
// Decides when to return free heap memory to the system. Messages from servers leave holes in the
// heap, but trimming a large heap stops the caller for tens of milliseconds: so it happens rarely,
// and in a second in which servers are quiet. Zeroed = nothing received yet. Large blocks never lie
// in the heap.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_trim {
	size_t n_heard; // bytes received since the last trim
	size_t n_recent; // of them, since the last query
	uint64_t next_ns; // no trim before then
};

// Call before the process has threads: blocks of 64 KiB and more come from the system and return to
// it at once. malloc would begin so, but keep them in the heap as soon as one was freed.
void heap_trim_begin(void);
void heap_trim_heard(struct heap_trim *, size_t len); // from a server
// Call every second. True = trim now.
bool heap_trim_due(struct heap_trim *, uint64_t now_ns);
