// SPDX-License-Identifier: Apache-2.0
// Which filter chain of a socket Listener a connection gets (gRFC A36, Envoy's FilterChainMatch;
// A36-20 to A36-25, A36-38): by destination prefix, name of the server, transport protocol,
// application protocol, source type, source prefix and source port, in this order. Each step keeps
// the most specific match, and what a later step then lacks is not looked for elsewhere.
// Thread: built, counted and freed on ctrl; workers read.
#pragma once

#include "lb/base/err.h"
#include "lb/base/ip.h"
#include "lb/base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum lb_source_type { LB_SOURCE_ANY, LB_SOURCE_LOCAL, LB_SOURCE_EXTERNAL };

enum lb_transport {
	LB_TRANSPORT_ANY,
	LB_TRANSPORT_RAW, // "raw_buffer"
	LB_TRANSPORT_TLS,
	LB_TRANSPORT_OTHER, // of no connection
};

struct lb_chain_conf {
	const struct ip_prefix *destinations, *sources; // none = any
	// In lower case, exact or as "*.example"; and of ALPN. None = any.
	const struct str *server_names, *protocols;
	const uint32_t *source_ports; // none, or 0 = any
	uint32_t n_destinations, n_sources, n_server_names, n_protocols, n_source_ports;
	enum lb_source_type source_type;
	enum lb_transport transport;
	bool never; // by the destination's port: it is as if it were not there (A36-24)
};

// What a client has said in its first bytes. All zero = it was not asked, or does not begin TLS.
struct lb_chain_hello {
	bool tls;
	struct str server_name; // in lower case; "" = none
	struct str protocols; // of ALPN, as on the wire: each behind a byte with its length
};

// Envoy's tls_inspector, as a Listener has it. All zero = it has none.
struct lb_inspector {
	bool on;
	bool closes; // what begins with no good ClientHello is not served (A36-40)
	uint32_t max_hello; // bytes, with its records' heads (TLS-221); 0 = any that is read
};

#define LB_NO_CHAIN UINT32_MAX
// Of a Listener: what its chains ask for, multiplied by field, over all of them.
#define LB_MAX_CHAIN_MATCHES 65536

struct lb_chain_match;

// Copies everything. Without an inspector chains with names, protocols or TLS match no connection
// (A36-25), and are not looked at for duplicates. Count 1. NULL = reterr has the reason ("" = out
// of memory): two chains match the same (A36-12), or there are too many matches.
struct lb_chain_match *lb_chain_match_new(const struct lb_chain_conf *, uint32_t n,
	const struct lb_inspector *, struct lb_err *reterr);
struct lb_chain_match *lb_chain_match_get(struct lb_chain_match *);
void lb_chain_match_put(struct lb_chain_match *); // NULL is fine
// Borrowed. NULL = neither the chain nor the inspector cares what a client says first.
const struct lb_inspector *lb_chain_match_inspector(const struct lb_chain_match *);
// Returns the index of the chain, or LB_NO_CHAIN.
uint32_t lb_chain_match_find(const struct lb_chain_match *, const struct ip_addr *local,
	const struct ip_port *remote, const struct lb_chain_hello *);
