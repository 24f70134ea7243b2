// SPDX-License-Identifier: Apache-2.0
// What `shuntd --check --resources` says of saved resources: each is read and validated as if a
// server had sent it (docs/doctor.md). What they refer to among each other is not followed.
// Thread: ctrl, in a process that does nothing else.
#pragma once

#include "lb/base/err.h"

struct xds_bootstrap;

// path: a file, or a folder with such files. A file is JSON (a resource, an array of them, or what
// CSDS answers) or the one that `state_dir` has. Prints a line for each fault, and what there was.
// Returns 0, or -EINVAL with reterr: a resource would be refused, or there is nothing to read.
[[nodiscard]] int check_dump(const char *path, const struct xds_bootstrap *, struct lb_err *reterr);
