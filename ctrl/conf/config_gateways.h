// SPDX-License-Identifier: Apache-2.0
// What shunt.yaml says of a port's gateways and of their watch.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

struct config_port;

// Checks them, once the port's addresses are parsed, and fills in defaults. 0, or -EINVAL with
// reterr, which begins with the field.
[[nodiscard]] int config_check_gateways(struct config_port *, struct lb_err *reterr);
