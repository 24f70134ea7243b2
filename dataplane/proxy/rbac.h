// SPDX-License-Identifier: Apache-2.0
// Access control of one request (gRFC A41; A41-14): who asks, and what the filter's policies say.
// Thread: the owning worker.
#pragma once

#include "lb/route/filter.h"

#include <stdbool.h>

struct lb_req;
struct proxy_request;

#define PROXY_RBAC_TEXT_MAX 256

// Counts what the filter says. Returns false if it refuses the request, with the reason in text,
// terminated, for operators.
[[nodiscard]] bool proxy_rbac_admits(struct proxy_request *, const struct lb_filter *,
	const struct lb_req *, char text[PROXY_RBAC_TEXT_MAX]);
