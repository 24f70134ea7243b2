// SPDX-License-Identifier: Apache-2.0
// envoy.config.endpoint.v3.ClusterLoadAssignment as plain data (xds-client.md CL-05, CL-06,
// lb-tree.md A27-V01 to A27-V09). Localities without weight are not in it; endpoints of every
// health are.
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
	RES_HEALTH_OTHER = 6, // a number that none of the above has
};

// What few endpoints have.
struct res_endpoint_more {
	const struct ip_port *additional; // its other addresses, in order (gRFC A61, A75)
	uint32_t n_additional;
	const char *hostname; // "" = none (gRFC A81)
	const char *hash_key; // its place on hash rings (gRFC A76, RH-01); "" = the first address
};

struct res_endpoint {
	struct ip_port addr;
	uint8_t health; // enum res_health; usable for new requests: UNKNOWN and HEALTHY (CL-06)
	uint32_t weight; // >= 1
	const struct res_endpoint_more *more; // NULL = none of it
};
_Static_assert(sizeof(struct res_endpoint) == 32, "there are 100,000 of them in a cluster");

// Never NULL.
static inline const struct res_endpoint_more *res_endpoint_more(const struct res_endpoint *e)
{
	static const struct res_endpoint_more none = {.hostname = "", .hash_key = ""};
	return e->more ? e->more : &none;
}

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

// What a LOGICAL_DNS cluster makes of the addresses of its name (A61-D02): one priority, one
// locality without names, one endpoint, which has all of them. n = 0: no priority (A37-D03). An
// address that is there twice counts once. Everything is copied. Those of equal content are equal
// (xds_res_eq); the bytes are no protobuf. NULL = no memory.
struct res_endpoints *res_endpoints_of_addresses(
	const char *name, const struct ip_port *addresses, uint32_t n, const char *hostname);

static inline struct res_endpoints *res_endpoints_from(struct xds_res *r)
{
	return (struct res_endpoints *)r; // base is the first member
}
