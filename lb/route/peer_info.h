// SPDX-License-Identifier: Apache-2.0
// What is known of a request's connection: its ends, and who the client has proven to be.
// Thread: the caller of one lookup; all views are borrowed.
#pragma once

#include "lb/base/ip.h"
#include "lb/route/san_match.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_peer_info {
	struct ip_addr direct; // the peer of the connection
	struct ip_addr source; // the same, or what a PROXY header says in its place
	struct ip_addr remote; // the client as trusted proxies tell it; else the source
	struct ip_port destination; // the address and port of ours that it connected to
	bool is_tls;
	struct str server_name; // that a client of TLS asked for, in lower case; empty = none
	// The client's certificate; without one there are neither names nor a subject.
	const struct lb_san *sans;
	uint32_t n_sans;
	struct str subject; // RFC 4514
	bool cut; // there are more names than these
};
