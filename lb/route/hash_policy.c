// SPDX-License-Identifier: Apache-2.0
#include "lb/route/hash_policy.h"

#include "lb/index/hash.h"
#include "lb/regex/regex.h"
#include "lb/route/header_value.h"

static bool hash_header(const struct lb_hash_policy *policy, const struct lb_req *req,
	bool hides_transport, char *buf, size_t buf_size, uint64_t *ret)
{
	struct str value;
	if (!lb_header_find(req, policy->header, hides_transport, buf, buf_size, &value))
		return false;
	if (policy->rewrite) { // HP-03
		size_t used = value.p == buf ? value.len : 0; // joined
		size_t n =
			lb_regex_rewrite_apply(policy->rewrite, value, buf + used, buf_size - used);
		value = (struct str){buf + used, n};
	}
	*ret = lb_xxh64(value.len ? value.p : "", value.len); // HP-01
	return true;
}

bool lb_hash_policies_run(const struct lb_hash_policy *policies, uint32_t n,
	const struct lb_req *req, bool hides_transport, char *buf, size_t buf_size,
	uint64_t *ret_hash)
{
	uint64_t hash = 0;
	bool any = false;
	for (uint32_t i = 0; i < n; i++) {
		const struct lb_hash_policy *policy = &policies[i];
		uint64_t one = req->connection; // HP-08
		bool found = true;
		if (policy->kind == LB_HASH_HEADER)
			found = hash_header(policy, req, hides_transport, buf, buf_size, &one);
		if (found) {
			hash = any ? (hash << 1 | hash >> 63) ^ one : one; // HP-04
			any = true;
		}
		if (policy->terminal && any) // HP-05
			break;
	}
	if (any)
		*ret_hash = hash;
	return any;
}
