// SPDX-License-Identifier: Apache-2.0
// The devices of shunt.yaml's ports, one each or several as a bond.
// Thread: ctrl.
#pragma once

#include "lb/base/cable.h"
#include "lb/base/err.h"

struct config;

// Checks that each port has one or the other, that a bond can be, and that a device is named twice
// for VLANs of it alone (config_trunk.h); and calls bonds by names. 0, or -EINVAL with reterr,
// which begins with the field.
[[nodiscard]] int config_check_devices(struct config *, struct lb_err *reterr);
// Checks our ports against the cables by which an older process sends: a bond of its has the same
// members here, in whatever order, and what is none is none here, or the two would send by
// different ones when a link goes. 0, or -EINVAL with reterr.
[[nodiscard]] int config_check_cables(
	const struct config *, const struct lb_cables *older, struct lb_err *reterr);
