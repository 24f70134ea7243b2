// SPDX-License-Identifier: Apache-2.0
// What the shape of shunt.yaml alone cannot say. Part of ctrl/conf/config.c.
// Thread: ctrl, before anything else starts.
#pragma once

struct config;
struct lb_err;

// Checks what was read, fills in what is absent and reads addresses and modes from their texts. 0,
// or -EINVAL (reterr), also without memory; the config has to be freed all the same.
[[nodiscard]] int config_check(struct config *, struct lb_err *reterr);
