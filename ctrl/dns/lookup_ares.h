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
	// Of one attempt, and attempts a server; each round waits twice as long. 0 = 2 s and 3, so
	// that a second and a third server have their turn within the limit.
	int timeout_ms, tries;
	// Of one lookup as a whole. An answer for one family counts then even if the other one is
	// outstanding: some servers never answer for AAAA (RFC 4074 4.1). 0 = 12 s, which is less
	// than a name may keep a configuration waiting.
	int limit_ms;
};

// `servers` is copied. 0, -ENOMEM, or -EINVAL with the reason.
[[nodiscard]] int dns_ares_new(
	const struct dns_ares_conf *, struct dns_lookups **ret, struct lb_err *reterr);
