// SPDX-License-Identifier: Apache-2.0
// What access logs (docs/access-log.md) are told of a request that is over: a record, the ring of a
// worker in which records go to whoever writes them, and which requests the log of shunt.yaml
// wants; those of listeners have sets (lb/pick/access_set.h).
// Thread: as tagged. The filter is set before the worker starts, constant afterwards.
#pragma once

#include "lb/base/counter.h"
#include "lb/base/ip.h"
#include "lb/base/spsc.h"
#include "lb/base/str.h"
#include "lb/pick/cause.h"

#include <stdbool.h>
#include <stdint.h>

// Texts of a request and the most bytes that are kept of each.
#define LB_ACCESS_TEXTS(X)                                                                         \
	X(METHOD, 16)                                                                              \
	X(PATH, 384)                                                                               \
	X(AUTHORITY, 128)                                                                          \
	X(USER_AGENT, 128)                                                                         \
	X(REQUEST_ID, 64)                                                                          \
	X(TRACEPARENT, 64)                                                                         \
	X(FORWARDED_FOR, 64)                                                                       \
	X(CLUSTER, 120)                                                                            \
	X(ROUTE, 64)

#define X(name, most) LB_ACCESS_##name,
enum lb_access_text { LB_ACCESS_TEXTS(X) LB_ACCESS_N_TEXTS };
#undef X
#define X(name, most) +(most)
enum { LB_ACCESS_BYTES = 0 LB_ACCESS_TEXTS(X) };
#undef X

#define LB_ACCESS_NO_GRPC UINT8_MAX

// What the filter looks at.
struct lb_access_brief {
	uint64_t began_ns, ended_ns; // of the worker's clock, as all times here
	uint16_t status; // HTTP; 0 = the client was told none
	uint8_t grpc_status; // LB_ACCESS_NO_GRPC = none
	uint8_t cause; // enum lb_cause
	uint32_t draw; // of chance, for all filters
	bool delayed; // by a fault
};

// Beside the causes' bits, 1 << enum lb_cause, that of the only flag that says of no cause.
#define LB_ACCESS_DELAYED (UINT32_C(1) << LB_N_CAUSES)
#define LB_ACCESS_DELAYED_FLAG "DI"
_Static_assert(LB_N_CAUSES < 32, "causes are bits");

static inline uint32_t lb_access_bits(const struct lb_access_brief *a)
{
	return UINT32_C(1) << a->cause | (a->delayed ? LB_ACCESS_DELAYED : 0);
}

struct lb_access_record {
	struct lb_access_brief brief;
	uint64_t logs; // bits: those that want it
	uint64_t received_ns; // the client's last byte; 0 = it has not come
	uint64_t answered_ns; // the backend's answer began; 0 = there was none
	uint64_t body_in, body_out; // bytes of bodies, from the client and to it
	struct ip_port client;
	struct ip_port backend; // of the last attempt; n_attempts 0 = none
	uint32_t head_in; // bytes of names and values of the request's head
	uint32_t made[LB_ACCESS_N_TEXTS]; // place in bytes[] and length: at << 16 | len
	uint16_t n_bytes; // used of bytes[]
	uint16_t cut; // bit: the text is longer than what is kept
	uint16_t frontend;
	uint8_t n_attempts; // requests sent to backends; 255 = or more
	uint8_t protocol; // HTTP's version: 20, 11, 10
	bool is_tls; // of the client
	char bytes[LB_ACCESS_BYTES];
};

// Requests that are told of: those that took so long, and a sample of all; of others those that
// failed for one of the causes, and what backends answered with one of the statuses.
struct lb_access_filter {
	uint64_t sample; // so many of 2^32
	uint64_t min_ns; // 0 = however long they take is no reason
	uint32_t causes; // bits; LB_ACCESS_DELAYED = and those that a fault delayed
	uint16_t min_status; // HTTP's; gRPC's other than OK always count
};

#define LB_ACCESS_SAMPLE_ALL ((uint64_t)1 << 32)
#define LB_ACCESS_RECORDS 8192 // that a ring holds
// The bits of shunt.yaml's log: of its lines, and of its entries for a collector.
#define LB_ACCESS_OWN_LINES UINT64_C(1)
#define LB_ACCESS_OWN_ENTRIES (UINT64_C(1) << 63)
#define LB_ACCESS_OWN (LB_ACCESS_OWN_LINES | LB_ACCESS_OWN_ENTRIES)

struct lb_access {
	bool has_own; // shunt.yaml has a log
	struct lb_access_filter filter; // of that
	struct spsc ring; // w: worker, r: who writes the log
	uint64_t n_dropped; // w: worker (relaxed), r: any: the ring was full
};

// NULL as the filter: there are only logs of listeners. Returns NULL if out of memory.
struct lb_access *lb_access_new(const struct lb_access_filter *);
void lb_access_free(struct lb_access *); // NULL is fine

// Keeps a text, cut to what is kept of it. Each text of a record once.
void lb_access_put(struct lb_access_record *, enum lb_access_text, struct str);
static inline struct str lb_access_get(const struct lb_access_record *a, enum lb_access_text which)
{
	return (struct str){a->bytes + (a->made[which] >> 16), a->made[which] & UINT16_MAX};
}
// A record without texts.
void lb_access_begin(struct lb_access_record *);
bool lb_access_wants(const struct lb_access_filter *, const struct lb_access_brief *);
// Copies the record into the ring, or counts it as dropped.
void lb_access_tell(struct lb_access *, const struct lb_access_record *);
