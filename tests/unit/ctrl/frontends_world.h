// SPDX-License-Identifier: Apache-2.0
// The frontends of a configuration, from an xDS server that the test plays to the snapshots that
// workers read; time is the test's, too.
// Thread: the test's.
#pragma once

#include "ctrl/conf/reload.h"
#include "tests/unit/ctrl/deps/deps_fixture.h"

#include <stdint.h>

#define TURN_NS (10 * NS_PER_MS)

struct config;

struct world {
	struct deps_fixture deps; // its server, client and clock
	struct config *config;
	char **names; // as in struct frontends_conf
	struct lb_slot *slot;
	struct lb_shared *shared;
	struct lb_link *link; // of the only worker
	struct workers *workers;
	struct assembler *assembler;
	struct frontends *frontends;
	// Of reload_world.h: shunt.yaml, and what the last reload came to.
	char path[32];
	struct reload_report report;
};

// Behind deps_init(), with the configuration and names, which stay the caller's. steps: of what is
// made in slices, in a turn; 0 = as many as it takes.
void world_start(struct world *, uint64_t steps);
void world_end(struct world *); // but for the deps
void pass(struct world *, uint64_t ns);
// Of a Listener by wildcard: why it does not serve, or not what is newest; with this text in it.
void assert_says(struct world *, const char *listener, const char *text);
