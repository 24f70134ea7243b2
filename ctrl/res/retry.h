// SPDX-License-Identifier: Apache-2.0
// The retry policy of a virtual host or a route (gRFC A44; RT-01 to RT-04). Not for
// users of the decoded resources.
// Thread: ctrl.
#pragma once

#include "ctrl/res/common.h"
#include "envoy/config/route/v3/route_components.pb-c.h"
#include "lb/route/retry.h"

// NULL = no policy. 0 or -EINVAL.
int res_retry_read(
	struct res_reader *, const Envoy__Config__Route__V3__RetryPolicy *, struct lb_retry *ret);
