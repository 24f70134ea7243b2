// SPDX-License-Identifier: Apache-2.0
// A cluster's health_checks (envoy.config.core.v3.HealthCheck; AHC-01, AHC-02, AHC-09).
// lb/leaf/health.h applies it.
// Thread: ctrl.
#pragma once

#include "ctrl/res/common.h"
#include "envoy/config/cluster/v3/cluster.pb-c.h"

struct lb_check;

// *ret is counted for the caller; NULL = nothing is checked. has_tls: connections to endpoints are
// secured. 0, -EINVAL with "<field>: …", or -ENOMEM.
int res_health_check_read(struct res_reader *, const Envoy__Config__Cluster__V3__Cluster *,
	bool has_tls, struct lb_check **ret);
