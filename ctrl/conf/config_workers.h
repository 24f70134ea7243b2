// SPDX-License-Identifier: Apache-2.0
// The cores of shunt.yaml's `workers`.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

struct config;

// Checks them, or takes the last core that this process may use. 0, or -EINVAL with reterr.
[[nodiscard]] int config_check_workers(struct config *, struct lb_err *reterr);
