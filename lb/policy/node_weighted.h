// SPDX-License-Identifier: Apache-2.0
// weighted_target over the localities of one priority, as wrr_locality makes it (gRFC A28;
// WT-01 to WT-10, A52-L01, A27-L02, A52-L03): each pick draws a locality by weight among
// the READY ones, then asks its policy. A locality that leaves is kept for 15 minutes with its
// connections.
// Thread: ctrl.
#pragma once

#include "lb/policy/node.h"

extern const struct lb_node_ops lb_node_weighted; // lb_node_ops_of(LB_POLICY_WRR_LOCALITY)
