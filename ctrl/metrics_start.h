// SPDX-License-Identifier: Apache-2.0
// Starts the metrics' port, with the status page on it, if shunt.yaml asks for one.
// Thread: ctrl.
#pragma once

#include "ctrl/base/slice.h"
#include "lb/base/err.h"

struct config;
struct loop;
struct metrics_port;
struct show;

// What it is given is borrowed, and outlives it. *ret stays NULL without the port. Returns 0, or
// -EINVAL with reterr, which names the field.
[[nodiscard]] int metrics_start(const struct config *, struct loop *, const struct show *,
	struct slice, struct metrics_port **ret, struct lb_err *reterr);
void metrics_stop(struct metrics_port *); // NULL is fine
