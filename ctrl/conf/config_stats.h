// SPDX-License-Identifier: Apache-2.0
// Where operators reach shuntd by a socket, and who may do what there: shunt.yaml's `stats`.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

struct config;

// Checks it, and fills in defaults. 0, or -EINVAL with reterr, which begins with the field.
[[nodiscard]] int config_check_stats(struct config *, struct lb_err *reterr);
