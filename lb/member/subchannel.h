// SPDX-License-Identifier: Apache-2.0
// Connectivity of one endpoint as the policies see it: IDLE → CONNECTING → READY, or
// TRANSIENT_FAILURE with backoff (BO-01..BO-04), then IDLE again. One record per address
// for all workers (MC-07). A state machine without I/O: it asks for a connection attempt, hears the
// outcome.
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

// Told of each change of state. on_state may watch and unwatch, request, and end the subchannel.
struct lb_subchannel_watcher {
	struct lb_subchannel_watcher *next; // linked by the subchannel
};

#define LB_SUBCHANNEL_REASONS 8

// Of all subchannels in a table of endpoints: lb_endpoint_table_user().
struct lb_subchannel_env {
	struct twheel *wheel; // ctrl's wheel and clock
	struct rand *rand; // jitter
	// Start one attempt at the endpoint's anchor worker. Its outcome comes later, never from
	// inside this call.
	void (*connect)(void *ctx, struct lb_endpoint *);
	// Says when; its begin() is lb_subchannel_begin(). NULL = as soon as they are wanted.
	struct lb_attempts *attempts;
	void *ctx;
	void (*on_state)(struct lb_subchannel_watcher *, enum lb_state); // of all watchers
	struct lb_subchannel_round *rounds; // of telling, that are under way; NULL at first
	uint32_t n_efforts; // of subchannels that failed or were lost, and are not READY since
	// Zero at first, and lb_subchannel_env_fini()'s. Reasons are few, and attempts that fail
	// for them many: they share the texts of the latest ones.
	struct lb_text *reasons[LB_SUBCHANNEL_REASONS]; // counted; NULL = none yet
	uint32_t n_reasons; // so far
	char said[IP_PORT_TEXT_MAX + 72]; // lb_subchannel_last_error()'s
};
void lb_subchannel_env_fini(struct lb_subchannel_env *);

// Lies in the table, in the place of its endpoint.
struct lb_subchannel {
	struct lb_endpoint endpoint;
	uint32_t
		n_users : 28; // lb/member/connectivity.c's: policies; zero = there is no subchannel
	uint32_t state : 2; // enum lb_state
	uint32_t has_effort : 1;
	uint32_t waits : 1; // CONNECTING, but the attempt's turn has not come
	struct lb_subchannel_watcher *watchers;
	union {
		// Owned: what attempts to connect need, from the first one that failed, or a
		// connection that was lost, until READY.
		struct lb_subchannel_effort *effort;
		uint64_t started_ns; // the last attempt, if there is no effort; 0 = there was none
	};
};

// Its storage outlives the callbacks that are under way when it ends; another subchannel may begin
// in it at once.
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
// "10.82.0.3:50051: refused" of the last attempt, or why the connection was lost; "" while READY.
// Valid until the next call for any subchannel of the environment.
const char *lb_subchannel_last_error(const struct lb_subchannel *);
void lb_subchannel_watch(struct lb_subchannel *, struct lb_subchannel_watcher *);
static inline bool lb_subchannel_is_watched(const struct lb_subchannel *s)
{
	return s->watchers;
}
void lb_subchannel_unwatch(struct lb_subchannel *, struct lb_subchannel_watcher *);

// A policy wants a connection: IDLE → CONNECTING and an attempt; otherwise nothing. Out of memory
// attempts are made without backoff.
void lb_subchannel_request(struct lb_subchannel *);
// The turn of its attempt, which waits, has come.
void lb_subchannel_begin(struct lb_subchannel *);
// A request needs the connection: its attempt waits for none that no request needs. True = it is
// under way, and young (lb/member/attempts.h).
bool lb_subchannel_expedite(struct lb_subchannel *);

// TRANSIENT_FAILURE: its wait is over, and its backoff begins anew, as gRPC's ResetConnectBackoff
// has it. False = it did not wait.
bool lb_subchannel_retry(struct lb_subchannel *);
// News of its host: the same, a second after the last attempt began at the earliest, so that nobody
// who makes news can make us spin.
// True = it waits less, or no more.
bool lb_subchannel_heard(struct lb_subchannel *);

// From the workers (lb/pick/link.h). READY at the peer's first SETTINGS (BO-03: resets the
// backoff).
void lb_subchannel_connected(struct lb_subchannel *);
// The attempt failed. For another reason than the last one: something has changed there, as where a
// host is up and refuses that was silent, so the backoff begins anew.
void lb_subchannel_failed(struct lb_subchannel *, const char *why);
// The last connection is gone: IDLE, and the next attempt begins as soon as it is asked for. One
// that was of no use (LB_EVENT_SHORT_LIVED) is as good as an attempt that failed.
void lb_subchannel_lost(struct lb_subchannel *, const char *why, bool was_short_lived);
