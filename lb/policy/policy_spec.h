// SPDX-License-Identifier: Apache-2.0
// Which policy picks, and its parameters, as CDS says, checked and with defaults filled in: what a
// node (lb/policy/node.h) is made and updated from.
// Thread: ctrl. Pure.
#pragma once

#include "lb/base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum lb_policy_kind {
	LB_POLICY_WRR_LOCALITY, // weighted_target over localities, `child` in each (A52-L*)
	LB_POLICY_ROUND_ROBIN,
	LB_POLICY_WEIGHTED_ROUND_ROBIN, // client_side_weighted_round_robin
	LB_POLICY_LEAST_REQUEST,
	LB_POLICY_RING_HASH,
	LB_POLICY_PICK_FIRST,
};
// Immutable; outlives the nodes that were given it.
struct lb_policy_spec {
	enum lb_policy_kind kind;
	const struct lb_policy_spec *child; // WRR_LOCALITY
	union {
		struct {
			bool oob; // reports by a stream; those of answers stand in for them
			uint64_t oob_period_ns, blackout_ns, expiration_ns, update_ns;
			double error_penalty;
		} wrr; // A58-02's defaults filled in
		struct {
			uint32_t choice_count; // 2 to 10
		} least_request;
		struct {
			uint64_t min_size, max_size; // capped already (RH-03)
			// Hashed in place of what the route says (RH-10); lower case; "" =
			// none.
			struct str request_hash_header;
		} ring_hash;
		struct {
			bool shuffle;
		} pick_first;
	};
};

// Same kinds and parameters all the way down: a node that has the one need not hear of the other.
// Both may be NULL.
bool lb_policy_spec_same(const struct lb_policy_spec *, const struct lb_policy_spec *);
