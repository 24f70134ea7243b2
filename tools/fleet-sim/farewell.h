// SPDX-License-Identifier: Apache-2.0
// Hosts that say farewell to their clients (FL-41), at shuntd's times and its pace; each client has
// one stream open, which goes on until it ends or is cut.
// Thread: one.
#pragma once

#include "lb/base/rand.h"

#include <stdbool.h>
#include <stdint.h>

struct farewell_conf {
	uint64_t seed;
	uint32_t farewell_s, drain_s; // of shunt.yaml
	uint32_t stream_s; // how long streams last, on the average (exponentially)
};

struct farewell {
	const bool *is_leaving; // borrowed: by host
	uint64_t hush_ns; // from then on nobody new is answered
	uint64_t until_ns; // its end, where the drain begins
	uint64_t cut_ns; // the drain's end
	uint64_t stream_ns;
	uint64_t last_ns; // when the last stream ends, those that are cut left out
	uint64_t n_told; // by GOAWAY
	uint64_t n_streams_cut;
	struct rand rand;
};

void farewell_begin(
	struct farewell *, const struct farewell_conf *, const bool *is_leaving, uint64_t now_ns);
// When a client is told that is at this host now, or comes to it. UINT64_MAX = not at all: the host
// stays, or the client hears nothing there.
uint64_t farewell_tells_at(struct farewell *, uint32_t host, uint64_t now_ns);
// One is told, and goes.
void farewell_tell(struct farewell *, uint64_t now_ns);
// When nobody is left, once all have been told: readiness goes.
uint64_t farewell_ends_at(const struct farewell *);
