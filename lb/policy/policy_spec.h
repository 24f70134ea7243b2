// SPDX-License-Identifier: Apache-2.0
// A load balancing policy and its parameters from CDS, validated and with defaults filled in: the
// input that makes and updates a node (lb/policy/node.h).
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
// Immutable; outlives the nodes that use it.
struct lb_policy_spec {
	enum lb_policy_kind kind;
	// Of the endpoints that it would be given it gets as many at most, chosen by
	// lb/leaf/subset.h (gRFC A68); 0 = all.
	uint32_t subset_size;
	const struct lb_policy_spec *child; // WRR_LOCALITY
	union {
		struct {
			bool oob; // out-of-band reports; reports in answers are used in their place
			uint64_t oob_period_ns, blackout_ns, expiration_ns, update_ns;
			double error_penalty;
		} wrr; // A58-02's defaults filled in
		struct {
			uint32_t choice_count; // 2 to 10
		} least_request;
		struct {
			uint64_t min_size, max_size; // already capped (RH-03)
			// Request header to hash instead of the route's hash policy (RH-10); lower
			// case; "" = none.
			struct str request_hash_header;
		} ring_hash;
		struct {
			bool shuffle;
		} pick_first;
	};
};

// True if kinds and parameters are equal at all levels: a node needs no update. Both may be NULL.
bool lb_policy_spec_same(const struct lb_policy_spec *, const struct lb_policy_spec *);
