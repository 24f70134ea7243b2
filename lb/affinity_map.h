// SPDX-License-Identifier: Apache-2.0
// What session affinity knows of a leaf cluster's endpoints, as workers read it (gRFC A55, A75;
// lb-tree.md A55-O01..O03, A75-O05..O10, O21): each endpoint of each priority under each of its
// addresses, with the state of its connection. Immutable; the part that only another list of
// endpoints changes is shared by those that differ in states. What keeps connections is
// lb/affinity.h's.
// Thread: new/get/put on ctrl; the rest on workers. Pure.
#pragma once

#include "lb/base/str.h"
#include "lb/endpoint.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_affinity_index;
struct lb_affinity_map;

// The builder's input; borrowed for the call.
struct lb_affinity_conf {
	const struct ip_port *addresses; // in the order of EDS
	uint32_t n_addresses; // >= 1
	struct str hostname; // "" = none (gRFC A81)
	struct str locality; // "" = none; whose load its requests are (O21)
	uint32_t member; // id
	bool is_target; // its health is in override_host_status (O02)
};
// Of equal addresses the first endpoint counts. Count 1. NULL = no memory.
struct lb_affinity_index *lb_affinity_index_new(const struct lb_affinity_conf *, uint32_t n);
void lb_affinity_index_put(struct lb_affinity_index *); // NULL is fine

// Of the endpoint with the same index in the list.
struct lb_affinity_state {
	struct lb_endpoint *endpoint; // READY: counted by the map; else NULL
	uint8_t state; // enum lb_state: of the connection
	bool has_connection; // somebody keeps one or wants one; else its state says nothing
	bool is_barred; // ejected (O22)
};
// Takes the states over, a malloc()ed array of as many as the index has, also on failure. Takes its
// own reference of the index. Count 1. NULL = no memory.
struct lb_affinity_map *lb_affinity_map_new(struct lb_affinity_index *, struct lb_affinity_state *);
struct lb_affinity_map *lb_affinity_map_get(struct lb_affinity_map *);
void lb_affinity_map_put(struct lb_affinity_map *); // NULL is fine

// What is known of an address.
struct lb_affinity_host {
	const struct lb_affinity_state *state;
	struct str hostname, locality;
	struct str addresses; // as a cookie lists them: this one, then the endpoint's others (O10)
	uint32_t member;
	bool is_target;
};
// False = none of this leaf's. map may be NULL.
bool lb_affinity_map_find(
	const struct lb_affinity_map *, const struct ip_port *, struct lb_affinity_host *ret);

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
