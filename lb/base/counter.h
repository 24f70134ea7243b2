// SPDX-License-Identifier: Apache-2.0
// Named 64-bit counters, and 32-bit figures that go up and down (gauges). What one subject counts
// is one list, from which its enum and its names are made: an operator's word is in the code.
//
//	#define RING_COUNTERS(X) X(frames_in) X(frames_lost)
//	#define X(name) RING_##name,
//	enum ring_counter { RING_COUNTERS(X) RING_N_COUNTERS };
//	#undef X
//	static const char *const names[] = {RING_COUNTERS(COUNTER_NAME)};
//
// Thread: one writes; any may read a slightly outdated value.
#pragma once

#include <stdint.h>

#define COUNTER_NAME(name) #name,

struct counter_set {
	const char *const *names; // static
	const uint64_t *values; // w: owner (relaxed), r: any (relaxed)
	uint32_t n;
};

static inline void counter_add(uint64_t *value, uint64_t n)
{
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) &&                 \
	!defined(__SANITIZE_ADDRESS__)
	// What clang makes of the line below; gcc makes three instructions of it. Sanitizers do not
	// see what assembly writes.
	__asm__("addq %1, %0" : "+m"(*value) : "er"(n));
#else
	__atomic_store_n(value, *value + n, __ATOMIC_RELAXED);
#endif
}

// Of what is counted up and down. Never below zero.
static inline void counter_sub(uint64_t *value, uint64_t n)
{
	counter_add(value, -n);
}

static inline void counter_set_to(uint64_t *value, uint64_t x)
{
	__atomic_store_n(value, x, __ATOMIC_RELAXED);
}

static inline uint64_t counter_read(const uint64_t *value)
{
	return __atomic_load_n(value, __ATOMIC_RELAXED);
}

static inline void gauge_set(uint32_t *value, uint32_t x)
{
	__atomic_store_n(value, x, __ATOMIC_RELAXED);
}

static inline uint32_t gauge_read(const uint32_t *value)
{
	return __atomic_load_n(value, __ATOMIC_RELAXED);
}
