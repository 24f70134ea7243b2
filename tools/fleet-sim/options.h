// SPDX-License-Identifier: Apache-2.0
// What the command line of fleet-sim says.
// Thread: one.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct options {
	uint64_t seed;
	uint32_t hosts, backends, connections, workers;
	uint32_t requests, under_way; // of all hosts; of one at a time
	uint32_t waves, wave_s; // of a rolling upgrade; one begins every wave_s
	uint32_t farewell_s, drain_s, lame_duck_s, age_s; // of shunt.yaml
	uint32_t start_s; // from a host's end until it is announced again
	uint32_t stream_s; // how long streams last on the average
	bool scale, load, subsets, spread, rolling, age; // which tables
};

// Says what is wrong, or what there is, on stderr. False = neither was to run.
bool options_read(int argc, char **argv, struct options *ret);
