// SPDX-License-Identifier: Apache-2.0
// One virtual host's routes compiled, and the search for the first one that takes a request.
// Exact paths are in a hash, prefixes in a radix tree, case-insensitive ones in a folded twin;
// regexes hang at the prefix that all subjects of their set start with. Every key begins an
// ascending list of routes, and the lists that a path selects are merged. What decides the common
// case lies with the key: its smallest route, and what that does if its path is all it asks for.
// Thread: built on ctrl; searched anywhere. Pure but for the table scratch.
#pragma once

#include "lb/route/action.h"
#include "lb/route/route.h"
#include "lb/route/table_scratch.h"

struct lb_radix;
struct lb_string_index;

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

// Beside an exact path.
struct lb_vhost_exact {
	uint32_t first; // route of its list
	uint32_t action; // of that route; LB_VHOST_NONE = it has criteria
};

// Beside a prefix.
struct lb_vhost_prefix {
	uint32_t first; // route of its list
	uint32_t smallest; // route of this prefix or a shorter one that it starts with
	union {
		uint32_t action; // of the smallest; LB_VHOST_NONE = it has criteria
		uint32_t n_candidates; // while being built: what a path of it can have at most
	};
	// Only in a virtual host with regex sets:
	uint32_t smallest_set; // the smallest route of the sets here or above
	uint32_t sets; // the first one here
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
	struct lb_vhost_route *routes; // owned, as all below
	struct lb_vhost_criteria *criteria;
	struct lb_string_index *exact;
	struct lb_radix *exact_fold, *prefix, *prefix_fold;
	bool has_exact, has_exact_fold, has_prefix_fold; // any keys: most lookups need not ask
	struct lb_vhost_set *sets;
	struct lb_header_matchers *matchers;
	struct lb_actions actions;
	struct lb_filter_overrides overrides; // in the actions' arena
	struct lb_table_scratch_size needs;
};

// The next regex set it uses, from *at = 0 on; NULL = no more.
struct lb_regex_set *lb_vhost_next_set(const struct lb_vhost *, uint32_t *at);

// What a search needs beside the virtual host.
struct lb_vhost_query {
	const struct lb_req *req;
	struct lb_route_ctx *ctx;
	struct lb_table_scratch *table_scratch;
	struct lb_regex_scratches *regex;
	bool hides_transport; // lb/route/header_match.h
	struct str text; // room for joined header values
	uint32_t thread;
};
struct lb_vhost_found {
	uint32_t route; // the first one that takes the request, LB_VHOST_NONE = none
	uint32_t action; // its
};
struct lb_vhost_found lb_vhost_search(const struct lb_vhost *, const struct lb_vhost_query *);
