// SPDX-License-Identifier: Apache-2.0
// The conditions of `show requests` and its kin, from the words of the command.
// Thread: ctrl.
#pragma once

#include "lb/pick/inflight.h"

struct show;
struct show_args;

// Takes words as `cluster=C`, each key at most once, and `json` at the end. 0, or -EINVAL with
// args->err.
[[nodiscard]] int inflight_args_read(const struct show *, enum lb_inflight_kind, struct show_args *,
	struct lb_inflight_query *ret);
