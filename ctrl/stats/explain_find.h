// SPDX-License-Identifier: Apache-2.0
// Where requests as described would end up: the workers' own lookup, and odds where it draws. The
// words for it are explain.c's.
// Thread: ctrl.
#pragma once

#include "ctrl/assemble/assemble.h"
#include "lb/route/req.h"
#include "lb/route/route.h"
#include "lb/route/session.h"

#include <stdbool.h>
#include <stdint.h>

struct res_route;
struct res_vhost;
struct res_weighted_cluster;

#define EXPLAIN_MAX_STEPS 1000 // routes told of

struct explain_query {
	struct assembler_routes of; // what serves the frontend
	struct lb_req req;
	struct rand *rand;
	struct lb_route_scratch *scratch; // ctrl's
	char *text; // for cookies, and for values to be hashed
	size_t text_size;
};

struct explain_found {
	struct lb_route_result result; // of the lookup that looked at the most routes
	const struct res_vhost *vhost; // NULL = none
	uint32_t vhost_index; // in the resource
	uint32_t n_steps; // routes looked at
	struct lb_route_step steps[EXPLAIN_MAX_STEPS]; // the first ones, and the last one
};
bool explain_look_up(
	const struct explain_query *, struct explain_found *ret); // false = out of memory
// The domain that chose the virtual host; "" = out of memory.
const char *explain_domain(const struct explain_query *, const struct explain_found *);

struct explain_outcome {
	double share; // of such requests
	const struct res_route *route; // NULL = none, or none that was found
};
// Returns how many; the shares add up to 1.
uint32_t explain_outcomes(
	const struct explain_found *, struct explain_outcome ret[EXPLAIN_MAX_STEPS + 1]);

// What a cookie does to the requests that draw an entry of a route (SA-10).
struct explain_session {
	const struct lb_session *filter; // NULL = no session covers them
	struct lb_session_cookie cookie; // into the query's text: good until that is used again
	const struct res_weighted_cluster *first; // of the route that the cookie names; NULL = none
	const struct res_weighted_cluster
		*to; // the entry that counts instead; NULL = the drawn one
};
// *s is {0}, or what was said of another entry of the route.
void explain_session(const struct explain_query *, const struct explain_found *,
	const struct res_route *, const struct res_weighted_cluster *drawn,
	struct explain_session *s);
// Filter i as it counts for them; NULL = it is disabled.
const struct lb_filter *explain_filter(const struct explain_query *, const struct explain_found *,
	const struct res_route *, const struct res_weighted_cluster *drawn, uint32_t i);
// What share of the route's requests each of its entries gets. ret has room for all.
void explain_shares(const struct explain_query *, const struct explain_found *,
	const struct res_route *, double *ret);
// The hash that the request has on this route (HP-01); unknown = any.
struct lb_pick_hash explain_hash(
	const struct explain_query *, const struct explain_found *, const struct res_route *);
