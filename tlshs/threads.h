// SPDX-License-Identifier: Apache-2.0
// Threads that do nothing but handshakes, for all workers: each has a link with each worker. They
// poll, and sleep longer and longer while there is nothing, up to a millisecond. A flood of
// handshakes finds its bounds here, and costs workers a copy of its bytes.
// Thread: new and free on the control thread; counters and open on any.
#pragma once

#include "lb/base/counter.h"
#include "tlshs/link.h"

#include <stdint.h>

struct tlshs_keylog;
struct tlshs_threads;

struct tlshs_threads_conf {
	uint32_t n_threads, n_workers; // from 1
	uint32_t max_handshakes; // at a time, of one link: indexes of ids are below it
	// At a time, in all, three quarters of it with clients; 0 = no bound but that. From half of
	// that on, lb/base/share.h decides who gets one more.
	uint32_t max_open;
	uint32_t max_open_of_source; // likewise; lb/base/sketch.h counts them
	uint32_t n_slots; // of each ring; 0 = 64
	uint64_t timeout_ns; // of one handshake; 0 = 10 s
	uint64_t patience_ns; // with a client that owes a flight, while half is taken; 0 = 1.5 s
	struct tlshs_keylog *keys; // borrowed, outlives them; NULL = none
};

// NULL = out of memory, or no thread or randomness is to be had.
struct tlshs_threads *tlshs_threads_new(const struct tlshs_threads_conf *);
// After all workers have stopped. Handshakes under way are dropped. NULL is fine.
void tlshs_threads_free(struct tlshs_threads *);
// Between this worker and this thread; the worker's to use until tlshs_threads_free().
struct tlshs_link *tlshs_threads_link(struct tlshs_threads *, uint32_t worker, uint32_t thread);
// One thread's ends by enum tlshs_outcome; those that were stopped before count as lost.
struct counter_set tlshs_threads_counters(const struct tlshs_threads *, uint32_t thread);
uint32_t tlshs_threads_open(const struct tlshs_threads *); // handshakes at this moment
