// SPDX-License-Identifier: Apache-2.0
// envoy.config.endpoint.v3.ClusterLoadAssignment as plain data (xds-client.md CL-05, CL-06,
// lb-tree.md A27-V01 to A27-V09). Localities without weight are not in it.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/type.h"
#include "lb/base/ip.h"

#include <stdint.h>

// The numbers are envoy.config.core.v3.HealthStatus's.
enum res_health {
	RES_HEALTH_UNKNOWN = 0,
	RES_HEALTH_HEALTHY = 1,
	RES_HEALTH_UNHEALTHY = 2,
	RES_HEALTH_DRAINING = 3,
	RES_HEALTH_TIMEOUT = 4,
	RES_HEALTH_DEGRADED = 5,
};

struct res_endpoint {
	struct ip_port addr;
	uint32_t weight; // >= 1
	enum res_health health; // usable for new requests: UNKNOWN and HEALTHY (CL-06)
	const struct ip_port *additional; // its other addresses, in order (gRFC A61, A75)
	uint32_t n_additional;
	const char *hostname; // "" = none (gRFC A81)
};

struct res_locality {
	const char *region, *zone, *sub_zone; // "" when unset
	uint32_t weight; // >= 1
	const struct res_endpoint *endpoints;
	uint32_t n_endpoints;
};

struct res_priority {
	const struct res_locality *localities; // at least one
	uint32_t n_localities;
};

struct res_drop {
	const char *category;
	uint32_t per_million; // 0 to 1000000
};

struct res_endpoints {
	struct xds_res base;
	const struct res_priority *priorities; // by priority, no gap
	uint32_t n_priorities; // 0 = the cluster is unreachable (A27-V09)
	const struct res_drop *drops;
	uint32_t n_drops;
};

extern const struct xds_type res_type_endpoints;

static inline struct res_endpoints *res_endpoints_from(struct xds_res *r)
{
	return (struct res_endpoints *)r; // base is the first member
}
