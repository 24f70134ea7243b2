// SPDX-License-Identifier: Apache-2.0
// The operations of each kind of policy. This file knows all kinds; a node finds those of its
// children through lb_node_env.ops_of.
// Thread: ctrl.
#pragma once

#include "lb/policy/node.h"

lb_node_ops_find lb_node_ops_of; // never NULL
extern const struct lb_node_ops lb_node_weighted; // LB_POLICY_WRR_LOCALITY
extern const struct lb_node_ops lb_node_round_robin; // RR-01 to RR-04
extern const struct lb_node_ops lb_node_weighted_round_robin; // A58-01 to A58-07
extern const struct lb_node_ops lb_node_least_request; // A48-01 to A48-03
extern const struct lb_node_ops lb_node_ring_hash; // RH-01 to RH-07
extern const struct lb_node_ops lb_node_pick_first; // PF-01 to PF-07
