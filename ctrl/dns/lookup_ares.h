// SPDX-License-Identifier: Apache-2.0
// Lookups by c-ares on the control thread's event loop: the hosts file, then the name servers that
// resolv.conf names, A and AAAA at once, TCP where an answer does not fit. Never blocks on a
// server.
//
// Each lookup has a c-ares channel of its own, as in gRPC: a changed resolv.conf is seen by the
// next lookup, each question leaves from a port of its own (RFC 5452 4.5), and it can be cancelled.
// Thread: ctrl.
#pragma once

#include "ctrl/dns/lookup.h"
#include "lb/base/err.h"

struct event_base;
struct twheel;

struct dns_ares_conf {
	struct event_base *events;
	struct twheel *wheel;
	const char *servers; // "10.0.0.1,10.0.0.2:5353", in place of resolv.conf's; NULL = those
	// Of one attempt, and attempts a server; each round waits twice as long. 0 = resolv.conf's,
	// else c-ares's (5 s and 4).
	int timeout_ms, tries;
};

// `servers` is copied. 0, -ENOMEM, or -EINVAL with the reason.
[[nodiscard]] int dns_ares_new(
	const struct dns_ares_conf *, struct dns_lookups **ret, struct lb_err *reterr);
