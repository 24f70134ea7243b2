// SPDX-License-Identifier: Apache-2.0
// Routing as its rules read (A28-R*, A28-P*, A28-H*, A28-O*, A28-W*, VH-*, SM-*), route by route
// and header by header, sharing nothing with the fast lookup but the configuration's structures and
// RE2.
// Thread: the test's own.
#pragma once

#include "lb/route/req.h"
#include "lb/route/route.h"

#define TWIN_MAX_STEPS 512

struct twin_table {
	const struct lb_vhost_conf *vhosts;
	uint32_t n_vhosts;
	bool ignore_port, grpc_sees_all;
};

struct twin_answer {
	enum lb_route_kind kind;
	uint32_t vhost, route, cluster;
	struct lb_route_step steps[TWIN_MAX_STEPS];
	uint32_t n_steps;
};

// Draws as the rules say: a fraction of each route whose other criteria hold, then the cluster.
void twin_find(
	const struct twin_table *, const struct lb_req *, struct rand *, struct twin_answer *ret);
// RE2's verdict on one pattern.
bool twin_regex_matches(struct str pattern, struct str subject);
void twin_fini(void); // of the patterns it compiled
