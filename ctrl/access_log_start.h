// SPDX-License-Identifier: Apache-2.0
// What shunt.yaml means for the access logs.
// Thread: ctrl.
#pragma once

#include "ctrl/access_log/access_log.h"

#include <stdint.h>

struct config;
struct lb_link;
struct xds_bootstrap;

// Starts them over the links of all workers; *ret stays as it is if shunt.yaml has none and permits
// none. The bootstrap says who we are to collectors. 0, or negative with reterr.
[[nodiscard]] int access_log_start(const struct config *, const struct xds_bootstrap *,
	struct lb_link *const *links, uint64_t seed, struct access_log **ret,
	struct lb_err *reterr);
