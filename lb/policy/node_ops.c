// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/node_ops.h"

#include "lb/base/check.h"

const struct lb_node_ops *lb_node_ops_of(enum lb_policy_kind kind)
{
	static const struct lb_node_ops *const ops[] = {
		[LB_POLICY_WRR_LOCALITY] = &lb_node_weighted,
		[LB_POLICY_ROUND_ROBIN] = &lb_node_round_robin,
		[LB_POLICY_WEIGHTED_ROUND_ROBIN] = &lb_node_weighted_round_robin,
		[LB_POLICY_LEAST_REQUEST] = &lb_node_least_request,
		[LB_POLICY_RING_HASH] = &lb_node_ring_hash,
		[LB_POLICY_PICK_FIRST] = &lb_node_pick_first,
	};
	CHECK((unsigned)kind < sizeof(ops) / sizeof(ops[0]));
	return ops[kind];
}
