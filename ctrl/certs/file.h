// SPDX-License-Identifier: Apache-2.0
// A file that others write, read whole.
// Thread: any; it waits for the file system.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define CERT_FILE_MAX ((size_t)16 << 20)

struct cert_file {
	char *p; // NUL behind it; owned by the caller (cert_file_fini)
	size_t len;
};

// is_secret: refuses a file that anybody may write. Returns 0, -ENOMEM, or -EINVAL with the reason
// (TLS-105): it cannot be opened or read, is no regular file, or larger than CERT_FILE_MAX.
[[nodiscard]] int cert_file_read(
	const char *path, bool is_secret, struct cert_file *ret, struct lb_err *reterr);
// Overwrites it first.
void cert_file_fini(struct cert_file *);
