// SPDX-License-Identifier: Apache-2.0
// How the requests of a fleet spread over its backends, where each host chooses for itself.
// Thread: one.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct mesh;

enum requests_policy {
	REQUESTS_ROUND_ROBIN,
	REQUESTS_LEAST, // least_request, of two
	REQUESTS_RING, // ring_hash of each request's own hash, with gRPC's sizes
	REQUESTS_WRR_LOCALITY, // over round_robin; the subset above, of all localities together
	REQUESTS_IN_LOCALITY, // the same; the subset below, its part of each locality
	REQUESTS_WEIGHTED, // client_side_weighted_round_robin, with reports of what is so measured
	REQUESTS_N,
};

#define REQUESTS_LOCALITIES 4

struct requests_conf {
	uint64_t seed;
	uint32_t n_hosts, n_workers; // workers of each
	uint32_t n_requests; // of all hosts, of which the first may have one more than the last
	uint32_t n_under_way; // of a host
	uint32_t subset_size; // 0 = all
	enum requests_policy policy;
	bool is_uneven; // half of the backends can do half as much
};

const char *requests_policy_name(enum requests_policy);
// counts: [mesh->n], what each backend gets, over what it can do: requests of those that can do
// half as much count twice. The mesh has REQUESTS_LOCALITIES. False = out of memory.
bool requests_run(struct mesh *, const struct requests_conf *, uint32_t *counts);
