// SPDX-License-Identifier: Apache-2.0
// One virtual host's routes compiled, and the search for the first one that takes a request.
// Exact paths are in a hash, prefixes in a radix tree, case-insensitive ones in a folded twin;
// regexes hang at the prefix that all subjects of their set start with. Every key begins an
// ascending list of routes, and the lists that a path selects are merged.
// Thread: built on ctrl; searched anywhere. Pure but for the lane.
#pragma once

#include "lb/action.h"
#include "lb/lane.h"
#include "lb/route.h"

struct lb_radix;
struct lb_strmap;

#define LB_VHOST_NONE UINT32_MAX // no such route, key or set; larger than every number

struct lb_vhost_route {
	uint32_t action;
	uint32_t criteria; // LB_VHOST_NONE = the path is all
	uint32_t next; // route with the same path key
};

struct lb_vhost_criteria {
	uint32_t ppm;
	bool grpc_only;
	uint32_t matchers, n_matchers; // numbers of the first one and how many follow on it
};

// A prefix and the shorter ones that it starts with.
struct lb_vhost_key {
	uint32_t up; // the longest shorter one
	uint32_t first; // route
	uint32_t smallest; // route of this key or one above
	uint32_t smallest_set; // the smallest route of the regex sets here or above
};

struct lb_vhost_prefixes {
	struct lb_radix *tree;
	struct lb_vhost_key *keys; // by their number in the tree
	uint32_t n; // of them
};

struct lb_vhost_set {
	struct lb_regex_set *set; // counted
	uint64_t used; // patterns that routes have
	uint32_t smallest; // route
	uint32_t next; // set at the same prefix
	uint32_t first[LB_REGEX_SET_MAX]; // route of each pattern
};

struct lb_vhost {
	uint32_t n_refs; // ctrl only
	uint32_t n_routes, n_criteria, n_sets;
	uint32_t n_exact, n_exact_fold; // keys
	struct lb_vhost_route *routes; // owned, as all below
	struct lb_vhost_criteria *criteria;
	struct lb_strmap *exact;
	uint32_t *exact_first; // route of each key
	struct lb_radix *exact_fold;
	uint32_t *exact_fold_first;
	struct lb_vhost_prefixes prefix, prefix_fold;
	struct lb_vhost_set *sets;
	uint32_t *key_sets; // the first set of each key of prefix; NULL without sets
	struct lb_header_matchers *matchers;
	struct lb_actions actions;
	struct lb_filter_overrides overrides; // in the actions' arena
	struct lb_lane_size needs;
};

// The next regex set it uses, from *at = 0 on; NULL = no more.
struct lb_regex_set *lb_vhost_next_set(const struct lb_vhost *, uint32_t *at);

// What a search needs beside the virtual host.
struct lb_vhost_query {
	const struct lb_req *req;
	struct lb_route_ctx *ctx;
	struct lb_lane *lane;
	struct lb_regex_scratches *regex;
	bool hides_transport; // lb/header_match.h
	struct str text; // room for joined header values
	uint32_t thread;
};
// The number of the first route that takes the request, LB_VHOST_NONE = none.
uint32_t lb_vhost_search(const struct lb_vhost *, const struct lb_vhost_query *);
