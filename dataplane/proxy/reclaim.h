// SPDX-License-Identifier: Apache-2.0
// Ends requests that hold places of breakers while they wait for their own clients (place.h): those
// that gave way, and those of which less than PROXY_LEAST_RATE came for PROXY_PATIENCE_NS while at
// least half of their breaker was taken (TH-129). For the latter all requests are looked at in the
// order in which they lie in their pool, so many at a time and each once a second, from when a
// place is counted (share.h) until none is and no breaker is half full. On the way those that were
// sent before anybody counted are counted, if they are slow. Nothing is noted when requests come
// or go; only an answer whose stream's window shuts is, at once (TH-137).
// Thread: the owning worker.
#pragma once

#include "lb/base/list.h"
#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stdint.h>

struct proxy;
struct proxy_request;

struct proxy_reclaim {
	struct list_link ending; // requests that gave way in this turn, by proxy_held.owing
	struct twheel_timer timer;
	uint64_t round_ns; // when the first request of the pool was looked at
	uint32_t at; // the next one
	bool pressed; // in this round some breaker was half full
};

void proxy_reclaim_init(struct proxy_reclaim *);
// The client's window for the stream keeps some of its answer back. If it let next to nothing go,
// and a quarter of the breaker is taken, the request is counted, and may give way from now on.
void proxy_reclaim_note_shut(struct proxy_request *);
// While places are counted, before the turn ends. True = requests that gave way have ended, and
// left something to write.
bool proxy_reclaim_turn(struct proxy *);
