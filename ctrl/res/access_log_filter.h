// SPDX-License-Identifier: Apache-2.0
// AccessLogFilter as conditions that workers check at a request's end (OPS-41).
// Thread: ctrl.
#pragma once

#include "envoy/config/accesslog/v3/accesslog.pb-c.h"
#include "lb/pick/access_set.h"

struct res_reader;

// In the arena. 0, -EINVAL with the reason in the reader's err: it can't be checked, or -ENOMEM.
[[nodiscard]] int res_access_filter_read(struct res_reader *,
	const Envoy__Config__Accesslog__V3__AccessLogFilter *, const struct lb_access_test **ret);
