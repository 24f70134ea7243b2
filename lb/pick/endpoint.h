// SPDX-License-Identifier: Apache-2.0
// A backend address that outlives snapshots: stable object, small dense id. Workers index their
// connection pools by the id; pickers point to the object.
// Thread: created, counted and freed by ctrl; workers read the constant fields.
// Lifetime: freed only after no snapshot that any worker may read holds it and every worker has
// reported LB_EVENT_RELEASED for its id (its connections are gone).
#pragma once

#include "lb/base/ip.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lb_state { LB_IDLE, LB_CONNECTING, LB_READY, LB_TRANSIENT_FAILURE };
const char *lb_state_name(enum lb_state); // "IDLE", "CONNECTING", …

struct lb_endpoint_table;

struct lb_endpoint {
	uint32_t id; // constant
	struct ip_port addr; // constant
	// The rest is ctrl's only.
	uint16_t is_used : 1; // else its id is free
	uint16_t n_releasing : 15; // lb/member/connectivity.c's: RELEASED answers still to come
	union {
		uint32_t n_refs;
		uint32_t next_free; // the table's, of a free one: id + 1
	};
};
// What an endpoint takes with what lies behind it, its user's: zeroed until the id is first used.
#define LB_ENDPOINT_SIZE 56
#define LB_ENDPOINT_SLAB 64 // endpoints lie side by side in slabs, which never move

// The worker that keeps the endpoint connected when a policy wants it
// (docs/decisions/anchor-worker.md).
static inline uint32_t lb_endpoint_anchor(uint32_t id, uint32_t n_workers)
{
	return id % n_workers;
}

// All endpoints of the process, one per address. NULL = out of memory.
struct lb_endpoint_table *lb_endpoint_table_new(void *user);
static inline struct lb_endpoint_table *lb_endpoint_table_of(const struct lb_endpoint *e)
{
	// Before a slab's first endpoint.
	const char *first = (const char *)e - e->id % LB_ENDPOINT_SLAB * LB_ENDPOINT_SIZE;
	return ((struct lb_endpoint_table *const *)(const void *)first)[-1];
}
void *lb_endpoint_table_user(const struct lb_endpoint_table *);
// There will soon be so many more, if they all are new. Saves time, where there is memory.
void lb_endpoint_table_expect(struct lb_endpoint_table *, uint32_t n);
// By id, up to and without this one, all that there ever were.
uint32_t lb_endpoint_table_n_ids(const struct lb_endpoint_table *);
void lb_endpoint_table_free(struct lb_endpoint_table *); // with all endpoints; NULL is fine
// Who hears, inside lb_endpoint_put(), that the last reference of an endpoint is gone.
void lb_endpoint_table_on_unused(
	struct lb_endpoint_table *, void (*on_unused)(void *ctx, struct lb_endpoint *), void *ctx);
uint32_t lb_endpoint_table_count(const struct lb_endpoint_table *); // released ones not included
// Finds or makes the endpoint of this address and counts one reference. NULL = out of memory or
// LB_MAX_ENDPOINTS reached. *ret_new (may be NULL) tells the caller that workers must learn of it.
struct lb_endpoint *lb_endpoint_get(
	struct lb_endpoint_table *, const struct ip_port *, bool *ret_new);
// The endpoint of this address, borrowed; NULL = nobody has it.
struct lb_endpoint *lb_endpoint_of(const struct lb_endpoint_table *, const struct ip_port *);
// Somebody has taken it, or some worker has yet to release it: it may still have connections there.
bool lb_endpoint_has(const struct lb_endpoint_table *, const struct ip_port *);
// One more reference of an endpoint that the caller can name already.
static inline struct lb_endpoint *lb_endpoint_get_again(struct lb_endpoint *e)
{
	e->n_refs++;
	return e;
}
// Drops one reference. True = it was the last: tell the workers to release the id, and call
// lb_endpoint_free_released() when all have.
bool lb_endpoint_put(struct lb_endpoint_table *, struct lb_endpoint *);
// The id may be given to another address afterwards. Does nothing if it was taken up again
// meanwhile.
void lb_endpoint_free_released(struct lb_endpoint_table *, struct lb_endpoint *);
struct lb_endpoint *lb_endpoint_find(const struct lb_endpoint_table *, uint32_t id); // NULL = none
