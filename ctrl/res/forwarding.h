// SPDX-License-Identifier: Apache-2.0
// The fields of an HttpConnectionManager that say what becomes of x-forwarded-for and its like
// (HX-50, HX-60, FLT-10).
// Thread: ctrl.
#pragma once

#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb-c.h"
#include "lb/route/forwarding.h"

#include <stdbool.h>

struct res_reader;

// is_api: of an API listener, where gRPC's rules hold and nothing is the default. 0 or -EINVAL.
int res_forwarding_read(struct res_reader *,
	const Envoy__Extensions__Filters__Network__HttpConnectionManager__V3__HttpConnectionManager
		*,
	bool is_api, struct lb_forwarding *ret);
