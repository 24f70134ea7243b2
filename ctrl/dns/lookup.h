// SPDX-License-Identifier: Apache-2.0
// One question to the name servers: which addresses has this name now? A vtable: c-ares in real
// life, a script in tests. Not here: when to ask (names.h).
// Thread: ctrl.
#pragma once

#include "lb/base/ip.h"

#include <stdint.h>

#define DNS_MAX_FOUND 512 // records of one answer; further ones are left out

struct dns_found {
	const struct ip_addr *addrs; // borrowed for the call; at most DNS_MAX_FOUND
	uint32_t n;
	uint32_t ttl_s; // the least of all records that led to them; 0 = do not keep
	const char *error; // NULL = found; else why not, borrowed for the call
};

// The storage is the asker's.
struct dns_lookup {
	// Called once unless cancelled, possibly inside start(). It may free the lookup.
	void (*done)(struct dns_lookup *, const struct dns_found *);
	struct dns_query *query; // lookups'; NULL = not under way
};

struct dns_lookups;
struct dns_lookups_ops {
	// Asks for IPv4 and IPv6 addresses. Ends by itself in bounded time. 0 or -ENOMEM, and then
	// done is not called.
	int (*start)(struct dns_lookups *, const char *host, struct dns_lookup *);
	// done is not called any more; not under way = nothing happens.
	void (*cancel)(struct dns_lookups *, struct dns_lookup *);
	void (*free)(struct dns_lookups *); // its lookups were cancelled before; not inside done
};
struct dns_lookups {
	const struct dns_lookups_ops *ops;
};
