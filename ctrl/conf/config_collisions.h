// SPDX-License-Identifier: Apache-2.0
// What two fields of shunt.yaml may not both have: a path at which both make something, and an
// address and port of the kernel's at which both listen.
// Thread: ctrl, before anything else starts.
#pragma once

struct config;
struct lb_err;

// Of a configuration whose fields are fine by themselves. Paths are compared as they are written,
// but for empty parts and ".": where links lead is not looked at. Returns 0, or -EINVAL with
// reterr, which names both fields.
[[nodiscard]] int config_check_collisions(const struct config *, struct lb_err *reterr);
