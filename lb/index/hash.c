// SPDX-License-Identifier: Apache-2.0
#include "lb/index/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t lb_hash(const void *data, size_t len)
{
	return XXH3_64bits(data, len);
}

uint64_t lb_xxh64(const void *data, size_t len)
{
	return XXH64(data, len, 0);
}

uint64_t lb_xxh64_seeded(uint64_t seed, const void *data, size_t len)
{
	return XXH64(data, len, seed);
}
