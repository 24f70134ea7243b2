// SPDX-License-Identifier: Apache-2.0
// The filter chains of a frontend whose Listener comes from xDS (gRFC A36): which connection gets
// which, and where in the snapshot each has its routes and filters. Immutable.
// Thread: built, counted and freed on ctrl; workers read.
#pragma once

#include "lb/base/ip.h"
#include "lb/base/tlv.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_chain_hello;
struct lb_chain_match;
struct lb_inspector;

// In place of a chain: the connection is refused.
#define LB_NO_PLACE UINT32_MAX

struct lb_chain_set {
	uint32_t n_refs; // ctrl only
	uint32_t n; // chains of the match
	struct lb_chain_match *match; // counted; NULL = no chains but the last one
	struct tlv_types passed; // of clients' PROXY headers: which are kept for backends (PP-21)
	// [n + 1] indices of the snapshot's frontends, or LB_NO_PLACE; the last one is that of
	// connections that no chain matches.
	uint32_t places[];
};

// Takes a reference of the match, and copies the rest; passed NULL = none. Count 1. NULL = out of
// memory.
struct lb_chain_set *lb_chain_set_new(struct lb_chain_match *, uint32_t n, const uint32_t *places,
	const struct tlv_types *passed);
// One that refuses every connection.
struct lb_chain_set *lb_chain_set_of_none(void);
struct lb_chain_set *lb_chain_set_get(struct lb_chain_set *); // NULL stays NULL
void lb_chain_set_put(struct lb_chain_set *); // NULL is fine
// By which it is looked at what a client says first, since what it gets may depend on that.
// Borrowed; NULL = it does not.
const struct lb_inspector *lb_chain_set_inspector(const struct lb_chain_set *);
bool lb_chain_set_has(const struct lb_chain_set *, uint32_t place);
uint32_t lb_chain_set_find(const struct lb_chain_set *, const struct ip_addr *local,
	const struct ip_port *remote, const struct lb_chain_hello *);
