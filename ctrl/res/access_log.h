// SPDX-License-Identifier: Apache-2.0
// The access logs that an HttpConnectionManager asks for (OPS-40 to OPS-42). gRPC's clients ignore
// them, so none of them is a reason to refuse a listener: one that is not supported, or that says
// what is not understood, is left out with a warning.
// Thread: ctrl.
#pragma once

#include "ctrl/access_log/want.h"
#include "envoy/config/accesslog/v3/accesslog.pb-c.h"

#include <stddef.h>
#include <stdint.h>

struct res_reader;

struct res_access_logs { // in the arena of the resource
	const struct access_want *list;
	uint32_t n;
};

// 0 or -ENOMEM.
[[nodiscard]] int res_access_logs_read(struct res_reader *,
	Envoy__Config__Accesslog__V3__AccessLog *const *list, size_t n,
	struct res_access_logs *ret);
