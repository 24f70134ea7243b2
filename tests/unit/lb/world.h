// SPDX-License-Identifier: Apache-2.0
// A control thread with virtual time and pretended workers, for tests of connectivity and policies.
// Thread: the test's.
#pragma once

#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/member/connectivity.h"
#include "lb/pick/link.h"

#include <stdint.h>

#define WORLD_MAX_ENDPOINTS 1024
#define WORLD_MS NS_PER_MS
#define WORLD_S NS_PER_SECOND
#define WORLD_START (1000 * WORLD_S)

struct world {
	struct twheel *wheel;
	struct rand rand;
	struct lb_connectivity *connectivity;
	uint32_t n_workers;
	uint32_t n_connects[WORLD_MAX_ENDPOINTS]; // asked of the anchor, by endpoint id
	uint64_t connect_ns[WORLD_MAX_ENDPOINTS]; // when the last one was asked for
	uint32_t n_releases[WORLD_MAX_ENDPOINTS];
	struct lb_timers timers[WORLD_MAX_ENDPOINTS]; // of their connections
};

void world_init(struct world *, uint32_t n_workers, uint64_t seed);
// As lb_connectivity_env has it.
void world_init_paced(struct world *, uint32_t n_workers, uint64_t seed, uint32_t max_young,
	uint32_t max_attempts, uint32_t max_waiting);
// Answers every release, and checks that nothing is left.
void world_fini(struct world *);
// 10.82.0.0 + n, port 50051
struct ip_port world_addr(uint32_t n);
// Lets time pass, millisecond by millisecond.
void world_pass(struct world *, uint64_t ns);
uint64_t world_now(const struct world *);
// The endpoint of this address, as long as it is not released; UINT32_MAX = nobody has taken it.
uint32_t world_id(const struct world *, const struct ip_port *);
// A report of a worker; id is the endpoint's.
void world_event(struct world *, uint32_t worker, enum lb_event_kind, uint32_t id, const char *why);
// Every worker answers one release of the endpoint.
void world_answer_release(struct world *, uint32_t id);
