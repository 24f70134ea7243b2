// SPDX-License-Identifier: Apache-2.0
// When a worker that found nothing to do may sleep, and how it is woken: by frames where a port has
// a descriptor for poll(2), by the next timer, and often enough to see commands and snapshots.
// Thread: the worker.
#pragma once

#include "dataplane/net/net.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

struct handover_end;
struct port_queue;
struct twheel;

struct idle {
	struct port_queue *const *queues; // borrowed
	uint32_t n_queues;
	struct handover_end *peers; // borrowed
	// Of the sleep at hand.
	struct pollfd fds[NET_MAX_PORTS + 1]; // the last one in use may be the peers'
	uint32_t n_fds;
	bool all_wake; // every port has a descriptor
	uint64_t since_ns; // of the first empty turn in a row; 0 = the last one was busy
	uint64_t spin_ns; // how long to keep polling before a sleep; adapts
	uint64_t sleep_ns; // of the next sleep when a port can't wake us; grows
	uint64_t asleep_ns; // when the first sleep of this row began; 0 = none yet
};

// Makes the thread's sleeps exact, too. The array outlives it. Frames from peers end a sleep.
void idle_init(struct idle *, struct port_queue *const *queues, uint32_t n_queues,
	struct handover_end *peers);
// After every turn. Sleeps (offline for RCU) if that is right, at most until the next timer.
void idle_step(struct idle *, bool busy, uint64_t now_ns, const struct twheel *);
