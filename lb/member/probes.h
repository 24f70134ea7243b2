// SPDX-License-Identifier: Apache-2.0
// All health checks of the process that are under way or wait for their turn: each is done by one
// worker for all, and no more than a bounded number at a time, so that a cluster of
// 100,000 endpoints does not begin them all at once. lb/leaf/health.h says when, and what follows.
// Thread: ctrl.
#pragma once

#include "lb/base/ip.h"
#include "lb/pick/probe.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_check;
struct lb_event;
struct lb_probes;
struct lb_security;
struct twheel;

struct lb_probes_env {
	struct twheel *wheel; // ctrl's wheel and clock
	uint32_t max_under_way; // >= 1
	// Whether an attempt to connect can succeed: its TLS context is there. NULL = always.
	bool (*may_begin)(void *ctx, const struct lb_probe *);
	// Sends LB_COMMAND_PROBE, or PROBE_END, to lb_probe_worker(). False = the command is lost
	// for lack of memory.
	bool (*send)(void *ctx, struct lb_probe *, bool is_end);
	void *ctx;
};

// Whoever asks for checks of one endpoint. Told once of each, never inside lb_probes_ask(); why is
// borrowed for the call. May ask again, and end the probe.
struct lb_probe_user {
	void (*on_result)(struct lb_probe_user *, enum lb_probe_result, const char *why);
};

struct lb_probes *lb_probes_new(const struct lb_probes_env *); // NULL = out of memory
// After the workers stopped and all probes were ended. NULL is fine.
void lb_probes_free(struct lb_probes *);

// A probe of this address as connections to it are secured (counted; NULL = plain text). Returns
// NULL if out of memory.
struct lb_probe *lb_probes_begin(
	struct lb_probes *, const struct ip_port *, struct lb_security *, struct lb_probe_user *);
// Nobody is told any more. It is freed when the worker has let go of it.
void lb_probes_end(struct lb_probes *, struct lb_probe *); // NULL is fine
// Has the check (counted) done, at once or in its turn; none of the probe is under way.
void lb_probes_ask(struct lb_probes *, struct lb_probe *, struct lb_check *);
// LB_EVENT_PROBED or PROBE_ENDED.
void lb_probes_event(struct lb_probes *, const struct lb_event *);

// Checks under way, and those that wait for their turn.
uint32_t lb_probes_n_under_way(const struct lb_probes *);
uint32_t lb_probes_n_waiting(const struct lb_probes *);
