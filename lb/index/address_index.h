// SPDX-License-Identifier: Apache-2.0
// Finds an address's place in a list. A Bloom filter in front of the hash table, with each address
// in one word and one or two words per address, fits a core's own cache where the table would not:
// one load, without an unpredictable branch, rejects nearly all absent addresses. A short list has
// no table and is searched linearly.
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
	uint32_t *words; // inverted: bits that none of a word's addresses has
	uint32_t mask; // of word indices; their number is a power of two
};
struct lb_address_index {
	const struct ip_port *addresses; // borrowed
	void *memory; // owned: the buckets, then the filter's words; NULL = they are in `room`
	struct lb_address_bucket *buckets; // NULL = the list is short
	uint32_t n_buckets;
	uint32_t n; // addresses
	struct lb_address_filter filter;
};

// Words needed for a short list's index, for callers that store them beside the list; 0 = the list
// is not short.
uint32_t lb_address_index_room(uint32_t n);
// The list and the room outlive the index. room has lb_address_index_room() words; NULL = the index
// allocates its memory, as it always does for a long list. Of equal addresses the first is found;
// *ret_second is the first address with an equal one before it, UINT32_MAX = all differ. Returns 0
// or -ENOMEM.
[[nodiscard]] int lb_address_index_init(struct lb_address_index *, const struct ip_port *,
	uint32_t n, uint32_t *room, uint32_t *ret_second);
void lb_address_index_fini(struct lb_address_index *); // one that is all zero is fine
// Returns UINT32_MAX if absent.
uint32_t lb_address_index_find(const struct lb_address_index *, const struct ip_port *);

static inline uint32_t *lb_address_filter_word(struct lb_address_filter f, uint64_t hash)
{
	return &f.words[hash >> 44 & f.mask];
}
// A quarter of a word's bits on average: this takes two instructions, while setting a few numbered
// bits takes a shift for each.
static inline uint32_t lb_address_filter_bits(uint64_t hash)
{
	return (uint32_t)(hash & hash >> 12);
}
// False = the address with this hash is absent. True = it is probably present (false positives: 0.3
// to 1 %).
// thousand it is not.
static inline bool lb_address_filter_has(struct lb_address_filter f, uint64_t hash)
{
	return !(lb_address_filter_bits(hash) & *lb_address_filter_word(f, hash));
}
static inline void lb_address_filter_add(struct lb_address_filter f, uint64_t hash)
{
	*lb_address_filter_word(f, hash) &= ~lb_address_filter_bits(hash);
}
