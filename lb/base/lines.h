// SPDX-License-Identifier: Apache-2.0
// Zeroed memory of which no cache line holds anything else: for what one thread writes all the
// time. libc's blocks touch each other, so that the end of one thread's would slow another's down.
// Thread: any.
#pragma once

#include <stddef.h>

#define LINE_SIZE 64

// Large blocks become resident as they are used, as calloc()'s. NULL = no memory.
void *lines_new(size_t n, size_t size);
void lines_free(void *); // NULL is fine
