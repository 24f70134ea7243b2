// SPDX-License-Identifier: Apache-2.0
// Decides when a worker without work may sleep, and what wakes it: frames on ports with a
// descriptor for poll(2), the next timer, and a limit that lets it see commands and snapshots.
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
	// Of the current sleep.
	int wake_fd; // an eventfd that somebody else rings; -1 = none
	struct pollfd fds[NET_MAX_PORTS + 2]; // the last ones may be the handover's and wake_fd
	uint32_t n_fds;
	bool all_wake; // every port has a descriptor
	uint64_t since_ns; // start of the run of empty turns; 0 = the last turn had work
	uint64_t spin_ns; // time to keep polling before sleeping; adaptive
	uint64_t sleep_ns; // next sleep if a port cannot wake us; grows
	uint64_t asleep_ns; // start of the first sleep in this run; 0 = none yet
};

// Also makes the thread's sleeps precise. queues outlives it. Frames from peers end a sleep.
void idle_init(struct idle *, struct port_queue *const *queues, uint32_t n_queues,
	struct handover_end *peers, int wake_fd);
// Call after every turn. Sleeps (offline for RCU) if appropriate, at most until the next timer.
// is_polling: something is expected that wakes nobody, so that a sleep is short.
void idle_step(struct idle *, bool busy, bool is_polling, uint64_t now_ns, const struct twheel *);
