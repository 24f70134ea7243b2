// SPDX-License-Identifier: Apache-2.0
// A cluster's outlier_detection (gRFC A50; A50-E01..A50-E03). lb/leaf/ejection.h applies it.
// Thread: ctrl.
#pragma once

#include "ctrl/res/common.h"
#include "envoy/config/cluster/v3/outlier_detection.pb-c.h"

struct lb_outlier_conf;

// Lives in the reader's arena. 0, -EINVAL with "<field>: …", or -ENOMEM.
int res_outlier_read(struct res_reader *, const Envoy__Config__Cluster__V3__OutlierDetection *,
	const struct lb_outlier_conf **ret);
