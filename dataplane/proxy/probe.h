// SPDX-License-Identifier: Apache-2.0
// Health checks of endpoints, as the control thread orders them (lb/pick/probe.h): a connection of
// their own beside those of requests, secured as these are, over which one request is sent, or for
// TCP some bytes. What an answer means is decided here, what follows from it is not.
// Thread: the owning worker.
#pragma once

#include "lb/base/list.h"
#include "lb/base/pool.h"

#include <stdint.h>

struct lb_probe;
struct proxy;

// Of a worker's connections, one in so many may be of health checks, and half of these are kept
// from one check to the next: a sixteenth of the quarter that clients leave to backends.
#define PROXY_PROBES_PART 64
#define PROXY_PROBES_MIN 8

struct proxy_probes {
	struct pool conns;
	struct list_link live; // connections that checks have
	struct list_link to_tell; // lb_probe.worker.to_tell: of whom the control thread is to hear
};

// 0, or -1: out of memory.
[[nodiscard]] int proxy_probes_init(struct proxy *, uint32_t max_conns);
// Ends all of them; before proxy_conn_flush_all().
void proxy_probes_abort(struct proxy *);
void proxy_probes_fini(struct proxy *);

// Carry out LB_COMMAND_PROBE and LB_COMMAND_PROBE_END.
void proxy_probe_begin(struct proxy *, struct lb_probe *);
void proxy_probe_end(struct proxy *, struct lb_probe *);
// Tells as many results as the ring has room for; the rest stays listed.
void proxy_probe_tell_all(struct proxy *);
