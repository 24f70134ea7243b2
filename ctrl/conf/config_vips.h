// SPDX-License-Identifier: Apache-2.0
// The prefixes of shunt.yaml's `vips`, which this host answers for beside its ports' addresses.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"
#include "lb/base/ip.h"

struct config;
struct config_vip;

// Parses and checks them; the ports are checked already. 0, or -EINVAL with reterr.
[[nodiscard]] int config_check_vips(struct config *, struct lb_err *reterr);
// The one with the address; NULL = none.
const struct config_vip *config_vip_of(const struct config *, const struct ip_addr *);
