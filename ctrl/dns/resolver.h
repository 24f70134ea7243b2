// SPDX-License-Identifier: Apache-2.0
// Resolves host names continuously while they are watched: the dependency manager's interface to
// DNS (gRFC A37; DM-04, DM-13, DM-23). A vtable, so that tests can provide answers. lookup.h makes
// the queries.
// Thread: ctrl.
#pragma once

#include "lb/base/ip.h"

#include <stdint.h>
#include <sys/queue.h>

#define DNS_MAX_ADDRESSES 64 // of one name; what servers list beyond is left out

// The state of a name.
struct dns_answer {
	const struct ip_port *addresses; // borrowed for the call; IPv6 first (RFC 6724)
	uint32_t n; // 0 = none found yet
	// Why there are none, or why the addresses are those of an earlier answer (A37-D03); "" =
	// no problem. Borrowed for the call.
	const char *error;
};

// In the watcher's storage. Zeroed except on_answer before the first use.
struct dns_watch {
	// Called for the first answer, and whenever addresses or error change.
	void (*on_answer)(struct dns_watch *, const struct dns_answer *);
	uint16_t port; // private to the resolver, like all below
	struct dns_name *name; // NULL = not watching
	TAILQ_ENTRY(dns_watch) link;
	uint64_t seen;
};

struct dns_resolver;
struct dns_resolver_ops {
	// Starts a watch. Reports a known answer at once, inside the call; an IP address instead of
	// a name is always known. Watches may be started and cancelled inside on_answer. Returns 0
	// or -ENOMEM.
	int (*watch)(struct dns_resolver *, const char *host, uint16_t port, struct dns_watch *);
	// on_answer is not called after this. No effect if not watching.
	void (*cancel)(struct dns_resolver *, struct dns_watch *);
	// A connection failed, so the addresses may be outdated (DM-23): queries again, but not too
	// early for the server. Runs no callback.
	void (*refresh)(struct dns_resolver *, struct dns_watch *);
	// Remaining watches are forgotten. Not inside on_answer. Never called with NULL.
	void (*free)(struct dns_resolver *);
};
struct dns_resolver {
	const struct dns_resolver_ops *ops;
};
