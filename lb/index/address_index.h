// SPDX-License-Identifier: Apache-2.0
// A list of addresses, each found by itself: which of the list it is. Before the table stands a
// filter (Bloom's, each address within one word), one or two words an address, which stays in a
// core's own cache where the table would not: it knows nearly all that are not in the list by one
// load, without a branch that could not be foreseen. A short list has no table: it is walked.
// Thread: made and freed by ctrl, found on workers. Pure.
#pragma once

#include "lb/base/ip.h"
#include "lb/index/hash.h"

#include <stdbool.h>
#include <stdint.h>

// More are not found.
#define LB_ADDRESS_INDEX_MAX ((1u << 20) - 1)

struct lb_address_bucket;
struct lb_address_filter {
	uint32_t *words; // of the bits that none of a word's addresses has
	uint32_t mask; // of their indices: they are a power of two
};
struct lb_address_index {
	const struct ip_port *addresses; // borrowed
	void *memory; // owned: the buckets, and behind them the filter's words; NULL = in `room`
	struct lb_address_bucket *buckets; // NULL = the list is short
	uint32_t n_buckets;
	uint32_t n; // addresses
	struct lb_address_filter filter;
};

// How many words a short list's index is made of, for whoever has room for them beside the list;
// 0 = the list is not short.
uint32_t lb_address_index_room(uint32_t n);
// The list outlives the index, and so does the room, which is of lb_address_index_room(); NULL =
// the index takes its own memory, as that of a list that is not short always does. Of equal
// addresses the first counts; *ret_second is the first that has an equal one before it, UINT32_MAX
// = they all differ. 0 or -ENOMEM.
[[nodiscard]] int lb_address_index_init(struct lb_address_index *, const struct ip_port *,
	uint32_t n, uint32_t *room, uint32_t *ret_second);
void lb_address_index_fini(struct lb_address_index *); // one that is all zero is fine
// UINT32_MAX = absent.
uint32_t lb_address_index_find(const struct lb_address_index *, const struct ip_port *);

static inline uint32_t *lb_address_filter_word(struct lb_address_filter f, uint64_t hash)
{
	return &f.words[hash >> 44 & f.mask];
}
// A quarter of a word's bits, on average: two instructions, where to set some that the hash numbers
// takes a shift for each.
static inline uint32_t lb_address_filter_bits(uint64_t hash)
{
	return (uint32_t)(hash & hash >> 12);
}
// False = the address with this hash is absent. True = it may be there: three to ten times in a
// thousand it is not.
static inline bool lb_address_filter_has(struct lb_address_filter f, uint64_t hash)
{
	return !(lb_address_filter_bits(hash) & *lb_address_filter_word(f, hash));
}
static inline void lb_address_filter_add(struct lb_address_filter f, uint64_t hash)
{
	*lb_address_filter_word(f, hash) &= ~lb_address_filter_bits(hash);
}
