// SPDX-License-Identifier: Apache-2.0
// Starts the metrics' port if shunt.yaml asks for one.
// Thread: ctrl.
#pragma once

#include "ctrl/base/slice.h"
#include "lb/base/err.h"

struct config;
struct loop;
struct metrics_server;
struct scrape_conf;

// What it is given is borrowed, and outlives it. *ret stays NULL without the port. Returns 0, or
// -EINVAL with reterr, which names the field.
[[nodiscard]] int metrics_start(const struct config *, struct loop *, const struct scrape_conf *,
	struct slice, struct metrics_server **ret, struct lb_err *reterr);
