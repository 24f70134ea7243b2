// SPDX-License-Identifier: Apache-2.0
// Starts the gRPC status port if shunt.yaml asks for one.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

struct config;
struct loop;
struct status_server;
struct xds_bootstrap;
struct xds_federation;

// What it is given is borrowed, and outlives it. *ret stays NULL without the port. Returns 0, or
// -EINVAL with reterr, which names the field.
[[nodiscard]] int status_start(const struct config *, const struct xds_bootstrap *,
	struct xds_federation *, struct loop *, struct status_server **ret, struct lb_err *reterr);
