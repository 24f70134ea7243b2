// SPDX-License-Identifier: Apache-2.0
// One endpoint of one leaf cluster as its policies see it: one or more addresses that are a single
// balancing unit with one connection (gRFC A61, A62; PF-01..PF-08), and whether outlier
// detection has ejected it (A50-E16). It stays the same object over updates while its set of
// addresses does (A50-E04). Connecting walks the addresses as pick_first does; nothing connects
// unless a policy asks. Not the connection itself: that is the subchannels'.
// Thread: ctrl.
#pragma once

#include "lb/member/connectivity.h"
#include "lb/pick/endpoint.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_member;
struct lb_subchannel_watcher;

struct lb_member_link;
struct lb_member_round;
struct lb_member_slab;

// Whoever watches members, each under an index. Told of each change of what the functions below
// say. on_change may watch, unwatch and connect.
struct lb_member_watcher {
	void (*on_change)(struct lb_member_watcher *, uint32_t index);
	uint32_t n; // indexes are below this
	// member_watch.c's; zero at first, and when nobody is watched any more.
	uint32_t n_linked;
	struct lb_member_link *links; // [n], owned; NULL = nobody else watches the same ones
};

// Borrowed by all members made with it, whose memory is side by side.
struct lb_member_env {
	struct lb_connectivity *connectivity; // gives subchannels, the wheel
	uint64_t attempt_delay_ns; // until the next address is tried beside (PF-02); 250 ms
	// As a watcher of every member, told before the others; NULL = nobody.
	void (*on_change)(void *ctx, struct lb_member *);
	// The member of this number is gone, inside the last lb_member_put(); NULL = nobody.
	void (*on_gone)(void *ctx, uint32_t id);
	void *ctx;
	// Queued while members are put off; has them ask again (lb_member_ask_again). Without
	// take(), none is. To be unqueued before the env goes.
	struct lb_queued_attempt queued;
	// Of whoever expedites members: before this it is of no use. Zero at first, and again as
	// soon as anything changes about one of them.
	uint64_t rests_ns;
	// Zero at first, and when all members are gone.
	struct lb_member_slab *slabs; // with room
	uint32_t n_members;
	uint32_t n_expected; // of those that are about to be made: memory for just as many
	struct lb_member_round *rounds; // of telling watchers, that are under way
};

// Addresses are copied, n >= 1; the env outlives the member. Nothing is connected. Count 1. NULL =
// out of memory.
struct lb_member *lb_member_new(
	struct lb_member_env *, uint32_t id, const struct ip_port *addresses, uint32_t n);
struct lb_member *lb_member_get(struct lb_member *);
bool lb_member_is_shared(const struct lb_member *); // the caller's reference is not the only one
void lb_member_put(struct lb_member *); // NULL is fine; nobody watches it any more at the last

uint32_t lb_member_id(const struct lb_member *); // dense, of counters that workers keep
// Where whoever lists all of a leaf's members has it; 0 at first.
uint32_t lb_member_place(const struct lb_member *);
void lb_member_set_place(struct lb_member *, uint32_t place);
uint32_t lb_member_n_addresses(const struct lb_member *);
const struct ip_port *lb_member_address(const struct lb_member *, uint32_t i); // in EDS order
// The same set in another order is the same member; the order is taken over (PF-08), from the next
// pass on.
bool lb_member_same_set(const struct lb_member *, const struct ip_port *, uint32_t n);
// True = another one is the first.
bool lb_member_reorder(struct lb_member *, const struct ip_port *);

// TRANSIENT_FAILURE while ejected. Sticky: after a failure it is TRANSIENT_FAILURE until READY
// (ST-02, PF-05), whatever is tried meanwhile.
enum lb_state lb_member_state(const struct lb_member *);
// What its connection is like, ejected or not, and before stickiness: for sessions and operators.
enum lb_state lb_member_raw_state(const struct lb_member *);
// The address in use; NULL unless the raw state is READY. Borrowed: pickers count it.
struct lb_endpoint *lb_member_endpoint(const struct lb_member *);
const char *lb_member_last_error(const struct lb_member *); // "10.0.0.1:80: refused"; "" = none
// Asked inside on_change: its addresses may be stale, since as many attempts have failed as it has
// addresses, or its connection was lost (PF-05, PF-06).
bool lb_member_wants_resolution(const struct lb_member *);
// Raw IDLE only: begins a pass over the addresses. Where another cluster has a connection it is
// READY at once. Where its addresses have no room (LB_MAX_ENDPOINTS) it is TRANSIENT_FAILURE, says
// so, and tries again every few seconds. Out of memory it stays IDLE: ask again later.
void lb_member_connect(struct lb_member *);
// The same for a request that nobody else can serve: its attempt waits for none that no request
// needs (lb/member/attempts.h).
void lb_member_need(struct lb_member *);
// Of what is wanted but not needed yet. True = it is put off, since too many attempts
// wait for their turn already: it stays IDLE without any of what a connection takes, until its
// watchers hear once more that it is IDLE, and may ask again.
bool lb_member_connect_in_turn(struct lb_member *);
bool lb_member_ask_again(struct lb_member *); // inside of here, if it is put off: true
// A request waits for somebody of its leaf: the attempt to connect that waits for its turn begins
// (lb/member/attempts.h). True = one is under way, and young.
bool lb_member_expedite(struct lb_member *);
void lb_member_set_ejected(struct lb_member *, bool);
bool lb_member_is_ejected(const struct lb_member *);
// Nobody needs its connection any more: subchannels are given back, the state is IDLE.
void lb_member_disconnect(struct lb_member *);

// False = out of memory.
[[nodiscard]] bool lb_member_watch(struct lb_member *, struct lb_member_watcher *, uint32_t index);
bool lb_member_is_watched(const struct lb_member *);
void lb_member_unwatch(struct lb_member *, struct lb_member_watcher *, uint32_t index);

// Of lb_subchannel_env: nobody but members watches subchannels.
void lb_member_on_state(struct lb_subchannel_watcher *, enum lb_state);
