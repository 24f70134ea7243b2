// SPDX-License-Identifier: Apache-2.0
// Session affinity: a leaf cluster's endpoints as workers look them up (gRFC A55, A75; A55-O01 to
// A55-O03, A75-O05 to A75-O10): each endpoint of each priority under each of its addresses, with
// the state of its connection. Immutable; versions share what did not change: the endpoints with
// the index of their addresses, and all unchanged pages of states. lb/leaf/affinity.h keeps the
// connections.
// Thread: new/get/put on ctrl; the rest on workers. Pure.
#pragma once

#include "lb/base/str.h"
#include "lb/index/address_index.h"
#include "lb/pick/cells.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lb_leaf_endpoints;

struct lb_affinity_map {
	uint32_t n_refs; // ctrl only
	struct lb_address_filter filter; // of the endpoints' index
	struct lb_leaf_endpoints *endpoints; // counted
	// counted: draining endpoints, which take no new sessions; NULL = none
	struct lb_leaf_endpoints *leaving;
	struct lb_cells cells; // of the endpoints that take part, then of those leaving
};

// Takes its own references. leaving may be NULL. Count 1. Returns NULL if out of memory.
struct lb_affinity_map *lb_affinity_map_new(
	struct lb_leaf_endpoints *, struct lb_leaf_endpoints *leaving, const struct lb_cells *);
struct lb_affinity_map *lb_affinity_map_get(struct lb_affinity_map *);
void lb_affinity_map_put(struct lb_affinity_map *); // NULL is fine

// What is known about an address.
struct lb_affinity_host {
	const struct lb_cell *state; // of the connection, if has_connection; `endpoint` if READY
	struct str hostname;
	const struct ip_port *addresses; // in EDS order
	uint32_t n_addresses;
	uint32_t address; // index of the address found
	uint32_t member;
	bool is_target;
};
// Returns false if the leaf has no such address. map may be NULL.
bool lb_affinity_map_find(
	const struct lb_affinity_map *, const struct ip_port *, struct lb_affinity_host *ret);
// Writes the addresses as a cookie lists them: this one, then the endpoint's others (A75-O10).
// Returns the length; 0 = it does not fit.
size_t lb_affinity_print(const struct lb_affinity_host *, char *out, size_t room);

enum lb_affinity_kind {
	LB_AFFINITY_CHILD, // the session has no endpoint: pick without it (A75-O09)
	LB_AFFINITY_USE, // use ret->state->endpoint (A75-O05)
	LB_AFFINITY_QUEUE, // wait (A75-O07)
	LB_AFFINITY_CONNECT, // wait; the control thread must connect ret->member (A75-O06, A75-O08)
};
enum lb_affinity_kind lb_affinity_map_pick_known(const struct lb_affinity_map *,
	const struct ip_port *addresses, uint32_t n, struct lb_affinity_host *ret);
// Looks up the addresses of a cookie, in order. USE and CONNECT set *ret. map may be NULL.
static inline enum lb_affinity_kind lb_affinity_map_pick(const struct lb_affinity_map *m,
	const struct ip_port *addresses, uint32_t n, struct lb_affinity_host *ret)
{
	for (uint32_t i = 0; m && i < n; i++)
		if (__builtin_expect(
			    lb_address_filter_has(m->filter, lb_address_hash(&addresses[i])), 0))
			return lb_affinity_map_pick_known(m, addresses, n, ret);
	return LB_AFFINITY_CHILD;
}
