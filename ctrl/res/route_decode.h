// SPDX-License-Identifier: Apache-2.0
// Decodes an unpacked RouteConfiguration message: inline in a listener.
// Thread: ctrl.
#pragma once

#include "ctrl/res/route.h"
#include "envoy/config/route/v3/route.pb-c.h"
#include "lb/base/err.h"

// Count 1. bytes: the message, for comparisons. NULL = reterr says why ("" = out of memory).
struct res_route_config *res_route_config_new(const Envoy__Config__Route__V3__RouteConfiguration *,
	const uint8_t *bytes, size_t len, struct lb_err *reterr);
