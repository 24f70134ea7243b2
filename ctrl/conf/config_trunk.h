// SPDX-License-Identifier: Apache-2.0
// Trunks in shunt.yaml: ports that name the same device, each a VLAN of it.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct config;

// The first port that names the port's device, or its bond, in the same words: the port itself if
// it is the first.
unsigned config_trunk_find(const struct config *, unsigned port);
// Checks a port whose carrier is another one: its VLAN must be its own, and what it says of the
// device what that one says. 0, or -EINVAL with reterr, which begins with the field.
[[nodiscard]] int config_check_trunk(const struct config *, unsigned port, struct lb_err *reterr);

// How many ports share the device of that carrier, itself included.
unsigned config_trunk_size(const struct config *, unsigned carrier);
// Which of them has the largest MTU, which the device must carry; the first of equal ones.
unsigned config_trunk_longest(const struct config *, unsigned carrier);
// Whether any of them has IPv6, or a kernel.
bool config_trunk_has_ip6(const struct config *, unsigned carrier);
bool config_trunk_has_kernel(const struct config *, unsigned carrier);
