// SPDX-License-Identifier: Apache-2.0
// All endpoints of the process and their subchannels: one per address for every cluster (MC-07).
// Turns what workers report into subchannel states (MC-03), and connect requests of policies into
// calls that the control thread sends to workers. No I/O of its own.
// Thread: ctrl.
#pragma once

#include "lb/pick/endpoint.h"

#include <stdbool.h>
#include <stdint.h>

struct ip_port;
struct lb_connectivity;
struct lb_event;
struct lb_queued_attempt;
struct lb_subchannel;
struct rand;
struct twheel;

struct lb_connectivity_env {
	struct twheel *wheel; // ctrl's wheel and clock
	struct rand *rand; // jitter
	uint32_t n_workers;
	// Send LB_COMMAND_CONNECT to the anchor, lb_endpoint_anchor(id, n_workers).
	void (*connect)(void *ctx, struct lb_endpoint *);
	// Send LB_COMMAND_RELEASE to every worker: no policy and no snapshot has it any more.
	void (*release)(void *ctx, struct lb_endpoint *);
	void *ctx;
	// Of attempts to connect: as lb_attempts_conf's.
	uint32_t max_young_attempts, max_attempts;
	// So many may wait for their turn, with all that an address takes, besides those that were
	// tried before; what is wanted beyond them is put off (lb_queued_attempt). 0 = any number.
	uint32_t max_waiting;
};

// A leaf, some of whose members were put off. Leaves have their turns one after the other, so that
// none waits for all members of another.
struct lb_queued_attempt {
	struct lb_queued_attempt *next, *prev; // lb/member/connectivity.c's; NULL = not queued
	// Some of them may ask again. Queues it once more if others are left.
	void (*take)(struct lb_queued_attempt *);
};

struct lb_connectivity *lb_connectivity_new(
	const struct lb_connectivity_env *); // NULL = out of memory
// Frees the endpoints too: all policies and snapshots are gone before.
void lb_connectivity_free(struct lb_connectivity *); // NULL is fine

// The subchannel of an address; counted. NULL = out of memory or LB_MAX_ENDPOINTS reached.
struct lb_subchannel *lb_connectivity_get(struct lb_connectivity *, const struct ip_port *);
// So many may soon be asked for that nobody has asked for before. Saves time.
void lb_connectivity_expect(struct lb_connectivity *, uint32_t n);
bool lb_connectivity_is_full(const struct lb_connectivity *); // LB_MAX_ENDPOINTS reached
void lb_connectivity_put(struct lb_connectivity *, struct lb_subchannel *);

// Attempts that have yet to begin, and members put off.
uint32_t lb_connectivity_n_waiting(const struct lb_connectivity *);
uint32_t lb_connectivity_n_attempts(const struct lb_connectivity *); // that are under way
// Of attempts, if any waits: one that a request needs could begin (lb_attempts_may_expedite).
bool lb_connectivity_may_expedite(const struct lb_connectivity *);
uint64_t lb_connectivity_aging_ns(const struct lb_connectivity *); // lb_attempts_aging_ns()

// An endpoint event (CONNECTED to SHORT_LIVED, RELEASED), or NEIGHBOR, of this worker's link.
// Ignores endpoints that nobody uses any more.
void lb_connectivity_event(struct lb_connectivity *, uint32_t worker, const struct lb_event *);

// The wait of the address, or of all (NULL), is over (lb_subchannel_retry). How many waited.
uint32_t lb_connectivity_retry(struct lb_connectivity *, const struct ip_port *);

// News of a host, or of all (NULL): those that wait for it wait less (lb_subchannel_heard). How
// many.
uint32_t lb_connectivity_heard(struct lb_connectivity *, const struct ip_addr *);

// Another attempt may wait for its turn; or, while it is said so, any may.
bool lb_connectivity_admits(const struct lb_connectivity *);
void lb_connectivity_admit_all(struct lb_connectivity *, bool);
// Somebody does, or some worker has yet to release it (lb_endpoint_has).
bool lb_connectivity_has(const struct lb_connectivity *, const struct ip_port *);
// One more member is put off, or one less.
void lb_connectivity_put_off(struct lb_connectivity *);
void lb_connectivity_take_up(struct lb_connectivity *);
void lb_connectivity_queue(
	struct lb_connectivity *, struct lb_queued_attempt *); // unless it is already
void lb_connectivity_unqueue(struct lb_connectivity *, struct lb_queued_attempt *); // if it is

struct twheel *lb_connectivity_wheel(const struct lb_connectivity *); // the env's
struct lb_endpoint_table *lb_connectivity_endpoints(struct lb_connectivity *);
