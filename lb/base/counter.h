// SPDX-License-Identifier: Apache-2.0
// Named 64-bit counters.
// Thread: one adds; any may read a slightly outdated value.
#pragma once

#include <stdint.h>

struct counter_set {
	const char *const *names; // static
	const uint64_t *values; // w: owner (relaxed), r: any (relaxed)
	uint32_t n;
};

static inline void counter_add(uint64_t *value, uint64_t n)
{
	__atomic_store_n(value, *value + n, __ATOMIC_RELAXED);
}

static inline void counter_set_to(uint64_t *value, uint64_t x)
{
	__atomic_store_n(value, x, __ATOMIC_RELAXED);
}

static inline uint64_t counter_read(const uint64_t *value)
{
	return __atomic_load_n(value, __ATOMIC_RELAXED);
}
