// SPDX-License-Identifier: Apache-2.0
// envoy.config.listener.v3.Listener as plain data: the api_listener's HttpConnectionManager
// (CL-02, A31-*, FLT-*).
// Thread: ctrl.
#pragma once

#include "ctrl/res/warnings.h"
#include "ctrl/xds/type.h"
#include "lb/base/container_of.h"
#include "lb/route/filter.h"
#include "lb/route/timeouts.h"

#include <stdbool.h>
#include <stdint.h>

struct res_route_config;

struct res_listener {
	struct xds_res base;
	bool is_api; // false: a socket listener, which serves no target (DM-08); the rest is empty
	const char *rds_name; // NULL = the routes are inline
	struct res_route_config *routes; // counted; NULL = by rds_name
	const struct lb_filter *filters; // in order; all but the router
	uint32_t n_filters;
	uint64_t max_stream_duration_ns; // LB_NO_TIMEOUT = none (A31-T01)
	uint64_t stream_idle_ns; // 0 = not configured, LB_NO_TIMEOUT = none (TH-98)
	struct res_warnings warnings;
};

extern const struct xds_type res_type_listener;

static inline struct res_listener *res_listener_from(struct xds_res *r)
{
	return CONTAINER_OF(r, struct res_listener, base); // base is the first member
}
