// SPDX-License-Identifier: Apache-2.0
// What a cluster says of the connections to its endpoints (CL-08, CL-09): when they count as
// failed, silent or idle. Only HTTP/2 is spoken to them, whichever protocol its options ask for.
// Thread: ctrl.
#pragma once

#include "ctrl/res/common.h"
#include "envoy/config/cluster/v3/cluster.pb-c.h"

struct res_cluster;

// Fills idle_timeout_ns and timers. 0, -EINVAL with "<field>: …", or -ENOMEM.
int res_upstream_read(
	struct res_reader *, const Envoy__Config__Cluster__V3__Cluster *, struct res_cluster *);
