// SPDX-License-Identifier: Apache-2.0
// Session affinity as configured (gRFC A55; SA-01, SA-02, SA-19). Not for users of the
// decoded resources.
// Thread: ctrl.
#pragma once

#include "ctrl/res/common.h"
#include "lb/route/filter.h"

// message: a StatefulSession, or a StatefulSessionPerRoute. 0, -EINVAL or -ENOMEM.
int res_session_read(struct res_reader *, const void *message, struct lb_filter *);
int res_session_read_override(struct res_reader *, const void *message, struct lb_filter *);
