// SPDX-License-Identifier: Apache-2.0
// A cluster's load_balancing_policy, or the older lb_policy, as the tree of policies that the
// balancer runs (gRFC A52; A52-T10). lb/policy runs it.
// Thread: ctrl.
#pragma once

#include "ctrl/res/common.h"
#include "envoy/config/cluster/v3/cluster.pb-c.h"

struct lb_policy_spec;

// Supported levels of nesting, at least.
uint32_t res_policy_depth(const Envoy__Config__Cluster__V3__Cluster *);
// The tree lies in room[res_policy_depth()], zeroed, and in the reader's arena. *ret_provided: an
// aggregate that leaves balancing to its members (A75-G07); the tree is then a default. Returns 0,
// -EINVAL or -ENOMEM.
int res_policy_read(struct res_reader *, const Envoy__Config__Cluster__V3__Cluster *,
	bool is_aggregate, struct lb_policy_spec *room, const struct lb_policy_spec **ret,
	bool *ret_provided);
