// SPDX-License-Identifier: Apache-2.0
// What session affinity knows of a leaf cluster's endpoints, as workers read it (gRFC A55, A75;
// A55-O01 to A55-O03, A75-O05 to A75-O10): each endpoint of each priority under each of
// its addresses, with the state of its connection. Immutable; versions share what did not change:
// the endpoints with the index of their addresses, and all pages of states but those that differ.
// What keeps connections is lb/leaf/affinity.h's.
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
	struct lb_leaf_endpoints *leaving; // counted: they bind nobody; NULL = there are none
	struct lb_cells cells; // of those that take part, then of those who are leaving
};

// Takes references of its own. leaving may be NULL. Count 1. NULL = out of memory.
struct lb_affinity_map *lb_affinity_map_new(
	struct lb_leaf_endpoints *, struct lb_leaf_endpoints *leaving, const struct lb_cells *);
struct lb_affinity_map *lb_affinity_map_get(struct lb_affinity_map *);
void lb_affinity_map_put(struct lb_affinity_map *); // NULL is fine

// What is known of an address.
struct lb_affinity_host {
	const struct lb_cell *state; // of the connection, if has_connection; `endpoint` if READY
	struct str hostname;
	const struct ip_port *addresses; // in the order of EDS
	uint32_t n_addresses;
	uint32_t address; // which of them
	uint32_t member;
	bool is_target;
};
// False = none of this leaf's. map may be NULL.
bool lb_affinity_map_find(
	const struct lb_affinity_map *, const struct ip_port *, struct lb_affinity_host *ret);
// The addresses as a cookie lists them: this one, then the endpoint's others (A75-O10). Returns the
// length, 0 = it does not fit.
size_t lb_affinity_print(const struct lb_affinity_host *, char *out, size_t room);

enum lb_affinity_kind {
	LB_AFFINITY_CHILD, // the session binds to nobody: pick as for everybody (A75-O09)
	LB_AFFINITY_USE, // ret->state->endpoint (A75-O05)
	LB_AFFINITY_QUEUE, // wait (A75-O07)
	LB_AFFINITY_CONNECT, // wait; control is to connect ret->member (A75-O06, A75-O08)
};
enum lb_affinity_kind lb_affinity_map_pick_known(const struct lb_affinity_map *,
	const struct ip_port *addresses, uint32_t n, struct lb_affinity_host *ret);
// For the addresses of a cookie, in order. *ret is set by USE and CONNECT. map may be NULL.
static inline enum lb_affinity_kind lb_affinity_map_pick(const struct lb_affinity_map *m,
	const struct ip_port *addresses, uint32_t n, struct lb_affinity_host *ret)
{
	for (uint32_t i = 0; m && i < n; i++)
		if (__builtin_expect(
			    lb_address_filter_has(m->filter, lb_address_hash(&addresses[i])), 0))
			return lb_affinity_map_pick_known(m, addresses, n, ret);
	return LB_AFFINITY_CHILD;
}
