// SPDX-License-Identifier: Apache-2.0
// From a validated RouteConfiguration to the table that workers search: cluster names become ids.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

#include <stdint.h>

struct cluster_set;
struct lb_route_table;
struct res_route_config;

// vhost: only this one (a pinned authority); -1 = all. Every cluster named by a weight above 0 is
// in the set. NULL: no memory, or a cluster that is not in the set (reterr).
struct lb_route_table *route_compile(const struct res_route_config *, int32_t vhost,
	const struct cluster_set *, uint32_t n_workers, struct lb_err *reterr);
