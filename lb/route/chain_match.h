// SPDX-License-Identifier: Apache-2.0
// Which filter chain of a socket Listener a connection gets (gRFC A36, FilterChainMatch; A36-20 to
// A36-25): by destination prefix, source type, source prefix and source port, in this order. Each
// step keeps the most specific match, and what a later step then lacks is not looked for elsewhere.
// Thread: built, counted and freed on ctrl; workers read.
#pragma once

#include "lb/base/err.h"
#include "lb/base/ip.h"

#include <stdbool.h>
#include <stdint.h>

enum lb_source_type { LB_SOURCE_ANY, LB_SOURCE_LOCAL, LB_SOURCE_EXTERNAL };
#define LB_SOURCE_TYPES 3

// Why no connection gets a chain by its match, by the first step that finds so.
enum lb_chain_never {
	LB_CHAIN_POSSIBLE,
	LB_CHAIN_NEVER, // by the destination's port: it is as if it were not there
	// By the server's name or the transport protocol: its destination prefixes still are the
	// most specific ones.
	LB_CHAIN_NEVER_IN_PREFIX,
	LB_CHAIN_NEVER_BY_ALPN, // likewise; and if it is raw_buffer, that counts
};

struct lb_chain_conf {
	const struct ip_prefix *destinations, *sources; // none = any
	const uint32_t *source_ports; // none, or 0 = any
	uint32_t n_destinations, n_sources, n_source_ports;
	enum lb_source_type source_type;
	enum lb_chain_never never;
	// Chains that ask for raw_buffer are before those of the same prefix that do not.
	bool raw_buffer;
};

#define LB_NO_CHAIN UINT32_MAX
// Of a Listener: its prefixes by source prefixes by ports, over all chains.
#define LB_MAX_CHAIN_MATCHES 65536

struct lb_chain_match;

// Copies everything. Count 1. NULL = reterr has the reason ("" = out of memory): two chains match
// the same (A36-12), or there are too many matches.
struct lb_chain_match *lb_chain_match_new(
	const struct lb_chain_conf *, uint32_t n, struct lb_err *reterr);
struct lb_chain_match *lb_chain_match_get(struct lb_chain_match *);
void lb_chain_match_put(struct lb_chain_match *); // NULL is fine
// Returns the index of the chain, or LB_NO_CHAIN.
uint32_t lb_chain_match_find(
	const struct lb_chain_match *, const struct ip_addr *local, const struct ip_port *remote);
