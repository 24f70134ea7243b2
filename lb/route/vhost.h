// SPDX-License-Identifier: Apache-2.0
// One virtual host's compiled routes, and the search for the first route that matches a request.
// Exact paths are in a hash, prefixes in a radix tree, case-insensitive ones in a case-folded twin;
// regexes are attached to the common prefix of their set's subjects. Every key has an ascending
// list of routes, and a search merges the lists that a path selects. Each key also stores what
// decides the common case: its first route, and the action of that route if it has no criteria but
// its path.
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
	uint32_t criteria; // LB_VHOST_NONE = none but the path
	uint32_t next; // route with the same path key
};

struct lb_vhost_criteria {
	uint32_t ppm;
	bool grpc_only;
	uint32_t matchers, n_matchers; // number of the first one, and how many follow from it
};

// Value of an exact path.
struct lb_vhost_exact {
	uint32_t first; // first route of its list
	uint32_t action; // of that route; LB_VHOST_NONE = it has criteria
};

// Value of a prefix.
struct lb_vhost_prefix {
	uint32_t first; // first route of its list
	uint32_t smallest; // first route of this prefix or of one of its shorter prefixes
	union {
		uint32_t action; // of the smallest; LB_VHOST_NONE = it has criteria
		uint32_t n_candidates; // while being built: upper bound of a path's candidates
	};
	// Only in virtual hosts with regex sets:
	uint32_t smallest_set; // first route of the sets here or at shorter prefixes
	uint32_t sets; // the first one here
};

struct lb_vhost_set {
	struct lb_regex_set *set; // counted
	uint64_t used; // bit set of patterns that routes use
	uint32_t smallest; // first route
	uint32_t next; // next set at the same prefix
	uint32_t first[LB_REGEX_SET_MAX]; // route of each pattern
};

// Names of the virtual host and its routes, for operators.
struct lb_vhost_names {
	struct str vhost;
	struct str *routes; // owned, [n_routes]; NULL = none has a name
	uint32_t *indices; // owned, [n_routes]: in the resource
	char *bytes; // owned: what the texts point to
	size_t size; // of all that
};

struct lb_vhost {
	uint32_t n_refs; // ctrl only
	uint64_t serial; // no other one has had it
	uint16_t number; // of its counters (lb_link.vhosts); 0 = none
	uint32_t n_routes, n_criteria, n_sets;
	struct lb_vhost_route *routes; // owned, as all below
	struct lb_vhost_criteria *criteria;
	struct lb_string_index *exact;
	struct lb_radix *exact_fold, *prefix, *prefix_fold;
	// there are such keys: most lookups can skip them
	bool has_exact, has_exact_fold, has_prefix_fold;
	struct lb_vhost_set *sets;
	struct lb_header_matchers *matchers;
	struct lb_actions actions;
	struct lb_filter_overrides overrides; // in the actions' arena
	struct lb_table_scratch_size needs;
	struct lb_vhost_names names;
};

// Iterates over the regex sets in use, from *at = 0 on; NULL = end.
struct lb_regex_set *lb_vhost_next_set(const struct lb_vhost *, uint32_t *at);

// The other inputs of a search.
struct lb_vhost_query {
	const struct lb_req *req;
	struct lb_route_ctx *ctx;
	struct lb_table_scratch *table_scratch;
	struct lb_regex_scratches *regex;
	bool hides_transport; // lb/route/header_match.h
	struct str text; // buffer for joined header values
	uint32_t thread;
};
struct lb_vhost_found {
	uint32_t route; // the first route that matches; LB_VHOST_NONE = none
	uint32_t action; // its
};
struct lb_vhost_found lb_vhost_search(const struct lb_vhost *, const struct lb_vhost_query *);
