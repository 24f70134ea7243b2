// SPDX-License-Identifier: Apache-2.0
// What `shuntd --check` says: of the configuration alone, or of the host besides.
// Thread: ctrl, in a process that does nothing else.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>

struct config;
struct xds_bootstrap;

// Reads what a start would, and prints what DPDK would be told. Returns 0, -ENOMEM, or -EINVAL with
// reterr.
[[nodiscard]] int check_print(const struct config *, const struct xds_bootstrap *, const char *path,
	struct lb_err *reterr);
// Examines this host for the configuration at path (ctrl/doctor/host.h) and prints what it found.
// Returns the exit status: 0 all is well, 1 there are warnings, 2 errors.
int check_host(const char *path, bool json);
