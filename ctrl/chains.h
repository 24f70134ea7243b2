// SPDX-License-Identifier: Apache-2.0
// The filter chains of one socket Listener (gRFC A36; A36-31 to A36-37): each is given what a
// target is given, by a dependency manager of its own, at a place behind shunt.yaml's frontends. A
// Listener takes effect as a whole, and chains that stay keep place and connections. Who serves it,
// a frontend or an address of the Listener itself, is the owner's.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct chain_places;
struct chains;
struct frontends_conf;
struct lb_chain_set;
struct lb_err;
struct res_listener;

struct chains_conf { // all borrowed, outlive them
	const struct frontends_conf *env;
	struct chain_places *places;
	uint32_t frontend; // whose name and settings the chains have
	const char *listener; // its name
	bool by_wildcard; // it came with all others; one that the server deletes is gone then
	// Why the owner can't serve this Listener, the newest one; "" = it can.
	void (*check)(void *ctx, const struct res_listener *, struct lb_err *ret);
	// The owner's connections get these chains from now on; error: why they are none; "" = they
	// serve. It may take a reference.
	void (*publish)(void *ctx, struct lb_chain_set *, const char *error);
	void *ctx;
};

// Watches the Listener. NULL = out of memory.
struct chains *chains_new(const struct chains_conf *);
void chains_free(struct chains *); // NULL is fine
// Again, after the server had deleted it (by wildcard). 0 or -ENOMEM.
[[nodiscard]] int chains_watch(struct chains *);
void chains_reresolve(struct chains *); // as frontends_reresolve()
// What check() said may be otherwise now: asks anew if the Listener is refused.
void chains_check_again(struct chains *);

// The same, whether it is refused or serves.
void chains_look_again(struct chains *);
// Nobody wants the Listener any more: its clients are sent away, and then it is gone.
void chains_leave(struct chains *);

// As frontends_waiting() and frontends_refused().
const char *chains_waiting(struct chains *);
const char *chains_refused(struct chains *);
const char *chains_error(const struct chains *); // why the Listener does not serve; "" = it does
uint32_t chains_count(const struct chains *); // those that serve or whose clients leave
// A newer Listener is not serving yet, nor known not to.
bool chains_is_unsettled(const struct chains *);
bool chains_wants_room(const struct chains *); // unsettled, for want of places or memory
// The server has deleted the Listener, of one by wildcard, or chains_leave() was called; and the
// last clients had their time.
bool chains_is_gone(const struct chains *);
