// SPDX-License-Identifier: Apache-2.0
// Host names kept resolved for as long as somebody watches them: what the dependency manager knows
// of DNS (gRFC A37; DM-04, DM-13, DM-23). A vtable, so that a test can bring answers
// of its own. Not here: how a name is looked up (lookup.h).
// Thread: ctrl.
#pragma once

#include "lb/base/ip.h"

#include <stdint.h>

#define DNS_MAX_ADDRESSES 64 // of one name; what servers list beyond is left out

// All that is known of a name.
struct dns_answer {
	const struct ip_port *addresses; // borrowed for the call; IPv6 first (RFC 6724)
	uint32_t n; // 0 = none was found yet
	// Why there is none, or why the addresses are those of an earlier answer (A37-D03); "" =
	// nothing is wrong. Borrowed for the call.
	const char *error;
};

// The storage is the watcher's owner's. Zeroed but for on_answer before the first use.
struct dns_watch {
	// Once an answer comes, and whenever it differs: another set of addresses, other trouble.
	void (*on_answer)(struct dns_watch *, const struct dns_answer *);
	uint16_t port; // resolver's, as all below
	struct dns_name *name; // NULL = not watching
	struct dns_watch *next, *prev;
	uint64_t seen;
};

struct dns_resolver;
struct dns_resolver_ops {
	// Starts a watch. What is known is told at once, inside the call; an IP address in place of
	// a name is always known. Watches may be started and cancelled inside on_answer. 0 or
	// -ENOMEM.
	int (*watch)(struct dns_resolver *, const char *host, uint16_t port, struct dns_watch *);
	// No answer comes after it returns; not watching = nothing happens.
	void (*cancel)(struct dns_resolver *, struct dns_watch *);
	// The addresses may be out of date, since a connection failed (DM-23): asks again, but not
	// sooner than is good for the server. Calls nothing back inside.
	void (*refresh)(struct dns_resolver *, struct dns_watch *);
	// Watches that are left are forgotten. Not inside on_answer. NULL is not passed.
	void (*free)(struct dns_resolver *);
};
struct dns_resolver {
	const struct dns_resolver_ops *ops;
};
