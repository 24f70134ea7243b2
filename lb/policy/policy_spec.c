// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/policy_spec.h"

static bool same_parameters(const struct lb_policy_spec *a, const struct lb_policy_spec *b)
{
	switch (a->kind) {
	case LB_POLICY_WRR_LOCALITY:
	case LB_POLICY_ROUND_ROBIN:
		return true;
	case LB_POLICY_WEIGHTED_ROUND_ROBIN:
		return a->wrr.oob == b->wrr.oob && a->wrr.oob_period_ns == b->wrr.oob_period_ns &&
		       a->wrr.blackout_ns == b->wrr.blackout_ns &&
		       a->wrr.expiration_ns == b->wrr.expiration_ns &&
		       a->wrr.update_ns == b->wrr.update_ns &&
		       !(a->wrr.error_penalty < b->wrr.error_penalty) &&
		       !(a->wrr.error_penalty > b->wrr.error_penalty);
	case LB_POLICY_LEAST_REQUEST:
		return a->least_request.choice_count == b->least_request.choice_count;
	case LB_POLICY_RING_HASH:
		return a->ring_hash.min_size == b->ring_hash.min_size &&
		       a->ring_hash.max_size == b->ring_hash.max_size &&
		       str_eq(a->ring_hash.request_hash_header, b->ring_hash.request_hash_header);
	case LB_POLICY_PICK_FIRST:
		return a->pick_first.shuffle == b->pick_first.shuffle;
	}
	return false;
}

bool lb_policy_spec_same(const struct lb_policy_spec *a, const struct lb_policy_spec *b)
{
	for (; a && b; a = a->child, b = b->child) {
		if (a->kind != b->kind || a->subset_size != b->subset_size ||
			!same_parameters(a, b))
			return false;
	}
	return !a && !b;
}
