// SPDX-License-Identifier: Apache-2.0
// The part of shunt.yaml that says what is traced.
// Thread: any.
#pragma once

struct config;
struct lb_err;

// Sets c->traced. 0, or -EINVAL with reterr, which names the field.
[[nodiscard]] int config_check_tracing(struct config *, struct lb_err *reterr);
