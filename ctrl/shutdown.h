// SPDX-License-Identifier: Apache-2.0
// The end of the process, from the signal to the loop's last turn: readiness goes, clients are
// taken for lame_duck_s, workers drain for drain_s, and the loop stops once all have, or when it is
// too late. What operators have drained already is not waited for anew (OPS-75). With farewell_s
// the order is another one (FL-41): clients are sent away, then workers drain, and only when nobody
// is left readiness goes, for lame_duck_s.
// Thread: ctrl.
#pragma once

#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stdint.h>

struct config;
struct drains;
struct loop;
struct workers;

struct shutdown { // the caller sets what stands first; the rest is zero
	const struct config *config; // borrowed, as the next three
	struct loop *loop;
	struct workers *workers;
	struct drains *drains;
	void (*on_begin)(void *ctx); // nobody is to send more clients here
	void *ctx;
	// False = others would be harmed by our end: shutdown_look() is called when they are gone.
	// NULL = nobody is.
	bool (*may_end)(void *ctx);
	bool begun, draining;
	bool left; // another process has our place: the first signal is no second one
	bool over; // nothing is left to be done
	bool says_farewell; // readiness stays until nobody is left
	bool told; // on_begin was called
	uint32_t n_drained; // workers
	uint64_t n_cut; // requests of theirs that the drain's deadline ended
	struct twheel_timer
		lame_timer; // until clients are sent away; after a farewell, until the end
	struct twheel_timer drain_timer;
};

// Begins it; a second call stops the loop at once.
void shutdown_signal(struct shutdown *);
// Begins it where another process of ours takes the clients by now: nobody is told not to send
// more, and what is half open here gets the time to become a connection. One that has begun goes
// on, but for readiness: it is the other's.
void shutdown_leave(struct shutdown *);
// Ends if all is done that was to be waited for.
void shutdown_look(struct shutdown *);
// n_cut: how many of its requests the deadline ended.
void shutdown_worker_drained(struct shutdown *, uint32_t worker, uint32_t n_cut);
// True if all workers have drained: n_cut is all that was cut.
bool shutdown_is_drained(const struct shutdown *);
