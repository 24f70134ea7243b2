// SPDX-License-Identifier: Apache-2.0
// envoy.config.cluster.v3.Cluster as plain data (xds-client.md CL-03, CL-04, CL-08).
// Thread: ctrl.
#pragma once

#include "ctrl/xds/type.h"

#include <stdbool.h>
#include <stdint.h>

enum res_lb_policy { RES_LB_ROUND_ROBIN };

struct res_cluster {
	struct xds_res base;
	const char *eds_name; // of the endpoints: the service name, else the cluster's own
	enum res_lb_policy policy; // of the endpoints
	// wrr_locality: draw a locality by weight first. False: all endpoints of a priority alike.
	bool by_locality;
	uint32_t max_requests; // circuit breaker (CB-01); default 1024
	// override_host_status: 1 << each res_health in it (SA-12). 0 = it is set and holds none
	// that counts: sessions bind nobody.
	uint32_t session_health;
	uint64_t idle_timeout_ns; // of session connections (gRFC A75); default 1 h
};

extern const struct xds_type res_type_cluster;

static inline struct res_cluster *res_cluster_from(struct xds_res *r)
{
	return (struct res_cluster *)r; // base is the first member
}
