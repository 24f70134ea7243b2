// SPDX-License-Identifier: Apache-2.0
// Bytes for another process, in a file without a name that nobody can change: its descriptor is
// passed on. What it may hold of secrets is nowhere else in memory once it was read.
// Thread: any.
#pragma once

#include <stddef.h>
#include <stdint.h>

// name: for /proc alone. Returns the descriptor, the caller's, or -errno.
[[nodiscard]] int sealed_file_make(const char *name, const uint8_t *bytes, size_t len);
// All of it; the other process need not have sealed it, so it is not mapped. Borrows the
// descriptor. Returns 0, with *ret from malloc(), -EFBIG above max_len, or another -errno.
[[nodiscard]] int sealed_file_read(int fd, size_t max_len, uint8_t **ret, size_t *ret_len);
