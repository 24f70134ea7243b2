// SPDX-License-Identifier: Apache-2.0
// Finds where such requests are routed: the workers' lookup, with the probabilities of its draws.
// explain.c writes the text.
// Thread: ctrl.
#pragma once

#include "ctrl/assemble/assemble.h"
#include "lb/route/peer_info.h"
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
	struct assembler_routes of; // the frontend's routes
	struct lb_req req;
	struct lb_peer_info peer; // who is to have sent it
	struct rand *rand;
	struct lb_route_scratch *scratch; // ctrl's
	char *text; // for cookies, and for values to be hashed
	size_t text_size;
};

struct explain_found {
	struct lb_route_result result; // of the lookup that examined the most routes
	const struct res_vhost *vhost; // NULL = none
	uint32_t vhost_index; // in the resource
	uint32_t n_steps; // routes examined
	struct lb_route_step steps[EXPLAIN_MAX_STEPS]; // the first ones, and the last one
};
bool explain_look_up(
	const struct explain_query *, struct explain_found *ret); // false = out of memory
// The domain that chose the virtual host; "" = out of memory.
const char *explain_domain(const struct explain_query *, const struct explain_found *);

struct explain_outcome {
	double share; // of the requests
	const struct res_route *route; // NULL = none matched
};
// Returns how many; the shares add up to 1.
uint32_t explain_outcomes(
	const struct explain_found *, struct explain_outcome ret[EXPLAIN_MAX_STEPS + 1]);

// The effect of a cookie on requests that draw an entry of a route (SA-10).
struct explain_session {
	const struct lb_session *filter; // NULL = no session covers them
	struct lb_session_cookie cookie; // points into the query's text until that is reused
	// the route's first entry for the cookie's cluster; NULL = none
	const struct res_weighted_cluster *first;
	const struct res_weighted_cluster
		*to; // the entry that counts instead; NULL = the drawn one
};
// *s is {0}, or the result for another entry of the route.
void explain_session(const struct explain_query *, const struct explain_found *,
	const struct res_route *, const struct res_weighted_cluster *drawn,
	struct explain_session *s);
// Filter i as it applies to them, as the resource has it; NULL = disabled.
const struct lb_filter *explain_filter(const struct explain_query *, const struct explain_found *,
	const struct res_route *, const struct res_weighted_cluster *drawn, uint32_t i);
// What access control says of them: `allows: policy p`. From malloc; NULL = out of memory.
char *explain_rbac(const struct explain_query *, const struct lb_filter *);
// The share of the route's requests for each of its entries. ret has room for all.
void explain_shares(const struct explain_query *, const struct explain_found *,
	const struct res_route *, double *ret);
// The hash that the request has on this route (HP-01); unknown = any.
struct lb_pick_hash explain_hash(
	const struct explain_query *, const struct explain_found *, const struct res_route *);
