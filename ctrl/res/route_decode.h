// SPDX-License-Identifier: Apache-2.0
// Decodes a RouteConfiguration that is inline in a listener.
// Thread: ctrl.
#pragma once

#include "ctrl/res/route.h"
#include "lb/base/err.h"

#include <stddef.h>

// Count 1. NULL = reterr says why ("" = out of memory).
struct res_route_config *res_route_config_new(
	const uint8_t *bytes, size_t len, struct lb_err *reterr);
