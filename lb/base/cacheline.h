// SPDX-License-Identifier: Apache-2.0
// Zeroed memory that shares no cache line with other objects: for what one thread writes all the
// time. Blocks of libc may share lines, so that writes of one thread would slow down another.
// Thread: any.
#pragma once

#include <stddef.h>

#define CACHELINE_SIZE 64

// Large blocks become resident as they are used, like calloc()'s. Returns NULL if out of memory.
void *cacheline_alloc(size_t n, size_t size);
void cacheline_free(void *); // NULL is fine
