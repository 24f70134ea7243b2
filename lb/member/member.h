// SPDX-License-Identifier: Apache-2.0
// One endpoint of one leaf cluster as its policies see it: one or more addresses that form a single
// balancing unit with one connection (gRFC A61, A62; PF-01..PF-08), and whether outlier detection
// has ejected it (A50-E16). It stays the same object over updates as long as its set of addresses
// does (A50-E04). It tries its addresses in the way of pick_first, and only if a policy asks. The
// subchannels hold the connection.
// Thread: ctrl.
#pragma once

#include "lb/member/connectivity.h"
#include "lb/pick/endpoint.h"
#include "lb/pick/timers.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_member;
struct lb_subchannel_watcher;

struct lb_member_link;
struct lb_member_round;
struct lb_member_slab;
struct lb_security;

// Watches members, each under an index. Told of each change in what the functions below return.
// on_change may watch, unwatch and connect.
struct lb_member_watcher {
	void (*on_change)(struct lb_member_watcher *, uint32_t index);
	uint32_t n; // indexes are below this
	// Private to member_watch.c; zero at first, and when it watches no members.
	uint32_t n_linked;
	struct lb_member_link *links; // [n], owned; NULL = no member has another watcher
};

// Connections to endpoints as their members see them (gRFC A94): an endpoint's first one, whatever
// workers add to it. Those to its other addresses that the race gave up do not count, nor do those
// that there were already.
struct lb_connect_counts {
	uint64_t succeeded, failed, disconnections;
};

// Borrowed by all members made with it; they lie side by side in memory.
struct lb_member_env {
	struct lb_connectivity *connectivity; // provides subchannels and the wheel
	uint64_t attempt_delay_ns; // until the next address is tried in parallel (PF-02); 250 ms
	// Called like a watcher of every member, before the others; may be NULL.
	void (*on_change)(void *ctx, struct lb_member *);
	// The member of this id was freed, inside the last lb_member_put(); may be NULL.
	void (*on_gone)(void *ctx, uint32_t id);
	// How connections to the address are to be secured: 0 with *ret counted for the caller
	// (NULL = plain text), or -ENOMEM. NULL = all are plain text.
	int (*security)(void *ctx, const struct ip_port *, struct lb_security **ret);
	void *ctx;
	struct lb_connect_counts *connects; // added to, outlives it; NULL = nobody asks
	// Queued while members are put off; its callback lets them ask again (lb_member_ask_again).
	// Without take(), no member is put off. The owner unqueues it before it frees the env.
	struct lb_queued_attempt queued;
	// What their cluster asks for. To change it: lb_member_apply_timers() for each of them.
	struct lb_timers timers;
	// For the code that expedites members: no use before this time. Zero at first, and again
	// whenever a member changes.
	uint64_t rests_ns;
	// Zero at first, and when all members are freed.
	struct lb_member_slab *slabs; // slabs with room
	uint32_t n_members;
	uint32_t n_expected; // number of members about to be made: memory for exactly as many
	struct lb_member_round *rounds; // rounds of notification in progress
};

// Copies the addresses, n >= 1; the env outlives the member. Connects nothing. Count 1. Returns
// NULL if out of memory.
struct lb_member *lb_member_new(
	struct lb_member_env *, uint32_t id, const struct ip_port *addresses, uint32_t n);
struct lb_member *lb_member_get(struct lb_member *);
// true if there are references besides the caller's
bool lb_member_is_shared(const struct lb_member *);
// NULL is fine; the last put requires that nobody watches it
void lb_member_put(struct lb_member *);

uint32_t lb_member_id(const struct lb_member *); // dense id; indexes the workers' counters
// The member's index in its owner's list of all members; 0 at first.
uint32_t lb_member_place(const struct lb_member *);
void lb_member_set_place(struct lb_member *, uint32_t place);
uint32_t lb_member_n_addresses(const struct lb_member *);
const struct ip_port *lb_member_address(const struct lb_member *, uint32_t i); // in EDS order
// The same set in another order is the same member; lb_member_reorder() applies the new order
// (PF-08), from the next pass on.
bool lb_member_same_set(const struct lb_member *, const struct ip_port *, uint32_t n);
// True = the first address changed.
bool lb_member_reorder(struct lb_member *, const struct ip_port *);

// TRANSIENT_FAILURE while ejected or unhealthy; CONNECTING in place of READY before its first
// health check. Sticky: after a failure it stays TRANSIENT_FAILURE until READY
// (ST-02, PF-05).
enum lb_state lb_member_state(const struct lb_member *);
// The connection's state without ejection and stickiness: for sessions and display.
enum lb_state lb_member_raw_state(const struct lb_member *);
// The address in use; NULL unless the raw state is READY. Borrowed; a picker counts its own
// reference.
struct lb_endpoint *lb_member_endpoint(const struct lb_member *);
const char *lb_member_last_error(const struct lb_member *); // "10.0.0.1:80: refused"; "" = none
// Valid inside on_change: its addresses may be outdated, since as many attempts failed as it has
// addresses, or its connection was lost (PF-05, PF-06).
bool lb_member_wants_resolution(const struct lb_member *);
// If raw IDLE, starts a pass over the addresses. It is READY at once if another cluster has a
// connection. If there is no room for its addresses (LB_MAX_ENDPOINTS), it becomes
// TRANSIENT_FAILURE with that reason and retries every few seconds. Out of memory it stays IDLE:
// ask again later.
void lb_member_connect(struct lb_member *);
// The same for a request that no other member can serve: the attempt goes before those that no
// request needs (lb/member/attempts.h).
void lb_member_need(struct lb_member *);
// The same for a member that no request needs yet. True = it is put off because too many attempts
// wait already: it stays IDLE and uses no memory for a connection until its watchers are told IDLE
// again and may ask again.
bool lb_member_connect_in_turn(struct lb_member *);
// lets a member that is put off ask again; true if it was
bool lb_member_ask_again(struct lb_member *);
// A request waits for any member of the leaf: starts the member's waiting attempt
// (lb/member/attempts.h). True = an attempt is under way and young.
bool lb_member_expedite(struct lb_member *);
void lb_member_set_ejected(struct lb_member *, bool);
bool lb_member_is_ejected(const struct lb_member *);
// What active health checks say of it, apart from ejection (AHC-06).
enum lb_member_health { LB_MEMBER_SERVES, LB_MEMBER_UNCHECKED, LB_MEMBER_UNHEALTHY };
void lb_member_set_health(struct lb_member *, enum lb_member_health);
enum lb_member_health lb_member_health(const struct lb_member *);
// The env has other timers: connections made from now on have them.
void lb_member_apply_timers(struct lb_member *);
// True if what it has of connections, and of attempts to get some, is secured as fits() says.
bool lb_member_is_secured(const struct lb_member *,
	bool (*fits)(const void *ctx, const struct ip_port *, const struct lb_security *),
	const void *ctx);
// No user needs its connection any more: returns the subchannels; the state becomes IDLE.
void lb_member_disconnect(struct lb_member *);

// Returns false if out of memory.
[[nodiscard]] bool lb_member_watch(struct lb_member *, struct lb_member_watcher *, uint32_t index);
bool lb_member_is_watched(const struct lb_member *);
void lb_member_unwatch(struct lb_member *, struct lb_member_watcher *, uint32_t index);

// For lb_subchannel_env: all watchers of subchannels are members.
void lb_member_on_state(struct lb_subchannel_watcher *, enum lb_state);
