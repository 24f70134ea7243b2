// SPDX-License-Identifier: Apache-2.0
// Load reports with two workers, whose counters the test writes, to a scripted server, in virtual
// time.
// Thread: the test's; counters may be written by others.
#pragma once

#include "ctrl/assemble/load_report.h"
#include "lb/pick/link.h"
#include "tests/unit/ctrl/xds/load/lrs_fixture.h"

#define N_WORKERS 2

struct load_world {
	struct lrs_fixture f;
	struct lb_shared *shared;
	struct lb_link *links[N_WORKERS];
	struct workers *workers;
	struct load_report *report;
};

void load_world_init(struct load_world *);
void load_world_init_small(struct load_world *, uint32_t max_counters);
void load_world_fini(struct load_world *); // leaves were freed before
// The stream is up and the server wants all clusters every 10 s.
void load_world_begin(struct load_world *);
// Second by second.
void load_world_pass(struct load_world *, unsigned seconds);
// 10 s later: what is told, as lrs_sent() says it; it has left.
const char *load_world_report(struct load_world *);

enum load_what { ISSUED, OK, FAILED };
void load_world_count(struct load_world *, uint32_t worker, uint32_t index, enum load_what);
