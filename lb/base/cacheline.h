// SPDX-License-Identifier: Apache-2.0
// Zeroed memory of which no cache line holds anything else: for what one thread writes all the
// time. libc's blocks touch each other, so that the end of one thread's would slow another's down.
// Thread: any.
#pragma once

#include <stddef.h>

#define CACHELINE_SIZE 64

// Large blocks become resident as they are used, as calloc()'s. NULL = out of memory.
void *cacheline_alloc(size_t n, size_t size);
void cacheline_free(void *); // NULL is fine
