// SPDX-License-Identifier: Apache-2.0
// A single query to the name servers for a name's addresses. A vtable: c-ares in production, a
// script in tests. names.h decides when to query.
// Thread: ctrl.
#pragma once

#include "lb/base/ip.h"

#include <stdint.h>

#define DNS_MAX_FOUND 512 // records of one answer; further ones are left out

struct dns_found {
	const struct ip_addr *addrs; // borrowed for the call; at most DNS_MAX_FOUND
	uint32_t n;
	uint32_t ttl_s; // the least of all records used; 0 = do not cache
	const char *error; // NULL = success; else the reason, borrowed for the call
};

// In the caller's storage.
struct dns_lookup {
	// Called once unless cancelled, perhaps inside start(). It may free the lookup.
	void (*done)(struct dns_lookup *, const struct dns_found *);
	struct dns_query *query; // private to lookups; NULL = not under way
};

struct dns_lookups;
struct dns_lookups_ops {
	// Queries IPv4 and IPv6 addresses. Ends by itself in bounded time. Returns 0, or -ENOMEM
	// without calling done.
	int (*start)(struct dns_lookups *, const char *host, struct dns_lookup *);
	// done is not called after this. No effect if not under way.
	void (*cancel)(struct dns_lookups *, struct dns_lookup *);
	void (*free)(struct dns_lookups *); // after its lookups are cancelled; not inside done
};
struct dns_lookups {
	const struct dns_lookups_ops *ops;
};
