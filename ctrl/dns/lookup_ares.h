// SPDX-License-Identifier: Apache-2.0
// Lookups by c-ares on the control thread's event loop: the hosts file, then the name servers of
// resolv.conf, A and AAAA in parallel, TCP if an answer does not fit UDP. Never blocks.
// Each lookup has a c-ares channel of its own, as in gRPC: it uses the present resolv.conf, sends
// queries from ports of its own (RFC 5452 4.5), and can be cancelled.
// Thread: ctrl.
#pragma once

#include "ctrl/dns/lookup.h"
#include "lb/base/err.h"

struct event_base;
struct twheel;

struct dns_ares_conf {
	struct event_base *events;
	struct twheel *wheel;
	const char *servers; // "10.0.0.1,10.0.0.2:5353", instead of resolv.conf's; NULL = those
	// Time of one attempt, and attempts per server; each round waits twice as long. 0 = 2 s and
	// 3, so that a second and a third server are tried within the limit.
	int timeout_ms, tries;
	// Limit of a whole lookup. At the limit, an answer for one address family is used even if
	// the other is outstanding: some servers never answer AAAA queries (RFC 4074 4.1). 0 = 12
	// s, less than a name may delay a configuration.
	int limit_ms;
};

// `servers` is copied. 0, -ENOMEM, or -EINVAL with the reason.
[[nodiscard]] int dns_ares_new(
	const struct dns_ares_conf *, struct dns_lookups **ret, struct lb_err *reterr);
