// SPDX-License-Identifier: Apache-2.0
// What the counters of a proxy and its control thread must say at every instant, and when all is
// over: each request ends once, with one cause, and nobody keeps a place.
// Thread: that of the proxy, between its turns.
#pragma once

#include "dataplane/proxy/proxy.h"
#include "tests/sim/proxy/control.h"

#include <stdint.h>

struct books {
	const struct proxy *proxy;
	const struct lb_link *link;
	const struct control *control;
	uint32_t max_requests, max_queued; // max_queued without those that wait once more
};

// One of the proxy's own; CHECKs that there is such a counter.
uint64_t books_counter(const struct proxy *, const char *name);
void books_check(const struct books *); // at the end of a turn
// No client is left, and no endpoint is configured.
void books_check_closed(const struct books *);
