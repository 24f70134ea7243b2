// SPDX-License-Identifier: Apache-2.0
// Connectivity of one endpoint as the policies see it: IDLE → CONNECTING → READY, or
// TRANSIENT_FAILURE with backoff (lb-tree.md BO-01..BO-04), then IDLE again. One record per address
// for all workers (MC-07). A state machine without I/O: it asks for a connection attempt, hears the
// outcome.
// Thread: ctrl.
#pragma once

#include "lb/base/rand.h"
#include "lb/base/twheel.h"
#include "lb/endpoint.h"

#include <stdbool.h>

struct lb_subchannel;

struct lb_subchannel_env {
	struct twheel *wheel; // ctrl's wheel and clock
	struct rand *rand; // jitter
	// Start one attempt at the endpoint's anchor worker. Its outcome comes later, never from
	// inside this call.
	void (*connect)(void *ctx, struct lb_endpoint *);
	void *ctx;
};

// Told of each change of state. on_state may watch and unwatch, request, and free the subchannel.
struct lb_subchannel_watcher {
	struct lb_subchannel_watcher *next; // linked by the subchannel
	void (*on_state)(struct lb_subchannel_watcher *, enum lb_state);
};

// The endpoint is borrowed. NULL = no memory.
struct lb_subchannel *lb_subchannel_new(struct lb_endpoint *, const struct lb_subchannel_env *);
void lb_subchannel_free(struct lb_subchannel *); // NULL is fine
struct lb_endpoint *lb_subchannel_endpoint(const struct lb_subchannel *);
enum lb_state lb_subchannel_state(const struct lb_subchannel *);
// An attempt has failed since it was last READY: for policies it counts as TRANSIENT_FAILURE until
// READY, whatever its state (RR-03, ST-02).
bool lb_subchannel_failing(const struct lb_subchannel *);
// While failing: "10.82.0.3:50051: refused" of the last attempt; else "".
const char *lb_subchannel_last_error(const struct lb_subchannel *);
void lb_subchannel_watch(struct lb_subchannel *, struct lb_subchannel_watcher *);
void lb_subchannel_unwatch(struct lb_subchannel *, struct lb_subchannel_watcher *);

// A policy wants a connection: IDLE → CONNECTING and an attempt; otherwise nothing.
void lb_subchannel_request(struct lb_subchannel *);

// From the workers (lb/link.h). READY at the peer's first SETTINGS (BO-03: resets the backoff).
void lb_subchannel_connected(struct lb_subchannel *);
void lb_subchannel_failed(struct lb_subchannel *, const char *why); // the attempt failed
void lb_subchannel_lost(struct lb_subchannel *, const char *why); // last connection gone: IDLE
