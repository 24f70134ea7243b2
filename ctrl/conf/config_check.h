// SPDX-License-Identifier: Apache-2.0
// Checks of shunt.yaml beyond its schema. Part of ctrl/conf/config.c.
// Thread: ctrl, before anything else starts.
#pragma once

struct config;
struct lb_err;

// Validates what was read, fills in defaults, and parses addresses and modes. Returns 0, or -EINVAL
// with reterr (also if out of memory); the caller frees the config either way.
[[nodiscard]] int config_check(struct config *, struct lb_err *reterr);
