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

// Before the table of addresses stands a filter (Bloom's, each address within one word), 16 bits
// an address, which stays in a core's own cache where the table would not: it knows nearly all
// that are none of the leaf's by one load, without a branch that could not be foreseen.
struct lb_affinity_filter {
	uint64_t *words;
	uint32_t n;
};
struct lb_affinity_map {
	uint32_t n_refs; // ctrl only
	struct lb_affinity_filter filter; // the index's
	struct lb_affinity_index *index; // counted
	struct lb_cells cells;
};

static inline uint64_t lb_affinity_hash(const struct ip_port *a)
{
	uint64_t low, high;
	memcpy(&low, a->ip.b, 8);
	memcpy(&high, a->ip.b + 8, 8);
	high ^= (uint64_t)a->port << 48 | a->port;
	unsigned __int128 m =
		(unsigned __int128)(low ^ 0x9e3779b97f4a7c15) * (high ^ 0xd6e8feb86659fd93);
	return (uint64_t)(m >> 64) ^ (uint64_t)m;
}
static inline uint64_t *lb_affinity_filter_word(struct lb_affinity_filter f, uint64_t hash)
{
	return &f.words[(hash >> 32) * f.n >> 32];
}
static inline uint64_t lb_affinity_filter_bits(uint64_t hash)
{
	return (uint64_t)1 << (hash & 63) | (uint64_t)1 << (hash >> 6 & 63) |
	       (uint64_t)1 << (hash >> 12 & 63);
}
// False = the address with this hash is absent. True = it may be there: once in a hundred times it
// is not.
static inline bool lb_affinity_filter_has(struct lb_affinity_filter f, uint64_t hash)
{
	uint64_t bits = lb_affinity_filter_bits(hash);
	return (*lb_affinity_filter_word(f, hash) & bits) == bits;
}

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
struct lb_affinity_pick lb_affinity_map_pick_known(
	const struct lb_affinity_map *, const struct ip_port *addresses, uint32_t n);
// For the addresses of a cookie, in order. map may be NULL.
static inline struct lb_affinity_pick lb_affinity_map_pick(
	const struct lb_affinity_map *m, const struct ip_port *addresses, uint32_t n)
{
	for (uint32_t i = 0; m && i < n; i++)
		if (lb_affinity_filter_has(m->filter, lb_affinity_hash(&addresses[i])))
			return lb_affinity_map_pick_known(m, addresses, n);
	return (struct lb_affinity_pick){.kind = LB_AFFINITY_CHILD};
}
