// SPDX-License-Identifier: Apache-2.0
// The match criteria of a route (A28-P*, RX-*, A28-H*, A28-O*, SM-*). Not for users of the decoded
// resources.
// Thread: ctrl.
#pragma once

#include "ctrl/res/common.h"
#include "ctrl/res/route.h"
#include "envoy/config/route/v3/route_components.pb-c.h"

// Sets the fields of the route that come from its match. 0, -EINVAL or -ENOMEM.
int res_match_read(
	struct res_reader *, const Envoy__Config__Route__V3__RouteMatch *, struct res_route *);
