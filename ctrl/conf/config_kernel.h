// SPDX-License-Identifier: Apache-2.0
// What shunt.yaml says of the kernel behind a port (docs/exception-path.md).
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

struct config;

// Checks `kernel` of all ports, and fills in defaults. 0, or -EINVAL with reterr, which begins with
// the field.
[[nodiscard]] int config_check_kernels(struct config *, struct lb_err *reterr);
