// SPDX-License-Identifier: Apache-2.0
// A request's hash for policies that pick by it (gRFC A42; HP-01..HP-08).
// Thread: built on ctrl; run on workers. Pure but for the scratch buffer and the rewrite.
#pragma once

#include "lb/base/str.h"
#include "lb/route/req.h"

#include <stdint.h>

struct lb_regex_rewrite;

enum lb_hash_policy_kind {
	LB_HASH_HEADER,
	LB_HASH_CONNECTION, // filter_state io.grpc.channel_id
};
struct lb_hash_policy {
	enum lb_hash_policy_kind kind;
	bool terminal; // stops here if any hash exists (HP-05)
	struct str header; // lower case
	struct str pattern, substitution; // regex_rewrite; pattern "" = none
	struct lb_regex_rewrite *rewrite; // compiled from them; the owner of the array owns it
};

// Returns false if no policy produced a hash: the caller draws a random one and keeps it (HP-06).
// buf is scratch for joined values, which are cut to fit. hides_transport:
// lb_route_hides_transport().
bool lb_hash_policies_run(const struct lb_hash_policy *, uint32_t n, const struct lb_req *,
	bool hides_transport, char *buf, size_t buf_size, uint64_t *ret_hash);
