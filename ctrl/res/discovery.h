// SPDX-License-Identifier: Apache-2.0
// The source of a cluster's endpoints: EDS, a DNS name, or other clusters (CL-03, CL-04; gRFC A37).
// Thread: ctrl.
#pragma once

#include "ctrl/res/common.h"
#include "envoy/config/cluster/v3/cluster.pb-c.h"

struct res_cluster;

// Fills kind, eds_name, eds_service_name, dns, children. 0, -EINVAL or -ENOMEM.
int res_discovery_read(
	struct res_reader *, const Envoy__Config__Cluster__V3__Cluster *, struct res_cluster *);
