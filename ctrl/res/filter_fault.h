// SPDX-License-Identifier: Apache-2.0
// Fault injection as configured (gRFC A33; FI-05, FI-09). Not for users of the decoded
// resources.
// Thread: ctrl.
#pragma once

#include "ctrl/res/common.h"
#include "lb/route/filter.h"

// message: an envoy.extensions.filters.http.fault.v3.HTTPFault. 0, -EINVAL or -ENOMEM.
int res_fault_read(struct res_reader *, const void *message, struct lb_filter *);
