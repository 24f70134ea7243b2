// SPDX-License-Identifier: Apache-2.0
// The control thread in small (tests/sim/proxy/control.h) for benches of the proxy: one cluster of
// four backends behind frontend 0. Nothing is ever freed: a bench ends.
// Thread: one.
#pragma once

#include "tests/sim/proxy/control.h"

#define PIPE_MAX_WORKERS 2
#define PIPE_BACKENDS 4

struct lb_shared;
struct lb_slot;

// What some workers have in common: control thread, snapshot, and what lies behind it.
struct pipe_control {
	struct wire wire; // only its time
	struct control control;
	struct lb_shared *shared;
	struct lb_link *links[PIPE_MAX_WORKERS];
	uint32_t n_workers, n_worlds;
	struct lb_slot *slot; // NULL = nothing is published yet
};

struct pipe_control *pipe_control_new(uint32_t n_workers, uint64_t now_ns);
// Once all its worlds are there: they read the snapshot by a slot (lb/slot.h) from now on. Whoever
// runs one begins with lb_slot_reader_start().
void pipe_control_publish(struct pipe_control *);
