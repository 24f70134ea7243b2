// SPDX-License-Identifier: Apache-2.0
// A file that others write, read whole.
// Thread: any; it waits for the file system.
#pragma once

#include "lb/base/err.h"
#include "lb/base/str.h"

#include <stdbool.h>
#include <stddef.h>

#define WHOLE_FILE_MAX ((size_t)16 << 20)

struct whole_file {
	char *p; // NUL behind it; owned by the caller (whole_file_fini)
	size_t len;
};

// is_secret: refuses a file that anybody may write. Returns 0, -ENOMEM, or -EINVAL with the reason
// (TLS-105): it cannot be opened or read, is no regular file, or larger than WHOLE_FILE_MAX.
[[nodiscard]] int whole_file_read(
	const char *path, bool is_secret, struct whole_file *ret, struct lb_err *reterr);
// Anything that ends, as a pipe (`-c <(...)`), for whose writer it waits: for starts, not for loops
// that must answer. Returns 0, or -EINVAL with the reason, which may be that it is larger than
// WHOLE_FILE_MAX.
[[nodiscard]] int whole_file_read_stream(
	const char *path, struct whole_file *ret, struct lb_err *reterr);
// Borrowed.
static inline struct str whole_file_bytes(const struct whole_file *f)
{
	return (struct str){f->p, f->len};
}

// Overwrites it first.
void whole_file_fini(struct whole_file *);
