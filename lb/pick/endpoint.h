// SPDX-License-Identifier: Apache-2.0
// A backend address, and how it is spoken to, with a stable object and a small dense id that
// outlive snapshots. Workers index their connection pools by the id; pickers point to the object.
// Thread: created, counted and freed by ctrl; workers read the constant fields.
// Lifetime: freed only after no snapshot that a worker may read refers to it and every worker has
// reported LB_EVENT_RELEASED for its id (its connections are closed).
#pragma once

#include "lb/base/ip.h"
#include "lb/pick/credential.h"
#include "lb/pick/security.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lb_state { LB_IDLE, LB_CONNECTING, LB_READY, LB_TRANSIENT_FAILURE };
const char *lb_state_name(enum lb_state); // "IDLE", "CONNECTING", …

struct lb_endpoint_table;

struct lb_endpoint {
	// Constant, counted; NULL = plain text, no proxy. Aligned as the others, so that no bytes
	// lie empty.
	struct lb_security *security __attribute__((packed, aligned(4)));
	uint32_t id; // constant
	struct ip_port addr; // constant
	// The rest belongs to ctrl.
	uint16_t is_used : 1; // false = its id is free
	uint16_t n_releasing : 15; // lb/member/connectivity.c's: RELEASED events still to come
	union {
		uint32_t n_refs;
		uint32_t next_free; // of a free endpoint in the table: id + 1
	};
};
// Why it was not reached or was lost, with its end; the longest reasons are TLS's of certificates.
#define LB_ENDPOINT_WHY_MAX 128

// An endpoint with its user's data behind it, zeroed before the id is first used.
#define LB_ENDPOINT_SIZE 64
#define LB_ENDPOINT_SLAB 64 // endpoints lie side by side in slabs, which never move

// The id at which its TLS context stands in snapshots (lb_snapshot_credential); LB_PLAIN_TEXT = it
// is spoken to in plain text.
static inline uint32_t lb_endpoint_credential(const struct lb_endpoint *e)
{
	return e->security ? e->security->credential : LB_PLAIN_TEXT;
}
// Sent as SNI; "" = none is.
static inline const char *lb_endpoint_server_name(const struct lb_endpoint *e)
{
	return e->security ? e->security->server_name : "";
}

// Through which connections to it go (gRFC A86); NULL = none.
static inline const struct ip_port *lb_endpoint_proxy(const struct lb_endpoint *e)
{
	return lb_security_proxy(e->security);
}
// With which connections to it begin, so that each is of one client; NULL = none, and they are
// everybody's (PP-20).
static inline const struct lb_header *lb_endpoint_header(const struct lb_endpoint *e)
{
	return lb_security_header(e->security);
}

// The worker that keeps the endpoint connected when a policy wants it
// (docs/decisions/anchor-worker.md).
static inline uint32_t lb_endpoint_anchor(uint32_t id, uint32_t n_workers)
{
	return id % n_workers;
}

// All endpoints of the process, one per address and security. Returns NULL if out of memory.
struct lb_endpoint_table *lb_endpoint_table_new(void *user);
static inline struct lb_endpoint_table *lb_endpoint_table_of(const struct lb_endpoint *e)
{
	// Stored before a slab's first endpoint.
	const char *first = (const char *)e - e->id % LB_ENDPOINT_SLAB * LB_ENDPOINT_SIZE;
	return ((struct lb_endpoint_table *const *)(const void *)first)[-1];
}
void *lb_endpoint_table_user(const struct lb_endpoint_table *);
// Reserves memory for n more endpoints, as an optimization; failure has no effect.
void lb_endpoint_table_expect(struct lb_endpoint_table *, uint32_t n);
// Ids in use so far are below this one.
uint32_t lb_endpoint_table_n_ids(const struct lb_endpoint_table *);
void lb_endpoint_table_free(struct lb_endpoint_table *); // with all endpoints; NULL is fine
// Sets the callback that lb_endpoint_put() calls when an endpoint's last reference is dropped.
void lb_endpoint_table_on_unused(
	struct lb_endpoint_table *, void (*on_unused)(void *ctx, struct lb_endpoint *), void *ctx);
uint32_t lb_endpoint_table_count(const struct lb_endpoint_table *); // without released ones
// Finds or makes the endpoint of this address and security (counted by it; NULL = plain text) and
// counts one reference. Returns NULL if out of memory or at LB_MAX_ENDPOINTS. *ret_new (ret_new may
// be NULL): the endpoint is new to workers.
struct lb_endpoint *lb_endpoint_get(
	struct lb_endpoint_table *, const struct ip_port *, struct lb_security *, bool *ret_new);
// Returns the endpoints of this address one after the other, referenced ones alone, borrowed; after
// NULL the first one. NULL = there are no more.
struct lb_endpoint *lb_endpoint_next_of(
	const struct lb_endpoint_table *, const struct ip_port *, const struct lb_endpoint *after);
// True if the endpoint is referenced, or a worker has yet to release it and may have connections.
bool lb_endpoint_has(
	const struct lb_endpoint_table *, const struct ip_port *, const struct lb_security *);
// Counts one more reference to an endpoint that the caller already holds.
static inline struct lb_endpoint *lb_endpoint_get_again(struct lb_endpoint *e)
{
	e->n_refs++;
	return e;
}
// Drops one reference. True = it was the last: tell the workers to release the id, and call
// lb_endpoint_free_released() when all have.
bool lb_endpoint_put(struct lb_endpoint_table *, struct lb_endpoint *);
// Frees the id for another address. Does nothing if the endpoint was referenced again meanwhile.
void lb_endpoint_free_released(struct lb_endpoint_table *, struct lb_endpoint *);
// Returns NULL if there is none.
struct lb_endpoint *lb_endpoint_find(const struct lb_endpoint_table *, uint32_t id);
