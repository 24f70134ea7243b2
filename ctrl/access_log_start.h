// SPDX-License-Identifier: Apache-2.0
// What shunt.yaml means for the access logs.
// Thread: ctrl.
#pragma once

#include "ctrl/access_log/access_log.h"

struct config;
struct lb_link;

// Starts them over the links of all workers; *ret stays as it is if shunt.yaml has none and permits
// none. 0, or
// negative with reterr.
[[nodiscard]] int access_log_start(const struct config *, struct lb_link *const *links,
	struct access_log **ret, struct lb_err *reterr);
