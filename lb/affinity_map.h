// SPDX-License-Identifier: Apache-2.0
// What session affinity knows of a leaf cluster's endpoints, as workers read it (gRFC A55, A75;
// lb-tree.md A55-O01..O03, A75-O05..O10): each endpoint of each priority under each of its
// addresses, with the state of its connection. Immutable; versions share what did not change: the
// index, which only another list of endpoints changes, and all pages of states but those that
// differ. What keeps connections is lb/affinity.h's.
// Thread: new/get/put on ctrl; the rest on workers. Pure.
#pragma once

#include "lb/base/str.h"
#include "lb/cells.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lb_affinity_index;
struct lb_affinity_map;

// The builder's input; borrowed for the call.
struct lb_affinity_conf {
	const struct ip_port *addresses; // in the order of EDS
	uint32_t n_addresses; // >= 1
	struct str hostname; // "" = none (gRFC A81)
};
// Of equal addresses the first endpoint counts. Count 1. NULL = no memory.
struct lb_affinity_index *lb_affinity_index_new(const struct lb_affinity_conf *, uint32_t n);
struct lb_affinity_index *lb_affinity_index_get(struct lb_affinity_index *);
void lb_affinity_index_put(struct lb_affinity_index *); // NULL is fine
bool lb_affinity_index_is_of(
	const struct lb_affinity_index *, const struct lb_affinity_conf *, uint32_t n);
// Which of the list has the address; UINT32_MAX = none.
uint32_t lb_affinity_index_find(const struct lb_affinity_index *, const struct ip_port *);

// One cell for each endpoint of the index, in its order. Takes references of its own. Count 1.
// NULL = no memory.
struct lb_affinity_map *lb_affinity_map_new(struct lb_affinity_index *, const struct lb_cells *);
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
// The addresses as a cookie lists them: this one, then the endpoint's others (O10). Returns the
// length, 0 = it does not fit.
size_t lb_affinity_print(const struct lb_affinity_host *, char *out, size_t room);

enum lb_affinity_kind {
	LB_AFFINITY_CHILD, // the session binds to nobody: pick as for everybody (O09)
	LB_AFFINITY_USE, // host.state->endpoint (O05)
	LB_AFFINITY_QUEUE, // wait (O07)
	LB_AFFINITY_WISH, // wait; the control thread is to connect host.member (O06, O08)
};
struct lb_affinity_pick {
	enum lb_affinity_kind kind;
	struct lb_affinity_host host; // USE, WISH
};
// For the addresses of a cookie, in order. map may be NULL.
struct lb_affinity_pick lb_affinity_map_pick(
	const struct lb_affinity_map *, const struct ip_port *addresses, uint32_t n);
