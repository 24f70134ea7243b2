// SPDX-License-Identifier: Apache-2.0
// The part of shunt.yaml that says which requests are told of, and to whom.
// Thread: any.
#pragma once

struct config;
struct lb_err;

// Sets c->access_filter. 0, or -EINVAL with reterr, which names the field.
[[nodiscard]] int config_check_access_log(struct config *, struct lb_err *reterr);
// That paths below the directory can be compared with it as text. Returns likewise.
[[nodiscard]] int config_check_directory(
	const char *field, const char *folder, struct lb_err *reterr);
