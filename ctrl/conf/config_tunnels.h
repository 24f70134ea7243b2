// SPDX-License-Identifier: Apache-2.0
// The tunnels of shunt.yaml's `tunnels`, by which an L4 tier reaches this host.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

struct config;

// Parses and checks them; ports and vips are checked already. 0, or -EINVAL with reterr.
[[nodiscard]] int config_check_tunnels(struct config *, struct lb_err *reterr);
