// SPDX-License-Identifier: Apache-2.0
// Connectivity of one endpoint as the policies see it: IDLE → CONNECTING → READY, or
// TRANSIENT_FAILURE with backoff (BO-01..BO-04), then IDLE again. One per address, for all workers
// (MC-07). A state machine without I/O: it asks for a connection attempt and is told the outcome.
// Thread: ctrl.
#pragma once

#include "lb/base/rand.h"
#include "lb/base/twheel.h"
#include "lb/pick/endpoint.h"

#include <stdbool.h>

struct lb_attempts;
struct lb_subchannel;
struct lb_subchannel_effort;
struct lb_subchannel_round;
struct lb_text;

// Told of each change of state. on_state may watch, unwatch, request, and end the subchannel.
struct lb_subchannel_watcher {
	struct lb_subchannel_watcher *next; // linked by the subchannel
};

#define LB_SUBCHANNEL_REASONS 8

// Shared by all subchannels of an endpoint table: lb_endpoint_table_user().
struct lb_subchannel_env {
	struct twheel *wheel; // ctrl's wheel and clock
	struct rand *rand; // jitter
	// Starts one attempt at the endpoint's anchor worker. The outcome comes later, never from
	// inside this call.
	void (*connect)(void *ctx, struct lb_endpoint *);
	// Limits attempts; its begin() is lb_subchannel_begin(). NULL = attempts start at once.
	struct lb_attempts *attempts;
	void *ctx;
	// one function for all watchers
	void (*on_state)(struct lb_subchannel_watcher *, enum lb_state);
	struct lb_subchannel_round *rounds; // rounds of notification in progress; NULL at first
	// number of subchannels that failed or were lost and have not been READY since
	uint32_t n_efforts;
	// Zero at first; freed by lb_subchannel_env_fini(). Failure reasons repeat: subchannels
	// share the latest texts.
	struct lb_text *reasons[LB_SUBCHANNEL_REASONS]; // counted; NULL = none yet
	uint32_t n_reasons; // number of texts so far
	char said[IP_PORT_TEXT_MAX + 2 + LB_ENDPOINT_WHY_MAX]; // of lb_subchannel_last_error()
};
void lb_subchannel_env_fini(struct lb_subchannel_env *);

// Lies in the table, in its endpoint's place.
struct lb_subchannel {
	struct lb_endpoint endpoint;
	uint32_t
		n_users : 28; // lb/member/connectivity.c's: policies; zero = there is no subchannel
	uint32_t state : 2; // enum lb_state
	uint32_t has_effort : 1;
	uint32_t waits : 1; // CONNECTING, but the attempt is still queued
	struct lb_subchannel_watcher *watchers;
	union {
		// Owned: backoff state, from the first failed attempt or lost connection until
		// READY.
		struct lb_subchannel_effort *effort;
		uint64_t started_ns; // of the last attempt, if there is no effort; 0 = none
	};
};

// Callbacks in progress stay safe when it ends; a new subchannel may begin in the same storage at
// once.
void lb_subchannel_init(struct lb_subchannel *);
void lb_subchannel_fini(struct lb_subchannel *);
static inline struct lb_endpoint *lb_subchannel_endpoint(const struct lb_subchannel *s)
{
	return (struct lb_endpoint *)(uintptr_t)&s->endpoint;
}
static inline enum lb_state lb_subchannel_state(const struct lb_subchannel *s)
{
	return (enum lb_state)s->state;
}
// "10.82.0.3:50051: refused" for the last failed attempt or lost connection; "" while READY. Valid
// until the next call for any subchannel of the environment.
const char *lb_subchannel_last_error(const struct lb_subchannel *);
void lb_subchannel_watch(struct lb_subchannel *, struct lb_subchannel_watcher *);
static inline bool lb_subchannel_is_watched(const struct lb_subchannel *s)
{
	return s->watchers;
}
void lb_subchannel_unwatch(struct lb_subchannel *, struct lb_subchannel_watcher *);

// A policy wants a connection: IDLE → CONNECTING with an attempt; no effect in other states. Out of
// memory, attempts are made without backoff.
void lb_subchannel_request(struct lb_subchannel *);
// Its queued attempt may start.
void lb_subchannel_begin(struct lb_subchannel *);
// A request needs the connection: the attempt goes before those that no request needs. True = it is
// under way and young (lb/member/attempts.h).
bool lb_subchannel_expedite(struct lb_subchannel *);

// TRANSIENT_FAILURE: ends its wait and resets its backoff, like gRPC's ResetConnectBackoff. False =
// it was not waiting.
bool lb_subchannel_retry(struct lb_subchannel *);
// Its host was seen: the same, but no earlier than a second after the last attempt began, so that a
// host that announces itself all the time cannot cause a loop. True = the wait became shorter or
// ended.
bool lb_subchannel_heard(struct lb_subchannel *);

// Workers' reports (lb/pick/link.h). READY at the peer's first SETTINGS; resets the backoff
// (BO-03).
void lb_subchannel_connected(struct lb_subchannel *);
// The attempt failed. If the reason differs from the last one, the backoff is reset: something
// changed, for example a silent host now refuses.
void lb_subchannel_failed(struct lb_subchannel *, const char *why);
// The last connection was lost: IDLE, and the next attempt starts as soon as it is requested. A
// short-lived one (LB_EVENT_SHORT_LIVED) counts as a failed attempt.
void lb_subchannel_lost(struct lb_subchannel *, const char *why, bool was_short_lived);
