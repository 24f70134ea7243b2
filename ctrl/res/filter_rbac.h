// SPDX-License-Identifier: Apache-2.0
// Role based access control as configured (gRFC A41; A41-01..A41-07, A41-16, A41-17). Not for
// users of the decoded resources.
// Thread: ctrl. Both return 0, -EINVAL or -ENOMEM.
#pragma once

#include "ctrl/res/common.h"
#include "lb/route/filter.h"

// message: an envoy.extensions.filters.http.rbac.v3.RBAC.
int res_rbac_read(struct res_reader *, const void *message, struct lb_filter *);
// message: an RBACPerRoute.
int res_rbac_read_override(struct res_reader *, const void *message, struct lb_filter *);
