// SPDX-License-Identifier: Apache-2.0
// envoy.config.endpoint.v3.ClusterLoadAssignment as a plain struct (CL-05, CL-06, A27-V01 to
// A27-V06, A55-V07, A27-V08, A27-V09). It omits localities without weight, but contains endpoints
// of any health. What balancing needs is stored in balancing's own form.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/type.h"
#include "lb/base/container_of.h"
#include "lb/pick/leaf_endpoints.h"

#include <stdint.h>

struct res_drop {
	const char *category;
	uint32_t per_million; // 0 to 1000000
};

struct res_endpoints {
	struct xds_res base;
	// Counted. By priority, no gap; each has a locality. No priority: the cluster is
	// unreachable (A27-V09). Names are "region/zone/sub_zone", slashes in these escaped:
	// res_locality_of() takes them apart.
	struct lb_leaf_endpoints *list;
	const struct res_drop *drops;
	uint32_t n_drops;
};

extern const struct xds_type res_type_endpoints;

// The endpoints of a LOGICAL_DNS cluster (A61-D02): one priority, one locality without names, one
// endpoint with all addresses. n = 0: no priority (A37-D03). Duplicate addresses count once. Copies
// everything. Equal content gives equal resources (xds_res_eq); the bytes are no protobuf. Returns
// NULL if out of memory.
struct res_endpoints *res_endpoints_of_addresses(
	const char *name, const struct ip_port *addresses, uint32_t n, const char *hostname);

// The parts of a locality's name; "" if unset.
struct res_locality {
	const char *region, *zone, *sub_zone;
};

// The texts are in `buf`, which has room for name.len + 1 bytes.
struct res_locality res_locality_of(struct str name, char *buf);

static inline struct res_endpoints *res_endpoints_from(struct xds_res *r)
{
	return CONTAINER_OF(r, struct res_endpoints, base); // base is the first member
}
