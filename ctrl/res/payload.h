// SPDX-License-Identifier: Apache-2.0
// Bytes of a health check (envoy.config.core.v3.HealthCheck.Payload).
// Thread: ctrl.
#pragma once

#include "envoy/config/core/v3/health_check.pb-c.h"
#include "lb/base/arena.h"
#include "lb/base/err.h"

// The bytes, in the arena: at least one, and no more than `most`. 0, -EINVAL, or -ENOMEM.
int res_payload_read(const Envoy__Config__Core__V3__HealthCheck__Payload *, struct lb_arena *,
	size_t most, struct str *ret, struct lb_err *reterr);
