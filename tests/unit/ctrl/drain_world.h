// SPDX-License-Identifier: Apache-2.0
// Frontends that are to be drained and a process that is to end: what workers are told, and when.
// Nobody obeys.
// Thread: the test's own.
#pragma once

#include "ctrl/assemble/drains.h"
#include "ctrl/conf/config.h"
#include "ctrl/shutdown.h"
#include "lb/base/err.h"
#include "lb/base/time.h"
#include "lb/pick/link.h"

#include <stdbool.h>
#include <stdint.h>

#define SECOND NS_PER_SECOND
#define N_FRONTENDS 3
#define MAX_WORKERS 2

struct world {
	struct config_frontend frontends[N_FRONTENDS];
	struct config config;
	struct loop *loop; // for its wheel; it never runs
	uint64_t now_ns;
	struct lb_shared *shared;
	struct lb_link *links[MAX_WORKERS];
	uint32_t n_workers;
	struct workers *workers;
	struct drains *drains;
	struct shutdown shutdown;
	unsigned n_changes, n_begins;
	struct lb_err err;
};

int drain_world_set_up(void **state); // with one worker
int drain_world_set_up_two(void **state); // workers
int drain_world_tear_down(void **state);

void pass(struct world *, uint64_t ns);
// What the first worker is told next, and the other one likewise.
struct lb_command heard(struct world *);
void assert_silence(struct world *); // it is told nothing
// Some ticks of the wheel may lie between.
void assert_about(uint64_t ns, uint64_t expected_ns);
