// SPDX-License-Identifier: Apache-2.0
// The times of an endpoint's connections that clusters ask for. Connections are shared by all
// clusters with the address: the shortest time counts that one of them asks for
// (docs/decisions/endpoint-timers.md). What none asks for is shunt.yaml's.
// Thread: written by ctrl, read by workers when they connect, each time by itself.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LB_N_TIMERS 4

// In milliseconds; 0 = no cluster says.
struct lb_timers {
	uint32_t connect_ms; // until the backend's SETTINGS are there
	uint32_t tcp_keepalive_ms; // of silence, until TCP asks
	uint32_t ping_interval_ms, ping_timeout_ms; // HTTP/2's questions, and their answers
};
_Static_assert(sizeof(struct lb_timers) == LB_N_TIMERS * sizeof(uint32_t), "walked as an array");

static inline uint32_t *lb_timers_at(struct lb_timers *t, unsigned i)
{
	return (uint32_t *)t + i;
}

static inline uint32_t lb_timers_get(const struct lb_timers *t, unsigned i)
{
	return __atomic_load_n((const uint32_t *)t + i, __ATOMIC_RELAXED);
}

static inline struct lb_timers lb_timers_read(const struct lb_timers *t)
{
	struct lb_timers ret;
	for (unsigned i = 0; i < LB_N_TIMERS; i++)
		*lb_timers_at(&ret, i) = lb_timers_get(t, i);
	return ret;
}

// Writes nothing where nothing changes, so that memory of zeros stays untouched.
static inline void lb_timers_write(struct lb_timers *to, struct lb_timers from)
{
	for (unsigned i = 0; i < LB_N_TIMERS; i++)
		if (lb_timers_get(to, i) != lb_timers_get(&from, i))
			__atomic_store_n(
				lb_timers_at(to, i), lb_timers_get(&from, i), __ATOMIC_RELAXED);
}

// The shorter of each two; what one doesn't say is the other's.
static inline struct lb_timers lb_timers_shortest(struct lb_timers a, struct lb_timers b)
{
	for (unsigned i = 0; i < LB_N_TIMERS; i++) {
		uint32_t *x = lb_timers_at(&a, i), y = lb_timers_get(&b, i);
		if (!*x || (y && y < *x))
			*x = y;
	}
	return a;
}

static inline bool lb_timers_eq(struct lb_timers a, struct lb_timers b)
{
	for (unsigned i = 0; i < LB_N_TIMERS; i++)
		if (lb_timers_get(&a, i) != lb_timers_get(&b, i))
			return false;
	return true;
}
