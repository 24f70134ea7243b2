// SPDX-License-Identifier: Apache-2.0
// All endpoints of the process and their subchannels: one per address and security, shared by all
// clusters (MC-07). Turns workers' reports into subchannel states (MC-03), and connect requests of
// policies into calls that send commands to workers. No I/O of its own.
// Thread: ctrl.
#pragma once

#include "lb/base/list.h"
#include "lb/pick/endpoint.h"

#include <stdbool.h>
#include <stdint.h>

struct ip_port;
struct lb_connectivity;
struct lb_event;
struct lb_queued_attempt;
struct lb_security;
struct lb_subchannel;
struct lb_subchannel_watcher;
struct lb_timers;
struct rand;
struct twheel;

struct lb_connectivity_env {
	struct twheel *wheel; // ctrl's wheel and clock
	struct rand *rand; // jitter
	uint32_t n_workers;
	// Send LB_COMMAND_CONNECT to the anchor, lb_endpoint_anchor(id, n_workers).
	void (*connect)(void *ctx, struct lb_endpoint *);
	// Sends LB_COMMAND_RELEASE to every worker: no policy and no snapshot uses it any more.
	void (*release)(void *ctx, struct lb_endpoint *);
	void *ctx;
	// Limits of connection attempts, as in lb_attempts_conf.
	uint32_t max_young_attempts, max_attempts;
	// How many subchannels may wait for their first attempt, each with its memory; further
	// members are put off (lb_queued_attempt). 0 = any number.
	uint32_t max_waiting;
	// [LB_MAX_ENDPOINTS] lb_shared.timers; NULL = nobody reads them.
	struct lb_timers *timers;
	// Told of each change of a subchannel's state: lb_member_on_state, or a fake.
	void (*on_state)(struct lb_subchannel_watcher *, enum lb_state);
};

// A leaf with members that were put off. Leaves take turns, so that none has to wait for all
// members of another.
struct lb_queued_attempt {
	struct list_link link; // private to lb/member/connectivity.c
	// Lets some members ask again, and queues the leaf once more if others are left.
	void (*take)(struct lb_queued_attempt *);
};

struct lb_connectivity *lb_connectivity_new(
	const struct lb_connectivity_env *); // NULL = out of memory
// Frees the endpoints too. All policies and snapshots must be freed before.
void lb_connectivity_free(struct lb_connectivity *); // NULL is fine

// Returns the subchannel of an address, counted; NULL if out of memory or at LB_MAX_ENDPOINTS.
// security: counted by it; NULL = plain text.
struct lb_subchannel *lb_connectivity_get(
	struct lb_connectivity *, const struct ip_port *, struct lb_security *);
// Reserves memory for n more subchannels of new addresses; an optimization.
void lb_connectivity_expect(struct lb_connectivity *, uint32_t n);
bool lb_connectivity_is_full(const struct lb_connectivity *); // LB_MAX_ENDPOINTS reached
void lb_connectivity_put(struct lb_connectivity *, struct lb_subchannel *);

// Attempts that have not started, and members put off.
uint32_t lb_connectivity_n_waiting(const struct lb_connectivity *);
uint32_t lb_connectivity_n_attempts(const struct lb_connectivity *); // attempts under way
// True if an attempt waits and one that a request needs could start (lb_attempts_may_expedite).
bool lb_connectivity_may_expedite(const struct lb_connectivity *);
uint64_t lb_connectivity_aging_ns(const struct lb_connectivity *); // lb_attempts_aging_ns()

// Handles an endpoint event (CONNECTED to SHORT_LIVED, RELEASED) or NEIGHBOR from this worker's
// link. Ignores endpoints that are no longer used.
void lb_connectivity_event(struct lb_connectivity *, uint32_t worker, const struct lb_event *);

// Ends the backoff of the address, or of all (NULL): lb_subchannel_retry. Returns how many waited.
uint32_t lb_connectivity_retry(struct lb_connectivity *, const struct ip_port *);

// A host (NULL: any) was seen: shortens the backoff of its endpoints (lb_subchannel_heard). Returns
// how many.
uint32_t lb_connectivity_heard(struct lb_connectivity *, const struct ip_addr *);

// True if another attempt may be queued, or while any number is allowed.
bool lb_connectivity_admits(const struct lb_connectivity *);
void lb_connectivity_admit_all(struct lb_connectivity *, bool);
// True if the endpoint is in use, or a worker has yet to release it (lb_endpoint_has).
bool lb_connectivity_has(
	const struct lb_connectivity *, const struct ip_port *, const struct lb_security *);
// One more member is put off, or one less.
void lb_connectivity_put_off(struct lb_connectivity *);
void lb_connectivity_take_up(struct lb_connectivity *);
void lb_connectivity_queue(
	struct lb_connectivity *, struct lb_queued_attempt *); // no effect if queued
// no effect if not queued
void lb_connectivity_unqueue(struct lb_connectivity *, struct lb_queued_attempt *);

// The times of an endpoint's connections, for the caller to write; NULL = nobody reads them.
struct lb_timers *lb_connectivity_timers(
	const struct lb_connectivity *, const struct lb_endpoint *);

struct twheel *lb_connectivity_wheel(const struct lb_connectivity *); // the environment's
struct lb_endpoint_table *lb_connectivity_endpoints(struct lb_connectivity *);
